# The test library, and how a test program is built.
# An archive, so that a program with its own main() does not take the harness's.
TESTLIB_OBJS := $(patsubst test/lib/%.c,$(B)/testlib/%.o,$(wildcard test/lib/*.c))
$(B)/testlib/%.o: test/lib/%.c
	$(compile)
$(TESTLIB): $(TESTLIB_OBJS)
	@rm -f $@
	@ar rcs $@ $^

# A test program: one source, linked with the test library and everything of ours.
define program
@mkdir -p $(@D)
$(call say,CC,$<)
$(Q)$(CCACHE) $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@.o
$(Q)$(CC) -o $@ $@.o $(TESTLIB) $(LIB) $(LDLIBS_ALL) $(WRAPS)
endef
# For programs in which memory runs out: test/lib/scarce.h.
SCARCE := -Wl,--wrap=cn_try_alloc,--wrap=cn_try_alloc_large,--wrap=cn_try_realloc

# A library that is loaded into a server before others, by LD_PRELOAD or in the place of another.
define preload
@mkdir -p $(@D)
$(call say,CC,$<)
$(Q)$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror -shared -fPIC -o $@ $< -ldl
endef

# Runs one script with the prelude and an event loop: how the prelude is tried without a server.
$(B)/jsrun: test/lib/jsrun/jsrun.c $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -o $@ $< $(LIB) $(LDLIBS_ALL)

DEPS += $(TESTLIB_OBJS:.o=.d)
