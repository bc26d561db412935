#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The component coll/nbar of Open MPI, on test hosts. Skipped where there are no namespaces or no
# Open MPI.
set -u
glue="coll/nbar"
mpi=openmpi
. "$(dirname "$0")/lib.sh"
component=$bin/components/mca_coll_nbar.so
path=$(dirname "$component"):SYS_DEFAULT
# ranks_command NP [OPTIONS OF THE MPI]: prints the command that starts the oracle.
ranks_command() {
	local np=$1
	shift
	echo $cluster mpirun -np "$np" --mca mca_base_component_path "$path" --mca coll_nbar_enable 1 \
		"$@" $wrap "$oracle"
}
need "$component"
. testbed/mpi/suite.sh
suite
finish
