# One build description. `make help` lists the targets. Here is what builds, installs and checks the tree; what belongs to
# a folder of test/ is in its rules.mk.
#
# Everything goes below build/. SAN=address,undefined or SAN=thread builds a
# second tree beside the first, CROSS=aarch64-linux-gnu one for that machine; CC=clang works too.

SAN    ?=
CROSS  ?=
CC     := $(if $(filter default,$(origin CC)),$(CROSS:%=%-)gcc,$(CC))
CCACHE := $(shell command -v ccache 2>/dev/null)
comma  := ,
B      := build$(if $(CROSS),/$(CROSS))$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
PREFIX ?= /usr/local

VERSION := 0.1.0

# Debian packages: name by name, so that tools/setup can install what is missing.
PKGS := javascriptcoregtk-4.1 libuv libcurl openssl zlib libbrotlienc libbrotlidec libzstd liblz4 icu-uc icu-i18n libpq
# Debian 12 has llhttp as sources, Debian 13 as a library.
LLHTTP  := $(wildcard /usr/share/llhttp)
PKGS    += $(if $(LLHTTP),,libllhttp)
SQLITE  := node_modules/better-sqlite3/deps/sqlite3

SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            -Wno-unused-parameter -Werror
# clang takes a long text in a table for a forgotten comma.
WARN     += $(if $(findstring clang,$(CC)),-Wno-string-concatenation)
OPT      := $(if $(SAN),-O1,-O2) -g
# Builds that look for mistakes compare counters with what they count: src/base/loop.h W3.
CHECKS   := $(if $(SAN),-DCN_DEBUG)
# pkg-config is asked once, at the first use: not before `setup` has installed what it knows.
PKG_CONFIG := $(if $(CROSS),PKG_CONFIG_LIBDIR=/usr/lib/$(CROSS)/pkgconfig:/usr/share/pkgconfig) pkg-config
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell $$(PKG_CONFIG) --cflags $(PKGS) | sed 's/-I/-isystem /g'))$(PKG_CFLAGS)
# libcurl is loaded with the first request that goes out: src/net/curl_lazy.c;
# libpq when a cluster is asked for: src/membership/pq.c.
PKG_LIBS   = $(eval PKG_LIBS := $$(shell $$(PKG_CONFIG) --libs $(filter-out libcurl libpq,$(PKGS))))$(PKG_LIBS)
CFLAGS_ALL = -std=gnu11 $(OPT) $(CHECKS) $(WARN) $(SANFLAGS) -pthread -D_GNU_SOURCE -DCN_VERSION='"$(VERSION)"' \
             -Isrc -Ibuild -I. $(if $(LLHTTP),-isystem /usr/share/include/llhttp) -isystem $(SQLITE) $(PKG_CFLAGS) $(CFLAGS)
LDLIBS_ALL = $(SANFLAGS) $(PKG_LIBS) -lm -ldl -pthread

# -std=c11: without GNU extensions SQLite does not read the time stamp counter at every step of a
# statement whose rows are counted (STMT_SCANSTATUS), which would cost 0.5 us per commit.
SQLITE_FLAGS := -std=c11 -D_GNU_SOURCE -DSQLITE_THREADSAFE=2 -DSQLITE_DEFAULT_MEMSTATUS=0 -DSQLITE_OMIT_SHARED_CACHE \
  -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_DEPRECATED -DSQLITE_DQS=3 -DSQLITE_DEFAULT_FOREIGN_KEYS=1 \
  -DSQLITE_LIKE_DOESNT_MATCH_BLOBS -DSQLITE_USE_ALLOCA -DSQLITE_OMIT_AUTOINIT -DSQLITE_DEFAULT_LOOKASIDE=128,32 \
  -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_COLUMN_METADATA \
  -DSQLITE_ENABLE_UPDATE_DELETE_LIMIT -DSQLITE_ENABLE_STMT_SCANSTATUS \
  -DSQLITE_TEMP_STORE=3 -DSQLITE_MAX_MMAP_SIZE=0 -DSQLITE_DEFAULT_PCACHE_INITSZ=0 -DSQLITE_MAX_PAGE_COUNT=2621440

# What is in src/store/sqlite/ is compiled together with SQLite.
SRCS    := $(filter-out src/cli/main.c src/bundler/main.c src/store/sqlite/%,$(wildcard src/*/*.c src/*/*/*.c))
OBJS    := $(SRCS:src/%.c=$(B)/obj/%.o)
LIB     := $(B)/libcairn.a
THIRD   := $(B)/third/sqlite3.o $(if $(LLHTTP),$(B)/third/llhttp.o $(B)/third/llhttp-api.o $(B)/third/llhttp-http.o)

TESTLIB := $(B)/libtest.a

# Short lines; V=1 shows the commands.
ifeq ($(V),)
Q := @
say = @printf '  %-6s %s\n' $(1) $(2)
else
say =
endif

# The one way a C file is compiled, $(call cc,FLAGS), and ours, whose headers are remembered for the next time.
define cc
@mkdir -p $(@D)
$(call say,CC,$<)
$(Q)$(CCACHE) $(CC) $(1) -c $< -o $@
endef
compile = $(call cc,$(CFLAGS_ALL) $(1) -MMD -MP)
# $(call link,OBJECTS AND LIBRARIES)
define link
$(call say,LINK,$@)
$(Q)$(CC) -o $@ $(1)
endef
# $(call embed,SYMBOL,FILE): a file as an object.
define embed
@mkdir -p $(@D)
$(call say,AS,$(2))
$(Q)$(CC) -DNAME=$(1) -DFILE='"$(2)"' -c $< -o $@
endef
# $(call npm-ci,FOLDER): the packages that a folder's lock file names, when it has changed.
npm-ci = cmp -s $(1)/package-lock.json $(1)/node_modules/.cairn-stamp || { node tools/npm-ci.mjs $(1) && \
  cp $(1)/package-lock.json $(1)/node_modules/.cairn-stamp; }

# How tests find the server, and run; the same under sanitizers.
SERVER = CAIRN=$(abspath $(B)/cairn)
NODE_TEST = node --test --test-reporter=spec
SAN_SERVER = build/san-address-undefined/cairn
TSAN_SERVER = build/san-thread/cairn
# Runs a command whose servers are those of a folder: any report is a failure.
SANITIZED = node test/lib/sanitized.mjs
SANITIZED_SECONDS ?= 14400
# Tests of node so: $(call sanitized_tests,SERVER,FILES,HOW MANY AT A TIME).
sanitized_tests = $(SANITIZED) $(dir $(1)) bash -c \
  'timeout $(SANITIZED_SECONDS) $(NODE_TEST) --test-concurrency=$(3) $(2) 2>&1 | tools/summary'

SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.PHONY: FORCE all built next help setup setup-% workerd test run install uninstall lint docs docs-check docs-lint site clean
.DELETE_ON_ERROR:
.SECONDARY:

# As many jobs as there are cores, unless -j was given.
JOBS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

all: next ## build build/cairn

built: setup
	@$(MAKE) $(JOBS) $(B)/cairn

# What to type next, from where `make` was typed.
next: built
	@echo
	@echo "$(B)/cairn is built. Next:"
	@echo "  $(B)/cairn new hello && $(B)/cairn dev hello     a first worker at http://127.0.0.1:8787/"
	@echo "  make run                                     the examples and applications of this tree"
	@echo "  sudo make install                            below $(PREFIX); make deb makes a Debian package"

help: ## this list
	@grep -hE '^[a-z_.-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# Packages: installs what is missing when root, otherwise prints the command. Cheap when all is there. tools/packages
# has the kinds: what the build needs, and for `setup-test`, `setup-lint` and so on what these need as well.
setup: ## install the packages that the build needs (Debian and npm)
	@tools/setup

setup-%:
	@tools/setup $*

# The hosted platform's own runtime, 120 MB: for comparisons alone.
workerd: setup
	@$(call npm-ci,test/workerd)

# The border with JavaScript: a table, src/bindings/border.ts, and the parts of it that services have in their folders.
build/border/made: src/bindings/border.ts $(wildcard src/service/*/border.ts) tools/border.mjs
	$(call say,BORDER,$<)
	$(Q)node tools/border.mjs $(@D)
	@touch $@
build/border/%.h: build/border/made ;
build/border/check.c: build/border/made ;

$(B)/obj/%.o: src/%.c | build/border/made
	$(compile)

# The starters of `cairn new`, as a table.
build/templates.h: tools/build-templates.mjs $(shell find templates -type f)
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)node tools/build-templates.mjs templates $@
$(B)/obj/cli/starter.o: build/templates.h

# Compiled again when its flags change.
FORCE:
$(B)/third/sqlite3.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(SQLITE_FLAGS)' | cmp -s - $@ || echo '$(SQLITE_FLAGS)' > $@
# With what we do inside it, which needs its private types.
$(B)/third/sqlite3.o: src/store/sqlite/engine.c src/store/sqlite/engine.h $(SQLITE)/sqlite3.c $(B)/third/sqlite3.flags
	$(call cc,-std=gnu11 $(OPT) $(SANFLAGS) -w $(SQLITE_FLAGS) -Isrc -I$(SQLITE))
$(B)/third/llhttp.o: $(LLHTTP)/llhttp.c
	$(call cc,-std=gnu11 $(OPT) $(SANFLAGS) -w -I/usr/share/include/llhttp)
$(B)/third/llhttp-%.o: $(LLHTTP)/%.c
	$(call cc,-std=gnu11 $(OPT) $(SANFLAGS) -w -I/usr/share/include/llhttp)

# The prelude, bundled and embedded. Its dependencies come from esbuild's own list.
# The second bundle, of the Node.js modules, is evaluated only where a script imports one.
build/prelude.js: PRELUDE_ENTRY := prelude/bootstrap.js
build/prelude-node.js: PRELUDE_ENTRY := prelude/node/index.js
build/prelude.js build/prelude-node.js: tools/build-prelude.mjs tools/primordials.mjs tools/bundler/turns.mjs package-lock.json
	@mkdir -p $(@D)
	$(call say,BUNDLE,$@)
	$(Q)node tools/build-prelude.mjs $(PRELUDE_ENTRY) $@
-include build/prelude.js.d build/prelude-node.js.d
$(B)/obj/prelude.o: tools/embed.S build/prelude.js
	$(call embed,cn_prelude,build/prelude.js)
$(B)/obj/prelude-node.o: tools/embed.S build/prelude-node.js
	$(call embed,cn_prelude_node,build/prelude-node.js)
$(B)/obj/border.o: build/border/check.c | build/border/made
	$(compile)
OPENAPI := src/admin/openapi.json src/v4/openapi.json $(wildcard src/service/*/openapi.json)
build/openapi.json: tools/build-openapi.mjs $(OPENAPI)
	@mkdir -p $(@D)
	$(Q)node tools/build-openapi.mjs $@
$(B)/obj/openapi.o: tools/embed.S build/openapi.json
	$(call embed,cn_openapi,build/openapi.json)

# The dashboard: bundled, compressed, with a table of its files.
build/dashboard.c: tools/build-dashboard.mjs package-lock.json
	@mkdir -p $(@D)
	$(call say,BUNDLE,$@)
	$(Q)node tools/build-dashboard.mjs build/dashboard
-include build/dashboard.c.d
$(B)/obj/dashboard.o: build/dashboard.c src/admin/dashboard.h
	$(call cc,$(CFLAGS_ALL))

# Written together with the prelude.
$(B)/obj/prelude-parts.o: tools/embed.S build/prelude.js
	$(call embed,cn_prelude_parts,build/prelude-parts.js)

EMBEDDED := $(patsubst %,$(B)/obj/%.o,prelude prelude-parts prelude-node openapi dashboard border)
$(LIB): $(OBJS) $(EMBEDDED) $(THIRD)
	@rm -f $@
	@$(CROSS:%=%-)ar rcs $@ $^

# An installed program finds the libraries that an archive brings: RPATH, not RUNPATH, is for those that they need too.
RPATH = -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/$(1)'
$(B)/cairn: $(B)/obj/cli/main.o $(LIB) | $(B)/bundler/cairn-bundler
	$(call link,$< $(LIB) $(call RPATH,../lib/cairn) $(LDLIBS_ALL))

# The program that bundles projects, with its scripts in it, and esbuild beside it.
build/bundler.js: tools/build-bundler.mjs package-lock.json
	@mkdir -p $(@D)
	$(call say,BUNDLE,$@)
	$(Q)node tools/build-bundler.mjs $@
-include build/bundler.js.d
$(B)/obj/bundler-script.o: tools/embed.S build/bundler.js
	$(call embed,cn_bundler_script,build/bundler.js)
ESBUILD = node_modules/@esbuild/linux-$(if $(findstring aarch64,$(shell $(CC) -dumpmachine)),arm64,x64)/bin/esbuild
$(B)/bundler/esbuild: $(ESBUILD)
	@mkdir -p $(@D)
	@ln -sf $(abspath $<) $@
$(B)/bundler/cairn-bundler: $(B)/obj/bundler/main.o $(B)/obj/bundler-script.o $(LIB) $(B)/bundler/esbuild
	@mkdir -p $(@D)
	$(call link,$(filter %.o %.a,$^) $(call RPATH,.) $(LDLIBS_ALL))

DEPS := $(OBJS:.o=.d) $(B)/obj/cli/main.d $(B)/obj/bundler/main.d
include $(sort $(wildcard test/*/rules.mk)) tools/package/rules.mk

# Builds everything at once, then runs one kind of test after the other; those that have no use for two cores run beside each other.
PART_test-web-server = test-web PEER=cairn
PART_test-wrangler = test-wrangler SHORT=1
PART_recipes = recipes SHORT=1
TEST_PARTS := unit replay crash-quick
TEST_BESIDE := san-quick cluster-quick test-wrangler instructions fuzz-script-quick test-web test-web-server \
  service-example simulate recipes
TEST_BUILT = $(B)/cairn $(B)/load/slowdisk.so $(B)/load/otherengine.so $(B)/cairn-open $(B)/jsrun \
  $(UNIT_BINS) $(REPLAY_BINS) $(CRASH_BINS) $(B)/simulate/simulate $(B)/simulate/whole
part-%:
	@tools/part $* $(MAKE) $(or $(PART_$*),$*)
# Its seeds are fixed: what random ones find is for `make crash`, `make fuzz` and the like, which take their own.
test: export CAIRN_TEST_SEED ?= 20261118
test: setup-test ## everything up to a green test run
	@tools/part build $(MAKE) $(JOBS) $(TEST_BUILT)
	@for each in $(TEST_PARTS); do $(MAKE) part-$$each || exit 1; done
	@$(MAKE) $(if $(JOBS),-j$(shell expr $$(nproc) + 1)) $(TEST_BESIDE:%=part-%)
	@$(MAKE) part-integration

run: setup-run built ## build, then serve the examples and the applications
	@tools/run-gallery $(B)/cairn

# The binary, and beside it what bundles projects. An installed cairn does not need the checkout.
LIBDIR   = $(DESTDIR)$(PREFIX)/lib/cairn
SHAREDIR = $(DESTDIR)$(PREFIX)/share
# Root installs what the tree's owner has built: nothing in the tree is made or changed by root then.
FOREIGN := $(filter-out $(shell stat -c %u .),$(shell id -u))
install: $(if $(FOREIGN),,built) ## install below PREFIX (/usr/local)
	@test -x $(B)/cairn || { echo "install: $(B)/cairn is not there; build it first, without sudo: make" >&2; exit 1; }
	@rm -rf $(LIBDIR)
	@install -d $(DESTDIR)$(PREFIX)/bin $(LIBDIR)
	@install -m 755 $(B)/cairn $(DESTDIR)$(PREFIX)/bin/cairn
	@install -m 755 $(B)/bundler/cairn-bundler $(B)/bundler/esbuild $(LIBDIR)/
	@install -d $(DESTDIR)$(PREFIX)/include $(SHAREDIR)/pkgconfig
	@install -m 644 include/cairn.h $(DESTDIR)$(PREFIX)/include/cairn.h
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/package/cairn.pc >$(SHAREDIR)/pkgconfig/cairn.pc
	@install -d $(SHAREDIR)/man/man1 $(SHAREDIR)/man/man3 $(SHAREDIR)/bash-completion/completions \
	  $(SHAREDIR)/zsh/site-functions $(SHAREDIR)/fish/vendor_completions.d
	@made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && \
	  node tools/package/generate.mjs $(or $(if $(CROSS),$(wildcard build/cairn)),$(B)/cairn) "$$made" $(VERSION) && \
	  node tools/package/header.mjs include/cairn.h "$$made/man/cairn.h.3" $(VERSION) && \
	  install -m 644 "$$made"/man/*.1 $(SHAREDIR)/man/man1/ && \
	  install -m 644 "$$made"/man/*.3 $(SHAREDIR)/man/man3/ && \
	  install -m 644 "$$made/completion/bash" $(SHAREDIR)/bash-completion/completions/cairn && \
	  install -m 644 "$$made/completion/zsh" $(SHAREDIR)/zsh/site-functions/_cairn && \
	  install -m 644 "$$made/completion/fish" $(SHAREDIR)/fish/vendor_completions.d/cairn.fish
	@echo "installed $(DESTDIR)$(PREFIX)/bin/cairn"

uninstall: ## remove what install put below PREFIX; data directories stay
	@rm -f $(DESTDIR)$(PREFIX)/bin/cairn $(SHAREDIR)/man/man1/cairn.1 $(SHAREDIR)/man/man1/cairn-*.1 \
	  $(SHAREDIR)/bash-completion/completions/cairn $(SHAREDIR)/zsh/site-functions/_cairn $(SHAREDIR)/fish/vendor_completions.d/cairn.fish
	@rm -f $(DESTDIR)$(PREFIX)/include/cairn.h $(SHAREDIR)/pkgconfig/cairn.pc $(SHAREDIR)/man/man3/cairn.h.3
	@rm -rf $(LIBDIR)
	@echo "removed $(DESTDIR)$(PREFIX)/bin/cairn"

lint: setup-lint ## layers, libraries' homes, refused functions, format, how pages read, pages made from the tests
	@tools/lint
	@node tools/lint-border.mjs
	@node tools/lint-docs.mjs
	@$(MAKE) docs-check

docs: $(B)/cairn ## the pages of docs/reference/ that are made: from ids in tests, descriptors, openapi, cairn.h and `cairn help`
	@node tools/compat-table.mjs
	@node tools/service-table.mjs
	@node tools/reference-pages.mjs
	@node tools/reference-pages.mjs --commands $(B)/cairn

docs-check: ## whether these pages are up to date
	@node tools/compat-table.mjs --check
	@node tools/service-table.mjs --check
	@node tools/reference-pages.mjs --check
	@test ! -x $(B)/cairn || node tools/reference-pages.mjs --commands $(B)/cairn --check

site: ## the documents as static files with a search, in build/site; examples/documents serves them
	@node tools/site/build.mjs build/site

docs-lint: ## how the pages read: long lines, cells and sentences, terms, links; a table of their readability
	@node tools/lint-docs.mjs --table

# Every C file of ours with the flags of the first tree. clangd and clang-tidy read it.
compile_commands.json: export COMPILE = $(CC) $(CFLAGS_ALL)
compile_commands.json: FORCE | build/border/made ## how each C file is compiled, for editors
	@node tools/compile-commands.mjs "$$COMPILE" > $@

clean:
	rm -rf build

-include $(DEPS) $(wildcard $(B)/cluster/*.d)
