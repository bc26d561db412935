#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A daemon without work sleeps, with groups open or not: it takes next to no processor time. What wakes
# it: a host that posts, a frame, a request, a timer. Hosts that kick all the time wake it in vain.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
mkdir "$work/meet"

# Ticks of processor time of a process.
ticks() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

# idles PID...: in two of eight seconds of real time, each takes at most a tenth of it. A daemon on a busy
# machine may have something left to do.
idles() {
	local i good=0
	for i in 1 2 3 4 5 6 7 8; do
		idle_second "$@" && good=$((good + 1))
		[ $good -lt 2 ] || return 0
	done
	return 1
}

idle_second() {
	local pid before=() i=0 hz
	hz=$(getconf CLK_TCK)
	for pid; do before+=("$(ticks "$pid")"); done
	sleep 1
	for pid; do
		echo "process $pid: $(($(ticks "$pid") - before[i])) ticks of 1/$hz s"
		[ $(($(ticks "$pid") - before[i])) -le $((hz / 10)) ] || return 1
		i=$((i + 1))
	done
}

daemon "$work/ring" --nics 2 && ring=$last_pid || exit 1
for i in 0 1; do
	daemon "$work/udp$i" --nic "name=n0,wire=udp,bind=127.0.0.1:0" && udp[i]=$last_pid || exit 1
done
daemon "$work/shm" --nic "name=n0,wire=shm" --nic "name=n1,wire=shm" && shm=$last_pid || exit 1
ok "daemons without groups sleep" idles "$ring" "${udp[@]}" "$shm"

member() { # RUN_DIR NIC MEET RANK: a member; its stdin is the FIFO MEET/in-RANK
	mkdir -p "$3"
	mkfifo "$3/in-$4"
	NBAR_RUN_DIR=$1 "$BUILD/member" "$2" "$3" "$4" 2 <"$3/in-$4" >"$3/out-$4" 2>&1 &
	pids="$pids $!"
}

completes() { # MEET RANK EPOCH: within a minute
	local i
	for i in $(seq 600); do
		tail -n 1 "$1/out-$2" | grep -q "complete $3" && return 0
		sleep 0.1
	done
	cat "$1"/out-*
	return 1
}

# pair NAME RUN_DIR NIC RUN_DIR NIC: two members connect; then each of them in turn posts first, to a NIC
# that sleeps while it waits for the other.
pair() {
	local meet=$work/meet/$1 epoch
	member "$2" "$3" "$meet" 0
	member "$4" "$5" "$meet" 1
	exec 7>"$meet/in-0" 8>"$meet/in-1"
	for epoch in 1 2 3 4; do
		sleep 0.3 # the NICs sleep now
		echo >&$((7 + epoch % 2))
		sleep 0.3
		echo >&$((8 - epoch % 2))
		completes "$meet" 0 $epoch && completes "$meet" 1 $epoch || return 1
	done
}
ok "ring: a post wakes the daemon" pair ring "$work/ring" n0 "$work/ring" n1
ok "a daemon with an idle group sleeps" idles "$ring"
exec 7>&- 8>&-
ok "udp: a post and a frame wake the daemons" pair udp "$work/udp0" n0 "$work/udp1" n0
ok "daemons with an idle group sleep" idles "${udp[@]}"
ok "an early host waits, and both daemons sleep" eval 'echo >&7; sleep 0.5; idles "${udp[@]}"; rc=$?; echo >&8; [ $rc = 0 ]'
exec 7>&- 8>&-
ok "shm: a post wakes a daemon that naps" pair shm "$work/shm" n0 "$work/shm" n1
exec 7>&- 8>&-

# A client that kicks all the time, and one whose kick has a body, which is refused.
flood() {
	python3 - "$work/ring/n0.sock" "$(awk '/define NBAR_ABI_VERSION/ { print $3 + 0 }' firmware/include/nbar_abi.h)" <<-'END'
		import socket, struct, sys, time
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.connect(sys.argv[1])
		s.settimeout(60)
		magic, version = int.from_bytes(b"nbar", "little"), int(sys.argv[2])
		kick = struct.pack("=IHHII", magic, version, 14, 16, 0)
		end = time.monotonic() + 2
		while time.monotonic() < end:
		    s.send(kick)
		s.send(struct.pack("=IHHII", magic, version, 14, 20, 7) + b"body")
		reply = s.recv(4096)
		assert struct.unpack_from("=IHHIi", reply)[4] < 0, reply
		s.send(struct.pack("=IHHII", magic, version, 5, 16, 8))
		assert struct.unpack_from("=IHHIi", s.recv(4096))[4] == 0
	END
}
while_kicked() {
	flood & local pid=$!
	pair kicked "$work/ring" n0 "$work/ring" n1 && "$BUILD/nbar" stat --run-dir "$work/ring" n0 >"$work/stat"
	local rc=$?
	wait $pid && [ $rc = 0 ]
}
if python3 -c '' 2>/dev/null; then
	ok "a client kicks all the time: others get their barriers and answers" while_kicked
	exec 7>&- 8>&-
	ok "then the daemon sleeps again" idles "$ring"
else
	skip "a client that kicks all the time" "no python3"
fi

stops() { # SIGTERM ends a daemon that sleeps
	kill "$1" && wait "$1"
}
ok "SIGTERM wakes the daemon" stops "${udp[0]}"
finish
