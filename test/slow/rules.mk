.PHONY: slow
slow: ## every API, request, statement, rewriter and rule with long texts: none may grow faster than its text; SLOW="--doors sql --only trim"
slow: $(B)/cairn
	@$(SERVER) node test/slow/run.mjs $(SLOW)
