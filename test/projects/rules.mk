.PHONY: test-projects
test-projects: setup ## projects of strangers, beside wrangler dev; TEST=part of a name
	@$(MAKE) $(JOBS) $(B)/cairn
	@$(SERVER) node test/projects/run.mjs $(TEST)
