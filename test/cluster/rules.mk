# Real processes on a real engine: test/cluster/wire.h.
CLUSTER_SECONDS ?= 60
$(B)/cluster/%.o: test/cluster/%.c
	$(compile)
# Linker wraps let the test drop messages to the engine and between nodes.
CLUSTER_WRAPS := -Wl,--wrap=cn_engine_pg_send,--wrap=cn_engine_pg_connect,--wrap=cn_links_send
CLUSTER_NODE := $(patsubst %,$(B)/cluster/%.o,node wire store_list store_real)
CLUSTER_TEST := $(patsubst %,$(B)/cluster/%.o,test_cluster wire)
$(B)/cluster/node: $(CLUSTER_NODE) $(LIB)
	$(call link,$(CLUSTER_WRAPS) $(CLUSTER_NODE) $(LIB) $(LDLIBS_ALL))
$(B)/cluster/test_cluster: $(CLUSTER_TEST) $(TESTLIB) $(LIB) $(THIRD)
	$(call link,$(CLUSTER_TEST) $(TESTLIB) $(LIB) $(THIRD) $(LDLIBS_ALL))
$(B)/cluster/stranger: $(B)/cluster/stranger.o
	$(call link,$< $(SANFLAGS) -lssl -lcrypto)

.PHONY: cluster-test cluster-test-server upgrade-test cluster-asan cluster-tsan cluster-campaign cluster-quick cluster-control
.PHONY: cluster-planted cluster-objects cluster-chat cluster-path-stats
cluster-test: ## nodes of a cluster as processes on a real PostgreSQL, under faults; CLUSTER_SECONDS=60
cluster-test: setup-test $(B)/cluster/node $(B)/cluster/test_cluster cluster-test-server
	@CLUSTER_NODE=$(abspath $(B)/cluster/node) CLUSTER_SECONDS=$(CLUSTER_SECONDS) $(B)/cluster/test_cluster
cluster-test-server: $(B)/cairn $(B)/cluster/stranger ## the same with real servers (test/cluster/server); CLUSTER_SECONDS=60
	@$(SERVER) CLUSTER_SECONDS=$(CLUSTER_SECONDS) node --test --test-concurrency=1 --test-reporter=spec test/cluster/server/*.test.mjs

# The commit before this one, or OLD=COMMIT, built beside this tree.
OLD ?= HEAD~1
upgrade-test: setup-test $(B)/cairn ## a rolling upgrade of a cluster from an older commit's build to this one; OLD=COMMIT
	$(Q)rm -rf $(B)/old && mkdir -p $(B)/old && git archive $(OLD) | tar -x -C $(B)/old && \
	  ln -s $(CURDIR)/node_modules $(B)/old/node_modules
	$(Q)$(MAKE) -C $(B)/old
	@$(SERVER) CAIRN_OLD=$(abspath $(B)/old/build/cairn) $(NODE_TEST) test/cluster/server/upgrade.test.mjs

# The same servers under sanitizers: of addresses and undefined behaviour, leaks at their end included, and of threads.
# TEST="calls sockets": some of its files.
CLUSTER_SAN_TESTS = $(or $(TEST),calls sockets services deploy r2 nodes faults past reads hostile)
CLUSTER_TSAN_TESTS = $(or $(TEST),calls sockets services batches stubs r2 deploy moves admin nodes past reads hostile)
cluster-asan: ## tests of clusters on servers built with SAN=address,undefined, leaks at their end included; TEST=calls
cluster-asan: setup-test build/cluster/stranger
	@$(MAKE) $(JOBS) SAN=address,undefined $(SAN_SERVER)
	@LEAKS=1 $(call sanitized_tests,$(SAN_SERVER),$(CLUSTER_SAN_TESTS:%=test/cluster/server/%.test.mjs),1)
cluster-tsan: setup-test build/cluster/stranger ## the same on servers built with SAN=thread; TEST=calls
	@$(MAKE) $(JOBS) SAN=thread $(TSAN_SERVER)
	@$(call sanitized_tests,$(TSAN_SERVER),$(CLUSTER_TSAN_TESTS:%=test/cluster/server/%.test.mjs),1)

# Campaigns against real servers, judged by their histories: test/cluster/server/campaign.mjs.
CAMPAIGN ?= --nodes 5 --faults 300 --failovers 30 --r2
CAMPAIGN_RUN = $(SERVER) node test/cluster/server/campaign.mjs
cluster-campaign: ## nodes in network namespaces, load, 300 faults and 30 fail-overs of the engine; CAMPAIGN="--faults 50 --seed 7"
cluster-campaign: setup-test $(B)/cairn
	@$(CAMPAIGN_RUN) $(CAMPAIGN)
cluster-quick: $(B)/cairn ## the same, short, and its control: part of make test
	@node --test --test-reporter=dot test/cluster/server/judge.test.mjs
	@$(CAMPAIGN_RUN) --quick --quiet --r2
	@$(CAMPAIGN_RUN) --control --quick --quiet
cluster-control: $(B)/cairn ## an engine that does not wait for its standby: losses must be found
	@$(CAMPAIGN_RUN) --control

# Servers with a bug of the simulation's in their decisions (CN_SIMULATION), chosen by CAIRN_BROKEN: test/cluster/broken.c.
$(B)/planted/broken.o: test/cluster/broken.c
	$(call cc,$(CFLAGS_ALL) -DCN_SIMULATION)
CLUSTER_BROKEN := $(B)/planted/broken.o $(patsubst src/%.c,$(B)/planted/%.o,$(wildcard src/membership/member*.c))
$(B)/cairn-broken: $(B)/obj/cli/main.o $(CLUSTER_BROKEN) $(LIB)
	$(call link,$^ $(LDLIBS_ALL))
cluster-planted: $(B)/cairn-broken ## whether a campaign finds bugs that are planted before it; PLANTED=hasty-fence: into it
	@CAIRN=$(abspath $(B)/cairn-broken) node test/cluster/server/planted.mjs $(PLANTED)

CLUSTER_OBJECTS ?= --objects 100000 --nodes 3
cluster-objects: $(B)/cairn ## 100,000 live objects on three nodes, of which one is killed; CLUSTER_OBJECTS="--objects 1000"
	@$(SERVER) node test/cluster/server/objects.mjs $(CLUSTER_OBJECTS)
CLUSTER_CHAT ?= --clients 2000 --rooms 60
cluster-chat: ## the gallery's chat room on three nodes that are killed, drained and replaced; CLUSTER_CHAT="--clients 200 --old BINARY"
cluster-chat: $(B)/cairn
	@$(SERVER) node test/cluster/server/chat.mjs $(CLUSTER_CHAT)
CLUSTER_PATH_STATS ?= --events 300000
cluster-path-stats: ## the path statistics on three nodes that are killed: exact; CLUSTER_PATH_STATS="--events 20000"
cluster-path-stats: $(B)/cairn
	@$(SERVER) node test/cluster/server/path-stats.mjs $(CLUSTER_PATH_STATS)
