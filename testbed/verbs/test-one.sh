#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The wire "verbs" on one machine: NICs of two daemons on one RDMA device. Each barrier is checked by
# the oracle.
set -u
guests=1
. "$(dirname "$0")/lib.sh"

a() {
	printf "$work/$mode-a/n%s.sock " "$@"
}

b() {
	printf "$work/$mode-b/n%s.sock " "$@"
}

sizes() { # BARRIERS
	local all=($(a 0) $(b 0) $(a 1) $(b 1) $(a 2) $(b 2) $(a 3) $(b 3)) n
	for n in 2 3 4 5 6 7 8; do
		"$oracle" -i $1 "${all[@]:0:$n}" || return
	done
}

algorithms() {
	local alg
	for alg in pairwise dissemination:1 dissemination:3 mcs tournament binomial linear custom; do
		"$oracle" -i 100 -a $alg $(a 0 1) $(b 0 1) && "$oracle" -i 50 -a $alg $(a 0) $(b 0 1) || return
	done
}

# In the write modes, those of 256 bytes go as datagrams.
values() {
	local bytes
	for bytes in 8 64 256; do
		"$oracle" -v $bytes -i 80 $(a 0 0) $(b 0 1) || return
	done
	"$oracle" -v 64 -w 1 -i 9 $(a 0) $(b 0 1)
}

# Barriers of two; the device's counters show that it carried their signals.
by_rdma() {
	local before after
	before=$(statistic sent_pkts) writes=$(count_of $(a 0) rdma_writes)
	"$oracle" -i 2000 $(a 0) $(b 0) || return
	after=$(statistic sent_pkts) writes=$(($(count_of $(a 0) rdma_writes) - writes))
	echo "packets of the device: $before before, $after after 2000 barriers of 2; writes: $writes"
	[ $((after - before)) -ge 4000 ] || return
	case $mode in
	ud*) [ "$writes" = 0 ] ;;
	write*) [ "$writes" -ge 1600 ] ;; # the first may go as datagrams
	esac
}

unchanged() { # QPS MRS
	[ "$(resource qp)" = "$1" ] && [ "$(resource mr)" = "$2" ]
}

connections() { # TYPE: how many the device has
	rdma resource show qp link "$device/1" | grep -c " type $1 "
}

# of_a_group QPS MRS: counts the queue pairs of a group of 8. Each member of a pairwise exchange has
# 3 peers (log P), so in the write modes it has 3 queue pairs, of the type that the mode selects.
# QPS and MRS: what the device has without a group.
of_a_group() {
	local most=0 n wanted=0 pid i type=RC
	soon unchanged "$@" || return
	case $mode in
	write*) wanted=24 ;;
	esac
	case $mode,$suits in
	write-uc* | write,*write-uc) type=UC ;;
	esac
	"$oracle" -i 100000000 -a pairwise $(a 0 1 2 3) $(b 0 1 2 3) >/dev/null 2>&1 &
	pid=$!
	for i in $(seq 600); do
		n=$(($(resource qp) - $1))
		[ $n -gt $most ] && most=$n
		[ $most -ge $wanted ] && [ $i -ge 5 ] && break
		sleep 0.1
	done
	sleep 0.5
	n=$(($(resource qp) - $1))
	i=$(connections $type)
	kill $pid
	wait $pid
	echo "queue pairs of a group of 8: $n, of type $type: $i"
	[ "$n" = $wanted ] && [ "$i" = $wanted ]
}

one_to_many() { # KEYS
	"$BUILD/nbar-lab" one-to-many --peers 3 -i 20 -x 2 --idle yield --wire "$1"
}

# The tests for modes and options that do not run the whole suite.
short() {
	ok "$mode: a daemon with four NICs starts" nics $mode-a - - - -
	ok "$mode: another daemon starts" nics $mode-b - - - -
	qps=$(resource qp) mrs=$(resource mr)
	ok "$mode: 15 barriers of 2 to 8 members" sizes 15
	ok "$mode: 40 barriers of 4 with values" "$oracle" -v 64 -i 40 $(a 0 1) $(b 0 1)
	ok "$mode: the device carried every signal" by_rdma
	ok "$mode: number and type of a group's queue pairs" of_a_group "$qps" "$mrs"
	ok "$mode: queue pairs and memory of closed groups are given back" soon unchanged "$qps" "$mrs"
}

suite() {
	ok "$mode: a daemon with four NICs starts" nics $mode-a - - - -
	ok "$mode: another daemon starts" nics $mode-b - - - -
	qps=$(resource qp) mrs=$(resource mr)
	ok "$mode: 50 barriers of 2 to 8 members" sizes 50
	ok "$mode: 100 barriers of 4 and 50 of 3, by each algorithm" algorithms
	ok "$mode: several members at one NIC" "$oracle" -i 100 $(a 0 0 0) $(b 0)
	ok "$mode: with values" values
	ok "$mode: each member in turn comes late" "$oracle" -i 8 -d 50 $(a 0 1) $(b 0 1)
	ok "$mode: the device carried every signal" by_rdma
	ok "$mode: number and type of a group's queue pairs" of_a_group "$qps" "$mrs"
	ok "$mode: queue pairs and memory of closed groups are given back" soon unchanged "$qps" "$mrs"
}

# --- in-process NICs, no daemon

in_process() { # N KEYS: prints the descriptions of N in-process NICs
	local i
	for ((i = 0; i < $1; i++)); do
		echo "host:wire=verbs,mode=$mode,pull-us=20000,$2"
	done
}

in_process_sizes() {
	local n
	for n in 2 3 5 8; do
		"$oracle" -i 20 $(in_process $n name=a) || return
	done
}

in_process_algorithms() {
	local alg
	for alg in pairwise dissemination:3 mcs linear custom; do
		"$oracle" -i 15 -a $alg $(in_process 3 name=a) || return
	done
	"$oracle" -i 20 -H $(in_process 3 name=a) && "$oracle" -i 20 -v 72 $(in_process 3 name=a)
}

# Rank 0 is killed during barriers; the errors of the other ranks name it.
in_process_killed() {
	local pid victim i
	"$oracle" -i 100000000 $(in_process 3 budget-ms=3000) >"$work/out" 2>&1 &
	pid=$!
	for i in $(seq 100); do
		victim=$(pgrep -P $pid | head -n 1)
		[ "$(resource qp)" -gt 3 ] && break
		sleep 0.1
	done
	sleep 5 # until barriers run
	kill -KILL "$victim"
	! wait $pid && cat "$work/out" && grep -q 'rank [12], .*the NIC of rank 0 (.*) does not answer' "$work/out"
}

suite_in_process() {
	qps=$(resource qp) mrs=$(resource mr)
	ok "$mode, in-process: 20 barriers of 2 to 8 members" in_process_sizes
	ok "$mode, in-process: by each algorithm, over signals, and with values" in_process_algorithms
	ok "$mode, in-process: each member in turn comes later than the retry budget" \
		"$oracle" -i 3 -d 5000 $(in_process 3 budget-ms=4000)
	ok "$mode, in-process: a process is killed: the errors name its rank" in_process_killed
	ok "$mode, in-process: NICs without keys find their wire" "$oracle" -i 20 host: host:
	ok "$mode, in-process: the device has no queue pair and no memory of these NICs" soon unchanged "$qps" "$mrs"
}

# Guests are slow: without NBAR_MODES, daemons run the whole suite in one mode, and in-process NICs in the other.
for mode in ${NBAR_MODES:-write}; do
	suite
	end_processes
done
for mode in ${NBAR_MODES:-ud}; do
	suite_in_process
done
for mode in ud $other ud,inline=no write,inline=no; do
	short
	end_processes
done
for keys in verbs verbs,inline=no verbs,mode=write; do
	ok "1:P ping-pong over $keys" one_to_many "$keys"
done
finish
