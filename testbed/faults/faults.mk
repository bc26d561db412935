# SPDX-License-Identifier: BSD-3-Clause
# Calls to libc that fail, one by one. A sanitizer has its own malloc, so the test then skips.

FAIL_CLIENT_OBJ := $(BUILD)/test/testbed/faults/client.o
$(BUILD)/fail-client: $(FAIL_CLIENT_OBJ) $(BUILD)/libnbar.a | $(BUILD)/$(HOSTNIC_SO)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -lpthread
OBJS += $(FAIL_CLIENT_OBJ)

$(BUILD)/fail.so: testbed/faults/fail.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(filter-out -Wmissing-prototypes,$(WARN)) $(CFLAGS) -fPIC -shared $< -o $@ -ldl

FAULTS_BIN := $(if $(SAN),,$(BUILD)/fail.so $(BUILD)/fail-client)
TESTS += $(FAULTS_BIN)
TEST_LIST += testbed/faults/faults.py

EACH ?= 50
check-faults: all $(FAULTS_BIN) ## each call to libc of daemon, library and tools fails once: EACH=50 calls of each call site
	$(Q)BUILD=$(BUILD) SAN=$(SAN) EACH=$(EACH) SAMPLE=1 TEST_TIMEOUT=20000 testbed/run testbed/faults/faults.py

.PHONY: check-faults
