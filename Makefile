# One build description. `make help` lists the targets.
#
# Everything goes below build/. SAN=address,undefined or SAN=thread builds a
# second tree beside the first; CC=clang works too.

SAN    ?=
CC     := $(if $(filter default,$(origin CC)),gcc,$(CC))
CCACHE := $(shell command -v ccache 2>/dev/null)
comma  := ,
B      := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
PREFIX ?= /usr/local

VERSION := 0.1.0

# Debian packages: name by name, so that tools/setup can install what is missing.
PKGS := javascriptcoregtk-4.1 libuv libcurl openssl zlib libbrotlienc libbrotlidec libzstd liblz4 icu-uc icu-i18n libpq
LLHTTP  := /usr/share/llhttp
SQLITE  := node_modules/better-sqlite3/deps/sqlite3

SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
            -Wno-unused-parameter -Werror
# clang takes a long text in a table for a forgotten comma.
WARN     += $(if $(findstring clang,$(CC)),-Wno-string-concatenation)
OPT      := $(if $(SAN),-O1,-O2) -g
# Builds that look for mistakes compare counters with what they count: src/base/loop.h W3.
CHECKS   := $(if $(SAN),-DCN_DEBUG)
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) | sed 's/-I/-isystem /g')
# libcurl is loaded with the first request that goes out: src/net/curl_lazy.c; libpq when a cluster is asked for: src/cluster/pq.c.
PKG_LIBS   = $(shell pkg-config --libs $(filter-out libcurl libpq,$(PKGS)))
CFLAGS_ALL = -std=gnu11 $(OPT) $(CHECKS) $(WARN) $(SANFLAGS) -pthread -D_GNU_SOURCE -DCN_VERSION='"$(VERSION)"' \
             -Isrc -Ibuild -I. -isystem /usr/share/include/llhttp -isystem $(SQLITE) $(PKG_CFLAGS) $(CFLAGS)
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
SRCS    := $(filter-out src/cli/main.c src/store/sqlite/%,$(wildcard src/*/*.c src/*/*/*.c))
OBJS    := $(SRCS:src/%.c=$(B)/obj/%.o)
LIB     := $(B)/libcairn.a
THIRD   := $(B)/third/sqlite3.o $(B)/third/llhttp.o $(B)/third/llhttp-api.o $(B)/third/llhttp-http.o

# A sandbox refuses what ThreadSanitizer needs for itself.
UNIT_SRCS := $(filter-out $(if $(findstring thread,$(SAN)),test/unit/base/test_sandbox.c),$(wildcard test/unit/*/test_*.c test/unit/*/*/test_*.c))
UNIT_BINS := $(UNIT_SRCS:test/unit/%.c=$(B)/unit/%)
TESTLIB_OBJS := $(patsubst test/lib/%.c,$(B)/testlib/%.o,$(wildcard test/lib/*.c))
# An archive, so that a program with its own main() does not take the harness's.
TESTLIB   := $(B)/libtest.a

FUZZ_SRCS   := $(wildcard test/fuzz/fuzz_*.c)
FUZZ_BINS   := $(FUZZ_SRCS:test/fuzz/%.c=build/fuzz/%)
REPLAY_BINS := $(FUZZ_SRCS:test/fuzz/%.c=$(B)/replay/%)
BENCH_BINS  := $(patsubst test/bench/%.c,$(B)/bench/%,$(wildcard test/bench/bench_*.c))
CRASH_BINS  := $(patsubst test/crash/%.c,$(B)/crash/%,$(wildcard test/crash/crash_*.c))

# Short lines; V=1 shows the commands.
ifeq ($(V),)
Q := @
say = @printf '  %-6s %s\n' $(1) $(2)
else
say =
endif

SHELL := /bin/bash
.PHONY: FORCE flames modules-san modules-asan modules-tsan simulate simulate-planted service-example bench-against bench-cluster san-quick fuzz-script fuzz-planted fuzz-script-quick flips fuzz-server engine-tests docs docs-check dashboard-million path-stats-million large load siege stress stress-libraries crash-quick integration replay test-web test-libs test-projects all run test unit check bench fuzz lint install uninstall deb setup setup-test clean help crash bench-instructions instructions
.DELETE_ON_ERROR:
.SECONDARY:

# As many jobs as there are cores, unless -j was given.
JOBS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

all: setup ## build build/cairn
	@$(MAKE) --no-print-directory $(JOBS) $(B)/cairn

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# Packages: installs what is missing when root, otherwise prints the command. Cheap when all is there.
setup: ## install missing packages (Debian and npm)
	@tools/setup

setup-test:
	@tools/setup test

# The border with JavaScript: a table, src/bindings/border.ts, and the parts of it that services have in their folders.
build/border/made: src/bindings/border.ts $(wildcard src/service/*/border.ts) tools/border.mjs
	$(call say,BORDER,$<)
	$(Q)node tools/border.mjs $(@D)
	@touch $@
build/border/%.h: build/border/made ;
build/border/check.c: build/border/made ;

$(B)/obj/%.o: src/%.c | build/border/made
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

# The starters of `cairn new`, as a table.
build/templates.h: tools/build-templates.mjs $(shell find templates -type f)
	@mkdir -p $(@D)
	$(call say,MAKE,$@)
	$(Q)node tools/build-templates.mjs templates $@
$(B)/obj/cli/starter.o: build/templates.h

$(B)/testlib/%.o: test/lib/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

# Compiled again when its flags change.
FORCE:
$(B)/third/sqlite3.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(SQLITE_FLAGS)' | cmp -s - $@ || echo '$(SQLITE_FLAGS)' > $@
# With what we do inside it, which needs its private types.
$(B)/third/sqlite3.o: src/store/sqlite/engine.c src/store/sqlite/engine.h $(SQLITE)/sqlite3.c $(B)/third/sqlite3.flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) -std=gnu11 $(OPT) $(SANFLAGS) -w $(SQLITE_FLAGS) -Isrc -I$(SQLITE) -c $< -o $@
$(B)/third/llhttp.o: $(LLHTTP)/llhttp.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) -std=gnu11 $(OPT) $(SANFLAGS) -w -I/usr/share/include/llhttp -c $< -o $@
$(B)/third/llhttp-%.o: $(LLHTTP)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) -std=gnu11 $(OPT) $(SANFLAGS) -w -I/usr/share/include/llhttp -c $< -o $@

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
	@mkdir -p $(@D)
	$(call say,AS,build/prelude.js)
	$(Q)$(CC) -DNAME=cn_prelude -DFILE='"build/prelude.js"' -c $< -o $@
$(B)/obj/prelude-node.o: tools/embed.S build/prelude-node.js
	@mkdir -p $(@D)
	$(call say,AS,build/prelude-node.js)
	$(Q)$(CC) -DNAME=cn_prelude_node -DFILE='"build/prelude-node.js"' -c $< -o $@
$(B)/obj/border.o: build/border/check.c | build/border/made
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
build/openapi.json: tools/build-openapi.mjs src/admin/openapi.json $(wildcard src/service/*/openapi.json)
	@mkdir -p $(@D)
	$(Q)node tools/build-openapi.mjs $@
$(B)/obj/openapi.o: tools/embed.S build/openapi.json
	@mkdir -p $(@D)
	$(call say,AS,build/openapi.json)
	$(Q)$(CC) -DNAME=cn_openapi -DFILE='"build/openapi.json"' -c $< -o $@

# The dashboard: bundled, compressed, with a table of its files.
build/dashboard.c: tools/build-dashboard.mjs package-lock.json
	@mkdir -p $(@D)
	$(call say,BUNDLE,$@)
	$(Q)node tools/build-dashboard.mjs build/dashboard
-include build/dashboard.c.d
$(B)/obj/dashboard.o: build/dashboard.c src/admin/dashboard.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

# Written together with the prelude.
$(B)/obj/prelude-parts.o: tools/embed.S build/prelude.js
	@mkdir -p $(@D)
	$(call say,AS,build/prelude-parts.js)
	$(Q)$(CC) -DNAME=cn_prelude_parts -DFILE='"build/prelude-parts.js"' -c $< -o $@

$(LIB): $(OBJS) $(B)/obj/prelude.o $(B)/obj/prelude-parts.o $(B)/obj/prelude-node.o $(B)/obj/openapi.o $(B)/obj/dashboard.o $(B)/obj/border.o $(THIRD)
	@rm -f $@
	@ar rcs $@ $^

$(TESTLIB): $(TESTLIB_OBJS)
	@rm -f $@
	@ar rcs $@ $^

$(B)/cairn: $(B)/obj/cli/main.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< $(LIB) $(LDLIBS_ALL)

# A test program: one source, linked with the test library and everything of ours.
define program
$(call say,CC,$<)
$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@.o
$(Q)$(CC) -o $@ $@.o $(TESTLIB) $(LIB) $(LDLIBS_ALL)
endef

$(B)/unit/%: test/unit/%.c $(LIB) $(TESTLIB)
	@mkdir -p $(@D)
	$(program)

$(B)/crash/%: test/crash/%.c $(LIB) $(TESTLIB)
	@mkdir -p $(@D)
	$(program)
$(B)/bench/%: test/bench/%.c $(LIB) $(TESTLIB)
	@mkdir -p $(@D)
	$(program)
# Objects in C beside those in JavaScript; wrangler.compiled.jsonc names it.
build/bench/compiled.so: test/bench/workers/compiled.c include/cairn.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -shared -fPIC -O2 -Iinclude -o $@ $<

# A fuzz target is a file with LLVMFuzzerTestOneInput(). `make fuzz` runs each for FUZZ_SECONDS with
# libFuzzer; the replay program feeds it every file of test/fuzz/corpus/NAME and runs in `make test`.
FUZZ_SECONDS ?= 60
build/fuzz/%: test/fuzz/%.c
	@$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link,address,undefined build/san-fuzzer-no-link-address-undefined/libcairn.a
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)clang $(CFLAGS_ALL) -O1 -fsanitize=fuzzer,address,undefined -o $@ $< build/san-fuzzer-no-link-address-undefined/libcairn.a $(PKG_LIBS) -lm -ldl -pthread
fuzz: setup ## run every fuzz target for FUZZ_SECONDS (60)
	@$(MAKE) --no-print-directory $(FUZZ_BINS)
	@for f in $(notdir $(FUZZ_BINS)); do mkdir -p build/fuzz/corpus/$$f test/fuzz/corpus/$$f; echo "== $$f"; \
	  build/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
	    build/fuzz/corpus/$$f test/fuzz/corpus/$$f 2>&1 | tail -n 12 | grep -E 'stat::(number|average)|ERROR|SUMMARY|crash' ; \
	  [ $${PIPESTATUS[0]:-0} -eq 0 ] || exit 1; done
	@$(MAKE) --no-print-directory build/jsrun
	@node test/fuzz/js/run.mjs $(FUZZ_SECONDS)
	@$(MAKE) --no-print-directory fuzz-server
	@$(MAKE) --no-print-directory fuzz-script

# The whole server under sanitizers, as a client sees it; TARGET=http|websocket|s3|admin for one. Then bits of its files.
TARGET ?=
SAN_SERVER = build/san-address-undefined/cairn
fuzz-server: ## fuzz the server from outside, under sanitizers, for FUZZ_SECONDS (60) per kind of request; then its files
	@$(MAKE) --no-print-directory $(JOBS) SAN=address,undefined $(SAN_SERVER)
	@CAIRN=$(abspath $(SAN_SERVER)) node test/fuzz/server/run.mjs $(FUZZ_SECONDS) $(TARGET)
	@$(if $(TARGET),:,CAIRN=$(abspath $(SAN_SERVER)) $(SAN_ENV) node test/flips/flips.mjs --seconds $(FUZZ_SECONDS))
SAN_ENV = ASAN_OPTIONS=detect_leaks=0:allow_user_segv_handler=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 Malloc=1
# A server whose prelude lends its natives to scripts, for the fuzzer of the whole server alone.
$(B)/open/prelude.o: tools/embed.S build/prelude.js
	@mkdir -p $(@D)
	$(call say,AS,$@)
	$(Q)sed '1s/{"use strict";/{"use strict";globalThis.__native=__native;/' build/prelude.js > $(@D)/prelude.js
	$(Q)$(CC) -DNAME=cn_prelude -DFILE='"$(@D)/prelude.js"' -c $< -o $@
$(B)/cairn-open: $(B)/obj/cli/main.o $(B)/open/prelude.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(LDLIBS_ALL)
SCRIPT_SERVER := SAN=address,undefined build/san-address-undefined/cairn-open
SCRIPT ?=
fuzz-script: ## a hostile script against the whole server, for FUZZ_SECONDS; SCRIPT="--seed N"
	@$(MAKE) --no-print-directory $(SCRIPT_SERVER)
	@CAIRN=$(abspath build/san-address-undefined/cairn-open) node test/fuzz/script/run.mjs $(FUZZ_SECONDS) $(SCRIPT)
# PLANTED="NAME --seconds 600": one of test/fuzz/planted.
PLANTED ?=
fuzz-planted: ## whether the same finds bugs that are planted into a copy of the tree, and how soon; PLANTED=name
	@node test/fuzz/planted/run.mjs $(PLANTED)
fuzz-script-quick: $(B)/cairn-open ## the same on the usual build for some seconds: part of make test
	@CAIRN=$(abspath $(B)/cairn-open) node test/fuzz/script/run.mjs 10 --seed 1 --small
$(B)/replay/%: test/fuzz/%.c test/fuzz/replay.c $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< test/fuzz/replay.c $(LIB) $(LDLIBS_ALL)
replay: $(REPLAY_BINS)
	@tools/run-tests $(REPLAY_BINS)

crash-quick: $(CRASH_BINS) ## the same, a few hundred crash points: part of make test
	@tools/run-tests $(CRASH_BINS)

crash: $(CRASH_BINS) ## long fault-injection runs of the store
	@for c in $(CRASH_BINS); do $$c long || exit 1; done

# The decisions of src/cluster/, the very objects of the server, in a simulated world: test/simulate/world.h.
# What is planted is compiled into objects of its own.
SIM_SRCS := $(wildcard test/simulate/*.c)
SIM_OBJS := $(SIM_SRCS:test/simulate/%.c=$(B)/simulate/%.o)
SIM_MEMBER := $(patsubst src/%.c,$(B)/obj/%.o,$(wildcard src/cluster/member*.c))
SIM_BASE := $(B)/obj/base/mem.o $(B)/obj/base/assert.o $(B)/obj/base/err.o
SIM_PLANTED := $(SIM_SRCS:test/%.c=$(B)/planted/%.o) $(patsubst src/%.c,$(B)/planted/%.o,$(wildcard src/cluster/member*.c))
SEEDS ?= 10000
SEED ?=
$(B)/simulate/%.o: test/simulate/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
$(B)/planted/simulate/%.o: test/simulate/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -DCN_SIMULATION -MMD -MP -c $< -o $@
$(B)/planted/cluster/%.o: src/cluster/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -DCN_SIMULATION -MMD -MP -c $< -o $@
$(B)/simulate/simulate: $(SIM_OBJS) $(SIM_MEMBER) $(SIM_BASE)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(SANFLAGS)
$(B)/planted/simulate/simulate: $(SIM_PLANTED) $(SIM_BASE)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(SANFLAGS)
simulate: $(B)/simulate/simulate ## the decisions of a cluster under a seeded adversary; SEEDS=1000000, SEED=7 shows one
	@$< $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))
simulate-planted: $(B)/planted/simulate/simulate ## whether that finds bugs that are planted, and after how many seeds; PLANTED=no-fence
	@$< --seeds 200000 $(if $(PLANTED),--plant $(PLANTED),--planted)

# Real processes on a real engine: test/cluster/wire.h.
CLUSTER_SECONDS ?= 60
$(B)/cluster/%.o: test/cluster/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
# What is cut off is lost on its way: these functions are wrapped by the test.
CLUSTER_WRAPS := -Wl,--wrap=cn_engine_pg_send,--wrap=cn_engine_pg_connect,--wrap=cn_links_send
CLUSTER_NODE := $(B)/cluster/node.o $(B)/cluster/wire.o $(B)/cluster/store_list.o $(B)/cluster/store_real.o
$(B)/cluster/node: $(CLUSTER_NODE) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(CLUSTER_WRAPS) $(CLUSTER_NODE) $(LIB) $(LDLIBS_ALL)
$(B)/cluster/test_cluster: $(B)/cluster/test_cluster.o $(B)/cluster/wire.o $(TESTLIB) $(LIB) $(THIRD)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $(B)/cluster/test_cluster.o $(B)/cluster/wire.o $(TESTLIB) $(LIB) $(THIRD) $(LDLIBS_ALL)
$(B)/cluster/stranger: $(B)/cluster/stranger.o
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $< $(SANFLAGS) -lssl -lcrypto
.PHONY: cluster-test cluster-test-server cluster-quick cluster-campaign cluster-control cluster-planted cluster-objects cluster-chat cluster-path-stats
cluster-test: setup-test $(B)/cluster/node $(B)/cluster/test_cluster cluster-test-server ## nodes of a cluster as processes on a real PostgreSQL, under faults; CLUSTER_SECONDS=60
	@CLUSTER_NODE=$(abspath $(B)/cluster/node) CLUSTER_SECONDS=$(CLUSTER_SECONDS) $(B)/cluster/test_cluster
cluster-test-server: $(B)/cairn $(B)/cluster/stranger ## the same with real servers (test/cluster/server); CLUSTER_SECONDS=60
	@CAIRN=$(abspath $(B)/cairn) CLUSTER_SECONDS=$(CLUSTER_SECONDS) node --test --test-concurrency=1 --test-reporter=spec test/cluster/server/*.test.mjs
# The commit before this one, or OLD=COMMIT, built beside this tree.
OLD ?= HEAD~1
.PHONY: upgrade-test
upgrade-test: setup-test $(B)/cairn ## a rolling upgrade of a cluster from an older commit's build to this one; OLD=COMMIT
	$(Q)rm -rf $(B)/old && mkdir -p $(B)/old && git archive $(OLD) | tar -x -C $(B)/old && ln -s $(CURDIR)/node_modules $(B)/old/node_modules
	$(Q)$(MAKE) --no-print-directory -C $(B)/old
	@CAIRN=$(abspath $(B)/cairn) CAIRN_OLD=$(abspath $(B)/old/build/cairn) node --test --test-reporter=spec test/cluster/server/upgrade.test.mjs

# The same servers under the sanitizers of addresses and undefined behaviour: test/cluster/server/sanitized.mjs. Any report is a failure. TEST="calls sockets": some of its files.
CLUSTER_SAN_TESTS = $(or $(TEST),calls sockets services deploy r2 nodes faults past reads hostile)
CLUSTER_SAN_RUN = node test/cluster/server/sanitized.mjs
.PHONY: cluster-asan
cluster-asan: setup-test build/cluster/stranger ## tests of clusters on servers built with SAN=address,undefined, leaks at their end included; TEST=calls
	@$(MAKE) --no-print-directory $(JOBS) SAN=address,undefined $(SAN_SERVER)
	@$(CLUSTER_SAN_RUN) $(dir $(SAN_SERVER)) $(CLUSTER_SAN_TESTS:%=test/cluster/server/%.test.mjs)

# Campaigns against real servers, judged by their histories: test/cluster/server/campaign.mjs.
CAMPAIGN ?= --nodes 5 --faults 300 --failovers 30 --r2
CAMPAIGN_RUN = CAIRN=$(abspath $(B)/cairn) node test/cluster/server/campaign.mjs
cluster-campaign: setup-test $(B)/cairn ## nodes in network namespaces, load, 300 faults and 30 fail-overs of the engine; CAMPAIGN="--faults 50 --seed 7"
	@$(CAMPAIGN_RUN) $(CAMPAIGN)
cluster-quick: $(B)/cairn ## the same, short, and its control: part of make test
	@node --test --test-reporter=dot test/cluster/server/judge.test.mjs
	@$(CAMPAIGN_RUN) --quick --quiet --r2
	@$(CAMPAIGN_RUN) --control --quick --quiet
cluster-control: $(B)/cairn ## an engine that does not wait for its standby: losses must be found
	@$(CAMPAIGN_RUN) --control
# Servers with a bug of the simulation's in their decisions (CN_SIMULATION), chosen by CAIRN_BROKEN: test/cluster/broken.c.
$(B)/planted/broken.o: test/cluster/broken.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -DCN_SIMULATION -c $< -o $@
CLUSTER_BROKEN := $(B)/planted/broken.o $(patsubst src/%.c,$(B)/planted/%.o,$(wildcard src/cluster/member*.c))
$(B)/cairn-broken: $(B)/obj/cli/main.o $(CLUSTER_BROKEN) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) -o $@ $^ $(LDLIBS_ALL)
cluster-planted: $(B)/cairn-broken ## whether a campaign finds bugs that are planted before it; PLANTED=hasty-fence: into it
	@CAIRN=$(abspath $(B)/cairn-broken) node test/cluster/server/planted.mjs $(PLANTED)
CLUSTER_OBJECTS ?= --objects 100000 --nodes 3
cluster-objects: $(B)/cairn ## 100,000 live objects on three nodes, of which one is killed; CLUSTER_OBJECTS="--objects 1000"
	@CAIRN=$(abspath $(B)/cairn) node test/cluster/server/objects.mjs $(CLUSTER_OBJECTS)
CLUSTER_CHAT ?= --clients 2000 --rooms 60
cluster-chat: $(B)/cairn ## the gallery's chat room on three nodes that are killed, drained and replaced; CLUSTER_CHAT="--clients 200 --old BINARY"
	@CAIRN=$(abspath $(B)/cairn) node test/cluster/server/chat.mjs $(CLUSTER_CHAT)
CLUSTER_PATH_STATS ?= --events 300000
cluster-path-stats: $(B)/cairn ## the path statistics on three nodes that are killed: exact; CLUSTER_PATH_STATS="--events 20000"
	@CAIRN=$(abspath $(B)/cairn) node test/cluster/server/path-stats.mjs $(CLUSTER_PATH_STATS)

FLIPS ?= 1500
flips: $(B)/unit/store/test_damage $(B)/cairn ## flip bits all over data directories: right data or an error, and the check finds it; FLIPS=1500
	@CAIRN_FLIPS=$(FLIPS) $< flipped
	@CAIRN=$(abspath $(B)/cairn) node test/flips/flips.mjs --count 300

STRESS ?= --seconds 60
# JavaScriptCore takes its memory from malloc() under a sanitizer, and is not asked for leaks.
STRESS_ENV = $(if $(SAN),ASAN_OPTIONS=detect_leaks=0:allow_user_segv_handler=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 Malloc=1)
stress: $(B)/cairn $(if $(SAN),,$(B)/load/slowdisk.so) ## Durable Objects and what they share, at random, with evictions, reloads and kills; STRESS="--seconds 600 --seed 7"
	@$(STRESS_ENV) CAIRN=$(abspath $(B)/cairn) node test/stress/objects.mjs $(STRESS)
	@$(STRESS_ENV) CAIRN=$(abspath $(B)/cairn) node test/stress/objects.mjs --language c $(STRESS)
	@$(STRESS_ENV) CAIRN=$(abspath $(B)/cairn) node test/stress/turns.mjs $(STRESS)

# A slow disk under the real binary.
$(B)/load/slowdisk.so: test/load/slowdisk.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror -shared -fPIC -o $@ $< -ldl
# An engine that is laid out otherwise: test/integration/cli/engine.test.mjs.
$(B)/load/otherengine.so: test/integration/lib/otherengine.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror -shared -fPIC -o $@ $< -ldl
LOAD ?= --seconds 180
load: $(B)/cairn $(B)/load/slowdisk.so ## an hour's requests in minutes, with faults; root for a full disk; LOAD="--seconds 600 --seed 7"
	@CAIRN=$(abspath $(B)/cairn) node test/load/load.mjs $(LOAD)
	@CAIRN=$(abspath $(B)/cairn) node test/load/siege.mjs $(SIEGE)

siege: $(B)/cairn ## clients and scripts that want all memory and all time at once, and one that is innocent; SIEGE="--only every --seconds 8 --memory 400", "--list"
	@CAIRN=$(abspath $(B)/cairn) node test/load/siege.mjs $(SIEGE)

# Runs one script with the prelude and an event loop: how the prelude is tried without a server.
$(B)/jsrun: test/lib/jsrun/jsrun.c $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< $(LIB) $(LDLIBS_ALL)

# The same conformance tests on three peers: jsrun (the prelude alone), cairn, and workerd.
PEER ?= jsrun
TEST ?=
test-web: ## conformance tests of the Web APIs; PEER=jsrun|cairn|workerd, TEST=part of a name
	$(if $(filter workerd,$(PEER)),,@$(MAKE) --no-print-directory $(B)/$(PEER))
	@PEER=$(PEER) node test/conformance/run.mjs $(TEST)

# Their packages are apart from those of the build: they are many, and only this needs them.
test-libs: setup ## npm libraries in real use; PEER=workerd, TEST=part of a name
	@$(MAKE) --no-print-directory $(JOBS) $(B)/cairn
	@cd test/libs && { cmp -s package-lock.json node_modules/.cairn-stamp || { echo "setup: npm ci in test/libs" && \
	  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.cairn-stamp; }; }
	@PEER=$(filter workerd,$(PEER)) node test/libs/run.mjs $(TEST)

test-projects: setup ## projects of strangers, beside wrangler dev; TEST=part of a name
	@$(MAKE) --no-print-directory $(JOBS) $(B)/cairn
	@CAIRN=$(abspath $(B)/cairn) node test/projects/run.mjs $(TEST)

stress-libraries: setup $(B)/cairn ## popular libraries at module level, shared between objects, under reloads and kills
	@cd test/stress/libraries && { cmp -s package-lock.json node_modules/.cairn-stamp || { echo "setup: npm ci in test/stress/libraries" && \
	  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.cairn-stamp; }; }
	@CAIRN=$(abspath $(B)/cairn) node test/stress/libraries.mjs

unit: $(UNIT_BINS) ## build and run the C unit tests
	@TSAN_OPTIONS=suppressions=$(abspath test/lib/tsan.supp) LSAN_OPTIONS=suppressions=$(abspath test/lib/lsan.supp) tools/run-tests $(UNIT_BINS)
	@CAIRN_TEST_WIRE=1 TSAN_OPTIONS=suppressions=$(abspath test/lib/tsan.supp) LSAN_OPTIONS=suppressions=$(abspath test/lib/lsan.supp) \
	  tools/run-tests $(filter $(B)/unit/service/%,$(UNIT_BINS))

# The real wrangler, of the version in test/wrangler/package-lock.json, which npm brings: commands, then the gallery, the applications and
# the starters with their own tests on an empty server that gets them by it. KILLS=200: deployments that are killed. SHORT=1: part of `make test`.
WRANGLER_TESTS  = $(if $(SHORT),wrangler client,wrangler client projects queues routes cluster)
DEPLOYED_TESTS  = examples/gallery examples/hello examples/sockets apps/riven-tracker apps/path-stats cli/starters
WRANGLER_RUN    = CAIRN=$(abspath $(B)/cairn) WRANGLER=$(abspath build/wrangler/node_modules/wrangler/bin/wrangler.js) node --test --test-reporter=spec
.PHONY: test-wrangler
test-wrangler: $(B)/cairn ## the real wrangler deploys to an empty server, everything we have; KILLS=20, SHORT=1
	@mkdir -p build/wrangler && cp test/wrangler/package.json test/wrangler/package-lock.json build/wrangler/
	@cmp -s test/wrangler/package-lock.json build/wrangler/installed.json || npm ci --prefix build/wrangler --ignore-scripts --no-audit --no-fund --loglevel=error
	@cp test/wrangler/package-lock.json build/wrangler/installed.json
	@KILLS=$(or $(KILLS),$(if $(SHORT),2,20)) LONG=$(if $(SHORT),,1) $(WRANGLER_RUN) $(WRANGLER_TESTS:%=test/wrangler/%.test.mjs) 2>&1 | tools/summary
	@$(if $(SHORT),,CAIRN_TEST_DEPLOYED=1 $(WRANGLER_RUN) --test-concurrency=1 $(DEPLOYED_TESTS:%=test/integration/%.test.mjs) 2>&1 | tools/summary)

# A test that hangs is a failure, not a wait: a file has its own limit, so that the run names it and goes on.
INTEGRATION_FILE_SECONDS ?= $(if $(CLUSTER),3600,600)
INTEGRATION_SECONDS ?= $(if $(CLUSTER),7200,1800)
# With CLUSTER=3 tests run on three nodes (test/integration/lib/clustered.mjs), and without TEST the suites that a cluster must pass, one after the other.
CLUSTER_SUITES = objects websockets services examples apps
INTEGRATION_ENGINE = $(if $(CLUSTER),node test/cluster/server/engine.mjs)
integration: $(B)/cairn $(B)/load/slowdisk.so $(B)/load/otherengine.so ## start the real binary and talk to it; TEST=folder or file of test/integration, SANDBOX=1, CLUSTER=3: on as many nodes
ifneq ($(and $(CLUSTER),$(if $(TEST),,all)),)
	@bad=; for suite in $(CLUSTER_SUITES); do echo "== $$suite on $(CLUSTER) nodes"; $(MAKE) --no-print-directory integration TEST=$$suite || bad="$$bad $$suite"; done; \
	  [ -z "$$bad" ] || { echo "failed:$$bad" >&2; exit 1; }
else
	@[ -n "$$(find test/integration/$(TEST) -name '*.test.mjs')" ] || { echo "TEST=$(TEST): no tests in test/integration/$(TEST)" >&2; exit 1; }
	@export $(if $(SANDBOX),CAIRN_SANDBOX=1) $(if $(CLUSTER),CAIRN_TEST_CLUSTER=$(CLUSTER) SUMMARY_EVERY=10) CAIRN=$(abspath $(B)/cairn); timeout $(INTEGRATION_SECONDS) $(INTEGRATION_ENGINE) node --test --test-timeout=$(INTEGRATION_FILE_SECONDS)000 --test-concurrency=$(if $(CLUSTER),2,3) \
	  --test-reporter=spec --test-reporter-destination=stdout \
	  --test-reporter=./test/integration/lib/failures.mjs --test-reporter-destination=$(B)/integration-failed.jsonl \
	  $$(find test/integration/$(TEST) -name '*.test.mjs' | sort) 2>&1 | tools/summary || $(INTEGRATION_ENGINE) node tools/again.mjs $(B)/integration-failed.jsonl
endif

# A service that is in no table, added as docs/hacking.md says: its folder, one line.
service-example: $(B)/cairn $(TESTLIB) ## build a server with the service of test/service-example, and try it
	@node test/service-example/build.mjs build build/service-example
	@CAIRN=$(abspath build/service-example/build/cairn) timeout 600 node --test --test-reporter=spec test/service-example/tally.test.mjs 2>&1 | tools/summary

# Without what Cairn does inside the engine, then with a library that nobody knows and that lacks a symbol: the same tests
# pass. Takes twice as long as `make integration`; a quick form of it is in that. ENGINE=off or ENGINE=other for one.
ENGINE ?= off other
engine-tests: $(B)/cairn ## the integration tests without patches of the engine, then with a library that does not fit; ENGINE=off, TEST=serve
	@$(if $(filter off,$(ENGINE)),echo "== CAIRN_ENGINE_PATCHES=off"; CAIRN_ENGINE_PATCHES=off $(MAKE) --no-print-directory integration TEST=$(TEST))
	@$(if $(filter other,$(ENGINE)),CAIRN=$(abspath $(B)/cairn) node test/integration/lib/engine.mjs $(B)/otherengine)
	@$(if $(filter other,$(ENGINE)),echo "== a library that does not fit"; LD_LIBRARY_PATH=$(abspath $(B)/otherengine) $(MAKE) --no-print-directory integration TEST=$(TEST))

path-stats-million: $(B)/cairn ## a million events through apps/path-stats: two kills, archived, replayed twice; an hour at most
	@CAIRN=$(abspath $(B)/cairn) CAIRN_TEST_FULL=1 node --test --test-reporter=spec test/integration/apps/path-stats-million.test.mjs

# The whole server under sanitizers: what ends, and what is still held then. The engine itself is not checked; it
# handles faults of its own making, and its allocator is the system's (Malloc) so that what it frees is seen.
SAN_TESTS := objects/stale serve/ending websockets/websockets services/r2 services/r2-damaged
san-quick: ## a few integration tests on the server built with SAN=address,undefined
	@$(MAKE) --no-print-directory $(JOBS) SAN=address,undefined build/san-address-undefined/cairn
	@ASAN_OPTIONS=detect_leaks=0:allow_user_segv_handler=1 Malloc=1 CAIRN=$(abspath build/san-address-undefined/cairn) \
	  timeout 600 node --test --test-concurrency=3 --test-reporter=spec $(SAN_TESTS:%=test/integration/%.test.mjs) 2>&1 | tools/summary

# Objects and workers in C under sanitizers, and the examples in C: modules are built with the same ones (test/integration/lib/module.mjs).
MODULES_SAN_TESTS = $(or $(TEST:%=test/integration/%),$(wildcard test/integration/modules/*.test.mjs) test/integration/examples/gallery-c.test.mjs)
TSAN_SERVER = build/san-thread/cairn
modules-san: ## the tests of objects and workers in C, and the examples in C, on servers built with SAN=address,undefined and SAN=thread
	@$(MAKE) --no-print-directory modules-asan modules-tsan
modules-asan: ## the first half; TEST=modules/hostile.test.mjs
	@$(MAKE) --no-print-directory $(JOBS) SAN=address,undefined $(SAN_SERVER)
	@$(SAN_ENV) CAIRN=$(abspath $(SAN_SERVER)) timeout 1800 node --test --test-concurrency=2 --test-reporter=spec $(MODULES_SAN_TESTS) 2>&1 | tools/summary
# A report ends the server with 66, and any test that uses it fails; what the engine does with its own threads is not looked at. Its
# collector stops other threads by signals, which the sanitizer delays: it collects on the lane's own thread here.
modules-tsan: ## the second half; TEST=modules/flow.test.mjs
	@$(MAKE) --no-print-directory $(JOBS) SAN=thread $(TSAN_SERVER)
	@$(CC) -shared -fPIC -O1 -o build/san-thread/closes.so test/lib/preload/closes.c
	@LD_PRELOAD=$(abspath build/san-thread/closes.so) TSAN_OPTIONS="halt_on_error=1 report_signal_unsafe=0 suppressions=$(abspath test/lib/tsan.supp)" Malloc=1 JSC_useConcurrentGC=0 CAIRN=$(abspath $(TSAN_SERVER)) \
	  timeout 1800 node --test --test-concurrency=2 --test-reporter=spec $(MODULES_SAN_TESTS) 2>&1 | tools/summary

# Builds everything at once, then runs one kind of test after the other; those that have no use for two cores run beside each other.
PART_test-web-server = test-web PEER=cairn
PART_test-wrangler = test-wrangler SHORT=1
TEST_PARTS := unit replay crash-quick
TEST_BESIDE := san-quick cluster-quick test-wrangler instructions fuzz-script-quick test-web test-web-server service-example simulate
part-%:
	@tools/part $* $(MAKE) --no-print-directory $(or $(PART_$*),$*)
test: setup-test ## everything up to a green test run
	@tools/part build $(MAKE) --no-print-directory $(JOBS) $(B)/cairn $(B)/load/slowdisk.so $(B)/load/otherengine.so $(B)/cairn-open $(B)/jsrun $(UNIT_BINS) $(REPLAY_BINS) $(CRASH_BINS) $(B)/simulate/simulate
	@for each in $(TEST_PARTS); do $(MAKE) --no-print-directory part-$$each || exit 1; done
	@$(MAKE) --no-print-directory $(if $(JOBS),-j$(shell expr $$(nproc) + 1)) $(TEST_BESIDE:%=part-%)
	@$(MAKE) --no-print-directory part-integration

run: all ## build, then serve the examples and the applications
	@tools/run-gallery $(B)/cairn

# The binary, and beside it what bundling needs: our scripts, esbuild (with the package for this
# platform) and what turns.mjs uses. An installed cairn does not need the checkout.
LIBDIR   = $(DESTDIR)$(PREFIX)/lib/cairn
BUNDLER_PACKAGES = esbuild acorn $(patsubst node_modules/%,%,$(wildcard node_modules/@esbuild/*))
SHAREDIR = $(DESTDIR)$(PREFIX)/share
install: all ## install below PREFIX (/usr/local)
	@install -d $(DESTDIR)$(PREFIX)/bin $(LIBDIR)
	@install -m 755 $(B)/cairn $(DESTDIR)$(PREFIX)/bin/cairn
	@install -m 644 tools/bundler/*.mjs tools/bundler/modules.json $(LIBDIR)/
	@install -d $(DESTDIR)$(PREFIX)/include $(SHAREDIR)/pkgconfig
	@install -m 644 include/cairn.h $(DESTDIR)$(PREFIX)/include/cairn.h
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/package/cairn.pc >$(SHAREDIR)/pkgconfig/cairn.pc
	@rm -rf $(LIBDIR)/node_modules/*
	@install -d $(BUNDLER_PACKAGES:%=$(LIBDIR)/node_modules/%)
	@for p in $(BUNDLER_PACKAGES); do cp -R node_modules/$$p/. $(LIBDIR)/node_modules/$$p/; done
	@rm -rf $(B)/package/made && node tools/package/generate.mjs $(B)/cairn $(B)/package/made $(VERSION)
	@node tools/package/header.mjs include/cairn.h $(B)/package/made/man/cairn.h.3 $(VERSION)
	@install -d $(SHAREDIR)/man/man1 $(SHAREDIR)/man/man3 $(SHAREDIR)/bash-completion/completions $(SHAREDIR)/zsh/site-functions $(SHAREDIR)/fish/vendor_completions.d
	@install -m 644 $(B)/package/made/man/*.1 $(SHAREDIR)/man/man1/
	@install -m 644 $(B)/package/made/man/*.3 $(SHAREDIR)/man/man3/
	@install -m 644 $(B)/package/made/completion/bash $(SHAREDIR)/bash-completion/completions/cairn
	@install -m 644 $(B)/package/made/completion/zsh $(SHAREDIR)/zsh/site-functions/_cairn
	@install -m 644 $(B)/package/made/completion/fish $(SHAREDIR)/fish/vendor_completions.d/cairn.fish
	@echo "installed $(DESTDIR)$(PREFIX)/bin/cairn"

uninstall: ## remove what install put below PREFIX; data directories stay
	@rm -f $(DESTDIR)$(PREFIX)/bin/cairn $(SHAREDIR)/man/man1/cairn.1 $(SHAREDIR)/man/man1/cairn-*.1 \
	  $(SHAREDIR)/bash-completion/completions/cairn $(SHAREDIR)/zsh/site-functions/_cairn $(SHAREDIR)/fish/vendor_completions.d/cairn.fish
	@rm -f $(DESTDIR)$(PREFIX)/include/cairn.h $(SHAREDIR)/pkgconfig/cairn.pc $(SHAREDIR)/man/man3/cairn.h.3
	@rm -rf $(LIBDIR)
	@echo "removed $(DESTDIR)$(PREFIX)/bin/cairn"

deb: all ## build the Debian packages cairn and cairn-dev below build/package
	@tools/setup deb
	@tools/package/deb $(VERSION)

# The server beside workerd (ratios), then the store beside stock SQLite. BENCH_ONLY=hello,json,start
# chooses among the first, BENCH_SECONDS and BENCH_REPEATS how long; docs/performance.md has a run.
# BENCH_WRITE=1 writes the tables into README.md and docs/performance.md; the machine is looked at before anything is built.
BENCH_ROWS_FILE := $(if $(filter 1,$(BENCH_WRITE)),$(abspath $(B)/bench/rows.jsonl))
bench: export BENCH_ROWS := $(BENCH_ROWS_FILE)
bench: setup ## compare with workerd and with stock SQLite on this machine; BENCH_WRITE=1 writes the tables into the documents
	@$(if $(BENCH_ROWS_FILE),node test/bench/report.mjs begin $(BENCH_ROWS_FILE))
	@$(MAKE) --no-print-directory $(B)/cairn $(BENCH_BINS) build/bench/compiled.so
	@node test/bench/serve.mjs
	@node test/bench/objects.mjs
	@node test/bench/websockets.mjs
	@node test/bench/compiled.mjs
	@node test/bench/services.mjs
	@node test/bench/apps.mjs
	@node test/bench/cluster.mjs
	@$(if $(BENCH_ONLY),,$(B)/bench/bench_store)
	@$(if $(BENCH_ONLY),,$(B)/bench/bench_analytics)
	@$(if $(BENCH_ROWS_FILE),node test/bench/report.mjs end $(BENCH_ROWS_FILE))

# BENCH_ONLY=cluster-commit,... chooses parts: test/bench/cluster.mjs. It takes about six minutes.
bench-cluster: export BENCH_ROWS := $(BENCH_ROWS_FILE)
bench-cluster: setup-test ## a node of a cluster beside a single server and its PostgreSQL alone; BENCH_WRITE=1 writes the table into docs/cluster.md
	@$(if $(BENCH_ROWS_FILE),node test/bench/report.mjs begin $(BENCH_ROWS_FILE))
	@$(MAKE) --no-print-directory $(B)/cairn $(B)/bench/bench_append $(B)/bench/bench_ws
	@node test/bench/cluster.mjs
	@$(if $(BENCH_ROWS_FILE),node test/bench/report.mjs end $(BENCH_ROWS_FILE))

BASE ?= HEAD~1
bench-against: setup $(B)/cairn build/bench/compiled.so ## CPU per request beside another commit's server: BASE=commit
	@node test/bench/against.mjs $(BASE)

flames: setup $(B)/cairn ## where the processor time of each row of the benchmark goes, by perf: flame graphs; BENCH_ONLY=hello,do-sql
	@tools/setup perf
	@node test/bench/flames.mjs

bench-instructions: $(B)/cairn build/bench/compiled.so ## instructions per request by callgrind, beside another commit's server: BASE=commit
	@tools/setup valgrind
	@node test/bench/instructions.mjs $(filter-out HEAD~1,$(BASE))

# Part of `make test`: instructions of hot paths beside recorded numbers.
$(B)/instructions/noclock.so: test/instructions/noclock.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror $(shell pkg-config --cflags javascriptcoregtk-4.1) -shared -fPIC -o $@ $<

instructions: $(B)/cairn $(B)/instructions/noclock.so ## instructions per request of five hot paths within 3 % of recorded numbers; RECORD=1 records them
	@tools/setup valgrind
	@CAIRN=$(abspath $(B)/cairn) NOCLOCK=$(abspath $(B)/instructions/noclock.so) RECORD=$(RECORD) timeout 300 node test/instructions/check.mjs

$(B)/large/%: test/large/%.c $(LIB) $(TESTLIB)
	@mkdir -p $(@D)
	$(program)

# PICTURES=docs/images takes those of the documentation as well.
PICTURES ?=
dashboard-million: setup-test $(B)/cairn $(B)/large/fill_catalog ## every view of the dashboard with a million objects, each under 300 ms
	@CAIRN=$(abspath $(B)/cairn) FILL=$(abspath $(B)/large/fill_catalog) timeout 600 node test/large/dashboard.mjs $(PICTURES)

large: $(B)/cairn ## 2 GB through R2 with little memory; takes a minute and 2 GB of disk
	@CAIRN=$(abspath $(B)/cairn) node test/large/r2.mjs

lint: setup ## layers, libraries' homes, refused functions, format, pages made from the tests
	@tools/lint
	@node tools/lint-border.mjs
	@$(MAKE) --no-print-directory docs-check

docs: ## docs/compatibility-ids.md from the ids in the tests, docs/bindings.md from the descriptors of services
	@node tools/compat-table.mjs
	@node tools/service-table.mjs

docs-check: ## whether these pages are up to date
	@node tools/compat-table.mjs --check
	@node tools/service-table.mjs --check

check: setup ## unit tests, under sanitizers with SAN=...
	@$(MAKE) --no-print-directory $(JOBS) $(UNIT_BINS)
	@$(MAKE) --no-print-directory unit

clean:
	rm -rf build

-include $(OBJS:.o=.d) $(B)/obj/cli/main.d $(TESTLIB_OBJS:.o=.d) $(UNIT_BINS:=.d) $(SIM_OBJS:.o=.d) $(SIM_PLANTED:.o=.d) $(wildcard $(B)/cluster/*.d)
