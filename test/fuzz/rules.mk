# A fuzz target is a file with LLVMFuzzerTestOneInput(). `make fuzz` runs each for FUZZ_SECONDS with
# libFuzzer; the replay program feeds it every file of test/fuzz/corpus/NAME and runs in `make test`.
FUZZ_SRCS   := $(wildcard test/fuzz/fuzz_*.c)
FUZZ_BINS   := $(FUZZ_SRCS:test/fuzz/%.c=build/fuzz/%)
REPLAY_BINS := $(FUZZ_SRCS:test/fuzz/%.c=$(B)/replay/%)
FUZZ_SECONDS ?= 60
FUZZ_SAN  := fuzzer-no-link,address,undefined
FUZZ_LIB  := build/san-fuzzer-no-link-address-undefined/libcairn.a
FUZZ_FLAGS = -O1 -fsanitize=fuzzer,address,undefined
.PHONY: fuzz fuzz-server fuzz-script fuzz-planted fuzz-script-quick replay
build/fuzz/%: test/fuzz/%.c
	@$(MAKE) CC=clang SAN=$(FUZZ_SAN) $(FUZZ_LIB)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)clang $(CFLAGS_ALL) $(FUZZ_FLAGS) -o $@ $< $(FUZZ_LIB) $(PKG_LIBS) -lm -ldl -pthread
fuzz: setup-fuzz ## run every fuzz target for FUZZ_SECONDS (60)
	@$(MAKE) $(FUZZ_BINS)
	@for f in $(notdir $(FUZZ_BINS)); do mkdir -p build/fuzz/corpus/$$f test/fuzz/corpus/$$f; echo "== $$f"; \
	  build/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
	    build/fuzz/corpus/$$f test/fuzz/corpus/$$f 2>&1 | \
	    tail -n 12 | grep -E 'stat::(number|average)|ERROR|SUMMARY|crash' ; \
	  [ $${PIPESTATUS[0]:-0} -eq 0 ] || exit 1; done
	@$(MAKE) build/jsrun
	@node test/fuzz/js/run.mjs $(FUZZ_SECONDS)
	@$(MAKE) fuzz-server
	@$(MAKE) fuzz-script

$(B)/replay/%: test/fuzz/%.c test/fuzz/replay.c $(LIB)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< test/fuzz/replay.c $(LIB) $(LDLIBS_ALL)
replay: $(REPLAY_BINS)
	@tools/run-tests $(REPLAY_BINS)

# The whole server under sanitizers, as a client sees it; TARGET=http|websocket|s3|admin for one. Then bits of its files.
TARGET ?=
fuzz-server: ## fuzz the server from outside, under sanitizers, for FUZZ_SECONDS (60) per kind of request; then its files
	@$(MAKE) $(JOBS) SAN=address,undefined $(SAN_SERVER)
	@CAIRN=$(abspath $(SAN_SERVER)) node test/fuzz/server/run.mjs $(FUZZ_SECONDS) $(TARGET)
	@$(if $(TARGET),:,$(SANITIZED) $(dir $(SAN_SERVER)) node test/flips/flips.mjs --seconds $(FUZZ_SECONDS))

# A server whose prelude lends its natives to scripts, for the fuzzer of the whole server alone.
$(B)/open/prelude.o: tools/embed.S build/prelude.js
	@mkdir -p $(@D)
	$(call say,AS,$@)
	$(Q)sed '1s/{"use strict";/{"use strict";globalThis.__native=__native;/' build/prelude.js > $(@D)/prelude.js
	$(Q)$(CC) -DNAME=cn_prelude -DFILE='"$(@D)/prelude.js"' -c $< -o $@
$(B)/cairn-open: $(B)/obj/cli/main.o $(B)/open/prelude.o $(LIB)
	$(call link,$^ $(LDLIBS_ALL))
SCRIPT_SERVER := build/san-address-undefined/cairn-open
SCRIPT ?=
fuzz-script: ## a hostile script against the whole server, for FUZZ_SECONDS; SCRIPT="--seed N"
	@$(MAKE) SAN=address,undefined $(SCRIPT_SERVER)
	@CAIRN=$(abspath $(SCRIPT_SERVER)) node test/fuzz/script/run.mjs $(FUZZ_SECONDS) $(SCRIPT)
# PLANTED="NAME --seconds 600": one of test/fuzz/planted.
PLANTED ?=
fuzz-planted: ## whether the same finds bugs that are planted into a copy of the tree, and how soon; PLANTED=name
	@node test/fuzz/planted/run.mjs $(PLANTED)
fuzz-script-quick: $(B)/cairn-open ## the same on the usual build for some seconds: part of make test
	@CAIRN=$(abspath $(B)/cairn-open) node test/fuzz/script/run.mjs 10 --seed 1 --small
