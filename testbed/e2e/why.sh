#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Why a barrier hangs, in a group of two: rank 1 is late, stopped, or has ended; its NIC is stopped; the
# own NIC of rank 0 is stopped. `nbar stat --why` and the text after a time limit give the reason.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
mkdir "$work/meet"
daemon_pid=() member_pid=()

nic() { # INDEX: starts a daemon; its retry budget is so long that no member fails in this test
	daemon "$work/run$1" --idle sleep --budget-ms 30000 --nic "name=n0,wire=udp,bind=127.0.0.1:0" || return 1
	daemon_pid[$1]=$last_pid
}

member() { # RANK: starts a member; its stdin is the FIFO in-RANK
	mkfifo "$work/in-$1"
	NBAR_RUN_DIR=$work/run$1 "$BUILD/member" n0 "$work/meet" "$1" 2 <"$work/in-$1" >"$work/out-$1" 2>&1 &
	member_pid[$1]=$!
	pids="$pids $!"
}

# Waits until a command succeeds, for a minute at most.
soon() {
	local i
	for i in $(seq 600); do
		"$@" >"$work/seen" 2>&1 && return 0
		sleep 0.1
	done
	cat "$work/seen" "$work"/out-*
	return 1
}

said() { # RANK TEXT: the last line of this member matches TEXT
	tail -n 1 "$work/out-$1"
	tail -n 1 "$work/out-$1" | grep -qE -- "$2"
}

why() { # INDEX TEXT: nbar stat --why of the only group of this NIC prints TEXT
	"$BUILD/nbar" stat --run-dir "$work/run$1" --why 0 >"$work/why"
	cat "$work/why"
	grep -qE -- "$2" "$work/why"
}

connected() {
	member 0
	member 1
	exec 7>"$work/in-0" 8>"$work/in-1"
	soon said 0 connected && soon said 1 connected
}

late() {
	echo >&7
	soon why 0 '^  rank 1: late for [0-9.]+ s$' && soon why 1 '^  rank 1: late for .* host of this NIC' &&
		soon said 0 'rank 1 \(late for [0-9.]+ s\) has not arrived'
}

stopped() {
	kill -STOP "${member_pid[1]}"
	soon why 0 '^  rank 1: process stopped, late for' && soon why 1 '^  rank 1: process stopped.* host of this NIC' &&
		soon said 0 'rank 1 \(process stopped, late for [0-9.]+ s\) has not arrived'
}

goes_on() {
	kill -CONT "${member_pid[1]}"
	soon why 0 '^  rank 1: late for'
}

silent() {
	kill -STOP "${daemon_pid[1]}"
	soon why 0 '^  rank 1: NIC silent for' && soon said 0 'rank 1 \(NIC silent for [0-9.]+ s\) has not arrived'
	local rc=$?
	kill -CONT "${daemon_pid[1]}"
	[ $rc = 0 ] && soon why 0 '^  rank 1: late for'
}

own_nic() {
	kill -STOP "${daemon_pid[0]}"
	soon said 0 "NIC n0 of this host has not run for [0-9.]+ s: its daemon, process ${daemon_pid[0]}, is stopped"
	local rc=$?
	kill -CONT "${daemon_pid[0]}"
	[ $rc = 0 ] && soon said 0 'rank 1 \(late for'
}

completes() {
	echo >&8
	soon said 0 'complete 1' && soon said 1 'complete 1' && soon why 0 'idle'
}

ended() {
	echo >&7
	soon why 0 '^  rank 1: late for'
	kill -KILL "${member_pid[1]}"
	soon said 0 'rank 1 ended without closing it' && ! wait "${member_pid[0]}"
}

no_such_group() {
	! "$BUILD/nbar" stat --run-dir "$work/run0" --why 77 >"$work/told" 2>&1 && grep -q 'no group 77' "$work/told"
}

ok "a NIC" nic 0
ok "another NIC" nic 1
ok "two members connect" connected
[ "$failures" = 0 ] || finish
ok "a late host: named at the NIC that waits and at its own NIC" late
ok "a stopped process: called stopped, not only late" stopped
ok "the process continues: called late again" goes_on
ok "a stopped NIC: called silent, and its host not called late" silent
ok "a stopped own NIC: the text says so" own_nic
ok "no member has failed: the barrier completes" completes
ok "a process that ended: named" ended
ok "a group that does not exist: refused with a message" no_such_group
exec 7>&- 8>&-
finish
