#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The wire kernel beside Open MPI without a daemon and beside other wires, interleaved in one run: test
# hosts that share this machine's processors, so no daemon has one of its own. Needs root. Started by
# make bench-kernel.
#
# mpi     p50 of MPI_Barrier, in us; medians, and the median of the ratios to the wire kernel. Where there are
#         enough processors, each rank has its own: two on one would wait for the scheduler
# busy    a member computes for 10 ms inside its barrier: p50 of how long the others wait, in us
# sleep   hosts that sleep while one is 100 ms late: processor time of hosts and daemons, in us a barrier and host
# bounce  barriers of two hosts beside one bare frame: see bounce.c
#
# Environment: WHAT: "mpi busy sleep bounce"; HOSTS: "2 4 8"; WIRES: those beside kernel; REPEAT; BARRIERS.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/lib.sh
BUILD=${BUILD:-build} name=kernel
make_work
repeat=${REPEAT:-5} sides="none kernel ${WIRES-udp af_packet}"
mca="--mca mca_base_component_path $PWD/$BUILD/components:SYS_DEFAULT --mca coll_nbar_enable 1 --mca coll_nbar_where nic"

on() { # SIDE ARGUMENT...: cluster, with the hosts of this side
	testbed/hosts/cluster --run-dir "$work/$1" "${@:2}"
}

all_down() {
	local side
	for side in $sides; do
		[ ! -d "$work/$side" ] || on "$side" down >/dev/null 2>&1
	done
}
trap 'all_down; cleanup' EXIT

up() { # HOSTS SIDE...
	local side
	for side in "${@:2}"; do
		on "$side" up "$1" --wire "$side" >"$work/up" 2>&1 || die "cluster up: $(cat "$work/up")"
	done
}

# p50 TEST RANKS SIDE: prints the median of a run of MPI's own barrier (side none), or of nbar's.
p50() {
	local method=nbar settings=$mca own=()
	[ "$3" != none ] || method=mpi settings=
	[ "$2" -gt "$(nproc)" ] || own=(sh -c 'exec taskset -c "$(hostname | tr -d h)" "$@"' sh)
	on "$3" mpirun -np "$2" $settings "${own[@]}" "$BUILD/nbar" mpi-bench --test "$1" --method $method --csv "$work/csv" \
		${BARRIERS:+-i "$BARRIERS"} >"$work/out" 2>&1 </dev/null || die "$1 of $2 on $3: $(cat "$work/out")"
	awk -F, '/^#/ { next } !at { for (i = 1; i <= NF; i++) if ($i == "p50_us") at = i; next } { print $at }' "$work/csv"
}

# rows TEST: all sides in turn, with 2, 4 and 8 hosts.
rows() {
	local n i side us
	printf '%-6s %5s' "$1" hosts
	printf ' %10s' Open-MPI ${sides#none }
	echo "  side / kernel"
	for n in ${HOSTS:-2 4 8}; do
		up "$n" $sides
		: >"$work/rows"
		for ((i = 0; i < repeat; i++)); do
			for side in $([ $((i % 2)) = 0 ] && echo $sides || echo $sides | tac -s ' '); do
				us=$(p50 "$1" "$n" "$side") || exit 1
				echo "$side $us" >>"$work/rows"
			done
		done
		all_down
		awk -v point="$(printf '%-6s %5d' "$1" "$n")" -v sides="$sides" "$(cat testbed/bench/ratios.awk)"'
			{ value[$1, ++count[$1]] = $2 }
			END {
				n = split(sides, side, " ")
				for (i = 1; i <= n; i++) {
					point = point sprintf(" %10.2f", median(side[i], count[side[i]]))
					if (side[i] != "kernel")
						ratios = ratios " " side[i] ratio("kernel", side[i], count[side[i]])
				}
				print point " " ratios
			}' "$work/rows"
	done
}

# Prints the processor time of the daemons of a side so far, in ns.
daemons_ns() {
	on "$1" exec head sh -c 'cd /proc && for p; do cat $p/task/*/schedstat; done' sh $(cat "$work/$1"/nicd.*.pid) |
		awk '{ sum += $1 } END { print sum }'
}

# sleepers SIDE HOSTS BARRIERS: prints the processor time of hosts and daemons, in us.
sleepers() {
	local before hosts k nics=
	for ((k = 0; k < $2; k++)); do nics="$nics $work/$1/nic/n$k.sock"; done
	before=$(daemons_ns "$1")
	hosts=$(TIMEFORMAT='%U %S'; { time NBAR_WAIT=block on "$1" exec head "$BUILD/oracle" -i "$3" -d 100 $nics \
		>"$work/out" 2>&1; } 2>&1) || die "sleepers on $1: $(cat "$work/out")"
	echo "$hosts $before $(daemons_ns "$1")" | awk '{ printf "%d\n", 1e6 * ($1 + $2) + ($4 - $3) / 1000 }'
}

# Set-up and end cost as much with few barriers as with many.
rows_of_sleepers() {
	local n i side few=2 many=42 us
	for n in ${HOSTS:-2 4 8}; do
		for side in ${sides#none }; do
			[ "$side" != af_packet ] || continue # its thread polls
			up "$n" "$side"
			for ((i = 0; i < repeat; i++)); do
				us=$(($(sleepers "$side" "$n" $many) - $(sleepers "$side" "$n" $few)))
				echo "$side $((us / (many - few) / n))"
			done >"$work/rows"
			all_down
			awk "$(cat testbed/bench/ratios.awk)"' { value["us", NR] = $2 }
				END { print median("us", NR) }' "$work/rows" | xargs printf 'sleep  %5d %-10s %10.0f us\n' "$n" "$side"
		done
	done
}

rows_of_bounce() {
	local i frame send post us
	up 2 kernel
	for ((i = 0; i < repeat; i++)); do
		read -r frame send post < <(on kernel exec 0 "$BUILD/bounce" eth0 "$(cat "$work/kernel/host.1")" "$BUILD/bounce.bpf.o") ||
			die "the bare frame does not bounce"
		us=$(on kernel exec head "$BUILD/nbar" bench --nodes 2 --where nic --alg pairwise -i 5000 -x 500 --csv - \
			--nic "$work/kernel/nic/n0.sock" --nic "$work/kernel/nic/n1.sock" |
			awk -F, '/^#/ { next } !at { for (i = 1; i <= NF; i++) if ($i == "p50_us") at = i; next } { print $at }')
		awk -v frame="$frame" -v send="$send" -v post="$post" -v us="$us" 'BEGIN {
			printf "bounce  a frame %.2f us, with send() of a packet socket %.2f us, of a UDP socket %.2f us; ", frame, send, post
			printf "a barrier %.2f us: %.2f and %.2f times\n", us, us / send, us / post }'
	done
	all_down
}

for what in ${WHAT:-mpi busy sleep bounce}; do
	case $what in
	mpi) rows barrier ;;
	busy) rows busy ;;
	sleep) rows_of_sleepers ;;
	bounce) rows_of_bounce ;;
	*) die "WHAT: there is no $what" ;;
	esac
done
