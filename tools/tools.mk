# SPDX-License-Identifier: BSD-3-Clause
# nbar: one command with subcommands. Links libnbar; and libnbnic.a and libnbfw.a for the host-based baseline.
# tools/lab/lab.mk adds nbar-lab. Without that folder, all else is built.

UNITS += tools
CFLAGS_tools = -D_GNU_SOURCE -DNBAR_VERSION_TEXT='"$(VERSION)"' -Ihostlib/include -Ifirmware/include \
               -Ifirmware/core -Ifirmware/nic $(TOOLS_INC)
# A folder each subcommand, and main/ for what several share. Of mpi/, `nbar` itself has two files.
TOOLS_DIRS := $(addprefix tools/,main bench stat trace doctor)
TOOLS_INC := $(TOOLS_DIRS:%=-I%)
TOOLS_SRC := $(filter-out %/metric_man.c,$(wildcard $(TOOLS_DIRS:%=%/*.c))) tools/mpi/mpi_bench.c tools/mpi/options.c
TOOLS_OBJ := $(TOOLS_SRC:%.c=$(BUILD)/tools/%.o)
$(BUILD)/nbar: $(TOOLS_OBJ) $(BUILD)/libnbar.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(FW_LTO),-O2 $(FW_LTO)) $^ -o $@ -ljansson -lm -lpthread

ALL += $(BUILD)/nbar
OBJS += $(TOOLS_OBJ)

# The commit goes into results. The file changes only when that does.
COMMIT_TEXT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
$(BUILD)/tools/commit.h: commit-always
	$(Q)mkdir -p $(@D); echo '#define NBAR_COMMIT_TEXT "$(COMMIT_TEXT)"' >$@.new; \
	 if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/tools/tools/main/result.o: $(BUILD)/tools/commit.h
$(BUILD)/tools/tools/main/result.o: CFLAGS_tools += -I$(BUILD)/tools
.PHONY: commit-always

# Manual pages: `.METRICS TABLE` stands for rows of the table of metrics.
METRIC_MAN := $(BUILD)/tools/metric_man
$(METRIC_MAN): $(addprefix $(BUILD)/tools/tools/main/,metric_man.o metric.o hist.o stats.o)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -ljansson -lm
OBJS += $(BUILD)/tools/tools/main/metric_man.o
TOOLS_MAN := $(wildcard tools/*/*.1)
TOOLS_MAN_OUT := $(addprefix $(BUILD)/man/,$(notdir $(TOOLS_MAN)))
$(BUILD)/man/%.1: $$(wildcard tools/*/$$*.1 tools/lab/*/$$*.1) $(METRIC_MAN)
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D); $(METRIC_MAN) <$< >$@
ALL += $(TOOLS_MAN_OUT)

# What the unit tests of the tools are linked with.
$(BUILD)/test_doctor: $(addprefix $(BUILD)/tools/tools/doctor/,doctor_facts.o doctor_judge.o)
$(BUILD)/test_doctor: ALL_LDFLAGS += $(call wrap,ioctl)
$(BUILD)/test/testbed/unit/tools/test_tools.o: CFLAGS_test += -Itools
$(BUILD)/test_tools: $(addprefix $(BUILD)/tools/tools/,bench/bench_opt.o mpi/options.o $(addprefix main/,algs.o app_set.o hist.o \
                     metric.o option.o stats.o sweep_list.o tool.o))
$(BUILD)/test_option: $(addprefix $(BUILD)/tools/tools/main/,launcher.o option.o output.o progress.o tool.o)
$(BUILD)/test_results: $(addprefix $(BUILD)/tools/tools/main/,experiment.o machine.o \
                       output.o progress.o published.o result.o result_out.o stats.o tool.o)
$(BUILD)/test_metric: $(addprefix $(BUILD)/tools/tools/main/,hist.o metric.o stats.o)
$(BUILD)/test_stat: $(addprefix $(BUILD)/tools/tools/,stat/stat.o main/option.o main/tool.o)
$(BUILD)/test_stat_loop: $(addprefix $(BUILD)/tools/tools/,stat/stat_latency.o stat/stat_loop.o stat/stat_out.o stat/stat_take.o \
                         stat/stat_watch.o main/tool.o)
$(BUILD)/test_stat_out: $(addprefix $(BUILD)/tools/tools/,stat/stat_latency.o stat/stat_openmetrics.o stat/stat_out.o)
$(BUILD)/test_stat_watch: $(addprefix $(BUILD)/tools/tools/,stat/stat_latency.o stat/stat_out.o stat/stat_watch.o main/tool.o)
$(BUILD)/test_stats: $(addprefix $(BUILD)/tools/tools/main/,stats.o tool.o)
$(BUILD)/test_trace: $(addprefix $(BUILD)/tools/tools/,trace/trace_draw.o trace/trace_file.o trace/trace_match.o trace/timeline.o main/tool.o)

$(BUILD)/test_hostbar: $(addprefix $(BUILD)/tools/tools/,bench/hostbar.o main/stats.o)

INSTALLS += install-tools
install-tools: $(BUILD)/nbar $(TOOLS_MAN_OUT)
	$(Q)install -D -m 755 $(BUILD)/nbar $(DESTDIR)$(bindir)/nbar
	$(Q)install -d $(DESTDIR)$(mandir)/man1
	$(Q)install -m 644 $(TOOLS_MAN_OUT) $(DESTDIR)$(mandir)/man1
.PHONY: install-tools

include tools/mpi/mpi.mk $(wildcard tools/lab/lab.mk)
