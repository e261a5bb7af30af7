# Power losses and failed operations of the store.
CRASH_BINS := $(patsubst test/crash/%.c,$(B)/crash/%,$(wildcard test/crash/crash_*.c))
$(B)/crash/crash_store: WRAPS = $(SCARCE)
$(B)/crash/%: test/crash/%.c $(LIB) $(TESTLIB)
	$(program)

.PHONY: crash crash-quick
crash-quick: $(CRASH_BINS) ## the same, a few hundred crash points: part of make test
	@tools/run-tests $(CRASH_BINS)
crash: $(CRASH_BINS) ## long fault-injection runs of the store
	@for c in $(CRASH_BINS); do $$c long || exit 1; done
