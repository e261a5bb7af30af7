# The commands of every page, taken from it, on machines with a real systemd that install the package: root, a minute
# for the first machine, then some for the rest. SHORT=1 reads them: syntax, options, settings, and whether each is run
# by anybody. PAGES=docs/do/three-nodes.md for one.
.PHONY: recipes
recipes: ## the commands of every page, run on machines with systemd; SHORT=1: read, without root
recipes: $(if $(SHORT),$(B)/cairn,deb)
	@$(if $(SHORT),node test/recipes/run.mjs --short $(abspath $(B)/cairn) $(PAGES),tools/setup machines && \
	  mkdir -p build/wrangler && cp test/wrangler/package.json $(WRANGLER_LOCK) build/wrangler/ && \
	  { $(call npm-ci,build/wrangler); } && node test/recipes/run.mjs $$(ls build/package/cairn_*.deb) $(PAGES))
