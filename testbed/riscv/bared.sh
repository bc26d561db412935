#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# NICs that are emulated RISC-V machines: barriers between a NIC of 64 and a NIC of 32 bits; bad
# clients and hosts; a bad wire; every way in which machine and host process end. Needs QEMU and the
# image, no privileges; skipped without them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
. testbed/riscv/lib.sh
need_machine
oracle=$BUILD/oracle
rounds=${NBAR_ROUNDS:-20}

says() { # FILE WORDS...: a line of FILE has all these words
	local file=$1
	shift
	cat "$file"
	grep -q "$*" "$file"
}

refuses() { # WORDS ARGUMENTS...: nbar-bared with ARGUMENTS ends with status 1 and prints WORDS
	local words=$1 rc
	shift
	timeout 100 "$BUILD/nbar-bared" --run-dir "$work/x" --wire "unix:$work/x0,$work/x1" "$@" 2>"$work/x.err"
	rc=$?
	cat "$work/x.err"
	[ $rc = 1 ] && grep -q "$words" "$work/x.err"
}

ok "no QEMU: the message says what to install" refuses "apt-get install qemu-system-misc" --qemu /nowhere/qemu
ok "no image: the message says how to get one" refuses "gcc-riscv64-unknown-elf" --image /nowhere/image
ok "QEMU ends at once: the message says so" refuses "QEMU ended with status 1" --qemu false

no_tags() {
	wants 2 "frames of this NIC cannot have tags" "$BUILD/nbar-bared" --key-file /nowhere/key
}
ok "a key file is refused" no_tags

# --- two NICs, one cable

barriers() { # ALGORITHM OPTIONS: barriers of 2 and of 4 members
	timeout 300 "$oracle" $2 -a "$1" -i "$rounds" "$work/a/n0.sock" "$work/b/n1.sock" &&
		timeout 300 "$oracle" $2 -a "$1" -i $((rounds / 2)) "$work/a/n0.sock" "$work/b/n1.sock" \
			"$work/a/n0.sock" "$work/b/n1.sock"
}

measured() {
	timeout 300 "$BUILD/nbar" bench --check --nic "$work/a/n0.sock" --nic "$work/b/n1.sock" --nodes 2,4 \
		--alg pairwise,dissemination:1 -i "$rounds" -x 2
}

counted() { # nbar stat shows wire, address and completed barriers, and no bad frame
	"$BUILD/nbar" stat "$work/a/n0.sock" >"$work/stat" || return 1
	cat "$work/stat"
	grep -q "wire virtio, address 02:00:00:00:00:01" "$work/stat" &&
		grep -qE "barriers_completed +[1-9]" "$work/stat" && ! grep -qE "frames_(bad|malformed)" "$work/stat"
}

ok "two machines, of 64 and of 32 bits, joined by datagram sockets" pair --ports 8
for alg in pairwise dissemination:1 dissemination:3 mcs tournament binomial linear custom; do
	ok "$rounds barriers, $alg" barriers $alg ""
done
ok "$rounds barriers by the hosts, over signals" barriers dissemination:1 -H
for bytes in 8 256; do
	ok "$rounds barriers with values of $bytes bytes" barriers auto "-v $bytes"
done
ok "$rounds barriers with values, binomial" barriers binomial "-v 64"
ok "a host posts another value: every host gets an error" timeout 300 "$oracle" -v 8 -w 1 -i 3 \
	"$work/a/n0.sock" "$work/b/n1.sock" "$work/b/n1.sock"
ok "nbar bench --check" measured
ok "nbar stat" counted

# --- bad clients and hosts

ok_from() { # COMMAND...: each test that the command prints in TAP is a test here
	"$@" >"$work/tap" 2>&1 </dev/null
	local rc=$? line
	while read -r line; do
		case $line in
		"ok "* | "not ok "*)
			count=$((count + 1))
			[ "${line%% *}" = not ] && failures=$((failures + 1))
			echo "${line%% [0-9]*} $count - ${line#*- }"
			;;
		1..*) ;;
		*) echo "$line" ;;
		esac
	done <"$work/tap"
	ok "$(basename "$1") ends well" [ $rc = 0 ]
}
# Both NICs: 8 ports, 16 groups and 32 connections each.
ok_from timeout 600 "$BUILD/adversary" "$work/both" 8 16 32

# --- ends

ends_of_machine() { # a barrier over both NICs; the machine of n1 is killed; the error names n1
	local rank0 rank1 rc
	"$oracle" -i 1000000 "$work/a/n0.sock" "$work/b/n1.sock" >"$work/killed" 2>&1 &
	rank0=$!
	for _ in $(seq 600); do
		"$BUILD/nbar" stat "$work/b/n1.sock" | grep -q "1/2 .*connected" && break
		sleep 0.1
	done
	kill -9 "$(machine_of "$bared_b")"
	wait "$rank0"
	rc=$?
	cat "$work/killed"
	[ $rc != 0 ] && grep -q "NIC n1" "$work/killed"
}

told() { # after that, nbar-bared has ended with the reason, and its socket is gone
	local rc
	wait "$bared_b"
	rc=$?
	cat "$work/b.err"
	[ $rc = 1 ] && grep -q "QEMU was killed by signal 9" "$work/b.err" && [ ! -e "$work/b/n1.sock" ]
}

no_process() { # PID: the process has ended, or soon ends; a zombie has ended
	for _ in $(seq 100); do
		grep -qs "^State:.*[^Z ] (" "/proc/$1/status" || return 0
		grep -q "^State:.Z" "/proc/$1/status" && return 0
		sleep 0.1
	done
	return 1
}

ends_together() { # the host process of n0 is killed: its machine ends, too
	local machine
	machine=$(machine_of "$bared_a")
	kill -9 "$bared_a"
	wait "$bared_a"
	[ -n "$machine" ] && no_process "$machine"
}

ends_well() {
	local machine rc
	machine=$(machine_of "$bared_a")
	end "$bared_a"
	rc=$?
	cat "$work/a.err"
	[ $rc = 0 ] && [ ! -e "$work/a/n0.sock" ] && no_process "$machine"
}

ok "QEMU is killed in a barrier: its host gets an error" ends_of_machine
ok "QEMU is killed: nbar-bared says so, and ends" told
ok "the other NIC goes on" "$oracle" -i 5 "$work/a/n0.sock" "$work/a/n0.sock"
ok "nbar-bared is killed: QEMU ends" ends_together

# --- a bad wire

relay() { # LOSS NOISE: starts the relay; both in percent of the frames
	"$BUILD/riscv-relay" "$work" "$1" "$2" 1 >"$work/relay" &
	relay_pid=$!
	pids="$pids $relay_pid"
	for _ in $(seq 100); do
		[ -S "$work/r1" ] && return 0
		sleep 0.1
	done
	return 1
}

worked() { # the relay has lost frames and added noise
	kill "$relay_pid"
	wait "$relay_pid"
	cat "$work/relay"
	! grep -q " 0 lost\| 0 times" "$work/relay"
}

recovered() { # NIC n0 has sent PULLs, and has dropped strange or malformed frames
	"$BUILD/nbar" stat --json "$work/a/n0.sock" >"$work/stat"
	cat "$work/stat"
	grep -qE '"pulls_sent": [1-9]' "$work/stat" && grep -qE '"frames_(stranger|malformed)": [1-9]' "$work/stat"
}

ok "a relay that loses 10 % of the frames and adds 10 % noise" relay 10 10
ok "two machines, joined by the relay" pair
ok "$((10 * rounds)) barriers, pairwise" timeout 300 "$oracle" -a pairwise -i $((10 * rounds)) "$work/a/n0.sock" "$work/b/n1.sock"
ok "$rounds barriers of 4, dissemination:1" timeout 300 "$oracle" -a dissemination:1 -i "$rounds" \
	"$work/a/n0.sock" "$work/b/n1.sock" "$work/a/n0.sock" "$work/b/n1.sock"
ok "$((10 * rounds)) barriers of 4 with values" timeout 300 "$oracle" -v 256 -i $((10 * rounds)) \
	"$work/a/n0.sock" "$work/b/n1.sock" "$work/a/n0.sock" "$work/b/n1.sock"
ok "a NIC asked for lost tokens and dropped noise" recovered
ok "the relay lost frames and added noise" worked
ok "SIGTERM: status 0, no socket, no machine left" ends_well
end "$bared_b"
rm -f "$work/r0" "$work/r1"

# --- a port belongs to a user

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

another_user() {
	chmod 711 "$work" "$work/a"
	as_nobody "$oracle" -i 1 "$work/a/n0.sock" || return 1
	"$oracle" -i 1 "$work/a/n0.sock" 2>"$work/refused" && return 1
	cat "$work/refused"
	grep -q "other users" "$work/refused" && as_nobody "$oracle" -i 1 "$work/a/n0.sock"
}

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && as_nobody test -x "$oracle"; then
	ok "a machine with one port, open to all" bared "$work/a" n0 --ports 1 --mode 0666 \
		--wire "unix:$work/w0,$work/w1"
	ok "the memory of its port is given to no second user" another_user
	end "$last_pid"
else
	skip "the memory of a port is given to no second user" "this needs root and setpriv"
fi
finish
