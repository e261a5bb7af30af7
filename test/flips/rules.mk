FLIPS ?= 1500
.PHONY: flips
flips: ## flip bits all over data directories: right data or an error, and the check finds it; FLIPS=1500
flips: $(B)/unit/store/test_damage $(B)/cairn
	@CAIRN_FLIPS=$(FLIPS) $< flipped
	@$(SERVER) node test/flips/flips.mjs --count 300
