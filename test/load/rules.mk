# A slow disk under the real binary.
$(B)/load/slowdisk.so: test/load/slowdisk.c
	$(preload)
LOAD ?= --seconds 180
.PHONY: load full kills siege hog
load: ## an hour's requests in minutes, with faults; root for a full disk; LOAD="--seconds 600 --seed 7"
load: setup-test $(B)/cairn $(B)/load/slowdisk.so
	@$(SERVER) node test/load/load.mjs $(LOAD)
	@$(SERVER) node test/load/siege.mjs $(SIEGE)

full: ## 200 rounds on a full disk with a ledger: no answer is wrong, neither way; root; FULL="--rounds 20 --seed 7"
full: setup-test $(B)/cairn
	@$(SERVER) node test/load/full.mjs $(FULL)

kills: ## 1,000 kill -9 with a ledger: nothing acknowledged is lost, nothing refused is there; KILL9="--rounds 20 --seed 7"
kills: setup-test $(B)/cairn
	@$(SERVER) node test/load/kills.mjs $(KILL9)

siege: ## clients and scripts that want all memory and all time at once, and an innocent one; SIEGE="--only every --memory 400", "--list"
siege: setup-test $(B)/cairn
	@$(SERVER) node test/load/siege.mjs $(SIEGE)

hog: ## every API, native and route of the administration asked for all the memory it gives; HOG="--short", "--part routes", "--only env.KV"
hog: $(B)/cairn-open build/openapi.json
	@CAIRN=$(abspath $(B)/cairn-open) node test/load/hog.mjs $(HOG)
