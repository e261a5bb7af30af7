# Part of `make test`: instructions of hot paths beside recorded numbers.
NOCLOCK := $(B)/instructions/noclock.so
$(NOCLOCK): test/instructions/noclock.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror $(shell pkg-config --cflags javascriptcoregtk-4.1) -shared -fPIC -o $@ $<
.PHONY: instructions
instructions: ## instructions per request of five hot paths within 3 % of recorded numbers; RECORD=1 records them
instructions: $(B)/cairn $(NOCLOCK)
	@tools/setup valgrind
	@$(SERVER) NOCLOCK=$(abspath $(NOCLOCK)) RECORD=$(RECORD) timeout 300 node test/instructions/check.mjs
