STRESS ?= --seconds 60
STRESS_RUN = $(SERVER) $(if $(SAN),$(SANITIZED) $(B)) node test/stress
.PHONY: stress stress-libraries
stress: ## Durable Objects and what they share, at random, with evictions, reloads and kills; STRESS="--seconds 600 --seed 7"
stress: $(B)/cairn $(if $(SAN),,$(B)/load/slowdisk.so)
	@$(STRESS_RUN)/objects.mjs $(STRESS)
	@$(STRESS_RUN)/objects.mjs --language c $(STRESS)
	@$(STRESS_RUN)/turns.mjs $(STRESS)

stress-libraries: ## popular libraries at module level, shared between objects, under reloads and kills
stress-libraries: setup-test $(B)/cairn
	@$(call npm-ci,test/stress/libraries)
	@$(SERVER) node test/stress/libraries.mjs
