# SPDX-License-Identifier: BSD-3-Clause
# A NIC on bare metal, emulated: nbar-riscv64.elf and nbar-riscv32.elf, the images, and nbar-bared, their
# host process. An image is the objects of firmware/core and firmware/nic with limits of its own, and
# image/. Both are left out where the compiler is missing (apt-get install gcc-riscv64-unknown-elf).

UNITS += bared
BARED := firmware/platform/riscv
BARED_INCLUDE := -Ifirmware/include -Ifirmware/core -Ifirmware/nic -Ifirmware/wire -I$(BARED) -I$(BARED)/image
RISCV_PREFIX ?= riscv64-unknown-elf-
RISCV_CC := $(shell command -v $(RISCV_PREFIX)gcc)

# What this NIC can do in 256 KB (firmware/nic/config.h). The arena is at least so large: the linker
# and main.c check that all fits.
RISCV_ARENA := 172032
RISCV_LIMITS := -DNBNIC_GROUPS_MAX=16u -DNBNIC_PORTS_MAX=8u -DNBNIC_HANDLES=64u -DNBNIC_ATTACHED_MAX=16u -DNBNIC_HEARD_MAX=64u -DNBNIC_USERS_MAX=8u \
                -DNBNIC_MEMORY_BYTES=139264u -DNBNIC_TRACE=0 -DNBNIC_LATENCY=0 -DNBNIC_ADAPT=0 -DBARED_ARENA=$(RISCV_ARENA)u
# Speed on the path from token to completion, whose many small functions become few; size elsewhere. The
# functions of mem.c are called by the compiler alone, which the optimizer at link time does not see; -O3
# makes words of the bytes of token.c.
RISCV_HOT ?= -O2 -flto -finline-functions -fno-tree-slp-vectorize --param max-inline-insns-auto=100 \
             --param early-inlining-insns=40
RISCV_COLD ?= -Os -flto
RISCV_HOT_SRC := $(addprefix firmware/,core/engine.c nic/device.c nic/nic.c nic/page.c nic/send.c nic/pass.c \
                 platform/riscv/image/main.c platform/riscv/image/virtio_net.c)
riscv_opt = $(if $(filter %/mem.c %/token.c,$1),-O3,$(if $(filter $1,$(RISCV_HOT_SRC)),$(RISCV_HOT),$(RISCV_COLD)))
RISCV_CFLAGS = -std=c11 $(WARN) -g -mcmodel=medany -ffreestanding -fno-common -ffunction-sections \
               -fdata-sections -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -nostdinc \
               -isystem $(shell $(RISCV_CC) -print-file-name=include) $(BARED_INCLUDE) $(RISCV_LIMITS) -MMD -MP
# The compiler warns of more than one partition, which it would optimize one after the other.
RISCV_LDFLAGS = $(RISCV_HOT) -flto-partition=none -nostdlib -static -Wl,--gc-sections -Wl,--no-warn-rwx-segments -Wl,--defsym=arena_min=$(RISCV_ARENA) \
                -T $(BARED)/image/link.ld
RISCV_NIC_SRC := $(wildcard firmware/core/*.c firmware/nic/*.c)
RISCV_IMAGE_SRC := $(BARED)/image/start.S $(wildcard $(BARED)/image/*.c)

# An image: bits of the machine, its name for the compiler, its ABI, other flags. csrr and rdtime are zicsr's;
# libgcc (64-bit shifts on 32 bits) is found by the name without it.
define riscv_image
RISCV_NIC_OBJ_$(1) := $$(RISCV_NIC_SRC:%.c=$$(BUILD)/riscv$(1)/%.o)
RISCV_IMAGE_OBJ_$(1) := $$(addsuffix .o,$$(basename $$(RISCV_IMAGE_SRC:%=$$(BUILD)/riscv$(1)/%)))
RISCV_LINK_$(1) = $$(RISCV_CC) -march=$(2)_zicsr -mabi=$(3) $$(RISCV_LDFLAGS)
RISCV_LIBGCC_$(1) = $$(shell $$(RISCV_CC) -march=$(2) -mabi=$(3) -print-libgcc-file-name)

$$(BUILD)/riscv$(1)/%.o: %.c Makefile $$(BARED)/riscv.mk
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(RISCV_CC) -march=$(2)_zicsr -mabi=$(3) $$(RISCV_CFLAGS) $$(call riscv_opt,$$<) $(4) -c $$< -o $$@

$$(BUILD)/riscv$(1)/%.o: %.S Makefile $$(BARED)/riscv.mk
	$$(call say,AS,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(RISCV_CC) -march=$(2)_zicsr -mabi=$(3) -c $$< -o $$@

$$(BUILD)/nbar-riscv$(1).elf: $$(RISCV_IMAGE_OBJ_$(1)) $$(RISCV_NIC_OBJ_$(1)) $$(BARED)/image/link.ld
	$$(call say,LD,$$@)
	$$(Q)$$(RISCV_LINK_$(1)) $$(filter %.o,$$^) $$(RISCV_LIBGCC_$(1)) -o $$@

BARED_IMAGE += $$(if $$(RISCV_CC),$$(BUILD)/nbar-riscv$(1).elf)
OBJS += $$(if $$(RISCV_CC),$$(RISCV_NIC_OBJ_$(1)) $$(RISCV_IMAGE_OBJ_$(1)))
endef
BARED_IMAGE :=
$(eval $(call riscv_image,64,rv64imac,lp64))
# uint32_t is unsigned long there: as wide as the unsigned of %u, but of another name.
$(eval $(call riscv_image,32,rv32imac,ilp32,-Wno-format))

CFLAGS_bared = -D_GNU_SOURCE -DNBAR_VERSION_TEXT='"$(VERSION)"' $(BARED_INCLUDE) -Ifirmware/platform/daemon
BARED_SRC := $(wildcard $(BARED)/host/*.c)
BARED_OBJ := $(BARED_SRC:%.c=$(BUILD)/bared/%.o)
$(BUILD)/nbar-bared: $(BARED_OBJ) $(addprefix $(BUILD)/nicd/firmware/platform/daemon/,daemon.o log.o rundir.o settings.o trace_ring.o)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@

ALL += $(BUILD)/nbar-bared $(BARED_IMAGE)
OBJS += $(BARED_OBJ)

INSTALLS += install-bared
install-bared: $(BUILD)/nbar-bared $(BARED_IMAGE)
	$(Q)install -D -m 755 $(BUILD)/nbar-bared $(DESTDIR)$(bindir)/nbar-bared
	$(Q)install -D -m 644 $(BARED)/nbar-bared.8 $(DESTDIR)$(mandir)/man8/nbar-bared.8
	$(if $(BARED_IMAGE),$(Q)install -d $(DESTDIR)$(prefix)/lib/nbar)
	$(if $(BARED_IMAGE),$(Q)install -m 644 $(BARED_IMAGE) $(DESTDIR)$(prefix)/lib/nbar)
.PHONY: install-bared
