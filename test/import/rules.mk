# What the real wrangler has stored (test/wrangler/package-lock.json has its version) moves in: COUNT=1000 objects, compared by the same
# script on both sides; imports that are killed; a disk that is full. `make record-import` makes the fixture of the short form anew.
IMPORT_SETUP = mkdir -p build/wrangler && cp test/wrangler/package.json $(WRANGLER_LOCK) build/wrangler/ && $(call npm-ci,build/wrangler)
.PHONY: test-import record-import
test-import: $(B)/cairn ## the real wrangler's data moves in: COUNT=1000 objects, KV, D1, R2, compared on both sides; KILLS=10
	@$(IMPORT_SETUP)
	@COUNT=$(or $(COUNT),1000) KILLS=$(or $(KILLS),10) $(WRANGLER_RUN) test/import/import.test.mjs 2>&1 | tools/summary
record-import:
	@$(IMPORT_SETUP)
	@WRANGLER=$(abspath $(WRANGLER)) node test/import/record.mjs
