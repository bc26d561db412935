#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers by wait policy: "auto" (the default) beside "spin" and "yield", interleaved in one run, with
# as many ranks as processors and with four times as many: Open MPI on test hosts (the glue, and method
# lib, which is libnbar alone), ranks of one host, and teams of threads. Prints, when a point is
# measured, medians of the mean latency, in us, and the ratio of "auto" to the better of the others.
# Started by make bench-wait.
#
# Environment: REPEAT; RANKS; WHAT: ring, af_packet, udp (test hosts with these wires), host (test hosts,
# in-process NICs), one (all ranks on one host), team (threads); BARRIERS; LIMIT: seconds, after which
# no point begins.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/lib.sh
BUILD=${BUILD:-build} name=wait
make_work
repeat=${REPEAT:-5} ranks=${RANKS:-$(nproc) $((4 * $(nproc)))} barriers=${BARRIERS:-1000}
cluster="testbed/hosts/cluster --run-dir $work/cluster"
trap '$cluster down >/dev/null 2>&1; cleanup' EXIT
mca="--mca mca_base_component_path $PWD/$BUILD/components:SYS_DEFAULT --mca coll_nbar_enable 1"

# mpi WHAT RANKS POLICY [OPTION...]: prints "WHAT METHOD RANKS POLICY US" for each method.
mpi() {
	local what=$1 n=$2 policy=$3
	shift 3
	timeout -k 5 300 $cluster mpirun -np "$n" $mca --mca coll_nbar_wait "$policy" "$@" "$BUILD/nbar" mpi-bench \
		--method nbar,lib -i "$barriers" --blocks 5 --csv "$work/result" >"$work/out" 2>&1 ||
		die "$what, $n ranks, $policy: $(cat "$work/out")"
	awk -F, -v what="$what" -v n="$n" -v policy="$policy" '/^#/ { next }
		!at { for (i = 1; i <= NF; i++) { if ($i == "method") method = i; if ($i == "avg_us") at = i }; next }
		{ print what, $method, n, policy, $at }' "$work/result"
}

team() {
	local set=NBAR_WAIT=$3
	[ "$3" = auto ] && set=NBAR_WAIT=
	env "$set" timeout -k 5 300 "$BUILD/nbar-lab" threads --threads "$2" --kinds sense-reverse,mcs --launches 1 \
		--csv "$work/result" >"$work/out" 2>&1 || die "threads: $(cat "$work/out")"
	awk -F, -v n="$2" -v policy="$3" '/^#/ { next }
		!at { for (i = 1; i <= NF; i++) { if ($i == "barrier") kind = i; if ($i == "time_us") at = i }; next }
		{ if ($kind != "transfer") print "team", $kind, n, policy, $at }' "$work/result"
}

# all WHAT RANKS: all policies, in turn.
all() {
	local i policy
	for ((i = 0; i < repeat; i++)); do
		for policy in $([ $((i % 2)) = 0 ] && echo spin auto yield || echo yield auto spin); do
			case $1 in
			team) team "$1" "$2" "$policy" ;;
			host) mpi "$1" "$2" "$policy" --mca coll_nbar_where host ;;
			*) mpi "$1" "$2" "$policy" ;;
			esac
		done
	done
}

# table: the points of $work/point.
table() {
	awk "$(cat testbed/bench/ratios.awk)"'
		{
			point = sprintf("%-10s %-14s %3d", $1, $2, $3)
			if (!(point in seen)) { seen[point] = 1; name[++points] = point }
			value[point $4, ++count[point $4]] = $5
		}
		END {
			for (i = 1; i <= points; i++) {
				p = name[i]
				spin = median(p "spin", count[p "spin"])
				yield = median(p "yield", count[p "yield"])
				auto = median(p "auto", count[p "auto"])
				printf "%s %9.2f %9.2f %9.2f  %.2f\n", p, spin, yield, auto, auto / (spin < yield ? spin : yield)
			}
		}' "$work/point"
}

printf '%-10s %-14s %3s %9s %9s %9s  %s\n' what barrier n spin yield auto 'auto / better'
for what in ${WHAT:-team one host ring af_packet udp}; do
	for n in $ranks; do
		[ $SECONDS -lt "${LIMIT:-3600}" ] || { echo "left out after $SECONDS s: $what $n"; continue; }
		case $what in
		team) ;;
		one) $cluster up 1 --wire none ;;
		host) $cluster up "$n" --wire none ;;
		*) $cluster up "$n" --wire "$what" ;;
		esac >"$work/up" 2>&1 || die "cluster up: $(cat "$work/up")"
		all "$what" "$n" >"$work/point" || exit 1
		table
		[ "$what" = team ] || $cluster down >/dev/null
	done
done
