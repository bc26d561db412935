# SPDX-License-Identifier: BSD-3-Clause
# The NIC on RISC-V, in QEMU: its tests (check-riscv) and its demonstration (demo-riscv).

RISCV_LIST := $(wildcard testbed/riscv/*.sh)
RISCV_LIST := $(filter-out testbed/riscv/lib.sh testbed/riscv/demo.sh,$(RISCV_LIST))

RELAY_OBJ := $(BUILD)/test/testbed/riscv/relay.o
$(BUILD)/riscv-relay: $(RELAY_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
OBJS += $(RELAY_OBJ)

# The objects of the image except main.c and pci.c. It has two NICs and their pages, so it needs 1 MB.
COUNT_OBJ := $(BUILD)/riscv64/testbed/riscv/count.o
$(BUILD)/riscv-count.elf: $(filter-out %/main.o %/pci.o,$(RISCV_IMAGE_OBJ_64)) $(RISCV_NIC_OBJ_64) \
                          $(COUNT_OBJ) $(BARED)/image/link.ld
	$(call say,LD,$@)
	$(Q)$(RISCV_LINK_64) -Wl,--defsym=ram_bytes=1M $(filter %.o,$^) -o $@
OBJS += $(if $(RISCV_CC),$(COUNT_OBJ))

check-riscv: deps ## tests of the NIC on an emulated RISC-V machine: needs no privileges, takes minutes
	$(Q)testbed/deps.sh qemu-system-misc gcc-riscv64-unknown-elf
	$(Q)$(MAKE) --no-print-directory check-riscv-nodeps

check-riscv-nodeps: all $(BUILD)/oracle $(BUILD)/adversary $(BUILD)/riscv-relay $(if $(RISCV_CC),$(BUILD)/riscv-count.elf)
	$(Q)BUILD=$(BUILD) TEST_TIMEOUT=1500 testbed/run $(RISCV_LIST)

demo-riscv: deps ## two RISC-V NICs synchronise their hosts: NIC-based against host-based
	$(Q)testbed/deps.sh qemu-system-misc gcc-riscv64-unknown-elf
	$(Q)$(MAKE) --no-print-directory all
	$(Q)BUILD=$(BUILD) testbed/riscv/demo.sh

.PHONY: check-riscv check-riscv-nodeps demo-riscv

# The allocator of the image, built for this machine and its unit test.
ARENA_OBJ := $(BUILD)/test/firmware/platform/riscv/image/arena.o
$(BUILD)/test_arena: $(ARENA_OBJ)
$(ARENA_OBJ) $(BUILD)/test/testbed/unit/platform/test_arena.o: CFLAGS_test += -Ifirmware/platform/riscv/image
OBJS += $(ARENA_OBJ)

# The unit test of the image's wire has its rings and registers in memory.
$(BUILD)/test/testbed/unit/wire/test_wire_virtio.o: CFLAGS_test += -Ifirmware/platform/riscv -Ifirmware/platform/riscv/image

# The unit tests of nbar-bared: start, end and control socket, without a machine.
$(patsubst %,$(BUILD)/test/testbed/unit/platform/test_bared_%.o,main serve): CFLAGS_test += -Ifirmware/platform/riscv -Ifirmware/platform/riscv/host
