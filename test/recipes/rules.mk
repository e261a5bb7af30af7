# The commands of docs/do/operating.md and docs/do/three-nodes.md, taken from the pages, on machines with a real systemd that
# install the package: root, a minute for the first machine, then some for the rest. SHORT=1 reads them: syntax,
# options, settings. PAGES=docs/do/three-nodes.md for one.
.PHONY: recipes
recipes: ## the commands of the pages on operating, run on machines with systemd; SHORT=1: read, without root
recipes: $(if $(SHORT),$(B)/cairn,deb)
	@$(if $(SHORT),node test/recipes/run.mjs --short $(abspath $(B)/cairn) $(PAGES),tools/setup machines && \
	  node test/recipes/run.mjs $$(ls build/package/cairn_*.deb) $(PAGES))
