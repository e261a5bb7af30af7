# The same conformance tests on three peers: jsrun (the prelude alone), cairn, and workerd.
PEER ?= jsrun
TEST ?=
.PHONY: test-web
test-web: $(if $(filter workerd,$(PEER)),workerd) ## conformance tests of the Web APIs; PEER=jsrun|cairn|workerd, TEST=part of a name
	$(if $(filter workerd,$(PEER)),,@$(MAKE) $(B)/$(PEER))
	@PEER=$(PEER) node test/conformance/run.mjs $(TEST)

.PHONY: node-names
node-names: workerd $(B)/cairn ## exported names of node: modules beside workerd's and Node.js's; NODE=path of a Node.js 22
	@NODE=$(or $(NODE),node) node test/conformance/names.mjs
