#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The wire "verbs" when its device has trouble: queue pairs with an error are recreated while
# barriers go on; if that is impossible, groups fail with the cause; the log shows that a port goes
# down and up. verbs-break breaks the queue pairs from outside.
set -u
guests=1
. "$(dirname "$0")/lib.sh"

times_broken=20 # in the first mode; less for the others

# begin WORDS...: endless barriers over these NICs, by oracle $running.
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

# grows NIC COUNTER: by more than 20.
grows() {
	soon grown "$1" "$2" $(($(count_of "$1" "$2") + 20)) || { cat "$work"/*.err "$work/out"; return 1; }
}

on() {
	grows "$work/$mode-a/n0.sock" barriers_completed
}

said() { # TEXT...: in the log of daemon a
	local text
	for text; do
		soon grep -q -- "$text" "$work/$mode-a.err" || { cat "$work/$mode-a.err"; return 1; }
	done
}

# Several times in a row, because the device reports the breaks in different ways. The breaks are
# within a second, so one message may stand for several.
broken() { # ud|line
	local i
	for i in $(seq $times_broken); do
		"$BUILD/verbs-break" "$a" "$1" error && on || return
	done
}

# The completion queue has room for all that the device reports about a broken queue pair.
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

# destroyed PID: destroys its queue pair of datagrams. The NIC notices that, at the latest when its
# connections break and it needs datagrams. Then all its groups fail, with the cause.
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
	ok "$mode: another with two NICs" nics $mode-b - -
	begin "$work/$mode-a/n0.sock" "$work/$mode-b/n0.sock"
	ok "$mode: barriers" on
	ok "$mode: the queue pair of datagrams breaks, and barriers go on" broken ud
	ok "$mode: the daemon says so" said "the queue pair was in an error and has been started again"
	if [ $mode != ud ]; then
		ok "$mode: connections break, and barriers go on" broken line
		ok "$mode: the daemon says so" said "the connection to queue pair [0-9]* broke"
		ok "$mode: there are new ones" lines_again
	fi
	ok "$mode: no completion queue ran over" held
	[ "$NBAR_GUESTS" = 0 ] || ok "$mode: the port goes down and comes up, and the daemon says so" down_and_up
	ok "$mode: a queue pair that cannot be made new: groups fail with the cause" gone
	ok "$mode: new groups are refused, and told why" no_new
	ok "$mode: other NICs go on" "$oracle" -i 20 "$work/$mode-b/n0.sock" "$work/$mode-b/n1.sock"
	end_processes
}

# --- an in-process NIC: its first member is the oracle's first child

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

for mode in ${NBAR_MODES:-ud write-rc write-uc}; do
	suite
	ok "$mode, in-process: the same" in_process
	end_processes
	times_broken=3
done
if [ "$NBAR_GUESTS" = 0 ]; then
	skip "a port that goes down, GIDs of IPv6" "the link and the addresses of this machine are left alone"
else
	ok "GIDs of IPv6" v6
fi
finish
