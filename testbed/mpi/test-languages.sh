#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs in languages other than C, and of runtimes that use an MPI, on two test hosts: nbar
# offloads their barriers, and no barrier ends early. A language that is not installed is skipped.
set -u
glue="languages"
mpi=openmpi
. "$(dirname "$0")/lib.sh"
languages=testbed/mpi/languages
limit=300 # s
library=$bin/libnbar-mpi-mpich.so
component=$bin/components/mca_coll_nbar.so
export NBAR_MPI_WHERE=nic OMPI_MCA_coll_nbar_where=nic # whatever a barrier takes here
export NBAR_MPI_VERBOSE=1 OMPI_MCA_coll_nbar_verbose=1 OMPI_CC=cc OMPI_FC=gfortran MPICH_FC=gfortran

start_openmpi() { # WORDS OF mpirun
	timeout -k 5 "$limit" $cluster mpirun --mca mca_base_component_path "$(dirname "$component"):SYS_DEFAULT" \
		--mca coll_nbar_enable 1 "$@"
}

start_mpich() {
	timeout -k 5 "$limit" $cluster mpiexec -genv LD_PRELOAD "$library" "$@"
}

# meets RANKS COUNT COMMAND...: no rank leaves a barrier early, and the number of barriers that each
# rank offloads matches COUNT, a regular expression.
meets() {
	local ranks=$1 count=$2
	shift 2
	"$@" >"$work/met" 2>"$work/met.err"
	local rc=$?
	cat "$work/met" "$work/met.err"
	[ $rc = 0 ] && [ "$(times ': 0 early' "$work/met")" = "$ranks" ] &&
		[ "$(times "nbar: $count barriers offloaded" "$work/met.err")" = "$ranks" ]
}

# The program ends well, or the launcher ends it, since a rank has ended first.
failures_are_reported() { # MPI
	"mpifort.$1" -O1 -Wall -Wno-tabs $languages/fails.f90 -o "$work/fails" || return
	"start_$1" -np 2 "$work/fails" >"$work/failed" 2>&1
	cat "$work/failed"
	! grep -q 'a wrong sum' "$work/failed" && grep -q 'MPI_Iallreduce: reported' "$work/failed" &&
		grep -q 'MPI_Ibarrier: reported' "$work/failed"
}

# fortran MPI: the program has a communicator over all ranks, and two over every second rank. 9
# barriers of each communicator are not offloaded: 8 before its set-up, and the barrier that sets it
# up.
fortran() {
	local mpi=$1 program module
	if ! "mpifort.$mpi" --version >/dev/null 2>&1; then
		skip "$mpi: Fortran" "there is no mpifort.$mpi: apt-get install gfortran"
		return
	fi
	ok "$mpi: the program in C compiles" "mpicc.$mpi" -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror \
		$languages/meet.c -o "$work/c.$mpi"
	for module in MPIF_H MPI F08; do
		program=$work/$module.$mpi
		ok "$mpi: Fortran, $module: compiles" "mpifort.$mpi" -cpp -O1 -Wall -Wno-tabs "-DMODULE_$module" \
			$languages/meet.F90 -o "$program"
		ok "$mpi: Fortran, $module: 191 of 200 barriers of all are offloaded" \
			meets 2 191 "start_$mpi" -np 2 "$program"
	done
	ok "$mpi: Fortran, F08: MPI_Wait reports failures" failures_are_reported "$mpi"
	# Two of four ranks share a host. The launcher decides whether the two ranks of a half do.
	ok "$mpi: C and Fortran in one job" meets 4 "(191|282)" "start_$mpi" -np 1 "$work/c.$mpi" : \
		-np 1 "$work/F08.$mpi" : -np 1 "$work/MPIF_H.$mpi" : -np 1 "$work/MPI.$mpi"
}

python() {
	local python
	for python in python3 /usr/bin/python3; do
		"$python" -c 'import mpi4py.MPI as m, sys; sys.exit("Open MPI" not in m.Get_library_version())' \
			>/dev/null 2>&1 && break
		python=
	done
	if [ -z "$python" ]; then
		skip "mpi4py" "it is not installed for Open MPI: apt-get install python3-mpi4py"
		return
	fi
	ok "mpi4py: 191 of 200 barriers are offloaded" \
		meets 2 191 start_openmpi -np 2 "$python" $languages/meet.py
}

# OpenCoarrays runs `sync all` as MPI_Barrier of its own communicator.
coarrays() {
	if ! command -v caf >/dev/null; then
		skip "coarrays: sync all" "there is no OpenCoarrays: apt-get install libcoarrays-openmpi-dev"
		return
	fi
	ok "coarrays compile" caf -O1 $languages/coarray.f90 -o "$work/coarray"
	ok "coarrays: sync all is offloaded" \
		meets 2 "[1-9][0-9]+" start_openmpi $one_sided -np 2 "$work/coarray"
}

# OSHMEM 4.1.4 crashes in shmem_finalize, with nbar and without, so the exit status does not count.
# The program reads the counters before.
shmem() {
	if ! command -v oshcc >/dev/null; then
		skip "OpenSHMEM: shmem_barrier_all" "this Open MPI has no oshcc"
		return
	fi
	ok "OpenSHMEM: the program compiles" oshcc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror \
		$languages/shmem.c testbed/mpi/oracle_counters.c -o "$work/shmem" -ldl
	ok "OpenSHMEM: 191 of 200 shmem_barrier_all are offloaded" offloaded_elements
}

offloaded_elements() {
	start_openmpi -np 2 "$work/shmem" >"$work/met" 2>"$work/met.err"
	cat "$work/met" "$work/met.err"
	[ "$(times ': 0 early, 191 offloaded' "$work/met")" = 2 ]
}

up 2
rc=$?
if [ $rc = 77 ]; then
	skip "other languages" "$(head -n 1 "$work/up")"
	finish
elif [ $rc != 0 ]; then
	ok "test hosts" false
	finish
fi
if [ -e "$component" ]; then
	. testbed/mpi/suite.sh
	fortran openmpi
	python
	coarrays
	shmem
else
	skip "languages over Open MPI" "there is no component: apt-get install libopenmpi-dev"
fi
if [ -e "$library" ]; then
	fortran mpich
else
	skip "languages over MPICH" "there is no library for MPICH: apt-get install libmpich-dev"
fi
finish
