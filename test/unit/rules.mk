# C unit tests: one program for each file of src/.
# Not under ThreadSanitizer: a sandbox refuses what that needs for itself, and it delays the signals by which the engine's
# profiler stops a thread and compiled regular expressions are left.
TSAN_WITHOUT := $(patsubst %,test/unit/%.c,base/test_sandbox js/test_profile js/engine/test_regexp)
UNIT_SRCS := $(filter-out $(if $(findstring thread,$(SAN)),$(TSAN_WITHOUT)),\
  $(wildcard test/unit/*/test_*.c test/unit/*/*/test_*.c))
UNIT_BINS := $(UNIT_SRCS:test/unit/%.c=$(B)/unit/%)
UNIT_RUN = $(if $(findstring thread,$(SAN)),TEST_TIMEOUT=$(or $(TEST_TIMEOUT),1800) $(SANITIZED) $(B),\
  LSAN_OPTIONS=suppressions=$(abspath test/lib/lsan.supp))
$(B)/unit/net/test_server $(B)/unit/net/test_ws_conn: WRAPS = $(SCARCE)
$(B)/unit/%: test/unit/%.c $(LIB) $(TESTLIB)
	$(program)

.PHONY: unit check
unit: $(UNIT_BINS) ## build and run the C unit tests
	@$(UNIT_RUN) tools/run-tests $(UNIT_BINS)
	@CAIRN_TEST_WIRE=1 $(UNIT_RUN) tools/run-tests $(filter $(B)/unit/service/%,$(UNIT_BINS))

check: setup-test ## unit tests, under sanitizers with SAN=...
	@$(MAKE) $(JOBS) $(UNIT_BINS)
	@$(MAKE) unit

DEPS += $(UNIT_BINS:=.d)
