#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The PMPI library under MPICH, on test hosts. Skipped where there are no namespaces or no MPICH. Runs
# fewer barriers than the test of Open MPI: where ranks share processors, MPICH's own collectives take
# milliseconds.
set -u
glue="PMPI, MPICH"
mpi=mpich
. "$(dirname "$0")/lib.sh"
library=$bin/libnbar-mpi-mpich.so
# ranks_command NP [OPTIONS OF THE MPI]: prints the command that starts the oracle.
ranks_command() {
	local np=$1
	shift
	echo $cluster mpiexec -np "$np" "$@" -genv LD_PRELOAD "$library" $wrap "$oracle"
}
need "$library"
slow=1
. testbed/mpi/suite.sh
# A rank without the library does not take part in the exchange between libraries in MPI_Init.
one_lacks_it() {
	timeout -k 5 20 $cluster mpiexec -np 1 -env LD_PRELOAD "$library" "$oracle" blocking=3 : \
		-np 1 "$oracle" blocking=3 >"$work/told" 2>&1
	cat "$work/told"
	grep -q '^nbar: MPI_Init waits for ranks that run without this library: ' "$work/told"
}
ok "$glue: a rank lacks the library: a message says so" one_lacks_it
suite
finish
