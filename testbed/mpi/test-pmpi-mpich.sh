#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The PMPI library under MPICH, on test hosts. Skipped aloud where there are no namespaces or no
# MPICH. Smaller numbers: where ranks share processors, MPICH's own collectives take milliseconds.
set -u
glue="PMPI, MPICH"
mpi=mpich
. "$(dirname "$0")/lib.sh"
library=$bin/libnbar-mpi-mpich.so
# The words that start the oracle: NP, and options of the MPI.
ranks_command() {
	local np=$1
	shift
	echo $cluster mpiexec -np "$np" "$@" -genv LD_PRELOAD "$library" $wrap "$oracle"
}
need "$library"
slow=1
. testbed/mpi/suite.sh
suite
finish
