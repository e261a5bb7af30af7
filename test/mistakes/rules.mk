# What `cairn dev` and `wrangler dev` say of the same mistakes; the wrangler of test/wrangler, which npm brings. What that
# one says is kept below build/mistakes. ONLY=text: those whose name has it.
.PHONY: mistakes
mistakes: $(B)/cairn ## mistakes in a project: what cairn dev says beside wrangler dev; ours is never behind; ONLY=text
	@mkdir -p build/wrangler && cp test/wrangler/package.json $(WRANGLER_LOCK) build/wrangler/
	@$(call npm-ci,build/wrangler)
	@node test/mistakes/run.mjs --cairn $(B)/cairn --wrangler $(WRANGLER) --out build/mistakes/mistakes.md $(if $(ONLY),--only "$(ONLY)") && \
	  echo "mistakes: build/mistakes/mistakes.md has what both say"
