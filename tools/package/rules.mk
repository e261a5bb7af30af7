# What people install: the Debian packages, an archive, npm packages, an image. Everything goes below build/package.
.PHONY: deb tarball try-install
TRIPLET = $(or $(CROSS),$(shell $(CC) -dumpmachine))
ARCH    = $(if $(filter aarch64%,$(TRIPLET)),arm64,x64)
STAGE   = build/package/cairn-$(VERSION)-linux-$(ARCH)
# Times in what is made are that of the commit: two builds of it are the same bytes.
tarball: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

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
