# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks of the NIC itself, and the test of its fairness.

# A bystander under attack: libc and the ABI header alone.
FAIR_OBJ := $(patsubst %.c,$(BUILD)/test/%.o,$(wildcard testbed/e2e/fair*.c) testbed/e2e/raw.c)
$(BUILD)/fair: $(FAIR_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
# Daemons of this test have the receive buffers of a machine that nobody has tuned.
$(BUILD)/rcvbuf.so: testbed/e2e/rcvbuf.c
	$(call say,LD,$@)
	$(Q)$(CC) -std=c11 $(WARN) -O2 -fPIC -shared $< -o $@
TESTS += $(BUILD)/fair $(BUILD)/rcvbuf.so
TEST_LIST += $(BUILD)/fair
OBJS += $(FAIR_OBJ)

bench-fair: all $(BUILD)/fair $(BUILD)/rcvbuf.so ## a bystander's barriers alone and while others do their worst
	$(Q)BUILD=$(BUILD) $(BUILD)/fair --bench $(FAIR)

.PHONY: bench-fair
