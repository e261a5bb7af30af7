# Objects and workers in C under sanitizers, and the examples in C: modules are built with the same ones
# (test/integration/lib/module.mjs).
MODULES_SAN_TESTS = $(or $(TEST),modules examples/gallery-c.test.mjs)
.PHONY: modules-san
modules-san: ## objects and workers in C on servers built with SAN=address,undefined and SAN=thread; TEST=modules/flow.test.mjs
	@$(MAKE) $(JOBS) SAN=address,undefined $(SAN_SERVER)
	@$(call sanitized_tests,$(SAN_SERVER),$$(find $(MODULES_SAN_TESTS:%=test/integration/%) -name "*.test.mjs"),2)
	@$(MAKE) tsan TEST="$(MODULES_SAN_TESTS)"
