# SPDX-License-Identifier: BSD-3-Clause
# The firmware: libnbfw.a (core), libnbnic.a (NIC), nbar-nicd, in-process NICs, wires that need an SDK (DPDK=, KERNEL=,
# VERBS=), keys (SODIUM=) and the service. The first two are freestanding.

UNITS += fw nicd dpdk verbs kernel rdma
# Only the compiler's own headers, the ABI, and the firmware's: whatever else is included fails.
FW_SYSTEM_INCLUDE := -nostdinc -isystem $(shell $(CC) -print-file-name=include)
CFLAGS_fw = -ffreestanding -DNBNIC_LEND=1 -DNBNIC_REMOTE=1 $(FW_SYSTEM_INCLUDE) -Ifirmware/include -Ifirmware/core -Ifirmware/nic

FW_CORE_OBJ := $(patsubst %.c,$(BUILD)/fw/%.o,$(wildcard firmware/core/*.c))
FW_NIC_OBJ := $(patsubst %.c,$(BUILD)/fw/%.o,$(wildcard firmware/nic/*.c))
FW_OBJ := $(FW_CORE_OBJ) $(FW_NIC_OBJ)
# They go into a shared library, too. The path of a token crosses files of core and nic: where the
# compiler is GCC, programs that run NICs are optimised at link time; all others link the same
# objects as they are.
FW_LTO := $(if $(SAN)$(DEBUG),,$(shell $(CC) --version 2>/dev/null | grep -q 'Free Software' && echo -flto=auto))
$(FW_OBJ): CFLAGS_fw += -fPIC -fvisibility=hidden $(if $(FW_LTO),-flto=auto -ffat-lto-objects)
$(BUILD)/libnbfw.a: $(FW_CORE_OBJ)
$(BUILD)/libnbnic.a: $(FW_NIC_OBJ)

# Lazily expanded: pkg-config is not there yet when `make deps` runs on a fresh machine.
DPDK_CFLAGS = $(shell pkg-config --cflags libdpdk 2>/dev/null)
DPDK_LIBS = $(shell pkg-config --libs libdpdk 2>/dev/null)
CFLAGS_nicd = -D_GNU_SOURCE -fPIC -fvisibility=hidden -DNBAR_VERSION_TEXT='"$(VERSION)"' -Ifirmware/include -Ifirmware/core \
              -Ifirmware/nic -Ifirmware/wire -Ifirmware/platform/daemon -Ifirmware/platform/riscv
# The daemon alone. All other sources make libnbnicd.a, for tests that run the NICs in their own threads, and for
# in-process NICs.
NICD_MAIN_SRC := $(addprefix firmware/platform/daemon/,main.c options.c options_list.c privileges.c)
# Wires with an SDK are objects that NICs load. They are built where libdpdk and libibverbs are; DPDK= and VERBS= leave them
# out. DPDK's headers need fewer warnings.
DPDK ?= $(shell pkg-config --exists libdpdk 2>/dev/null && echo yes)
CFLAGS_dpdk = $(CFLAGS_nicd) $(subst -I/,-isystem /,$(DPDK_CFLAGS))
VERBS ?= $(shell pkg-config --exists libibverbs 2>/dev/null && echo yes)
VERBS_LIBS = $(shell pkg-config --libs libibverbs 2>/dev/null)
CFLAGS_verbs = $(CFLAGS_nicd)
CFLAGS_rdma = $(CFLAGS_nicd)
# Tags of frames are built where libsodium is; SODIUM= leaves them out.
SODIUM ?= $(shell pkg-config --exists libsodium 2>/dev/null && echo yes)
CFLAGS_nicd += $(if $(SODIUM),-DWIRES_SODIUM $(shell pkg-config --cflags libsodium))
SODIUM_LIBS = $(if $(SODIUM),$(shell pkg-config --libs libsodium))
NICD_MAIN_OBJ := $(NICD_MAIN_SRC:%.c=$(BUILD)/nicd/%.o)
# The wire "kernel" is built where clang and libbpf are; KERNEL= leaves it out. It contains its programs: users need no clang.
KERNEL ?= $(shell command -v clang >/dev/null && pkg-config --exists libbpf 2>/dev/null && echo yes)
KERNEL_PROGRAMS := $(addprefix $(BUILD)/kernel/,programs.bpf.o programs4.bpf.o programs6.bpf.o)
CFLAGS_kernel = $(CFLAGS_nicd) -Wno-gnu-statement-expression -DKERNEL_PROGRAMS='"$(BUILD)/kernel/programs"' $(shell pkg-config --cflags libbpf 2>/dev/null)
# v1: the verifier refuses what clang makes of the same programs for v3.
$(KERNEL_PROGRAMS): firmware/wire/kernel/programs.bpf.c $(wildcard firmware/wire/kernel/*.h firmware/core/*.[ch]) firmware/include/nbar_abi.h
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -target bpf -mcpu=v1 -O2 -g -ffreestanding -Wall -Wextra -isystem /usr/include/$(shell $(CC) -print-multiarch) \
		$(patsubst programs%.bpf.o,-DPROGRAMS_IP=%,$(filter-out programs.bpf.o,$(@F))) -Ifirmware/include -Ifirmware/core -c $< -o $@
$(BUILD)/kernel/firmware/wire/kernel/open.o: $(KERNEL_PROGRAMS)
wire_so = libnbar-wire-$(1).so.$(firstword $(subst ., ,$(VERSION)))
wire_obj = $(patsubst %.c,$(BUILD)/$(1)/%.o,$(filter-out %.bpf.c,$(wildcard firmware/wire/$(1)/*.c)))
WIRE_SO := $(foreach w,$(if $(DPDK),dpdk) $(if $(VERBS),verbs) $(if $(KERNEL),kernel),$(call wire_so,$(w)))
# libnbar-hostnic.so: the same NIC in the process of its host.
HOSTNIC_SO := libnbar-hostnic.so.$(firstword $(subst ., ,$(VERSION)))
HOSTNIC_SRC := $(wildcard firmware/platform/inproc/*.c)
HOSTNIC_OBJ := $(HOSTNIC_SRC:%.c=$(BUILD)/nicd/%.o)
# The log of an object that is loaded.
WIRE_LOG_OBJ := $(BUILD)/nicd/firmware/wire/object.o
NICD_LIB_SRC := $(filter-out $(NICD_MAIN_SRC) firmware/wire/object.c,$(wildcard firmware/platform/daemon/*.c firmware/wire/*.c))
NICD_LIB_OBJ := $(NICD_LIB_SRC:%.c=$(BUILD)/nicd/%.o)
NICD_OBJ := $(NICD_MAIN_OBJ) $(NICD_LIB_OBJ) $(WIRE_LOG_OBJ) $(call wire_obj,dpdk) $(call wire_obj,verbs) $(call wire_obj,kernel)
$(BUILD)/libnbnicd.a: $(NICD_LIB_OBJ)
$(BUILD)/libnbfw.a $(BUILD)/libnbnic.a $(BUILD)/libnbnicd.a:
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# Program and object share structures: the sum of the headers tells whether both are of one build.
WIRE_BUILD_H := $(BUILD)/wire_build/wire_build.h
WIRE_HEADER := $(sort $(wildcard firmware/include/*.h firmware/core/*.h firmware/nic/*.h firmware/wire/*.h))
$(WIRE_BUILD_H): wire-build-always
	$(Q)mkdir -p $(@D); { echo '#define WIRE_BUILD "$(VERSION)-'"$$(cat $(WIRE_HEADER) | cksum | tr ' ' -)"'"'; \
	 echo '#define WIRE_FILE(wire) "libnbar-wire-" wire ".so.$(firstword $(subst ., ,$(VERSION)))"'; } >$@.new; \
	 if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/nicd/firmware/wire/wires.o $(BUILD)/dpdk/firmware/wire/dpdk/dpdk.o $(BUILD)/verbs/firmware/wire/verbs/object.o \
 $(BUILD)/kernel/firmware/wire/kernel/kernel.o: $(WIRE_BUILD_H)
CFLAGS_nicd += -I$(dir $(WIRE_BUILD_H))
.PHONY: wire-build-always

# Objects are compiled again if the build has other parts than before: make check installs more than make demo.
NICD_PARTS := $(BUILD)/parts
$(NICD_PARTS): parts-always
	$(Q)mkdir -p $(@D); echo "verbs=$(VERBS) sodium=$(SODIUM)" >$@.new; \
	 if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(NICD_OBJ) $(HOSTNIC_OBJ): $(NICD_PARTS)
.PHONY: parts-always

# The daemon may have privileges: it loads nothing from the folder above its own.
$(BUILD)/nbar-nicd: private RPATH := $$ORIGIN:$$ORIGIN/../lib
$(BUILD)/nbar-nicd: $(NICD_MAIN_OBJ) $(BUILD)/libnbnicd.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(FW_LTO),-O2 $(FW_LTO)) $^ -o $@ $(SODIUM_LIBS) -lpthread
	$(Q)rm -f $(filter-out $(WIRE_SO:%=$(BUILD)/%),$(wildcard $(BUILD)/libnbar-wire-*.so.*))

# Never unloaded: its thread may still be in it.
$(BUILD)/$(HOSTNIC_SO): $(HOSTNIC_OBJ) $(BUILD)/libnbnicd.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) $(if $(FW_LTO),-O2 $(FW_LTO)) -Wl,-soname,$(HOSTNIC_SO) -Wl,-z,nodelete $^ -o $@ \
		$(SODIUM_LIBS) -lpthread

$(BUILD)/$(call wire_so,dpdk): WIRE_LIBS = $(DPDK_LIBS)
$(BUILD)/$(call wire_so,verbs): WIRE_LIBS = $(VERBS_LIBS)
$(BUILD)/$(call wire_so,kernel): WIRE_LIBS = $(shell pkg-config --libs libbpf 2>/dev/null)
define wire_rules
$(BUILD)/$(call wire_so,$(1)): $(call wire_obj,$(1)) $(WIRE_LOG_OBJ) $(BUILD)/libnbnicd.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$$(call say,LD,$$@)
	$$(Q)$$(CC) -shared $$(ALL_LDFLAGS) $$(if $$(FW_LTO),-O2 $$(FW_LTO)) -Wl,-soname,$$(@F) $$^ -o $$@ $$(WIRE_LIBS)
endef
$(foreach w,dpdk verbs kernel,$(eval $(call wire_rules,$(w))))

# libnbar-rdma.so: ports of remote hosts, at both sides.
RDMA_SO := $(if $(VERBS),libnbar-rdma.so.$(firstword $(subst ., ,$(VERSION))))
RDMA_OBJ := $(call wire_obj,rdma) $(addprefix $(BUILD)/verbs/firmware/wire/verbs/,list.o route.o) \
	$(addprefix $(BUILD)/nicd/firmware/wire/,auth_key.o auth_prove.o)
$(BUILD)/$(RDMA_SO): $(RDMA_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,-z,nodelete $^ -o $@ $(VERBS_LIBS) $(SODIUM_LIBS) -lpthread

NICD_BIN := $(addprefix $(BUILD)/,nbar-nicd $(HOSTNIC_SO) $(WIRE_SO) $(RDMA_SO))
ALL += $(BUILD)/libnbfw.a $(BUILD)/libnbnic.a $(NICD_BIN) nicd-left-out
OBJS += $(FW_OBJ) $(NICD_OBJ) $(HOSTNIC_OBJ) $(RDMA_OBJ)

nicd-left-out:
	@$(if $(DPDK),:,echo "  no libdpdk: the wire dpdk is left out; for it: apt-get install libdpdk-dev")
	@$(if $(KERNEL),:,echo "  no clang or no libbpf: the wire kernel is left out; for it: apt-get install clang libbpf-dev")
	@$(if $(VERBS),:,echo "  no libibverbs: the wire verbs is left out; for it: apt-get install libibverbs-dev")
	@$(if $(SODIUM),:,echo "  no libsodium: nbar-nicd has no --key-file; for it: apt-get install libsodium-dev")
.PHONY: nicd-left-out

SYSTEMD_DIR := firmware/platform/daemon/systemd
INSTALLS += install-nicd
# nbar-nicd@NAME.service reads NAME.conf; nbar-nicd.service is the same with nicd.conf and /run/nbar.
NICD_UNITS := $(SYSTEMD_DIR)/nbar-nicd@.service $(BUILD)/nbar-nicd.service
$(BUILD)/nbar-nicd.service: $(SYSTEMD_DIR)/nbar-nicd@.service
	$(Q)mkdir -p $(@D); sed 's|, configuration %i||; s|%i\.conf|nicd.conf|; s|nbar-%i|nbar|' $< >$@
ALL += $(BUILD)/nbar-nicd.service
install-nicd: $(NICD_BIN) $(NICD_UNITS)
	$(Q)install -d $(DESTDIR)$(libdir)
	$(Q)install -m 755 $(filter-out %/nbar-nicd,$(NICD_BIN)) $(DESTDIR)$(libdir)
	$(Q)install -D -m 755 $(BUILD)/nbar-nicd $(DESTDIR)$(bindir)/nbar-nicd
	$(Q)install -D -m 644 firmware/platform/daemon/nbar-nicd.8 $(DESTDIR)$(mandir)/man8/nbar-nicd.8
	$(Q)install -d $(DESTDIR)$(unitdir) $(DESTDIR)$(sysusersdir) \
		$(DESTDIR)$(docdir)/examples
	$(Q)for unit in $(NICD_UNITS); do \
		sed 's|/usr/bin/|$(bindir)/|; s|/etc/nbar/|$(sysconfdir)/nbar/|' $$unit >$(DESTDIR)$(unitdir)/$${unit##*/}; \
	done
	$(Q)install -m 644 $(SYSTEMD_DIR)/nbar.sysusers $(DESTDIR)$(sysusersdir)/nbar.conf
	$(Q)install -m 644 $(addprefix $(SYSTEMD_DIR)/,nicd.conf dpdk.conf kernel.conf verbs.conf nbar-metrics.socket nbar-metrics@.service) \
		tools/stat/grafana.json \
		$(DESTDIR)$(docdir)/examples
.PHONY: install-nicd

include firmware/platform/riscv/riscv.mk
