# SPDX-License-Identifier: BSD-3-Clause
# Barriers fitted to a cluster: libnbtune.a is what programs share, tool_*.c are the subcommands.

UNITS += tune
CFLAGS_tune = -D_GNU_SOURCE -fPIC -ffp-contract=off -Itools/tune -Ihostlib/include -Ifirmware/include -Ifirmware/core
TUNE_SRC := $(filter-out tools/tune/tool_%,$(wildcard tools/tune/*.c))
TUNE_OBJ := $(TUNE_SRC:%.c=$(BUILD)/tune/%.o)
$(BUILD)/libnbtune.a: $(TUNE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
OBJS += $(TUNE_OBJ)

$(BUILD)/test_profile $(BUILD)/test_compose: $(BUILD)/libnbtune.a
