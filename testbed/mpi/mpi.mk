# SPDX-License-Identifier: BSD-3-Clause
# MPI programs of the tests, with each MPI that is here.

ORACLE_SRC := $(wildcard testbed/mpi/oracle*.c)
MPI_ORACLE := $(CLUSTER_MPI:%=$(BUILD)/mpi-oracle.%)
$(BUILD)/mpi-oracle.%: $(ORACLE_SRC) testbed/mpi/oracle.h
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_GNU_SOURCE $(WARN) -Wno-stringop-overflow \
		$(CFLAGS) $(filter %.c,$^) -o $@ -lpthread -ldl
STANDARD_SRC := $(wildcard testbed/mpi/standard*.c) testbed/mpi/oracle_counters.c
MPI_STANDARD := $(CLUSTER_MPI:%=$(BUILD)/mpi-standard.%)
$(BUILD)/mpi-standard.%: $(STANDARD_SRC) testbed/mpi/oracle.h testbed/mpi/standard.h
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_GNU_SOURCE $(WARN) -Wno-stringop-overflow \
		$(CFLAGS) $(filter %.c,$^) -o $@ -ldl
CLUSTER_BIN += $(MPI_ORACLE) $(MPI_STANDARD)
MPI_LIST := testbed/mpi/test-pmpi-mpich.sh testbed/mpi/test-component.sh
CLUSTER_LIST += $(MPI_LIST) testbed/mpi/test-bench.sh

check-cluster-long: all $(BUILD)/cluster-hold $$(CLUSTER_BIN) ## barriers of MPI on 2 to 8 test hosts of 1 to 3 ranks, 100,000 times: an hour or more
	$(Q)BUILD=$(BUILD) LONG=1 TEST_TIMEOUT=20000 testbed/run $(MPI_LIST)

check-mpi-standard: all $(BUILD)/cluster-hold $$(CLUSTER_BIN) ## rules of the MPI standard that a barrier can break
	$(Q)BUILD=$(BUILD) STANDARD=1 TEST_TIMEOUT=2000 testbed/run $(MPI_LIST)

.PHONY: check-cluster-long check-mpi-standard
