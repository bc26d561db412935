# SPDX-License-Identifier: BSD-3-Clause
# nbar: one command with subcommands. Links libnbar, and libnbfw.a for the host-based baseline.

UNITS += tools
CFLAGS_tools = -D_GNU_SOURCE -DNBAR_VERSION_TEXT='"$(VERSION)"' -Ihostlib/include -Ifirmware/include \
               -Ifirmware/core -Itools
TOOLS_SRC := $(wildcard tools/*.c) tools/mpi/options.c
TOOLS_OBJ := $(TOOLS_SRC:%.c=$(BUILD)/tools/%.o)
$(BUILD)/nbar: $(TOOLS_OBJ) $(BUILD)/libnbar.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -ljansson -lm -lpthread

ALL += $(BUILD)/nbar
OBJS += $(TOOLS_OBJ)

# The commit goes into results. The file changes only when that does.
COMMIT_TEXT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
$(BUILD)/tools/commit.h: commit-always
	$(Q)mkdir -p $(@D); echo '#define NBAR_COMMIT_TEXT "$(COMMIT_TEXT)"' >$@.new; \
	 if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/tools/tools/result.o: $(BUILD)/tools/commit.h
$(BUILD)/tools/tools/result.o: CFLAGS_tools += -I$(BUILD)/tools
.PHONY: commit-always

# What the unit tests of the tools are linked with.
$(BUILD)/test_tools: $(addprefix $(BUILD)/tools/tools/,hist.o stats.o tool.o bench_opt.o)
$(BUILD)/test_results: $(addprefix $(BUILD)/tools/tools/,experiment.o journal.o machine.o output.o \
                       progress.o result.o result_out.o stats.o tool.o)
$(BUILD)/test_sweep: $(addprefix $(BUILD)/tools/tools/,sweep_math.o stats.o tool.o)
$(BUILD)/test_hostbar: $(addprefix $(BUILD)/tools/tools/,hostbar.o stats.o)

INSTALL += install-tools
install-tools: $(BUILD)/nbar
	$(Q)install -D -m 755 $(BUILD)/nbar $(DESTDIR)$(PREFIX)/bin/nbar
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(Q)install -m 644 $(wildcard tools/*.1) $(DESTDIR)$(PREFIX)/share/man/man1
.PHONY: install-tools

include tools/mpi/mpi.mk
