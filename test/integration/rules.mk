# An engine that is laid out otherwise: test/integration/cli/engine.test.mjs.
$(B)/load/otherengine.so: test/integration/lib/otherengine.c
	$(preload)

# A test that hangs is a failure, not a wait: a file has its own limit, so that the run names it and goes on.
INTEGRATION_FILE_SECONDS ?= $(if $(CLUSTER),3600,600)
INTEGRATION_SECONDS ?= $(if $(CLUSTER),7200,1800)
# With CLUSTER=3 tests run on three nodes (test/integration/lib/clustered.mjs), and without TEST the suites that a
# cluster must pass, one after the other.
CLUSTER_SUITES = objects websockets services examples apps
INTEGRATION_ENGINE = $(if $(CLUSTER),node test/cluster/server/engine.mjs)
INTEGRATION_FAILED = $(B)/integration-failed.jsonl
INTEGRATION_ENV = $(if $(SANDBOX),CAIRN_SANDBOX=1) $(if $(CLUSTER),CAIRN_TEST_CLUSTER=$(CLUSTER) SUMMARY_EVERY=10) $(SERVER)
.PHONY: integration engine-tests path-stats-million san-quick
integration: ## start the real binary and talk to it; TEST=folder or file of test/integration, SANDBOX=1, CLUSTER=3: on as many nodes
integration: $(B)/cairn $(B)/load/slowdisk.so $(B)/load/otherengine.so
ifneq ($(and $(CLUSTER),$(if $(TEST),,all)),)
	@bad=; for suite in $(CLUSTER_SUITES); do echo "== $$suite on $(CLUSTER) nodes"; \
	    $(MAKE) integration TEST=$$suite || bad="$$bad $$suite"; done; \
	  [ -z "$$bad" ] || { echo "failed:$$bad" >&2; exit 1; }
else
	@[ -n "$$(find test/integration/$(TEST) -name '*.test.mjs')" ] || \
	  { echo "TEST=$(TEST): no tests in test/integration/$(TEST)" >&2; exit 1; }
	@export $(INTEGRATION_ENV); timeout $(INTEGRATION_SECONDS) $(INTEGRATION_ENGINE) \
	  node --test --test-timeout=$(INTEGRATION_FILE_SECONDS)000 --test-concurrency=$(if $(CLUSTER),2,3) \
	  --test-reporter=spec --test-reporter-destination=stdout \
	  --test-reporter=./test/integration/lib/failures.mjs --test-reporter-destination=$(INTEGRATION_FAILED) \
	  $$(find test/integration/$(TEST) -name '*.test.mjs' | sort) 2>&1 | tools/summary || \
	  $(INTEGRATION_ENGINE) node tools/again.mjs $(INTEGRATION_FAILED)
endif

# Without what Cairn does inside the engine, then with a library that nobody knows and that lacks a symbol: the same
# tests pass. Takes twice as long as `make integration`; a quick form of it is in that. ENGINE=off or ENGINE=other for one.
ENGINE ?= off other
OTHER = $(B)/otherengine
engine-tests: ## the integration tests without patches of the engine, then with a library that does not fit; ENGINE=off, TEST=serve
engine-tests: $(B)/cairn
	@$(if $(filter off,$(ENGINE)),echo "== CAIRN_ENGINE_PATCHES=off"; \
	  CAIRN_ENGINE_PATCHES=off $(MAKE) integration TEST=$(TEST))
	@$(if $(filter other,$(ENGINE)),$(SERVER) node test/integration/lib/engine.mjs $(OTHER))
	@$(if $(filter other,$(ENGINE)),echo "== a library that does not fit"; \
	  LD_LIBRARY_PATH=$(abspath $(OTHER)) $(MAKE) integration TEST=$(TEST))

path-stats-million: $(B)/cairn ## a million events through apps/path-stats: two kills, archived, replayed twice; an hour at most
	@$(SERVER) CAIRN_TEST_FULL=1 $(NODE_TEST) test/integration/apps/path-stats-million.test.mjs

# The whole server under sanitizers: what ends, and what is still held then.
SAN_TESTS := objects/stale serve/ending websockets/websockets services/r2 services/r2-damaged
san-quick: ## a few integration tests on the server built with SAN=address,undefined
	@$(MAKE) $(JOBS) SAN=address,undefined $(SAN_SERVER)
	@$(call sanitized_tests,$(SAN_SERVER),$(SAN_TESTS:%=test/integration/%.test.mjs),3)

# The whole server under ThreadSanitizer: unit tests, what starts a server, and a short stress. What the engine does
# with its own threads is not looked at.
TSAN_TESTS = $(or $(TEST),objects websockets services deploy serve admin cli/reload.test.mjs modules examples/gallery-c.test.mjs)
.PHONY: tsan
tsan: ## unit tests, integration tests and stress on a server built with SAN=thread, some hours; TEST=serve/ending.test.mjs
	@$(if $(TEST),:,$(MAKE) check SAN=thread)
	@$(MAKE) $(JOBS) SAN=thread $(TSAN_SERVER)
	@$(call sanitized_tests,$(TSAN_SERVER),$$(find $(TSAN_TESTS:%=test/integration/%) -name "*.test.mjs" | sort),1)
	@$(if $(TEST),:,$(MAKE) stress SAN=thread STRESS="--seconds 20")
