# SPDX-License-Identifier: BSD-3-Clause
# nbar-lab: what studies barriers. Nothing outside this folder needs it.

UNITS += lab
LAB_DIRS := $(addprefix tools/lab/,main app one-to-many report sim sweep threads tune)
LAB_INC := $(LAB_DIRS:%=-I%) -Itools/lab/compose
CFLAGS_lab = $(CFLAGS_tools) $(LAB_INC)
LAB_SRC := $(wildcard $(LAB_DIRS:%=%/*.c))
LAB_OBJ := $(LAB_SRC:%.c=$(BUILD)/lab/%.o)
# Programs of the lab also have what is in tools/main and tools/bench.
LAB_TOOLS_OBJ := $(filter-out %/main/nbar.o %/bench/bench.o,$(foreach d,main bench,$(filter $(BUILD)/tools/tools/$d/%,$(TOOLS_OBJ))))
$(BUILD)/nbar-lab: $(LAB_OBJ) $(LAB_TOOLS_OBJ) $(BUILD)/libnbtune.a $(BUILD)/libnbar.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(FW_LTO),-O2 $(FW_LTO)) $^ -o $@ -ljansson -lm -lpthread -ldl

ALL += $(BUILD)/nbar-lab
OBJS += $(LAB_OBJ)

LAB_MAN := $(addprefix $(BUILD)/man/,$(notdir $(wildcard tools/lab/*/*.1)))
ALL += $(LAB_MAN)

# Barriers composed for a cluster: libnbtune.a is what programs of the lab share.
UNITS += tune
CFLAGS_tune = -D_GNU_SOURCE -fPIC -ffp-contract=off -Itools/lab/compose -Ihostlib/include -Ifirmware/include -Ifirmware/core
TUNE_SRC := $(wildcard tools/lab/compose/*.c)
TUNE_OBJ := $(TUNE_SRC:%.c=$(BUILD)/tune/%.o)
$(BUILD)/libnbtune.a: $(TUNE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
OBJS += $(TUNE_OBJ)

# What programs load to make plans by a profile.
TUNE_SO := libnbar-tune.so.$(firstword $(subst ., ,$(VERSION)))
$(BUILD)/$(TUNE_SO): $(TUNE_OBJ) $(BUILD)/libnbfw.a tools/lab/compose/libnbar-tune.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) $(if $(FW_LTO),-O2 $(FW_LTO)) -Wl,-soname,$(TUNE_SO) \
		-Wl,--version-script=tools/lab/compose/libnbar-tune.map $(TUNE_OBJ) $(BUILD)/libnbfw.a -o $@ \
		-ljansson -lm
ALL += $(BUILD)/$(TUNE_SO)

$(BUILD)/test_compose $(BUILD)/test_fit $(BUILD)/test_flats $(BUILD)/test_predict $(BUILD)/test_profile $(BUILD)/test_rounds: $(BUILD)/libnbtune.a

# Peers of `nbar-lab threads`: a program for each compiler that has OpenMP, whatever CC is, and one
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

# What `nbar-lab report` becomes: in a build folder, the source.
REPORT := tools/lab/report/report.py
$(BUILD)/libexec/nbar/report.py: $(REPORT)
	$(Q)mkdir -p $(@D); ln -sf $(CURDIR)/$< $@
ALL += $(BUILD)/libexec/nbar/report.py


# The programs that `mpirun nbar-lab profile` becomes: one for each MPI there is.
UNITS += profile-openmpi profile-mpich
CFLAGS_profile-openmpi = $(CFLAGS_openmpi) -Ifirmware/core -Itools/main -Itools/lab/compose
CFLAGS_profile-mpich = $(CFLAGS_mpich) -Ifirmware/core -Itools/main -Itools/lab/compose
PROFILE_MPIS := $(if $(HAVE_OPENMPI),openmpi) $(if $(HAVE_MPICH),mpich)
PROFILE_BIN := $(PROFILE_MPIS:%=$(BUILD)/nbar-mpi-profile-%)
PROFILE_OBJ := $(foreach m,$(PROFILE_MPIS),$(BUILD)/profile-$m/tools/lab/mpi/profile.o)
$(BUILD)/nbar-mpi-profile-openmpi: MPI_LIBS = $(OPENMPI_LIBS)
$(BUILD)/nbar-mpi-profile-mpich: MPI_LIBS = $(MPICH_LIBS)
$(PROFILE_BIN): $(BUILD)/nbar-mpi-profile-%: $(BUILD)/profile-%/tools/lab/mpi/profile.o \
		$(patsubst %,$(BUILD)/tools/tools/main/%.o,option output stats tool) $(BUILD)/libnbtune.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(MPI_LIBS) -ljansson -lm
ALL += $(PROFILE_BIN)
OBJS += $(PROFILE_OBJ)

INSTALLS += install-lab
install-lab: $(BUILD)/nbar-lab $(PEERS) $(PROFILE_BIN) $(LAB_MAN) $(BUILD)/$(TUNE_SO)
	$(Q)install -D -m 755 $(BUILD)/nbar-lab $(DESTDIR)$(bindir)/nbar-lab
	$(Q)install -d $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(libexecdir)/nbar
	$(Q)$(if $(strip $(PEERS) $(PROFILE_BIN)),install -m 755 $(PEERS) $(PROFILE_BIN) $(DESTDIR)$(libexecdir)/nbar)
	$(Q)install -m 644 $(wildcard tools/lab/report/*.py tools/lab/report/*.css) $(DESTDIR)$(libexecdir)/nbar
	$(Q)install -m 644 $(LAB_MAN) $(DESTDIR)$(mandir)/man1
	$(Q)install -D -m 755 -t $(DESTDIR)$(libdir) $(BUILD)/$(TUNE_SO)
.PHONY: install-lab

# What the unit tests of the lab are linked with.
$(BUILD)/test_sweep: $(addprefix $(BUILD)/tools/tools/main/,stats.o tool.o work.o app_set.o sweep_list.o) $(BUILD)/lab/tools/lab/sweep/sweep_math.o
$(BUILD)/test_lop: $(BUILD)/lab/tools/lab/one-to-many/lop.o $(BUILD)/tools/tools/main/stats.o
# What simulates; also for programs that run it without the tool.
SIM_OBJ := $(patsubst %,$(BUILD)/lab/tools/lab/sim/%.o,engines goal net plans queue tally topology) $(BUILD)/tools/tools/main/stats.o
$(BUILD)/test_sim $(BUILD)/test_compose $(BUILD)/test_nic_loss: $(SIM_OBJ)
$(BUILD)/test_compose: $(BUILD)/lab/tools/lab/sim/simulate_topology.o $(BUILD)/tools/tools/main/tool.o
$(BUILD)/test_fit: $(BUILD)/lab/tools/lab/tune/tool_profile_fit.o $(BUILD)/tools/tools/main/stats.o
$(BUILD)/test_flats: $(BUILD)/lab/tools/lab/tune/tool_profile_flat.o $(BUILD)/tools/tools/main/stats.o
$(BUILD)/test_sample: $(BUILD)/lab/tools/lab/tune/tool_profile_sample.o
