#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Errors of the wire "verbs": wrong options, ports, limits, groups of NICs that cannot talk to each
# other, and datagrams from strangers. Every refusal names the next step.
set -u
guests=1
. "$(dirname "$0")/lib.sh"
mode=ud

# refused TEXT KEYS [COMMAND...]: a daemon with these keys, started through COMMAND, ends and prints
# TEXT.
refused() {
	local text=$1 keys=$2 rc
	shift 2
	"$@" timeout 90 "$BUILD/nbar-nicd" --run-dir "$work/r" --nic "name=n0,wire=verbs$keys" >"$work/out" 2>&1
	rc=$?
	cat "$work/out"
	[ $rc = 1 ] || [ $rc = 2 ] || return
	grep -q -- "$text" "$work/out"
}

down() { # TEXT KEYS: the same while the link is down
	ip link set eth0 down
	refused "$@"
	local rc=$?
	ip link set eth0 up
	return $rc
}

# limited KILOBYTES COMMAND...: runs the command as root with this limit of locked memory, without
# the capability that lifts the limit.
limited() {
	local kb=$1
	shift
	setpriv --bounding-set -ipc_lock bash -c 'ulimit -l "$0" && exec "$@"' "$kb" "$@"
}

# no_group TEXT NIC NIC: a group of these two NICs is refused with TEXT.
no_group() {
	local text=$1
	shift
	! "$oracle" -i 1 "$@" >"$work/out" 2>&1 && cat "$work/out" && grep -q -- "$text" "$work/out"
}

garbage() {
	local address count
	address=$("$BUILD/nbar" stat "$work/a/n0.sock" | sed -n 's/.*address \(.*\)\/1:\([0-9]*\) ud,.*/\1 \2/p')
	"$BUILD/verbs-garbage" $address 20000 &
	"$oracle" -i 200 "$work/a/n0.sock" "$work/b/n0.sock" || return
	wait $! || return
	count=$(count_of "$work/a/n0.sock" frames_malformed)
	echo "malformed: $count, strangers: $(count_of "$work/a/n0.sock" frames_stranger)"
	[ "$count" -gt 1000 ] && "$oracle" -i 50 "$work/a/n0.sock" "$work/b/n0.sock"
}

ok "no such device: the message lists the devices" refused "there is: $device" ,device=nosuch
ok "no such port" refused "port=7: it goes from 1 to 1" ,port=7
ok "no such GID: the message names the last GID" refused "gid=200: .* no such GID, its last is" ,gid=200
ok "GID out of range" refused "gid=300: it goes from 0 to 255" ,gid=300
ok "an MTU that does not exist" refused "mtu=300: it is 256, 512" ,mtu=300
ok "an MTU above that of the port" refused "mtu=4096: it goes from 256 to 1024" ,mtu=4096
ok "no such mode" refused "mode=fast: it is ud, write, write-rc or write-uc" ,mode=fast
ok "inline is yes or no" refused "inline=maybe: it is yes or no" ,inline=maybe
ok "a service level out of range" refused "sl=16: it goes from 0 to 15" ,sl=16
if [ "$NBAR_GUESTS" -gt 0 ]; then
	ok "the port is down: the message says to bring its link up" down "is down; bring its link up" ",device=$device"
	ok "no port is up" down "no RDMA device has a port that is up ($device)" ""
fi
ok "the limit of locked memory is too low: the message says how to raise it" \
	refused "may lock too little memory: raise the limit (ulimit -l" "" limited 16

ok "a daemon in mode ud" nics a - mtu=256
ok "another daemon in mode ud" nics b -
ok "a NIC on UDP" daemon "$work/u" --nic name=n0,wire=udp,bind=127.0.0.1:0
mode=write-uc
ok "a daemon in mode write-uc" nics c -
mode=write-rc
ok "a daemon in mode write-rc" nics w -
# Like limited, for a daemon in the background: its pid is that of the background process, thanks to
# exec.
limited_itself() {
	local kb=$1
	shift
	exec setpriv --bounding-set -ipc_lock bash -c 'ulimit -l "$0" && exec "$@"' "$kb" "$@"
}
within="limited_itself 232" # all but the memory of connections
ok "a daemon that may lock 232 KB" nics l -
within=
ok "two MTUs: refused" no_group "different MTUs; .* mtu=" "$work/a/n1.sock" "$work/b/n0.sock"
ok "two modes: refused" no_group "different modes; give all the same mode=" "$work/a/n0.sock" "$work/w/n0.sock"
ok "two kinds of connections: refused" no_group "name mode=write-rc or mode=write-uc at both" "$work/c/n0.sock" "$work/w/n0.sock"
ok "another wire: refused" no_group "another kind of wire" "$work/a/n0.sock" "$work/u/n0.sock"
ok "values with an MTU of 256: refused" no_group "n1 carries no values: its MTU is 256 bytes; raise" \
	-v 8 "$work/a/n1.sock" "$work/a/n1.sock"
ok "no memory for a connection: the message says to raise the limit" \
	no_group "raise its process's limit (ulimit -l)" "$work/l/n0.sock" "$work/w/n0.sock"
ok "20,000 datagrams of garbage: barriers go on" garbage
finish
