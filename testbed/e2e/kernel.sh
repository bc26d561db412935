#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers that programs in the kernel run: two daemons with the wire kernel, in two network namespaces
# joined by a veth pair; the oracle checks each barrier. With sleepers, late members, loss, processes that
# stop or are killed, a host gone mad, forged frames, and a NIC on DPDK. Needs the right to load programs;
# skipped without it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh

goes_down_and_up() {
	ip link set va down && sleep 0.5 && ip link set va up
}

stops_and_goes_on() { # PID
	kill -STOP "$1" && sleep 0.7 && kill -CONT "$1"
}

# Neither the daemon that lent a group nor a host that stops is needed for what others do.
stopped_member() {
	stops_and_goes_on "$(pgrep -P "$main" | tail -n 1)"
}

mad_host() {
	"$BUILD/mad_host" "$work/a/n0.sock" 100000 &
	local mad=$!
	barriers -i 2000 && wait $mad && barriers -i 300
}

# Sends each token from vb to va again, with the number of the next barrier and one wrong field (each field in turn);
# and in other lengths.
forged() {
	nsenter -t "$other" -n python3 -c '
import random, socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("vb", 3))
va = bytes.fromhex(__import__("sys").argv[1].replace(":", ""))
print("listens", flush=True)
for n in range(100000):
    f, who = s.recvfrom(2048)
    if f[:6] != va or f[12:16] != b"\x88\xb5\2\1" or len(f) != 62:
        continue
    epoch = struct.unpack_from("<I", f, 34)[0] + 1
    for at, bits in (50, 7), (14, 1), (15, 3), (16, 1), (6, 4), (18, 1), (22, 7):
        g = bytearray(f)
        struct.pack_into("<I", g, 34, epoch)
        g[at] ^= bits
        s.send(g)
    s.send(f[:random.randrange(14, len(f))])
    s.send(va + f[6:14] + random.randbytes(60))
    print("forged", flush=True)
' "$(ip -o link show va | sed 's/.*ether //; s/ .*//')" >"$work/forged" 2>&1 &
	local forger=$!
	pids="$pids $forger"
	for _ in $(seq 100); do
		grep -qs listens "$work/forged" && break
		sleep 0.05
	done
	local rc=0
	for _ in $(seq 50); do
		barriers -i 1000 || rc=1
		[ "$(grep -c ^forged "$work/forged")" -le 100 ] || break
	done
	kill $forger
	wait $forger 2>/dev/null
	sort "$work/forged" | uniq -c
	[ $rc = 0 ] && [ "$(grep -c ^forged "$work/forged")" -gt 100 ]
}

# Of posts that leave the host (5 %), too: the programs have no part in these.
killed_member() {
	local pid
	begin -i 100000000
	sleep 1
	pid=$(pgrep -P "$main" | tail -n 1)
	kill -9 "$pid"
	! wait "$main"
	cat "$work/out"
	grep -q "ended without closing it" "$work/out"
}

# Datagrams to the address of start sockets, by another socket: too short, and as long as a post.
start_stays() {
	nsenter -t "$other" -n python3 -c '
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
s.settimeout(1)
print("listens", flush=True)
try:
    while True:
        if b"stranger" in s.recv(2048):
            exit("a datagram has left the host")
except TimeoutError:
    pass' >"$work/heard" 2>&1 &
	local listener=$!
	pids="$pids $listener"
	for _ in $(seq 100); do
		grep -qs listens "$work/heard" && break
		sleep 0.05
	done
	ip address add 192.0.2.1/24 dev va
	python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("192.0.2.1"))
for n in (1, 3):
    s.sendto(b"stranger" * n, ("224.0.0.115", 34997))'
	wait "$listener" || { cat "$work/heard"; return 1; }
}

# A daemon with four NICs, whose interfaces are joined by a bridge.
benched() {
	local i
	ip link add bridge0 type bridge && ip link set bridge0 up || return 1
	for i in 0 1 2 3; do
		ip link add "port$i" type veth peer name "nic$i" && ip link set "port$i" master bridge0 up &&
			ip link set "nic$i" up || return 1
	done
	local cpus=$(nproc)
	"$BUILD/nbar" bench --wire kernel,dev=nic% --where nic --nodes 2-4 -i 200 -x 20 --check --csv "$work/csv" &&
		[ "$(sed -n 's/^#@host_cpus=//p' "$work/csv" | tr , '\n' | wc -l)" = $((cpus < 64 ? cpus : 64)) ]
}

second_refused() {
	wants 1 "another NIC has interface va already" "$BUILD/nbar-nicd" --run-dir "$work/c" --nic wire=kernel,dev=va
}

# As root without capabilities.
unprivileged() {
	wants 1 "needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW" setpriv --inh-caps -all --bounding-set -all \
		"$BUILD/nbar-nicd" --run-dir "$work/c" --nic wire=kernel,dev=lo && [ "$(wc -l <"$work/err")" = 1 ]
}

af_packet_instead() {
	daemons_end && kernel_here && af_packet_there
}

kernel_or_skip "kernel over veth"
ok "kernel: ${ITERATIONS:=5000} barriers of 2" barriers -i "$ITERATIONS"
ok "kernel: the programs have run most of them" in_kernel "$ITERATIONS"
ok "kernel: each algorithm" each_alg
ok "kernel: 500 barriers of hosts that sleep" env NBAR_WAIT=block "$oracle" -i 500 "$work/a/n0.sock" "$work/b/n1.sock"
ok "kernel: late members" barriers -i 20 -d 10
ok "kernel: 300 barriers with values, most by the programs" values_by_programs barriers
ok "kernel: 300 with values that the daemon folds, and with others" barriers -v 256 -i 300
ok "kernel: 300 with values, of hosts that sleep" env NBAR_WAIT=block "$oracle" -v 64 -i 300 "$work/a/n0.sock" "$work/b/n1.sock"
ok "kernel: a value of another operation fails the group" barriers -v 8 -w 1 -i 50
ok "kernel: late members with values" barriers -v 64 -i 20 -d 10
ok "kernel: 500 barriers of 4, two ports on each NIC" "$oracle" -i 500 -a dissemination:3 \
	"$work/a/n0.sock" "$work/a/n0.sock" "$work/b/n1.sock" "$work/b/n1.sock"
ok "kernel: a plan too large for the programs runs in the daemon" "$oracle" -i 20 -a linear \
	$(for _ in $(seq 17); do echo "$work/a/n0.sock" "$work/b/n1.sock"; done)
ok "kernel: a killed member is named" killed_member
ok "kernel: a member stops for a while" meanwhile stopped_member
ok "kernel: a daemon stops for a while" meanwhile stops_and_goes_on "$here_pid"
ok "kernel: the interface goes down and up" meanwhile goes_down_and_up
ok "kernel: a host gone mad harms no other" mad_host
ok "kernel: forged frames complete nothing" forged
ok "kernel: no datagram to the address of start sockets leaves the host" start_stays
ok "kernel: nbar bench of up to four nodes, which leaves no processor to the daemon" benched
ok "kernel: a second daemon on the interface is refused" second_refused
ok "kernel: without capabilities, one line says which" unprivileged
if command -v nft >/dev/null && worse_wire 2>/dev/null; then
	ok "kernel: 300 barriers of 2 with 5 % loss and 5 % duplicates" barriers -i 300 -a linear
	ok "kernel: 300 with values, and loss" barriers -v 64 -i 300
	nft delete table netdev nbar
else
	skip "kernel: loss and duplicates" "no nftables with an egress hook here (apt-get install nftables)"
fi
ok "kernel: a daemon is killed amid barriers" killed_daemon
ok "kernel: the next one has the interface" kernel_there
ok "kernel: 500 barriers with it" barriers -i 500
if has_wire dpdk; then
	ok "kernel: a NIC on net_af_packet in the other namespace" af_packet_instead
	ok "kernel: each algorithm with it" each_alg
else
	skip "kernel: with a NIC on net_af_packet" "this build has no wire dpdk: apt-get install libdpdk-dev"
fi
finish
