#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The wire kernel beside Open MPI without a daemon and beside other wires, interleaved in one run: test
# hosts that share this machine's processors, so no daemon has one of its own. Needs root. Started by
# make bench-kernel.
#
# mpi     p50 of MPI_Barrier, in us; medians, and the median of the ratios to the wire kernel. Where there are
#         enough processors, each rank has its own: two on one would wait for the scheduler
# busy    a member computes for 10 ms inside its barrier: p50 of how long the others wait, in us
# sleep   hosts that sleep while one is 100 ms late: processor time of daemons and hosts, in us a host and 100 ms
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

# sleepers SIDE HOSTS: reads the processor time of daemons and of hosts twice amid barriers. Prints what a host
# takes in 100 ms: us of its daemon, of itself, of both, how often the scheduler ran the two, and us of a process that
# only sleeps 100 ms: this is what one wake costs here.
sleepers() {
	local k nics=
	[ -p "$work/silence" ] || mkfifo "$work/silence"
	for ((k = 0; k < $2; k++)); do nics="$nics $work/$1/nic/n$k.sock"; done
	NBAR_WAIT=block on "$1" exec head sh -c '
		read_all() { for p; do cat /proc/$p/task/*/schedstat; done | awk "{ ns += \$1; n += \$3 } END { print ns, n }"; }
		daemons=$1 seconds=$2
		shift 2
		"$@" & oracle=$!
		bash -c "while ! read -rt .1 <&3; do :; done" 3<>"$0" & bare=$!
		sleep 1
		hosts=$(cat /proc/$oracle/task/$oracle/children)
		from=$(date +%s%N) a=$(read_all $daemons) b=$(read_all $hosts) c=$(read_all $bare)
		sleep "$seconds"
		echo $a $b $c $(read_all $daemons) $(read_all $hosts) $(read_all $bare) $(($(date +%s%N) - from))
		kill $bare
		wait $oracle' "$work/silence" "$(cat "$work/$1"/nicd.*.pid)" "$seconds" "$BUILD/oracle" -i $((seconds * 10 + 15)) -d 100 $nics \
		>"$work/out" 2>&1 || die "sleepers on $1: $(cat "$work/out")"
	awk -v hosts="$2" 'NF == 13 { n = hosts * $13 / 1e8; $1 = ($7 - $1) / n; $3 = ($9 - $3) / n
		printf "%.0f %.0f %.0f %.2f %.2f %.0f\n", $1 / 1e3, $3 / 1e3, ($1 + $3) / 1e3, ($8 - $2) / n, ($10 - $4) / n,
			($11 - $5) / ($12 - $6) / 1e3 }' "$work/out"
}

rows_of_sleepers() {
	local n i side seconds=3
	for n in ${HOSTS:-2 4 8}; do
		for side in ${sides#none }; do
			[ "$side" != af_packet ] || continue # its thread polls
			up "$n" "$side"
			for ((i = 0; i < repeat; i++)); do sleepers "$side" "$n"; done >"$work/rows"
			all_down
			awk "$(cat testbed/bench/ratios.awk)"' { for (i = 1; i <= NF; i++) value[i, NR] = $i }
				END { for (i = 1; i <= NF; i++) printf "%s ", median(i, NR) }' "$work/rows" |
				xargs printf 'sleep  %5d %-10s us: daemon %.0f + host %.0f = %.0f; slices %.1f + %.1f; a bare sleep %.0f us\n' "$n" "$side"
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
