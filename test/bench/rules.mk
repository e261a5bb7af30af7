# The server beside workerd (ratios), then the store beside stock SQLite. BENCH_ONLY=hello,json,start
# chooses among the first, BENCH_SECONDS and BENCH_REPEATS how long; docs/understand/performance.md has a run.
# BENCH_WRITE=1 writes the tables into README.md and docs/understand/performance.md; the machine is looked at before anything is built.
BENCH_BINS  := $(patsubst test/bench/%.c,$(B)/bench/%,$(wildcard test/bench/bench_*.c))
$(B)/bench/%: test/bench/%.c $(LIB) $(TESTLIB)
	$(program)
# Objects in C beside those in JavaScript; wrangler.compiled.jsonc names it.
build/bench/compiled.so: test/bench/workers/compiled.c include/cairn.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -shared -fPIC -O2 -Iinclude -o $@ $<

BENCH_ROWS_FILE := $(if $(filter 1,$(BENCH_WRITE)),$(abspath $(B)/bench/rows.jsonl))
BENCH_BEGIN = $(if $(BENCH_ROWS_FILE),node test/bench/report.mjs begin $(BENCH_ROWS_FILE))
BENCH_END = $(if $(BENCH_ROWS_FILE),node test/bench/report.mjs end $(BENCH_ROWS_FILE))
.PHONY: bench bench-cluster bench-against flames bench-instructions
bench: export BENCH_ROWS := $(BENCH_ROWS_FILE)
bench: setup-bench setup-npm workerd ## compare with workerd and with stock SQLite on this machine; BENCH_WRITE=1 writes the tables into the documents
	@$(BENCH_BEGIN)
	@$(MAKE) $(B)/cairn $(BENCH_BINS) build/bench/compiled.so
	@node test/bench/serve.mjs
	@node test/bench/objects.mjs
	@node test/bench/websockets.mjs
	@node test/bench/compiled.mjs
	@node test/bench/services.mjs
	@node test/bench/apps.mjs
	@node test/bench/cluster.mjs
	@$(if $(BENCH_ONLY),,$(B)/bench/bench_store)
	@$(if $(BENCH_ONLY),,$(B)/bench/bench_analytics)
	@$(BENCH_END)

# BENCH_ONLY=cluster-commit,... chooses parts: test/bench/cluster.mjs. It takes about six minutes.
bench-cluster: export BENCH_ROWS := $(BENCH_ROWS_FILE)
bench-cluster: ## a node of a cluster beside a single server and its PostgreSQL alone; BENCH_WRITE=1 writes the table into docs/understand/cluster.md
bench-cluster: setup-bench setup-test
	@$(BENCH_BEGIN)
	@$(MAKE) $(B)/cairn $(B)/bench/bench_append $(B)/bench/bench_ws
	@node test/bench/cluster.mjs
	@$(BENCH_END)

BASE ?= HEAD~1
bench-against: setup-bench $(B)/cairn build/bench/compiled.so ## CPU per request beside another commit's server: BASE=commit
	@node test/bench/against.mjs $(BASE)

flames: ## where the processor time of each row of the benchmark goes, by perf: flame graphs; BENCH_ONLY=hello,do-sql
flames: setup-bench setup-perf $(B)/cairn
	@node test/bench/flames.mjs

bench-instructions: ## instructions per request by callgrind, beside another commit's server: BASE=commit
bench-instructions: setup-valgrind $(B)/cairn build/bench/compiled.so
	@node test/bench/instructions.mjs $(filter-out HEAD~1,$(BASE))
