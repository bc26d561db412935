#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The PMPI library under Open MPI, on test hosts. Skipped aloud where there are no namespaces or no
# Open MPI.
set -u
glue="PMPI, Open MPI"
mpi=openmpi
. "$(dirname "$0")/lib.sh"
library=$bin/libnbar-mpi-openmpi.so
# The words that start the oracle: NP, and options of the MPI.
ranks_command() {
	local np=$1
	shift
	echo $cluster mpirun -np "$np" "$@" -x LD_PRELOAD="$library" $wrap "$oracle"
}
need "$library"
. testbed/mpi/suite.sh
suite
finish
