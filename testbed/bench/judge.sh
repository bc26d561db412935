#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers of MPI programs with nbar and without, by default settings, interleaved in one run: daemons
# on test hosts that share this machine's processors, so a NIC may have no core. "again" is the MPI once
# more: its ratio shows what the noise is. A barrier of a few is the median over the repetitions, one of
# many the mean of its run. Prints, when a case is measured, in us: the mean of the first, or the median
# of the second; and ratios to the MPI. Started by make bench-judge.
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
mpi_openmpi=mpirun mpi_mpich=mpiexec again_openmpi=mpirun again_mpich=mpiexec

# measure HOSTS RANKS MPI CASE: all sides, in turn.
measure() {
	local i side start
	: >"$work/case"
	for ((i = 0; i < ${REPEAT:-3}; i++)); do
		for side in $([ $((i % 2)) = 0 ] && echo mpi nbar again || echo again nbar mpi); do
			start=${side}_$3
			timeout -k 5 120 $cluster ${!start} -np "$2" "$BUILD/judge.$3" "${4%%:*}" "${4##*:}" >"$work/out" 2>&1 </dev/null ||
				die "$1 $3 $side $4: $(cat "$work/out")"
			sed -n "s/^us: /$side /p" "$work/out" >>"$work/case"
		done
	done
	awk -v point="$(printf '%-4s %-8s %-12s' "$1" "$3" "$4")" "$(cat testbed/bench/ratios.awk)"'
		{ key = $1 " " $2; value[key, ++count[key]] = $3; few[$1] = $2 + 1 }
		function us(side,   i, sum) {
			for (i = 0; i < few[side]; i++) sum += median(side " " i, count[side " " i])
			return sum / few[side]
		}
		END {
			mpi = us("mpi"); again = us("again"); nbar = us("nbar")
			printf "%s %10.2f %10.2f %8.2f %8.2f\n", point, mpi, nbar, again / mpi, 2 * nbar / (mpi + again)
		}' "$work/case"
}

printf '%-4s %-8s %-12s %10s %10s %8s %8s\n' '' MPI case MPI nbar again/MPI nbar/MPI
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
