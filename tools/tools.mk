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

# Peers of `nbar sweep threads`: a program for each compiler that has OpenMP, whatever CC is, and one
# for Concurrency Kit. Those that cannot be built are left out; SAN is not for them.
PEER_OMP := $(foreach c,gcc clang,$(shell echo 'int main(void) { return 0; }' | \
              $(c) -fopenmp -x c - -o /dev/null 2>/dev/null && echo $(if $(filter gcc,$(c)),gcc,llvm)))
PEER_CK := $(shell pkg-config --exists ck && echo ck-barrier)
PEERS := $(addprefix $(BUILD)/libexec/nbar/,$(PEER_OMP:%=omp-barrier-%) $(PEER_CK))
PEER_FLAGS := -std=c11 $(WARN) $(CFLAGS) -D_GNU_SOURCE -Itools
define peer
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(1) $(PEER_FLAGS) $(2) tools/thread_loop.c -o $@ $(3)
endef
$(BUILD)/libexec/nbar/omp-barrier-gcc: tools/peers/omp_barrier.c tools/thread_loop.c tools/thread_loop.h
	$(call peer,gcc -fopenmp,$<)
$(BUILD)/libexec/nbar/omp-barrier-llvm: tools/peers/omp_barrier.c tools/thread_loop.c tools/thread_loop.h
	$(call peer,clang -fopenmp,$<)
$(BUILD)/libexec/nbar/ck-barrier: tools/peers/ck_barrier.c tools/thread_loop.c tools/thread_loop.h
	$(call peer,$(CC),$<,$$(pkg-config --cflags --libs ck) -lpthread)

ALL += $(PEERS)

# What the unit tests of the tools are linked with.
$(BUILD)/test_lop: $(addprefix $(BUILD)/tools/tools/,lop.o stats.o)
$(BUILD)/test_report: $(addprefix $(BUILD)/tools/tools/,html.o published.o report_figure.o \
                      report_list.o report_plot.o report_points.o report_read.o tool.o)
$(BUILD)/test_tools: $(addprefix $(BUILD)/tools/tools/,hist.o stats.o option.o tool.o bench_opt.o)
$(BUILD)/test_results: $(addprefix $(BUILD)/tools/tools/,experiment.o journal.o machine.o output.o \
                       progress.o published.o result.o result_out.o stats.o tool.o)
$(BUILD)/test_stats: $(addprefix $(BUILD)/tools/tools/,progress.o stats.o tool.o)
$(BUILD)/test_sweep: $(addprefix $(BUILD)/tools/tools/,apps.o sweep_list.o sweep_math.o stats.o \
                     tool.o work.o)
$(BUILD)/test_hostbar: $(addprefix $(BUILD)/tools/tools/,hostbar.o stats.o)

INSTALL += install-tools
install-tools: $(BUILD)/nbar $(PEERS)
	$(Q)install -D -m 755 $(BUILD)/nbar $(DESTDIR)$(PREFIX)/bin/nbar
	$(Q)for f in $(PEERS); do \
		install -D -m 755 $$f $(DESTDIR)$(PREFIX)/libexec/nbar/$$(basename $$f) || exit; \
	done
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(Q)install -m 644 $(wildcard tools/*.1) $(DESTDIR)$(PREFIX)/share/man/man1
.PHONY: install-tools

include tools/mpi/mpi.mk
