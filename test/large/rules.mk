$(B)/large/%: test/large/%.c $(LIB) $(TESTLIB)
	$(program)

# PICTURES=docs/images takes those of the documentation as well.
PICTURES ?=
.PHONY: dashboard-million large
dashboard-million: ## every view of the dashboard with a million objects, each under 300 ms
dashboard-million: setup-test $(B)/cairn $(B)/large/fill_catalog
	@$(SERVER) FILL=$(abspath $(B)/large/fill_catalog) timeout 600 node test/large/dashboard.mjs $(PICTURES)

large: $(B)/cairn ## 2 GB through R2 with little memory; takes a minute and 2 GB of disk
	@$(SERVER) node test/large/r2.mjs
