# SPDX-License-Identifier: BSD-3-Clause
# Jobs without end on the same daemons; and daemons under every fault.

CLUSTER_LIST += testbed/soak/soak.sh

$(BUILD)/lossy.so: testbed/soak/lossy.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -fPIC -shared $< -o $@ -ldl

JOBS ?= 200
soak: all $(BUILD)/oracle $(BUILD)/lossy.so $$(MPI_RANDOM) ## JOBS=200 jobs on one daemon, nothing may grow; then four daemons under every fault for T=300 seconds
	$(Q)BUILD=$(BUILD) SAN=$(SAN) JOBS=$(JOBS) TORTURE=$(or $(T),300) TEST_TIMEOUT=360000 \
		testbed/run testbed/soak/soak.sh testbed/soak/torture.sh

.PHONY: soak
