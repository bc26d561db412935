# SPDX-License-Identifier: BSD-3-Clause
# nbar: one command with subcommands. Links libnbar; and libnbnic.a and libnbfw.a for the host-based baseline.

UNITS += tools
CFLAGS_tools = -D_GNU_SOURCE -DNBAR_VERSION_TEXT='"$(VERSION)"' -Ihostlib/include -Ifirmware/include \
               -Ifirmware/core -Ifirmware/nic $(TOOLS_INC)
# A folder each subcommand, and main/ for what several share. Of mpi/, `nbar` itself has two files.
TOOLS_DIRS := $(addprefix tools/,main bench stat trace doctor $(addprefix lab/,app one-to-many report sim sweep threads tune))
TOOLS_INC := $(TOOLS_DIRS:%=-I%) -Itools/lab/compose
TOOLS_SRC := $(filter-out %/metric_man.c,$(wildcard $(TOOLS_DIRS:%=%/*.c))) tools/mpi/mpi_bench.c tools/mpi/options.c
TOOLS_OBJ := $(TOOLS_SRC:%.c=$(BUILD)/tools/%.o)
$(BUILD)/nbar: $(TOOLS_OBJ) $(BUILD)/libnbtune.a $(BUILD)/libnbar.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
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
TOOLS_MAN := $(wildcard tools/*/*.1 tools/lab/*/*.1)
TOOLS_MAN_OUT := $(addprefix $(BUILD)/man/,$(notdir $(TOOLS_MAN)))
$(TOOLS_MAN_OUT): $(BUILD)/man/%: $$(wildcard tools/*/$$* tools/lab/*/$$*) $(METRIC_MAN)
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D); $(METRIC_MAN) <$< >$@
ALL += $(TOOLS_MAN_OUT)

# Peers of `nbar sweep threads`: a program for each compiler that has OpenMP, whatever CC is, and one
# for Concurrency Kit. Those that cannot be built are left out; SAN is not for them.
PEER_OMP := $(foreach c,gcc clang,$(shell echo 'int main(void) { return 0; }' | \
              $(c) -fopenmp -x c - -o /dev/null 2>/dev/null && echo $(if $(filter gcc,$(c)),gcc,llvm)))
PEER_CK := $(shell pkg-config --exists ck && echo ck-barrier)
PEERS := $(addprefix $(BUILD)/libexec/nbar/,$(PEER_OMP:%=omp-barrier-%) $(PEER_CK))
# --coverage would leave files in this folder, because the peers are compiled and linked in one step.
PEER_FLAGS := -std=c11 $(WARN) $(filter-out --coverage,$(CFLAGS)) -D_GNU_SOURCE -Itools/lab/threads -Ifirmware/include
define peer
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(1) $(PEER_FLAGS) $(2) tools/lab/threads/thread_loop.c -o $@ $(3)
endef
PEER_LOOP := tools/lab/threads/thread_loop.c tools/lab/threads/thread_loop.h
$(BUILD)/libexec/nbar/omp-barrier-gcc: tools/lab/threads/peers/omp_barrier.c $(PEER_LOOP)
	$(call peer,gcc -fopenmp,$<)
$(BUILD)/libexec/nbar/omp-barrier-llvm: tools/lab/threads/peers/omp_barrier.c $(PEER_LOOP)
	$(call peer,clang -fopenmp,$<)
$(BUILD)/libexec/nbar/ck-barrier: tools/lab/threads/peers/ck_barrier.c $(PEER_LOOP)
	$(call peer,$(CC),$<,$$(pkg-config --cflags --libs ck) -lpthread)

ALL += $(PEERS)

# What `nbar report` becomes: in a build folder, the source.
REPORT := tools/lab/report/report.py
$(BUILD)/libexec/nbar/report.py: $(REPORT)
	$(Q)mkdir -p $(@D); ln -sf $(CURDIR)/$< $@
ALL += $(BUILD)/libexec/nbar/report.py

# What the unit tests of the tools are linked with.
$(BUILD)/test_doctor: $(addprefix $(BUILD)/tools/tools/doctor/,doctor_facts.o doctor_judge.o)
$(BUILD)/test_lop: $(addprefix $(BUILD)/tools/tools/,lab/one-to-many/lop.o main/stats.o)
$(BUILD)/test_tools: $(addprefix $(BUILD)/tools/tools/,bench/bench_opt.o main/algs.o main/hist.o main/metric.o main/option.o \
                     main/stats.o main/tool.o)
$(BUILD)/test_option: $(addprefix $(BUILD)/tools/tools/main/,option.o output.o progress.o tool.o)
$(BUILD)/test_results: $(addprefix $(BUILD)/tools/tools/main/,experiment.o machine.o \
                       output.o progress.o published.o result.o result_out.o stats.o tool.o)
$(BUILD)/test_metric: $(addprefix $(BUILD)/tools/tools/main/,hist.o metric.o stats.o)
$(BUILD)/test_stat: $(addprefix $(BUILD)/tools/tools/,stat/stat.o main/option.o main/tool.o)
$(BUILD)/test_stat_loop: $(addprefix $(BUILD)/tools/tools/,stat/stat_latency.o stat/stat_loop.o stat/stat_out.o stat/stat_take.o \
                         stat/stat_watch.o main/tool.o)
$(BUILD)/test_stat_out: $(addprefix $(BUILD)/tools/tools/,stat/stat_latency.o stat/stat_openmetrics.o stat/stat_out.o)
$(BUILD)/test_stat_watch: $(addprefix $(BUILD)/tools/tools/,stat/stat_latency.o stat/stat_out.o stat/stat_watch.o main/tool.o)
$(BUILD)/test_stats: $(addprefix $(BUILD)/tools/tools/main/,progress.o stats.o tool.o)
$(BUILD)/test_sweep: $(addprefix $(BUILD)/tools/tools/,main/stats.o main/tool.o main/work.o \
                     main/app_set.o main/sweep_list.o lab/sweep/sweep_math.o)
$(BUILD)/test_trace: $(addprefix $(BUILD)/tools/tools/,trace/trace_draw.o trace/trace_file.o trace/trace_match.o main/timeline.o main/tool.o)

# What simulates; also for programs that run it without the tool.
SIM_OBJ := $(patsubst %,$(BUILD)/tools/tools/lab/sim/%.o,engines goal net nics plans queue tally topology trace world world_host) \
           $(BUILD)/tools/tools/main/stats.o $(BUILD)/tools/tools/main/timeline.o
$(BUILD)/test_sim $(BUILD)/test_compose $(BUILD)/test_nic_loss: $(SIM_OBJ)
$(BUILD)/test_fit: $(BUILD)/tools/tools/lab/tune/tool_profile_fit.o $(BUILD)/tools/tools/main/stats.o
$(BUILD)/test_flats: $(addprefix $(BUILD)/tools/tools/,lab/tune/tool_profile_flat.o main/stats.o)
$(BUILD)/test_hostbar: $(addprefix $(BUILD)/tools/tools/,bench/hostbar.o main/stats.o)

INSTALLS += install-tools
install-tools: $(BUILD)/nbar $(PEERS) $(TOOLS_MAN_OUT)
	$(Q)install -D -m 755 $(BUILD)/nbar $(DESTDIR)$(bindir)/nbar
	$(Q)for f in $(PEERS); do \
		install -D -m 755 $$f $(DESTDIR)$(libexecdir)/nbar/$$(basename $$f) || exit; \
	done
	$(Q)install -d $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(libexecdir)/nbar
	$(Q)install -m 644 $(wildcard tools/lab/report/*.py tools/lab/report/*.css) $(DESTDIR)$(libexecdir)/nbar
	$(Q)install -m 644 $(TOOLS_MAN_OUT) $(DESTDIR)$(mandir)/man1
.PHONY: install-tools

include tools/mpi/mpi.mk
