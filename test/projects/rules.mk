.PHONY: test-projects
test-projects: setup-test setup-npm ## projects of strangers, beside wrangler dev; TEST=part of a name
	@$(MAKE) $(JOBS) $(B)/cairn
	@$(SERVER) node test/projects/run.mjs $(TEST)
