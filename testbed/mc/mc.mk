# SPDX-License-Identifier: BSD-3-Clause
# Model checking: of the waits (models of threads that share memory), and of the engine and the NIC
# loop (their object code, in every order of events).

MC_OBJ := $(patsubst %.c,$(BUILD)/test/%.o,$(wildcard testbed/mc/*.c))
mc_obj = $(addprefix $(BUILD)/test/testbed/mc/,$(addsuffix .o,$(1)))
OBJS += $(MC_OBJ)

$(BUILD)/mc-wait: $(call mc_obj,wait wait_models model litmus weak weak_tso weak_c11 states)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@

$(BUILD)/mc-group: $(call mc_obj,group group_world group_events group_probe group_same chart search states) \
                   $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@

$(BUILD)/mc-nics: $(call mc_obj,nics nics_world nics_events nics_save chart search states) \
                  $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@

TESTS += $(BUILD)/mc-wait $(BUILD)/mc-group $(BUILD)/mc-nics
TEST_LIST += $(BUILD)/mc-group $(BUILD)/mc-nics $(if $(SAN),,$(BUILD)/mc-wait testbed/mc/table.sh testbed/mc/bugs.sh)

mc-wait: $(BUILD)/mc-wait ## all waits of host and NIC, on x86's memory and on C11's; and each seeded bug
	$(Q)$(BUILD)/mc-wait hostlib/src/order.h -v

mc: $(BUILD)/mc-group $(BUILD)/mc-nics ## engine and NIC loop in every order of events, small groups; seeded bugs; takes minutes
	$(Q)BUILD=$(BUILD) testbed/mc/table.sh --full
	$(Q)BUILD=$(BUILD) CC="$(CC)" testbed/mc/bugs.sh -v

.PHONY: mc-wait mc
