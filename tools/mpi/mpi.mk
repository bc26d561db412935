# SPDX-License-Identifier: BSD-3-Clause
# The programs that `nbar mpi-bench` becomes: one for each MPI there is. See mpi-glue/mpi-glue.mk.

UNITS += bench-openmpi bench-mpich
MPIB_FLAGS = -DNBAR_VERSION_TEXT='"$(VERSION)"' -Ifirmware/core -Itools/main
CFLAGS_bench-openmpi = $(CFLAGS_openmpi) $(MPIB_FLAGS)
CFLAGS_bench-mpich = $(CFLAGS_mpich) $(MPIB_FLAGS)

MPIB_SRC := $(filter-out tools/mpi/mpi_bench.c,$(wildcard tools/mpi/*.c)) mpi-glue/pmpi_exchange.c
MPIB_OPENMPI_OBJ := $(MPIB_SRC:%.c=$(BUILD)/bench-openmpi/%.o)
MPIB_MPICH_OBJ := $(MPIB_SRC:%.c=$(BUILD)/bench-mpich/%.o)
MPIB_TOOL_OBJ := $(patsubst %,$(BUILD)/tools/tools/main/%.o,algs app_set app_set_result experiment hist machine metric \
                   option output progress published result result_out stats sweep_list tool work)
$(BUILD)/nbar-mpi-bench-openmpi: $(MPIB_OPENMPI_OBJ)
$(BUILD)/nbar-mpi-bench-openmpi: MPI_LIBS = $(OPENMPI_LIBS)
$(BUILD)/nbar-mpi-bench-mpich: $(MPIB_MPICH_OBJ)
$(BUILD)/nbar-mpi-bench-mpich: MPI_LIBS = $(MPICH_LIBS)
$(BUILD)/nbar-mpi-bench-openmpi $(BUILD)/nbar-mpi-bench-mpich: $(GLUE_OBJ) $(MPIB_TOOL_OBJ) \
		$(BUILD)/libnbar.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -o $@ $(MPI_LIBS) -ljansson -lm \
		-lpthread -ldl

MPIB_BIN := $(if $(HAVE_OPENMPI),$(BUILD)/nbar-mpi-bench-openmpi) \
            $(if $(HAVE_MPICH),$(BUILD)/nbar-mpi-bench-mpich)
ALL += $(MPIB_BIN)
OBJS += $(if $(HAVE_OPENMPI),$(MPIB_OPENMPI_OBJ)) $(if $(HAVE_MPICH),$(MPIB_MPICH_OBJ))

INSTALLS += install-mpi-bench
install-mpi-bench: $(MPIB_BIN)
	$(Q)install -d $(DESTDIR)$(libexecdir)/nbar
	$(Q)$(if $(strip $(MPIB_BIN)),install -m 755 $(MPIB_BIN) $(DESTDIR)$(libexecdir)/nbar)
.PHONY: install-mpi-bench
