# SPDX-License-Identifier: BSD-3-Clause
# libnbar: what a program links. Sees nbar.h, the ABI and libc; no firmware, no DPDK.

UNITS += lib
CFLAGS_lib = -D_GNU_SOURCE -fPIC -Ihostlib/include -Ihostlib/src -Ifirmware/include
LIB_SRC := $(wildcard hostlib/src/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/lib/%.o)
LIB_SO := libnbar.so.$(firstword $(subst ., ,$(VERSION)))

$(BUILD)/libnbar.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/$(LIB_SO): $(LIB_OBJ) hostlib/libnbar.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(LIB_SO) -Wl,--version-script=hostlib/libnbar.map \
		$(LIB_OBJ) -o $@
	$(Q)ln -sf $(LIB_SO) $(BUILD)/libnbar.so

ALL += $(BUILD)/libnbar.a $(BUILD)/$(LIB_SO)
OBJS += $(LIB_OBJ)
