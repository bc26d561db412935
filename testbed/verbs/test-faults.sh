#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Faults of the device of the wire "verbs". verbs-break breaks queue pairs: the NIC recreates them
# while barriers go on; if this is impossible, groups fail with the cause. A port goes down and up:
# the log says so.
set -u
guests=1
. "$(dirname "$0")/lib.sh"

times_broken=8 # how often queue pairs are broken; fewer times in all modes but the first

# begin NICS...: starts endless barriers over these NICs; $running is the oracle's pid.
begin() {
	"$oracle" -i 100000000 "$@" >"$work/out" 2>&1 &
	running=$!
	pids="$pids $running"
}

end() {
	kill $running
	! wait $running
}

grown() { # NIC COUNTER COUNT
	[ "$(count_of "$1" "$2")" -gt "$3" ]
}

# grows NIC COUNTER: the counter soon grows by more than 20.
grows() {
	soon grown "$1" "$2" $(($(count_of "$1" "$2") + 20)) || { cat "$work"/*.err "$work/out"; return 1; }
}

# More barriers complete.
on() {
	grows "$work/$mode-a/n0.sock" barriers_completed
}

said() { # TEXT...: the log of daemon a soon has each text
	local text
	for text; do
		soon grep -q -- "$text" "$work/$mode-a.err" || { cat "$work/$mode-a.err"; return 1; }
	done
}

# broken ud|line: queue pairs break several times in a row, because the device reports a break in
# different ways. The breaks are within a second, so one message may stand for several.
broken() {
	local i
	for i in $(seq $times_broken); do
		"$BUILD/verbs-break" "$a" "$1" error && on || return
	done
}

# The completion queue never overflowed: it has room for all that the device reports about a broken
# queue pair.
held() {
	! grep "completion queue" "$work/$mode-a.err"
}

lines_again() {
	grows "$work/$mode-a/n0.sock" rdma_writes
}

down_and_up() {
	ip link set eth0 down
	said "port 1 of $device is down: barriers fail if"
	local rc=$?
	ip link set eth0 up
	said "port 1 of $device is up again" && [ $rc = 0 ] && on
}

# destroyed PID: destroys the datagram queue pair of this process. Its NIC notices this at the
# latest when connections break, because to make them again it needs datagrams. Then all its groups
# fail, with the cause.
destroyed() {
	"$BUILD/verbs-break" "$1" ud destroy || return
	[ $mode = ud ] || "$BUILD/verbs-break" "$1" line error # none is left if the NIC has noticed
	soon_ended
	local rc=$?
	cat "$work/out"
	return $rc
}

gone() {
	destroyed "$a" || return
	grep -q "rank 0, .*NIC n0 was stopped" "$work/out" && said "cannot be started again: .*; its groups fail"
}

soon_ended() {
	soon eval '! kill -0 $running 2>/dev/null'
}

no_new() {
	! "$oracle" -i 1 "$work/$mode-a/n0.sock" "$work/$mode-b/n0.sock" >"$work/out" 2>&1 &&
		cat "$work/out" && grep -q "cannot be started again; restart its process" "$work/out"
}

suite() {
	ok "$mode: a daemon" nics $mode-a -
	a=$last_pid
	ok "$mode: another daemon, with two NICs" nics $mode-b - -
	begin "$work/$mode-a/n0.sock" "$work/$mode-b/n0.sock"
	ok "$mode: barriers complete" on
	ok "$mode: the queue pair of datagrams breaks, and barriers go on" broken ud
	ok "$mode: the daemon logs the broken queue pair" said "the queue pair was in an error and has been started again"
	if [ $mode != ud ]; then
		ok "$mode: connections break, and barriers go on" broken line
		ok "$mode: the daemon logs the broken connection" said "the connection to queue pair [0-9]* broke"
		ok "$mode: new connections carry writes" lines_again
	fi
	ok "$mode: no completion queue overflowed" held
	[ "$NBAR_GUESTS" = 0 ] || ok "$mode: the port goes down and comes up, and the daemon logs both" down_and_up
	ok "$mode: a queue pair that cannot be recreated: groups fail with the cause" gone
	ok "$mode: new groups are refused, with the reason" no_new
	ok "$mode: other NICs go on" "$oracle" -i 20 "$work/$mode-b/n0.sock" "$work/$mode-b/n1.sock"
	end_processes
}

# --- an in-process NIC: the oracle's first child has it, as rank 0

in_process() {
	local nic="host:wire=verbs,mode=$mode,pull-us=20000,budget-ms=3000,name=a" victim
	nics $mode-c -
	begin "$nic" "$work/$mode-c/n0.sock"
	grows "$work/$mode-c/n0.sock" barriers_completed || return
	victim=$(pgrep -P $running | head -n 1)
	"$BUILD/verbs-break" "$victim" ud error && grows "$work/$mode-c/n0.sock" barriers_completed || return
	destroyed "$victim" || return
	grep -q 'rank 0, .*NIC .* was stopped' "$work/out"
}

# --- IPv6

v6() {
	local index
	ip -6 addr add fd00:78::1/64 dev eth0 nodad
	for index in $(seq 0 20); do
		grep -q fd00:0078 "/sys/class/infiniband/$device/ports/1/gids/$index" && break
	done
	for mode in ud write; do
		nics v6-$mode gid=$index gid=$index && "$oracle" -i 50 "$work"/v6-$mode/n{0,1}.sock &&
			"$oracle" -i 20 "host:wire=verbs,gid=$index,mode=$mode,pull-us=20000" "$work/v6-$mode/n1.sock" || return
	done
	"$BUILD/nbar" stat "$work/v6-ud/n0.sock" | grep fd00:78::1
}

# Guests are slow: all modes if NBAR_MODES names them.
for mode in ${NBAR_MODES:-ud $suits}; do
	suite
	ok "$mode, in-process: barriers go on after a queue pair broke, and fail with the cause after it is destroyed" in_process
	end_processes
	times_broken=3
done
if [ "$NBAR_GUESTS" = 0 ]; then
	skip "a port that goes down, GIDs of IPv6" "the link and the addresses of this machine are left alone"
else
	ok "GIDs of IPv6" v6
fi
finish
