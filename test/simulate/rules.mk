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

.PHONY: simulate simulate-planted
simulate: $(B)/simulate/simulate ## the decisions of a cluster under a seeded adversary; SEEDS=1000000, SEED=7 shows one
	@$< $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))
simulate-planted: $(B)/planted/simulate/simulate ## whether that finds bugs that are planted, and after how many seeds; PLANTED=no-fence
	@$< --seeds 200000 $(if $(PLANTED),--plant $(PLANTED),--planted)

DEPS += $(SIM_OBJS:.o=.d) $(SIM_PLANTED:.o=.d)
