.PHONY: slow
slow: ## every API and every part of a request with long texts: none may grow faster than its text; SLOW="--long --only URL"
slow: $(B)/cairn
	@$(SERVER) node test/slow/run.mjs $(SLOW)
