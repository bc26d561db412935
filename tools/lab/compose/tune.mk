# SPDX-License-Identifier: BSD-3-Clause
# Barriers fitted to a cluster: libnbtune.a is what programs share, tool_*.c are the subcommands.

UNITS += tune
CFLAGS_tune = -D_GNU_SOURCE -fPIC -ffp-contract=off -Itools/lab/compose -Ihostlib/include -Ifirmware/include -Ifirmware/core
TUNE_SRC := $(wildcard tools/lab/compose/*.c)
TUNE_OBJ := $(TUNE_SRC:%.c=$(BUILD)/tune/%.o)
$(BUILD)/libnbtune.a: $(TUNE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
OBJS += $(TUNE_OBJ)

# What programs link or load to make plans by a profile.
TUNE_SO := libnbar-tune.so.$(firstword $(subst ., ,$(VERSION)))
$(BUILD)/$(TUNE_SO): $(TUNE_OBJ) $(BUILD)/libnbfw.a tools/lab/compose/libnbar-tune.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) $(if $(FW_LTO),-O2 $(FW_LTO)) -Wl,-soname,$(TUNE_SO) \
		-Wl,--version-script=tools/lab/compose/libnbar-tune.map $(TUNE_OBJ) $(BUILD)/libnbfw.a -o $@ \
		-ljansson -lm
	$(Q)ln -sf $(TUNE_SO) $(BUILD)/libnbar-tune.so
ALL += $(BUILD)/$(TUNE_SO)

INSTALLS += install-tune
install-tune: $(BUILD)/$(TUNE_SO)
	$(Q)install -d $(DESTDIR)$(libdir) \
		$(DESTDIR)$(mandir)/man3
	$(Q)install -m 644 tools/lab/compose/nbar_tune.3 $(DESTDIR)$(mandir)/man3
	$(call man3_links,tools/lab/compose/nbar_tune.3)
	$(Q)install -m 755 $(BUILD)/$(TUNE_SO) $(DESTDIR)$(libdir)
	$(Q)ln -sf $(TUNE_SO) $(DESTDIR)$(libdir)/libnbar-tune.so
.PHONY: install-tune

$(BUILD)/test_compose $(BUILD)/test_fit $(BUILD)/test_flats $(BUILD)/test_predict $(BUILD)/test_profile $(BUILD)/test_rounds: $(BUILD)/libnbtune.a
