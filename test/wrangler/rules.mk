# The real wrangler, of the version in test/wrangler/package-lock.json, which npm brings: commands, then the gallery,
# the applications and the starters with their own tests on an empty server that gets them by it.
# KILLS=200: deployments that are killed. SHORT=1: part of `make test`.
WRANGLER_TESTS  = $(if $(SHORT),wrangler client,wrangler client projects queues routes cluster)
DEPLOYED_TESTS  = examples/gallery examples/hello examples/sockets apps/riven-tracker apps/path-stats cli/starters
WRANGLER        = build/wrangler/node_modules/wrangler/bin/wrangler.js
WRANGLER_RUN    = $(SERVER) WRANGLER=$(abspath $(WRANGLER)) $(NODE_TEST)
WRANGLER_LOCK   = test/wrangler/package-lock.json
WRANGLER_ENV    = KILLS=$(or $(KILLS),$(if $(SHORT),2,20)) LONG=$(if $(SHORT),,1)
DEPLOYED_RUN    = CAIRN_TEST_DEPLOYED=1 $(WRANGLER_RUN) --test-concurrency=1
.PHONY: test-wrangler
test-wrangler: $(B)/cairn ## the real wrangler deploys to an empty server, everything we have; KILLS=20, SHORT=1
	@mkdir -p build/wrangler && cp test/wrangler/package.json $(WRANGLER_LOCK) build/wrangler/
	@$(call npm-ci,build/wrangler)
	@$(WRANGLER_ENV) $(WRANGLER_RUN) $(WRANGLER_TESTS:%=test/wrangler/%.test.mjs) 2>&1 | tools/summary
	@$(if $(SHORT),,$(DEPLOYED_RUN) $(DEPLOYED_TESTS:%=test/integration/%.test.mjs) 2>&1 | tools/summary)
