#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The system calls of the wire "verbs": between token and completion a NIC registers no memory,
# creates no object, and makes no system call except the provider's doorbell, which is a write to the
# device with soft RoCE. A host that spins makes no system call, except that it checks its control
# socket after every 256 polls. strace counts the calls that grow with the number of barriers.
set -u
guests=1
. "$(dirname "$0")/lib.sh"
times="--idle spin --pull-us 200000 --budget-ms 20000"
many=1000

# On some machines programs need a system call to read the clock; then it is permitted, too. In
# guests they need none.
clock=
grep -q tsc /sys/devices/system/clocksource/clocksource0/current_clocksource || [ "$NBAR_GUESTS" != 0 ] ||
	clock="|clock_gettime"

if ! command -v strace >/dev/null; then
	skip "system calls" "no strace here; on Debian: apt-get install strace"
	finish
fi

# barriers N: runs N barriers of two members at two NICs of the daemon. Leaves the system calls of
# the daemon's polling thread in daemon.N, and those of the oracle's processes in host.N.
barriers() {
	local n=$1 tracer rc
	strace -qq -p "$polling" -o "$work/daemon.$n" 2>"$work/strace" &
	tracer=$!
	soon grep -q "TracerPid:.$tracer" "/proc/$polling/status" || return
	NBAR_WAIT=spin strace -f -qq -o "$work/host.$n" "$oracle" -i "$n" "$work/$mode/n0.sock" "$work/$mode/n1.sock"
	rc=$?
	kill "$tracer"
	wait "$tracer"
	return $rc
}

calls() { # FILE: names and counts of calls, sorted by name
	sed -n 's/^[0-9 ]*\([a-z_0-9]*\)(.*/\1/p' "$1" | sort | uniq -c | awk '{ print $2, $1 }'
}

# grown daemon|host: prints the calls that are more frequent with $many barriers than with 100, by
# more than a tenth of $many.
grown() {
	calls "$work/$1.100" >"$work/few"
	calls "$work/$1.$many" | join -a 1 -e 0 -o 0,1.2,2.2 - "$work/few" |
		awk -v "n=$many" '$2 - $3 > n / 10 { print $1, $2 - $3 }'
}

traced() {
	barriers 100 && barriers $many
}

# The daemon's doorbell: command POST_SEND of uverbs, to a device of /dev/infiniband.
by_daemon() {
	local fds fd
	fds=$(for fd in /proc/"$polling"/fd/*; do
		case $(readlink "$fd") in /dev/infiniband/uverbs*) printf '%s|' "${fd##*/}" ;; esac
	done)
	grown daemon | grep '^write ' || return # or nothing has been traced
	echo "a barrier: $(grep -cE "^write\((${fds%|}), \"\\\\34\\\\0\\\\0\\\\0" "$work/daemon.$many") doorbells in $many barriers"
	! grown daemon | grep -vE "^(write$clock) " || return
	! grep '^write(' "$work/daemon.$many" | grep -vE "^write\((${fds%|}), \"\\\\34\\\\0\\\\0\\\\0" | sed -n '21,$p' | grep . || return
	! grep -E '^(ioctl|mmap|munmap|brk|openat)\(' "$work/daemon.$many"
}

# After every 256 polls without success a member checks whether its NIC lives: a slow barrier has
# some of these calls.
by_host() {
	[ "$(wc -l <"$work/host.$many")" -gt 100 ] || return # or nothing has been traced
	grown host
	! grown host | grep -vE "^(poll$clock) " &&
		! grep 'poll(' "$work/host.$many" | grep -vE ', 0(\) *=| <unfinished)' | sed -n '101,$p' | grep .
}

for mode in ud write; do
	ok "$mode: a daemon with two NICs" nics $mode - -
	[ "$failures" = 0 ] || finish
	polling=$last_pid
	ok "$mode: 100 and $many barriers under strace" traced
	ok "$mode: the only system call of the daemon is the device's doorbell" by_daemon
	ok "$mode: the only system call of hosts that spin checks whether the NIC lives" by_host
	end_processes
done
finish
