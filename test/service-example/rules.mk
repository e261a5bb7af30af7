# A service that is in no table, added as docs/inside/hacking.md says: its folder, one line.
.PHONY: service-example
service-example: $(B)/cairn $(TESTLIB) ## build a server with the service of test/service-example, and try it
	@node test/service-example/build.mjs build build/service-example
	@CAIRN=$(abspath build/service-example/build/cairn) timeout 600 $(NODE_TEST) test/service-example/tally.test.mjs 2>&1 | tools/summary
