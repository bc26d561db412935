#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Four daemons on UDP, and jobs over them under every fault, for TORTURE seconds (60) and at least one
# round: loss up to 30 %, a partition, junk as fast as a socket takes it, hosts and daemons stopped for
# 5 s, hosts and daemons killed, daemons restarted. After each fault a job succeeds, and all ports and
# groups are given back. At the end, the daemon that ran all the time has not grown by more than
# GROWTH_KIB. Needs no privileges.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
unset NBAR_NIC NBAR_WAIT
TORTURE=${TORTURE:-60}
if [ -n "${SAN:-}" ]; then
	skip "torture" "lossy.so cannot be loaded in front of a sanitizer"
	finish
fi
GROWTH_KIB=512 # permitted growth of a daemon
daemon_pid=() port=() nics=()
lossy=$work/lossy
printf '\0\0\0\0\0\0\0\0' >"$lossy"

nic() { # INDEX: starts a daemon, on the same UDP port each time
	local within="env LD_PRELOAD=$BUILD/lossy.so LOSSY_FILE=$lossy"
	daemon "$work/run$1" --idle sleep --nic "name=n0,wire=udp,bind=127.0.0.1:${port[$1]:-0}" || return 1
	daemon_pid[$1]=$last_pid
	port[$1]=$(sed -nE 's/.* address [0-9.]+:([0-9]+),.*/\1/p' "$work/run$1.out")
	nics[$1]=$work/run$1/n0.sock
}

word() { # INDEX: prints a word of the file of lossy.c
	od -An -t u4 -j $((4 * $1)) -N 4 "$lossy" | tr -d ' '
}

lose() { # PERCENT
	printf "\\x$(printf %x "$1")" | dd of="$lossy" conv=notrunc status=none
}

all_back() {
	local _ i
	for _ in $(seq 1200); do
		for i in 0 1 2 3; do
			"$BUILD/nbar" stat "${nics[$i]}"
		done >"$work/stat" 2>&1
		[ "$(grep -c 'ports 0, groups 0' "$work/stat")" = 4 ] && return 0
		sleep 0.05
	done
	cat "$work/stat"
	return 1
}

job() { # BARRIERS
	timeout -k 5 300 "$BUILD/oracle" -i "$1" "${nics[@]}"
}

# Starts a job in the background without end; waits until it has a group on each daemon.
job_begin() {
	"$BUILD/oracle" -i 1000000000 "${nics[@]}" >"$work/job" 2>&1 &
	job_pid=$!
	pids="$pids $job_pid"
	local _ i
	for _ in $(seq 1200); do
		for i in 0 1 2 3; do
			"$BUILD/nbar" stat "${nics[$i]}"
		done >"$work/stat" 2>&1
		[ "$(grep -c 'ports 1, groups 1' "$work/stat")" = 4 ] && return 0
		sleep 0.05
	done
	cat "$work/stat" "$work/job"
	return 1
}

completed() { # prints how many barriers the first NIC has completed
	"$BUILD/nbar" stat "${nics[0]}" | awk '$1 == "barriers_completed" { print $2 }'
}

# The job in the background goes on: 10 more barriers complete.
job_goes_on() {
	local before _
	before=$(completed)
	for _ in $(seq 1200); do
		[ "$(completed)" -ge $((${before:-0} + 10)) ] && return 0
		kill -0 "$job_pid" || break
		sleep 0.05
	done
	cat "$work/job"
	return 1
}

job_end() {
	kill -KILL "$job_pid"
	wait "$job_pid" 2>/dev/null
	all_back
}

# The job in the background fails, with a text that names a rank or a NIC.
job_fails() {
	timeout 120 tail --pid="$job_pid" -f /dev/null || { echo "the job hangs"; return 1; }
	wait "$job_pid"
	local rc=$?
	cat "$work/job"
	[ $rc = 1 ] && grep -qE 'rank [0-9]|NIC ' "$work/job"
}

loss() { # PERCENT BARRIERS
	local before rc
	before=$(word 1)
	lose "$1"
	job "$2"
	rc=$?
	lose 0
	echo "$(($(word 1) - before)) frames lost"
	[ $rc = 0 ] && [ "$(word 1)" -gt "$before" ] && all_back
}

partition() { # shorter than the retry budget
	local rc
	job_begin || return 1
	lose 100
	sleep 3
	lose 0
	job_goes_on
	rc=$?
	job_end && return $rc
}

stopped() { # PID
	local rc
	kill -STOP "$1"
	sleep 5
	kill -CONT "$1"
	job_goes_on
	rc=$?
	job_end && return $rc
}

stopped_daemon() {
	job_begin && stopped "${daemon_pid[$1]}"
}

host() { # INDEX: prints the pid of this member of the job
	pgrep -P "$job_pid" | sed -n "$(($1 + 1))p"
}

stopped_host() {
	job_begin && stopped "$(host "$1")"
}

killed_host() {
	job_begin && kill -KILL "$(host "$1")" && job_fails && all_back && job 20
}

killed_daemon() {
	job_begin || return 1
	kill -KILL "${daemon_pid[$1]}"
	wait "${daemon_pid[$1]}" 2>/dev/null
	job_fails && nic "$1" && all_back && job 20
}

restarted() {
	kill "${daemon_pid[$1]}"
	wait "${daemon_pid[$1]}" || return 1
	nic "$1" && job 20 && all_back
}

junk='
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ports = [int(p) for p in sys.argv[1:]]
frame = [os.urandom(n) for n in (0, 1, 8, 32, 40, 64, 512, 1400)]
n = 0
end = time.monotonic() + 3
while time.monotonic() < end:
    for f in frame:
        for p in ports:
            s.sendto(f, ("127.0.0.1", p))
            n += 1
print(n, "frames of junk")
'

flooded() {
	local rc
	job_begin || return 1
	python3 -c "$junk" "${port[@]}" && job_goes_on
	rc=$?
	job_end && return $rc
}

memory() { # INDEX
	awk '/^VmRSS/ { print $2 }' "/proc/${daemon_pid[$1]}/status"
}

descriptors() {
	ls "/proc/${daemon_pid[$1]}/fd" | wc -l
}

flat() {
	echo "descriptors $had_descriptors, then $(descriptors 0); memory $had_memory KiB, then $(memory 0)"
	[ "$(descriptors 0)" -le "$had_descriptors" ] && [ "$(memory 0)" -le $((had_memory + GROWTH_KIB)) ]
}

# No round kills or restarts daemon 0: its descriptors and memory can be compared between rounds.
round() {
	local percent victim=$((1 + $1 % 3))
	for percent in 1 5 10 20 30; do
		ok "round $1: $percent % loss: barriers complete" loss $percent 40
	done
	ok "round $1: a partition of 3 s: the job goes on" partition
	ok "round $1: junk for 3 s: the job goes on" flooded
	ok "round $1: a daemon is stopped for 5 s: the job goes on" stopped_daemon $victim
	ok "round $1: a host is stopped for 5 s: the job goes on" stopped_host $victim
	ok "round $1: a host is killed: the job fails with the reason, and the next job succeeds" killed_host $victim
	ok "round $1: a daemon is killed and started again: the job fails with the reason, and the next job succeeds" \
		killed_daemon $victim
	ok "round $1: a daemon is restarted between two jobs" restarted $victim
}

ok "four daemons" eval "nic 0 && nic 1 && nic 2 && nic 3"
ok "a job without faults" job 200
[ "$failures" = 0 ] || finish
end=$((SECONDS + TORTURE))
for ((n = 0; n == 0 || SECONDS < end; n++)); do
	round $n
	if [ $n = 0 ]; then
		had_descriptors=$(descriptors 0)
		had_memory=$(memory 0)
	fi
done
ok "after $n rounds, daemon 0 has no more descriptors and memory than after the first" flat
finish
