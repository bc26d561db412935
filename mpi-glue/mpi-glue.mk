# SPDX-License-Identifier: BSD-3-Clause
# What MPI programs use: the component for Open MPI, and the PMPI library for MPICH. Sees nbar.h and
# the headers of the MPI; no firmware. An MPI that is not installed is left out.

MPICC_MPICH ?= mpicc.mpich
MPICC_OPENMPI ?= mpicc.openmpi
HAVE_MPICH := $(shell command -v $(MPICC_MPICH) 2>/dev/null)
HAVE_OPENMPI := $(shell command -v $(MPICC_OPENMPI) 2>/dev/null)

UNITS += glue mpich ompi
GLUE_FLAGS := -D_GNU_SOURCE -fPIC -Impi-glue -Ihostlib/include -Ifirmware/include
CFLAGS_glue = $(GLUE_FLAGS)
# Headers of an MPI are not as strict as ours.
MPI_SYSTEM = $(subst -I,-isystem ,$(filter -I%,$(1)))
CFLAGS_mpich = $(GLUE_FLAGS) $(call MPI_SYSTEM,$(shell $(MPICC_MPICH) -compile_info 2>/dev/null))
CFLAGS_openmpi = $(GLUE_FLAGS) \
                 $(call MPI_SYSTEM,$(shell $(MPICC_OPENMPI) --showme:compile 2>/dev/null))
# The component sees Open MPI's own headers, too. Those that its package lacks come from OMPI_HEADERS:
# `make openmpi-headers` fills it; or it names the folder of this Open MPI's source.
OMPI_VERSION := $(if $(HAVE_OPENMPI),$(word 4,$(shell $(MPICC_OPENMPI) --showme:version 2>/dev/null)))
OMPI_HEADERS ?= openmpi-headers/$(OMPI_VERSION)
CFLAGS_ompi = $(CFLAGS_openmpi) $(addprefix -isystem ,$(wildcard $(OMPI_HEADERS))) \
              $(call MPI_SYSTEM,$(shell pkg-config --cflags pmix 2>/dev/null)) -Wno-sign-conversion
MPICH_LIBS = $(filter -L% -l%,$(shell $(MPICC_MPICH) -link_info 2>/dev/null))
OPENMPI_LIBS = $(shell $(MPICC_OPENMPI) --showme:link 2>/dev/null)

# What knows no MPI.
GLUE_OBJ := $(patsubst %,$(BUILD)/glue/mpi-glue/%.o,barrier comm config exchange fold join judge log mates node port \
                       post tuned wait)
MPICH_OBJ := $(patsubst %,$(BUILD)/mpich/mpi-glue/%.o,mpi_value pmpi pmpi_exchange pmpi_f08 pmpi_request)

# libnbar goes in, and its names stay in: an application may have one of its own. Names are looked up
# when the MPI loads it, and not within the first barriers (-z now).
$(BUILD)/libnbar-mpi-mpich.so: $(MPICH_OBJ) $(GLUE_OBJ) $(BUILD)/libnbar.a mpi-glue/pmpi.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-z,now,-soname,$(@F) -Wl,--version-script=mpi-glue/pmpi.map \
		$(filter %.o,$^) $(filter %.a,$^) -o $@ $(MPICH_LIBS) -lm -lpthread -ldl

# The component. Open MPI's own names are there when it loads it.
OMPI_SRC := $(wildcard mpi-glue/ompi/*.c)
OMPI_OBJ := $(OMPI_SRC:%.c=$(BUILD)/ompi/%.o) $(BUILD)/ompi/mpi-glue/mpi_value.o
COMPONENT := $(BUILD)/components/mca_coll_nbar.so
$(COMPONENT): $(OMPI_OBJ) $(GLUE_OBJ) $(BUILD)/libnbar.a mpi-glue/ompi/coll_nbar.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-z,now,--version-script=mpi-glue/ompi/coll_nbar.map \
		$(filter %.o,$^) $(filter %.a,$^) -o $@ $(OPENMPI_LIBS) -lopen-pal -lm -lpthread

# Some packages of Open MPI (Debian 13) lack headers of its own that a component needs.
HAVE_OMPI := $(if $(HAVE_OPENMPI),$(shell $(CC) -std=c11 $(CFLAGS_ompi) -fsyntax-only -x c \
               mpi-glue/ompi/compat.h 2>/dev/null && echo yes))

GLUE_SO := $(if $(HAVE_MPICH),$(BUILD)/libnbar-mpi-mpich.so)
ALL += $(GLUE_SO) $(if $(HAVE_OMPI),$(COMPONENT)) glue-left-out
glue-left-out:
	@$(if $(HAVE_MPICH),:,echo "  no $(MPICC_MPICH): libnbar-mpi-mpich.so is left out")
	@$(if $(HAVE_OPENMPI),:,echo "  no $(MPICC_OPENMPI): the component coll/nbar is left out")
	@$(if $(HAVE_OPENMPI),$(if $(HAVE_OMPI),:,echo "  Open MPI $(OMPI_VERSION) lacks headers that components need: the component coll/nbar is left out; for it: make openmpi-headers, which fetches them from Debian's source package"))

openmpi-headers: ## Debian 13: fetch headers that libopenmpi-dev lacks, from Debian's source package
	$(Q)$(if $(HAVE_OMPI),echo "Open MPI $(OMPI_VERSION): no header is missing",mpi-glue/ompi/fetch-headers $(OMPI_HEADERS))

OBJS += $(GLUE_OBJ) $(if $(HAVE_MPICH),$(MPICH_OBJ)) $(if $(HAVE_OMPI),$(OMPI_OBJ))

# Where mpirun looks for components: in Open MPI's own folder, if that is where things are installed
# to; and always in ~/.openmpi/components.
OMPI_FOLDER = $(shell ompi_info --path pkglibdir --parsable 2>/dev/null | cut -d : -f 3)
OMPI_COMPONENTS ?= $(if $(filter /usr /usr/local,$(prefix)),$(OMPI_FOLDER),$(libdir)/openmpi)

INSTALLS += install-glue
install-glue: $(GLUE_SO) $(if $(HAVE_OMPI),install-component)
	$(Q)install -d $(DESTDIR)$(libdir)
	$(Q)$(if $(strip $(GLUE_SO)),install -m 755 $(GLUE_SO) $(DESTDIR)$(libdir))

install-component: $(COMPONENT)
	$(Q)install -D -m 755 $< $(DESTDIR)$(OMPI_COMPONENTS)/$(<F)

install-component-user: $(COMPONENT) ## put the Open MPI component into ~/.openmpi/components
	$(Q)install -D -m 755 $< $(HOME)/.openmpi/components/$(<F)

.PHONY: install-glue install-component install-component-user glue-left-out openmpi-headers
