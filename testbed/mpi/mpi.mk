# SPDX-License-Identifier: BSD-3-Clause
# MPI programs of the tests, with each MPI that is here.

ORACLE_SRC := $(wildcard testbed/mpi/oracle*.c)
MPI_ORACLE := $(CLUSTER_MPI:%=$(BUILD)/mpi-oracle.%)
$(BUILD)/mpi-oracle.%: $(ORACLE_SRC) testbed/mpi/oracle.h
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_GNU_SOURCE $(WARN) -Wno-stringop-overflow \
		$(CFLAGS) $(filter %.c,$^) -o $@ -lpthread -ldl
CLUSTER_BIN += $(MPI_ORACLE)
CLUSTER_LIST += testbed/mpi/test-pmpi-openmpi.sh testbed/mpi/test-pmpi-mpich.sh \
                testbed/mpi/test-component.sh testbed/mpi/test-bench.sh
