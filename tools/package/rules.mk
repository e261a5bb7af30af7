# What people install: the Debian packages, an archive, npm packages, an image. Everything goes below build/package.
.PHONY: deb stage tarball try-install npm try-npm image try-image release reproducible
TRIPLET = $(or $(CROSS),$(shell $(CC) -dumpmachine))
ARCH    = $(if $(filter aarch64%,$(TRIPLET)),arm64,x64)
STAGE   = build/package/cairn-$(VERSION)-linux-$(ARCH)
DEBARCH = $(patsubst x64,amd64,$(ARCH))
REVISION = $(shell git rev-parse HEAD 2>/dev/null)
# Times in what is made are that of the commit: two builds of it are the same bytes.
tarball npm image deb: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

deb: setup-deb built ## build the Debian packages cairn and cairn-dev below build/package
	@tools/package/deb $(VERSION)

stage: setup-tarball built
	@mkdir -p $(dir $(STAGE))
	@tools/package/stage $(STAGE) $(B) $(VERSION) $(TRIPLET) $(CROSS)

tarball: stage ## build cairn-VERSION-linux-ARCH.tar.zst and .tar.gz, with all libraries, below build/package
	@tools/package/tarball $(STAGE)

try-install: tarball ## install the archive in empty Debian 12, 13 and testing, serve from it, remove it (root)
	@tools/setup release
	@tools/package/try-install $(STAGE)

npm: stage ## build the npm packages cairn and @cairn/linux-ARCH below build/package/npm
	@node tools/package/npm/pack.mjs build/package/npm $(VERSION) $(STAGE)

try-npm: npm ## install them in a project and serve it by npx
	@tools/setup npm
	@tools/package/npm/try build/package/npm $(VERSION) $(ARCH)

image: stage ## build the image cairn-VERSION-image-ARCH.tar (OCI) below build/package (root)
	@tools/setup image
	@tools/package/image/root $(STAGE) build/package/image-$(DEBARCH)
	@node tools/package/image/oci.mjs build/package/cairn-$(VERSION)-image-$(DEBARCH).tar $(VERSION) "$(REVISION)" \
	  $(DEBARCH)=build/package/image-$(DEBARCH)

try-image: image ## run the image in podman: read-only, without a capability, signals, health, an upload (root)
	@tools/setup try-image
	@tools/package/image/try build/package/cairn-$(VERSION)-image-$(DEBARCH).tar $(B)/cairn

release: setup-tarball setup-deb setup-image ## all of it from a clean copy: changelog, tag, files, SHA256SUMS; VERSION=1.2.3, KEY=ID signs (root)
	@tools/package/release make $(VERSION)

reproducible: setup-tarball setup-deb setup-image ## build what is released of this commit twice, and compare each byte (root)
	@tools/package/release compare HEAD
