.PHONY: tokens
tokens: $(B)/cairn ## every request of the admin listener with every kind of token, made from its OpenAPI document; QUICK=1: the short form
	@$(SERVER) $(if $(QUICK),,TOKENS_LONG=1) $(NODE_TEST) test/integration/deploy/scopes.test.mjs
