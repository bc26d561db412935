#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that go on after a failure: a host or a whole machine is gone, a daemon was killed and
# started again, hosts and daemons were stopped for 5 s, a newer daemon replaces an older daemon.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
daemon_pid=() member_pid=()
meeting=0
nicd=$BUILD/nbar-nicd

nic() { # INDEX OPTION...
	local i=$1
	shift
	daemon "$work/run$i" --idle sleep "$@" --nic "name=n0,wire=udp,bind=127.0.0.1:0" || return 1
	daemon_pid[$i]=$last_pid
}

start_member() { # INDEX: starts a rejoin; descriptor 5 + INDEX writes to its stdin
	local fd=$((5 + $1))
	[ -p "$work/in-$1" ] || mkfifo "$work/in-$1"
	NBAR_RUN_DIR=$work/run$1 "$BUILD/rejoin" n0 <"$work/in-$1" >"$work/out-$1" 2>&1 &
	member_pid[$1]=$!
	pids="$pids $!"
	eval "exec $fd>'$work/in-$1'"
	said[$1]=0
}

# tell INDEX COMMAND: sends a command to a member, and does not wait for the answer.
said=(0 0 0)
tell() {
	echo "$2" >&$((5 + $1))
	said[$1]=$((said[$1] + 1))
}

# hears INDEX TEXT: the member's answer to its last command matches TEXT.
hears() {
	local i
	for i in $(seq 1200); do
		[ "$(wc -l <"$work/out-$1")" -ge "${said[$1]}" ] && break
		sleep 0.05
	done
	sed -n "${said[$1]}p" "$work/out-$1" >"$work/heard"
	echo "member $1: $(cat "$work/heard")"
	grep -qE -- "$2" "$work/heard"
}

all_hear() { # TEXT INDEX...
	local i rc=0 text=$1
	shift
	for i in "$@"; do
		hears "$i" "$text" || rc=1
	done
	return $rc
}

# group_of INDEX...: these members make a group and run a barrier.
group_of() {
	local i rank=0
	meeting=$((meeting + 1))
	mkdir "$work/meet$meeting"
	for i in "$@"; do
		tell "$i" "group $work/meet$meeting $rank $#"
		rank=$((rank + 1))
	done
	all_hear '^connected$' "$@" && barrier_of "$@"
}

barrier_of() {
	local i
	for i in "$@"; do
		tell "$i" barrier
	done
	all_hear '^complete$' "$@"
}

all_three() {
	start_member 0
	start_member 1
	start_member 2
	group_of 0 1 2
}

host_is_gone() {
	tell 0 barrier
	tell 1 barrier
	kill -KILL "${member_pid[2]}"
	wait "${member_pid[2]}"
	all_hear 'failed: .*rank 2 ended without closing it' 0 1
}

# Member 0 arrives after the daemon has ended, so that the barrier cannot complete before.
daemon_is_gone() {
	kill -STOP "${daemon_pid[1]}" # so its NIC sends no token for this barrier
	tell 1 barrier
	kill -KILL "${daemon_pid[1]}"
	wait "${daemon_pid[1]}"
	hears 1 'failed: .*its daemon at .* ended'
	local rc=$?
	tell 0 barrier
	hears 0 'failed: .*rank 1' && [ $rc = 0 ]
}

# The machine of member 2 is gone: its host and its daemon end at once, and send no message.
machine_is_gone() {
	tell 0 barrier
	tell 1 barrier
	kill -KILL "${daemon_pid[2]}" "${member_pid[2]}"
	wait "${daemon_pid[2]}" "${member_pid[2]}"
	all_hear 'failed: .*rank 2' 0 1
}

# A debugger may stop a host or a NIC for 5 s; the retry budget is the default, 8 s. On a machine
# that itself stops meanwhile, the stop may take longer: then a failure is no defect.
stopped_for_5_s() {
	local begin
	begin=$(date +%s%N)
	kill -STOP "${daemon_pid[0]}" "${member_pid[2]}"
	tell 0 barrier
	tell 1 barrier
	tell 2 barrier
	sleep 5
	kill -CONT "${daemon_pid[0]}" "${member_pid[2]}"
	if [ $(($(date +%s%N) - begin)) -gt 6500000000 ]; then
		echo "the stop took more than 6.5 s"
		all_hear . 0 1 2
		return
	fi
	all_hear '^complete$' 0 1 2 && barrier_of 0 1 2
}

newer() {
	sed 's/0\.1\.0/0.1.9/g' "$BUILD/nbar-nicd" >"$work/bin/nbar-nicd" && chmod +x "$work/bin/nbar-nicd" || return 1
	"$work/bin/nbar-nicd" --version
	"$work/bin/nbar-nicd" --version | grep -q '0\.1\.9' || return 1
	kill "${daemon_pid[0]}"
	wait "${daemon_pid[0]}" || return 1
	local BUILD=$work/bin
	nic 0
}

ok "three NICs" eval "nic 0 && nic 1 && nic 2"
ok "three members, a barrier" all_three
[ "$failures" = 0 ] || finish
ok "a host is killed: the errors of the others name its rank" host_is_gone
ok "the others make a smaller group at once" group_of 0 1
ok "a daemon is killed: the errors of its host and of the others say so" daemon_is_gone
ok "a new daemon starts in the same run directory" nic 1
ok "programs that ran all the time make a group on the new daemon" group_of 1 0
start_member 2
ok "a new process joins them" group_of 0 1 2
ok "a host and a daemon are stopped for 5 s: no member fails" stopped_for_5_s
mkdir "$work/bin"
ok "a newer daemon replaces a daemon" newer
ok "a program that had a port on the older daemon makes a group on the newer one" group_of 0 1 2
ok "a machine is gone: the errors of the others name its rank" machine_is_gone
ok "the others make a smaller group" group_of 1 0
exec 5>&- 6>&- 7>&-
finish
