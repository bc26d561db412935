#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers of MPI programs with nbar and without, by default settings, interleaved in one run: daemons
# on test hosts that share this machine's processors, so a NIC may have no core. Prints medians of the
# mean time of a barrier, in us, and the median of the ratios. Started by make bench-judge.
#
# Environment: REPEAT; HOSTS: "2x1 4x1 2x2" (hosts x ranks); CASES: BARRIERS:PAUSE_US, PAUSE_US -1 is
# a tight loop; WIRE.
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

for hosts in ${HOSTS:-2x1 4x1 2x2}; do
	n=$((${hosts%x*} * ${hosts#*x}))
	$cluster up "${hosts%x*}" --wire "${WIRE:-udp}" >"$work/up" 2>&1 || die "cluster up: $(cat "$work/up")"
	for mpi in openmpi mpich; do
		[ -x "$BUILD/judge.$mpi" ] || continue
		for case in ${CASES:-5000:-1 1000:0 300:1000 20:100000 4:1000000}; do
			for ((i = 0; i < ${REPEAT:-5}; i++)); do
				for side in $([ $((i % 2)) = 0 ] && echo mpi nbar || echo nbar mpi); do
					start=${side}_$mpi
					timeout -k 5 120 $cluster ${!start} -np $n "$BUILD/judge.$mpi" "${case%%:*}" "${case##*:}" >"$work/out" 2>&1 </dev/null ||
						die "$hosts $mpi $side $case: $(cat "$work/out")"
					sed -n "s/^us: /$hosts $mpi $case $side /p" "$work/out" >>"$work/all"
				done
			done
		done
	done
	$cluster down >/dev/null
done
awk "$(cat testbed/bench/ratios.awk)"'
	{
		point = sprintf("%-4s %-8s %-12s", $1, $2, $3)
		if (!(point in seen)) { seen[point] = 1; name[++points] = point }
		value[point $4, ++count[point $4]] = $5
	}
	END {
		printf "%-4s %-8s %-12s %10s %10s  %s\n", "", "MPI", "case", "MPI", "nbar", "nbar / MPI"
		for (i = 1; i <= points; i++) {
			p = name[i]
			n = count[p "mpi"]
			printf "%s %10.2f %10.2f %s\n", p, median(p "mpi", n), median(p "nbar", n), ratio(p "mpi", p "nbar", n)
		}
	}' "$work/all"
