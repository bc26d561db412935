# SPDX-License-Identifier: BSD-3-Clause
# Tests on a kernel's RDMA stack, in guests (see verbs/README.md). Add a test to VERBS_LIST, and the
# programs that it needs to VERBS_BIN. NBAR_NATIVE=1 runs the tests on this machine's own RDMA device.

VERBS_DEPS := qemu-system-x86 cpio busybox-static kmod xz-utils iproute2 libibverbs-dev ibverbs-providers \
	rdma-core strace
VERBS_BIN += $(BUILD)/oracle $(BUILD)/guests-add
VERBS_LIST += testbed/verbs/test-bad.sh testbed/verbs/test-one.sh testbed/verbs/test-syscalls.sh \
	testbed/verbs/test-faults.sh testbed/verbs/test-guests.sh testbed/verbs/test-kernel.sh \
	testbed/verbs/test-remote.sh testbed/verbs/test-remote-guests.sh

ifneq ($(VERBS),)
VERBS_BIN += $(BUILD)/verbs-garbage $(BUILD)/verbs-break
endif
$(BUILD)/verbs-garbage $(BUILD)/verbs-break: $(BUILD)/verbs-%: $(BUILD)/test/testbed/verbs/%.o
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -libverbs
OBJS += $(BUILD)/test/testbed/verbs/garbage.o $(BUILD)/test/testbed/verbs/break.o
$(BUILD)/guests-add: $(BUILD)/test/testbed/guests/add.o
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
OBJS += $(BUILD)/test/testbed/guests/add.o

# The unit tests of the wire, which need no device.
$(BUILD)/test/testbed/unit/wire/test_wire_verbs%: CFLAGS_test += $(if $(VERBS),-DWIRES_VERBS)
$(BUILD)/libverbs.a: $(call wire_obj,verbs)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
VERBS_TESTS := $(filter $(BUILD)/test_wire_verbs%,$(UNIT_BIN))
$(VERBS_TESTS): $(if $(VERBS),$(BUILD)/libverbs.a)
$(VERBS_TESTS): ALL_LDFLAGS += -Wl,--no-as-needed $(if $(VERBS),$(VERBS_LIBS))

$(BUILD)/test/testbed/unit/wire/test_wire_rdma%: CFLAGS_test += $(if $(VERBS),-DWIRES_VERBS)
RDMA_TESTS := $(filter $(BUILD)/test_wire_rdma%,$(UNIT_BIN))
$(filter %_hello,$(RDMA_TESTS)): $(if $(VERBS),$(filter %/hello.o %/device.o %/auth_prove.o,$(RDMA_OBJ)))
$(filter %_link,$(RDMA_TESTS)): $(if $(VERBS),$(filter %/rdma/link.o,$(RDMA_OBJ)))
$(filter %_hello,$(RDMA_TESTS)): ALL_LDFLAGS += $(call wrap,wire_auth_load clock_gettime poll connect getsockopt getsockname send recv)
$(RDMA_TESTS): ALL_LDFLAGS += -Wl,--no-as-needed $(if $(VERBS),$(VERBS_LIBS))

check-verbs: deps ## the wire verbs, on soft RDMA devices of guests in QEMU: takes minutes
	$(Q)testbed/deps.sh $(VERBS_DEPS)
	$(Q)$(MAKE) --no-print-directory check-verbs-nodeps

check-verbs-nodeps: all $$(VERBS_BIN) $$(MPI_ORACLE)
	$(Q)BUILD=$(BUILD) TEST_TIMEOUT=1850 testbed/run $(VERBS_LIST)

# ROUNDS barriers of each plan. TEST_LIMIT and TEST_TIMEOUT, in seconds, are large on purpose.
check-oracle-verbs: ROUNDS = 1000
check-oracle-verbs: all $(BUILD)/oracle ## every plan over every mode of the wire verbs, by NICs, by hosts, in-process: 1,000 barriers each
	$(Q)BUILD=$(BUILD) NBAR_ROUNDS=$(ROUNDS) TEST_LIMIT=80000 TEST_TIMEOUT=80000 testbed/run testbed/verbs/oracle.sh

bench-verbs: deps all ## nbar against Open MPI, over a soft RDMA device of guests: takes minutes
	$(Q)testbed/deps.sh $(VERBS_DEPS) openmpi-bin
	$(Q)BUILD=$(BUILD) testbed/verbs/bench.sh

.PHONY: bench-verbs check-oracle-verbs check-verbs check-verbs-nodeps
