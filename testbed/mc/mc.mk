# SPDX-License-Identifier: BSD-3-Clause
# Models of what threads do to each other through memory, in every order of their steps.

MC_WAIT_OBJ := $(patsubst %.c,$(BUILD)/test/%.o,$(addprefix testbed/mc/,wait.c wait_models.c model.c litmus.c \
                 weak.c weak_tso.c weak_c11.c))
$(BUILD)/mc-wait: $(MC_WAIT_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
TESTS += $(BUILD)/mc-wait
TEST_LIST += $(BUILD)/mc-wait
OBJS += $(MC_WAIT_OBJ)

mc-wait: $(BUILD)/mc-wait ## all waits of host and NIC, on x86's memory and on C11's; and each seeded bug
	$(Q)$(BUILD)/mc-wait hostlib/src/order.h -v

.PHONY: mc-wait
