#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers of MPI programs with nbar and without, by default settings, interleaved in one run: daemons
# on test hosts that share this machine's processors, so a NIC may have no core. Prints, when a case is
# measured, medians of the mean time of a barrier, in us, and the median of the ratios. Started by make
# bench-judge.
#
# Environment: REPEAT; HOSTS: "2x1 4x1 2x2" (hosts x ranks); CASES: BARRIERS:PAUSE_US, PAUSE_US -1 is
# a tight loop; WIRE; LIMIT: seconds, after which no case begins.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/lib.sh
BUILD=${BUILD:-build} name=judge
make_work
cluster="testbed/hosts/cluster --run-dir $work/cluster"
trap '$cluster down >/dev/null 2>&1; cleanup' EXIT
nbar_openmpi="mpirun --mca mca_base_component_path $PWD/$BUILD/components:SYS_DEFAULT --mca coll_nbar_enable 1"
nbar_mpich="mpiexec -genv LD_PRELOAD $PWD/$BUILD/libnbar-mpi-mpich.so"
mpi_openmpi=mpirun mpi_mpich=mpiexec

# measure HOSTS RANKS MPI CASE: both sides, in turn.
measure() {
	local i side start
	: >"$work/case"
	for ((i = 0; i < ${REPEAT:-3}; i++)); do
		for side in $([ $((i % 2)) = 0 ] && echo mpi nbar || echo nbar mpi); do
			start=${side}_$3
			timeout -k 5 120 $cluster ${!start} -np "$2" "$BUILD/judge.$3" "${4%%:*}" "${4##*:}" >"$work/out" 2>&1 </dev/null ||
				die "$1 $3 $side $4: $(cat "$work/out")"
			sed -n "s/^us: /$side /p" "$work/out" >>"$work/case"
		done
	done
	awk -v point="$(printf '%-4s %-8s %-12s' "$1" "$3" "$4")" "$(cat testbed/bench/ratios.awk)"'
		{ value[$1, ++count[$1]] = $2 }
		END {
			n = count["mpi"]
			printf "%s %10.2f %10.2f %s\n", point, median("mpi", n), median("nbar", n), ratio("mpi", "nbar", n)
		}' "$work/case"
}

printf '%-4s %-8s %-12s %10s %10s  %s\n' '' MPI case MPI nbar 'nbar / MPI'
for hosts in ${HOSTS:-2x1 4x1 2x2}; do
	$cluster up "${hosts%x*}" --wire "${WIRE:-udp}" >"$work/up" 2>&1 || die "cluster up: $(cat "$work/up")"
	for mpi in openmpi mpich; do
		[ -x "$BUILD/judge.$mpi" ] || continue
		for case in ${CASES:-2000:-1 500:0 100:1000 20:100000 3:1000000}; do
			if [ $SECONDS -ge "${LIMIT:-540}" ]; then
				echo "left out after $SECONDS s: $hosts $mpi $case"
			else
				measure "$hosts" $((${hosts%x*} * ${hosts#*x})) $mpi "$case"
			fi
		done
	done
	$cluster down >/dev/null
done
