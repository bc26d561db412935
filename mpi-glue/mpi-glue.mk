# SPDX-License-Identifier: BSD-3-Clause
# What MPI programs use: a PMPI library for each MPI there is, and the component for Open MPI. Sees
# nbar.h and the headers of the MPI; no firmware. An MPI that is not installed is left out.

MPICC_MPICH ?= mpicc.mpich
MPICC_OPENMPI ?= mpicc.openmpi
HAVE_MPICH := $(shell command -v $(MPICC_MPICH) 2>/dev/null)
HAVE_OPENMPI := $(shell command -v $(MPICC_OPENMPI) 2>/dev/null)

UNITS += glue mpich openmpi
GLUE_FLAGS := -D_GNU_SOURCE -fPIC -Impi-glue -Ihostlib/include -Ifirmware/include
CFLAGS_glue = $(GLUE_FLAGS)
# Headers of an MPI are not as strict as ours.
MPI_SYSTEM = $(subst -I,-isystem ,$(filter -I%,$(1)))
CFLAGS_mpich = $(GLUE_FLAGS) $(call MPI_SYSTEM,$(shell $(MPICC_MPICH) -compile_info 2>/dev/null))
CFLAGS_openmpi = $(GLUE_FLAGS) \
                 $(call MPI_SYSTEM,$(shell $(MPICC_OPENMPI) --showme:compile 2>/dev/null))
MPICH_LIBS = $(filter -L% -l%,$(shell $(MPICC_MPICH) -link_info 2>/dev/null))
OPENMPI_LIBS = $(shell $(MPICC_OPENMPI) --showme:link 2>/dev/null)

# What knows no MPI.
GLUE_OBJ := $(patsubst %,$(BUILD)/glue/mpi-glue/%.o,barrier comm config join node tell wait)
MPICH_OBJ := $(patsubst %,$(BUILD)/mpich/mpi-glue/%.o,pmpi pmpi_mpich)
OPENMPI_OBJ := $(patsubst %,$(BUILD)/openmpi/mpi-glue/%.o,pmpi pmpi_openmpi)

# libnbar goes in, and its names stay in: an application may have one of its own.
$(BUILD)/libnbar-mpi-mpich.so: $(MPICH_OBJ)
$(BUILD)/libnbar-mpi-mpich.so: MPI_LIBS = $(MPICH_LIBS)
$(BUILD)/libnbar-mpi-openmpi.so: $(OPENMPI_OBJ)
$(BUILD)/libnbar-mpi-openmpi.so: MPI_LIBS = $(OPENMPI_LIBS)
$(BUILD)/libnbar-mpi-mpich.so $(BUILD)/libnbar-mpi-openmpi.so: $(GLUE_OBJ) $(BUILD)/libnbar.a \
		mpi-glue/pmpi.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=mpi-glue/pmpi.map \
		$(filter %.o,$^) $(filter %.a,$^) -o $@ $(MPI_LIBS) -lpthread -ldl

GLUE_SO := $(if $(HAVE_MPICH),$(BUILD)/libnbar-mpi-mpich.so) \
           $(if $(HAVE_OPENMPI),$(BUILD)/libnbar-mpi-openmpi.so)
ALL += $(GLUE_SO) glue-left-out
glue-left-out:
	@$(if $(HAVE_MPICH),:,echo "  no $(MPICC_MPICH): libnbar-mpi-mpich.so is left out")
	@$(if $(HAVE_OPENMPI),:,echo "  no $(MPICC_OPENMPI): libnbar-mpi-openmpi.so is left out")
OBJS += $(GLUE_OBJ) $(if $(HAVE_MPICH),$(MPICH_OBJ)) $(if $(HAVE_OPENMPI),$(OPENMPI_OBJ))

INSTALL += install-glue
install-glue: $(GLUE_SO)
	$(Q)install -d $(DESTDIR)$(LIBDIR)
	$(Q)$(if $(strip $(GLUE_SO)),install -m 755 $(GLUE_SO) $(DESTDIR)$(LIBDIR))
.PHONY: install-glue glue-left-out
