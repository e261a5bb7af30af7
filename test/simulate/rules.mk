# The decisions of src/membership/, the very objects of the server, in a simulated world: test/simulate/world.h.
# What is planted is compiled into objects of its own.
SIM_SRCS := $(wildcard test/simulate/*.c)
SIM_OBJS := $(SIM_SRCS:test/simulate/%.c=$(B)/simulate/%.o)
MEMBER_SRCS := $(wildcard src/membership/member*.c)
SIM_MEMBER := $(MEMBER_SRCS:src/%.c=$(B)/obj/%.o)
SIM_BASE := $(B)/obj/base/mem.o $(B)/obj/base/assert.o $(B)/obj/base/err.o
MEMBER_PLANTED := $(MEMBER_SRCS:src/%.c=$(B)/planted/%.o)
SIM_PLANTED := $(SIM_SRCS:test/%.c=$(B)/planted/%.o) $(MEMBER_PLANTED)
SEEDS ?= 10000
SEED ?=
$(B)/simulate/%.o: test/simulate/%.c
	$(compile)
$(B)/planted/simulate/%.o: test/simulate/%.c
	$(call compile,-DCN_SIMULATION)
$(B)/planted/membership/%.o: src/membership/%.c
	$(call compile,-DCN_SIMULATION)
$(B)/simulate/simulate: $(SIM_OBJS) $(SIM_MEMBER) $(SIM_BASE)
	$(call link,$^ $(SANFLAGS))
$(B)/planted/simulate/simulate: $(SIM_PLANTED) $(SIM_BASE)
	$(call link,$^ $(SANFLAGS))

# Whole nodes: test/simulate/whole/whole.h. What is below them is in place of the same functions of libuv, pthreads and net/.
WHOLE_ROOMS := base object peer remote shard store
WHOLE_SRCS := $(filter-out src/peer/dial.c,$(wildcard $(WHOLE_ROOMS:%=src/%/*.c))) src/membership/member.c \
  src/membership/member_place.c src/membership/member_shard.c src/fleet/cluster_front.c src/text/hex.c \
  src/crypto/crypto.c src/crypto/digest.c
WHOLE_OBJS := $(WHOLE_SRCS:src/%.c=$(B)/obj/%.o)
WHOLE_OWN := $(patsubst test/%.c,$(B)/whole/%.o,$(wildcard test/simulate/whole/*.c) \
  test/simulate/engine.c test/simulate/events.c test/simulate/history.c test/lib/simdisk.c)
WHOLE_WRAP := pthread_create pthread_join pthread_once pthread_setname_np clock_gettime nanosleep getrandom \
  $(addprefix pthread_mutex_,init destroy lock trylock unlock) $(addprefix pthread_rwlock_,init destroy rdlock wrlock unlock) \
  $(addprefix pthread_cond_,init destroy wait timedwait signal broadcast)
WHOLE_LINK = $(WHOLE_OWN) $(WHOLE_OBJS) $(B)/third/sqlite3.o $(addprefix -Wl$(comma)--wrap=,$(WHOLE_WRAP)) $(SANFLAGS) -llz4 -lzstd -lcrypto -lm
$(B)/whole/%.o: test/%.c
	$(call compile,-DCN_WHOLE)
$(B)/simulate/whole: $(WHOLE_OWN) $(WHOLE_OBJS) $(B)/third/sqlite3.o
	@mkdir -p $(@D)
	$(call link,$(WHOLE_LINK))

.PHONY: simulate simulate-whole simulate-planted simulate-whole-planted
simulate: $(B)/simulate/simulate $(B)/simulate/whole ## a cluster under a seeded adversary: its decisions, and whole nodes in a tenth of SEEDS=1000000; SEED=7 shows one of the first
	@$< $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))
	@$(if $(SEED),,$(B)/simulate/whole --seeds $$(($(SEEDS) / 10)))
simulate-whole: $(B)/simulate/whole ## whole nodes alone: SEEDS=10000, SEED=7 shows one
	@$< $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))
simulate-planted: $(B)/planted/simulate/simulate ## whether that finds bugs that are planted, and after how many seeds; PLANTED=no-fence
	@$< --seeds 200000 $(if $(PLANTED),--plant $(PLANTED),--planted)
# Each replaces a text of src/ in a build of its own: test/simulate/whole/planted.mjs.
simulate-whole-planted: $(B)/simulate/whole ## whether whole nodes in one thread find bugs that are planted; PLANTED=two-steps SEEDS=5000
	@node test/simulate/whole/planted.mjs $(B) '$(CCACHE) $(CC) $(CFLAGS_ALL)' '$(CC) -o OUTPUT $(WHOLE_LINK)' $(PLANTED) \
	  $(if $(filter command% environment%,$(origin SEEDS)),--seeds $(SEEDS))

DEPS += $(WHOLE_OWN:.o=.d) $(SIM_OBJS:.o=.d) $(SIM_PLANTED:.o=.d)
