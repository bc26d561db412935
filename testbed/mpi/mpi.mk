# SPDX-License-Identifier: BSD-3-Clause
# MPI programs of the tests, built with each installed MPI.

ORACLE_SRC := $(wildcard testbed/mpi/oracle*.c)
MPI_ORACLE := $(CLUSTER_MPI:%=$(BUILD)/mpi-oracle.%)
$(BUILD)/mpi-oracle.%: $(ORACLE_SRC) testbed/mpi/oracle.h testbed/mpi/oracle_predict.h testbed/mpi/extensions.h
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_GNU_SOURCE $(WARN) -Wno-stringop-overflow \
		$(CFLAGS) $(filter %.c,$^) -o $@ -rdynamic -lpthread -ldl
STANDARD_SRC := $(wildcard testbed/mpi/standard*.c) testbed/mpi/oracle_counters.c
MPI_STANDARD := $(CLUSTER_MPI:%=$(BUILD)/mpi-standard.%)
$(BUILD)/mpi-standard.%: $(STANDARD_SRC) testbed/mpi/oracle.h testbed/mpi/extensions.h testbed/mpi/standard.h
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_GNU_SOURCE $(WARN) -Wno-stringop-overflow \
		$(CFLAGS) $(filter %.c,$^) -o $@ -lpthread -ldl
RANDOM_SRC := $(wildcard testbed/mpi/random/*.c) testbed/mpi/oracle_counters.c
MPI_RANDOM := $(CLUSTER_MPI:%=$(BUILD)/mpi-random.%)
$(BUILD)/mpi-random.%: $(RANDOM_SRC) testbed/mpi/oracle.h testbed/mpi/extensions.h $(wildcard testbed/mpi/random/*.h)
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_GNU_SOURCE $(WARN) -Wno-stringop-overflow \
		$(CFLAGS) $(filter %.c,$^) -o $@ -lpthread -ldl
RECOVER_SRC := testbed/mpi/recover.c testbed/mpi/oracle_counters.c
MPI_RECOVER := $(CLUSTER_MPI:%=$(BUILD)/mpi-recover.%)
$(BUILD)/mpi-recover.%: $(RECOVER_SRC) testbed/mpi/oracle.h
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_GNU_SOURCE $(WARN) -Wno-stringop-overflow \
		$(CFLAGS) $(filter %.c,$^) -o $@ -ldl
$(BUILD)/libslow.so: testbed/mpi/slow.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_DEFAULT_SOURCE $(WARN) $(CFLAGS) -fPIC -shared $< -o $@
CLUSTER_BIN += $(BUILD)/libslow.so $(MPI_ORACLE) $(MPI_STANDARD) $(MPI_RANDOM) $(MPI_RECOVER)
MPI_LIST := testbed/mpi/test-pmpi-mpich.sh testbed/mpi/test-component.sh
CLUSTER_LIST += $(MPI_LIST) testbed/mpi/test-bench.sh testbed/mpi/one-host-bench.sh testbed/mpi/one-host.sh testbed/mpi/test-random.sh testbed/mpi/test-languages.sh \
	testbed/mpi/test-recovery.sh

check-cluster-long: all $(BUILD)/cluster-hold $$(CLUSTER_BIN) ## barriers of MPI on 2 to 8 test hosts of 1 to 3 ranks, 100,000 times: an hour or more
	$(Q)BUILD=$(BUILD) LONG=1 TEST_TIMEOUT=20000 testbed/run $(MPI_LIST)

check-mpi-standard: all $(BUILD)/cluster-hold $$(CLUSTER_BIN) ## rules of the MPI standard that a barrier can break
	$(Q)BUILD=$(BUILD) STANDARD=1 TEST_TIMEOUT=2000 testbed/run $(MPI_LIST)

SEEDS ?= 100
check-mpi-random: all $(BUILD)/cluster-hold $$(CLUSTER_BIN) ## random MPI programs, SEEDS=100 of them from SEED= on, each with nbar and without
	$(Q)BUILD=$(BUILD) SEEDS=$(SEEDS) $(if $(SEED),SEED=$(SEED)) LIMIT=20000 TEST_TIMEOUT=40000 testbed/run testbed/mpi/test-random.sh

.PHONY: check-cluster-long check-mpi-standard check-mpi-random
