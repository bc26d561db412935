#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Random MPI programs on test hosts, with each installed MPI: SEEDS programs (default 100), from seed
# SEED on. They run on 2 to 6 ranks, with NICs in daemons and with in-process NICs. The same programs
# also run without nbar: if the MPI alone cannot run a program, this is no fault of nbar. A test that
# fails names the seed; to run it again: SEED=N SEEDS=1 RUN=NAME. With PLAIN=no the programs do not
# run without nbar, which halves the time.
set -u
glue="random programs"
mpi=openmpi
. "$(dirname "$0")/lib.sh"
SEEDS=${SEEDS:-100}
SEED=${SEED:-$(date +%s)}
limit=${LIMIT:-550}

ranks_command() { # NP
	local preload=
	case $mpi-$how in
	openmpi-plain) echo $cluster mpirun -np "$1" "$random" ;;
	openmpi-*) echo $cluster mpirun -np "$1" --mca mca_base_component_path \
		"$bin/components:SYS_DEFAULT" --mca coll_nbar_enable 1 "$random" ;;
	mpich-plain) echo $cluster mpiexec -np "$1" "$random" ;;
	mpich-*) echo $cluster mpiexec -np "$1" -genv LD_PRELOAD "$bin/libnbar-mpi-mpich.so" "$random" ;;
	esac
}

# programs RUN NP EXPECT PARTS: runs PARTS percent of the programs, with nbar and without.
programs() {
	local run=$1 np=$2 expect=$3 n=$((SEEDS * $4 / 100)) how
	[ -z "${RUN:-}" ] || n=$SEEDS
	[ -z "${RUN:-}" ] || [ "$RUN" = "$run" ] || return
	[ $n -gt 0 ] || n=1
	for how in nbar $([ "${PLAIN:-}" = no ] || echo plain); do
		report "$mpi, $run, $how" ranks "$np" -- ${PATIENCE:+-p $PATIENCE} \
			-s "$work/random.$mpi.$run.$how" \
			$([ $how = plain ] || [ $n -lt 5 ] || echo "-e $expect") $next $((next + n - 1))
	done
	next=$((next + n))
}

in_process() {
	export NBAR_MPI_WHERE=host OMPI_MCA_coll_nbar_where=host
	programs "$@"
	export NBAR_MPI_WHERE=nic OMPI_MCA_coll_nbar_where=nic
}

all_programs() {
	random=$bin/mpi-random.$mpi
	next=$SEED
	if [ ! -x "$random" ]; then
		skip "$glue, $mpi" "no $mpi here"
		return
	fi
	programs 2-ranks 2 nic 50
	in_process 2-ranks-inside 2 nic 25
	programs 3-ranks 3 nic 15
	# Where ranks share processors, collectives of MPICH take milliseconds.
	programs 6-ranks 6 nic $([ $mpi = mpich ] && echo 2 || echo 5)
	in_process 4-ranks-inside 4 nic $([ $mpi = mpich ] && echo 2 || echo 5)
}

if [ ! -x "$bin/mpi-random.openmpi" ] && [ ! -x "$bin/mpi-random.mpich" ]; then
	skip "$glue" "no MPI here"
	finish
fi
up 4
if [ $? = 77 ]; then
	skip "$glue" "$(head -n 1 "$work/up")"
	finish
fi
echo "# from seed $SEED on"
for mpi in ${MPI:-openmpi mpich}; do
	all_programs
done
finish
