# SPDX-License-Identifier: BSD-3-Clause
# Jobs without end on the same daemons.

CLUSTER_LIST += testbed/soak/soak.sh

JOBS ?= 200
soak: all $(BUILD)/oracle $$(MPI_RANDOM) ## JOBS=200 jobs one after the other, and 8 at once, on one daemon: nothing it or the ranks hold may grow
	$(Q)BUILD=$(BUILD) JOBS=$(JOBS) TEST_TIMEOUT=20000 testbed/run testbed/soak/soak.sh

.PHONY: soak
