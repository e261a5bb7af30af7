# Their packages are apart from those of the build: they are many, and only this needs them.
.PHONY: test-libs
test-libs: setup-test $(if $(filter workerd,$(PEER)),workerd) ## npm libraries in real use; PEER=workerd, TEST=part of a name
	@$(MAKE) $(JOBS) $(B)/cairn
	@$(call npm-ci,test/libs)
	@PEER=$(filter workerd,$(PEER)) node test/libs/run.mjs $(TEST)
