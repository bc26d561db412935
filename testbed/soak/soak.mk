# SPDX-License-Identifier: BSD-3-Clause
# Many jobs on the same daemon; daemons under every fault; very many barriers of NICs in one thread.

CLUSTER_LIST += testbed/soak/soak.sh

$(BUILD)/lossy.so: testbed/soak/lossy.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -fPIC -shared $< -o $@ -ldl

# Eight real NICs and their hosts, in one thread.
CAMPAIGN_OBJ := $(BUILD)/test/testbed/soak/campaign.o
$(BUILD)/campaign: $(CAMPAIGN_OBJ) $(filter-out %/loop.o,$(BENCH_LOOP_OBJ)) \
                   $(BUILD)/libnbnicd.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(SODIUM_LIBS) -lpthread
TESTS += $(BUILD)/campaign
TEST_LIST += $(BUILD)/campaign
OBJS += $(CAMPAIGN_OBJ)

JOBS ?= 200
soak: all $(BUILD)/oracle $(BUILD)/lossy.so $$(MPI_RANDOM) ## JOBS=200 jobs on one daemon, nothing may grow; then four daemons under every fault for T=300 seconds
	$(Q)BUILD=$(BUILD) SAN=$(SAN) JOBS=$(JOBS) TORTURE=$(or $(T),300) TEST_TIMEOUT=360000 \
		testbed/run testbed/soak/soak.sh testbed/soak/torture.sh

BATCHES ?= 1000
campaign: $(BUILD)/campaign ## BATCHES=1000 times a million barriers of eight NICs in one thread
	$(Q)$(BUILD)/campaign $(or $(SEED),1) $(BATCHES) 1000000

.PHONY: campaign soak
