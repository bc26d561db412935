# SPDX-License-Identifier: BSD-3-Clause
# Tests on a kernel's RDMA stack, in guests (see verbs/README.md). Add a test to VERBS_LIST, and the
# programs that it needs to VERBS_BIN. NBAR_NATIVE=1 runs the tests on this machine's own RDMA device.

VERBS_DEPS := qemu-system-x86 cpio busybox-static kmod xz-utils iproute2 libibverbs-dev ibverbs-providers \
	rdma-core strace
VERBS_BIN += $(BUILD)/oracle $(BUILD)/guests-add
VERBS_LIST += testbed/verbs/test-bad.sh testbed/verbs/test-one.sh testbed/verbs/test-syscalls.sh \
	testbed/verbs/test-faults.sh testbed/verbs/test-guests.sh testbed/verbs/test-kernel.sh \
	testbed/verbs/test-remote.sh testbed/verbs/test-remote-guests.sh testbed/verbs/test-remote-pairs.sh

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
$(filter %_hello,$(RDMA_TESTS)): $(if $(VERBS),$(filter %/hello.o %/device.o %/list.o %/auth_prove.o,$(RDMA_OBJ)))
$(foreach f,device host link,$(eval $(filter %_$f,$(RDMA_TESTS)): $(if $(VERBS),$(filter %/rdma/$f.o,$(RDMA_OBJ)))))
$(filter %_hello,$(RDMA_TESTS)): ALL_LDFLAGS += $(call wrap,wire_auth_load clock_gettime poll connect getsockopt getsockname send recv)
$(filter %_host,$(RDMA_TESTS)): ALL_LDFLAGS += $(call wrap,calloc eventfd poll pthread_create read recv send socketpair)
$(RDMA_TESTS): ALL_LDFLAGS += -Wl,--no-as-needed $(if $(VERBS),$(VERBS_LIBS))

check-verbs: deps ## the wire verbs, on soft RDMA devices of guests in QEMU: takes minutes
	$(Q)testbed/deps.sh $(VERBS_DEPS)
	$(Q)$(MAKE) --no-print-directory check-verbs-nodeps

check-verbs-nodeps: all $$(VERBS_BIN) $$(MPI_ORACLE)
	$(Q)BUILD=$(BUILD) TEST_TIMEOUT=1850 testbed/run $(VERBS_LIST)

# What the daemon in a card needs. check-verbs-arm64 builds it for Debian's architecture arm64.
card: $(NICD_BIN) $(BUILD)/oracle

check-verbs-arm64: ROOT = $(abspath $(BUILD))/guest-arm64/root
check-verbs-arm64: deps ## remote hosts of a card that is an aarch64 guest: takes a quarter of an hour
	$(Q)testbed/deps.sh $(VERBS_DEPS) gcc-aarch64-linux-gnu mmdebstrap qemu-system-arm
	$(Q)BUILD=$(BUILD) testbed/guests/guest image arm64
	$(Q)$(MAKE) --no-print-directory all $(BUILD)/oracle
	$(Q)PKG_CONFIG_LIBDIR=$(ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$(ROOT) \
		$(MAKE) --no-print-directory BUILD=$(BUILD)-arm64 CC="aarch64-linux-gnu-gcc --sysroot=$(ROOT)" AR=aarch64-linux-gnu-ar card
	$(Q)BUILD=$(BUILD) NBAR_ARM64=1 TEST_TIMEOUT=1850 testbed/run testbed/verbs/test-remote-guests.sh testbed/verbs/test-remote-pairs.sh

# ROUNDS barriers of each plan. TEST_LIMIT and TEST_TIMEOUT, in seconds, are large on purpose.
check-oracle-verbs: ROUNDS = 1000
check-oracle-verbs: all $(BUILD)/oracle ## every plan over every mode of the wire verbs, by NICs, by hosts, in-process: 1,000 barriers each
	$(Q)BUILD=$(BUILD) NBAR_ROUNDS=$(ROUNDS) TEST_LIMIT=80000 TEST_TIMEOUT=80000 testbed/run testbed/verbs/oracle.sh

bench-verbs: deps all ## nbar against Open MPI, over a soft RDMA device of guests: takes minutes
	$(Q)testbed/deps.sh $(VERBS_DEPS) openmpi-bin
	$(Q)BUILD=$(BUILD) testbed/verbs/bench.sh

.PHONY: bench-verbs card check-oracle-verbs check-verbs check-verbs-arm64 check-verbs-nodeps
