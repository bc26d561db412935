# SPDX-License-Identifier: BSD-3-Clause
# Test hosts: the programs that the command `cluster` needs, and the tests that run on such hosts.
# Add a test to CLUSTER_LIST, and the programs that it needs to CLUSTER_BIN.

CLUSTER_BIN += $(BUILD)/cluster-hold
CLUSTER_LIST += testbed/hosts/test-cluster.sh testbed/hosts/test-late.sh testbed/hosts/test-networks.sh

HOLD_OBJ := $(BUILD)/test/testbed/hosts/hold.o
$(BUILD)/cluster-hold: $(HOLD_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
OBJS += $(HOLD_OBJ)

# One program for each MPI that is installed. Debian's names of the compilers: both MPIs can be
# installed at once.
MPICC_openmpi := $(shell command -v mpicc.openmpi)
MPICC_mpich := $(shell command -v mpicc.mpich)
CLUSTER_MPI := $(foreach m,openmpi mpich,$(if $(MPICC_$(m)),$(m)))
CLUSTER_BIN += $(CLUSTER_MPI:%=$(BUILD)/cluster-hello.%)
CLUSTER_BIN += $(if $(MPICC_mpich),$(BUILD)/libcluster-finalize.so)

$(BUILD)/cluster-hello.%: testbed/hosts/hello.c
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 $(WARN) $(CFLAGS) $< -o $@

$(BUILD)/libcluster-finalize.so: testbed/hosts/finalize.c
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_mpich) -std=c11 $(WARN) $(CFLAGS) -fPIC -c $< -o $@.o
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-z,lazy $@.o -o $@

check-cluster: deps ## tests on test hosts, made of namespaces: needs root or user namespaces
	$(Q)testbed/deps.sh nftables iputils-ping openmpi-bin libopenmpi-dev mpich libmpich-dev
	$(Q)$(MAKE) --no-print-directory check-cluster-nodeps

check-cluster-nodeps: all $(BUILD)/oracle $$(CLUSTER_BIN)
	$(Q)BUILD=$(BUILD) TEST_TIMEOUT=2700 testbed/run $(CLUSTER_LIST)

check-slurm: deps ## jobs of Slurm on two test hosts: needs root
	$(Q)testbed/deps.sh nftables openmpi-bin libopenmpi-dev mpich libmpich-dev slurmctld slurmd \
		slurm-client munge
	$(Q)$(MAKE) --no-print-directory check-cluster-nodeps CLUSTER_LIST=testbed/hosts/test-slurm.sh

.PHONY: check-cluster check-cluster-nodeps check-slurm
