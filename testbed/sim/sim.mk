# SPDX-License-Identifier: BSD-3-Clause
# The simulation of whole NICs, with faults drawn from seeds.

SIM_NICS_OBJ := $(patsubst %.c,$(BUILD)/test/%.o,$(wildcard testbed/sim/*.c))
$(BUILD)/sim-nics: $(SIM_NICS_OBJ) $(SIM_OBJ) $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -lcmocka -lm
TESTS += $(BUILD)/sim-nics
TEST_LIST += $(BUILD)/sim-nics
OBJS += $(SIM_NICS_OBJ)

SEEDS ?= 10000
sim: $(BUILD)/sim-nics ## whole NICs under every fault, simulated from SEEDS seeds (10000)
	$(Q)BUILD=$(BUILD) NBAR_SEEDS=$(SEEDS) TEST_TIMEOUT=36000 testbed/run $(BUILD)/sim-nics

.PHONY: sim
