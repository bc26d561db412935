#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers that programs in the kernel run: two daemons with the wire kernel, in two network namespaces
# joined by a veth pair; the oracle checks each barrier. With sleepers, late members, loss, a killed
# member, a killed daemon. Needs the right to load programs; skipped without it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
if ! has_wire kernel; then
	skip "kernel over veth" "this build has no wire kernel: apt-get install clang libbpf-dev"
	finish
elif ! in_namespaces; then
	skip "kernel over veth" "network namespaces are not permitted here (run as root)"
	finish
fi
oracle=$BUILD/oracle

here() {
	daemon "$work/a" --nic name=n0,wire=kernel,dev=va
}

there() {
	local within="nsenter -t $other -n" first_nic=n1
	daemon "$work/b" --nic name=n1,wire=kernel,dev=vb
}

# BARRIERS: of the barriers of n0, the daemon itself has run at most half: it takes the time of each.
in_kernel() {
	"$BUILD/nbar" stat "$work/a/n0.sock" >"$work/stat"
	awk -v wanted="$1" '$1 == "barriers_completed" { all = $2 } /^ *latency of/ { own = $3 }
		{ print } END { exit !(all >= wanted && 2 * own < all) }' "$work/stat"
}

each_alg() {
	local a
	for a in $(algs); do
		"$oracle" -i 300 -a "$a" "$work/a/n0.sock" "$work/b/n1.sock" || { echo "algorithm $a"; return 1; }
	done
}

# Of posts that leave the host (5 %), too: the programs have no part in these.
worse_wire() {
	nft -f - <<-'RULES'
		table netdev nbar {
			chain out {
				type filter hook egress device va priority 0;
				numgen random mod 100 < 5 drop
				numgen random mod 100 < 5 dup to va
			}
		}
	RULES
}

killed_member() {
	local main pid
	"$oracle" -i 100000000 "$work/a/n0.sock" "$work/b/n1.sock" >"$work/out" 2>&1 &
	main=$!
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

second_refused() {
	wants 1 "another NIC has interface va already" "$BUILD/nbar-nicd" --run-dir "$work/c" --nic wire=kernel,dev=va
}

ok "kernel: two network namespaces joined by veth" other_namespace
if ! here >"$work/began" && grep -q "take the programs.*not permitted\|attach a program" "$work/began"; then
	daemons=
	skip "kernel over veth" "$(grep -h "nic n0" "$work/began" | head -n 1)"
	finish
fi
ok "kernel: a daemon in the first" [ -S "$work/a/n0.sock" ]
ok "kernel: another daemon in the second" there
ok "kernel: ${ITERATIONS:=5000} barriers of 2" "$oracle" -i "$ITERATIONS" "$work/a/n0.sock" "$work/b/n1.sock"
ok "kernel: the programs have run most of them" in_kernel "$ITERATIONS"
ok "kernel: each algorithm" each_alg
ok "kernel: 500 barriers of hosts that sleep" env NBAR_WAIT=block "$oracle" -i 500 "$work/a/n0.sock" "$work/b/n1.sock"
ok "kernel: late members" "$oracle" -i 20 -d 10 "$work/a/n0.sock" "$work/b/n1.sock"
ok "kernel: 500 barriers of 4, two ports on each NIC" "$oracle" -i 500 -a dissemination:3 \
	"$work/a/n0.sock" "$work/a/n0.sock" "$work/b/n1.sock" "$work/b/n1.sock"
ok "kernel: a killed member is named" killed_member
ok "kernel: no datagram to the address of start sockets leaves the host" start_stays
ok "kernel: a second daemon on the interface is refused" second_refused
if command -v nft >/dev/null && worse_wire 2>/dev/null; then
	ok "kernel: 300 barriers of 2 with 5 % loss and 5 % duplicates" \
		"$oracle" -i 300 -a linear "$work/a/n0.sock" "$work/b/n1.sock"
	nft delete table netdev nbar
else
	skip "kernel: loss and duplicates" "no nftables with an egress hook here (apt-get install nftables)"
fi
kill -9 "$last_pid"
wait "$last_pid" 2>/dev/null
ok "kernel: after a killed daemon, the next one has the interface" there
ok "kernel: 500 barriers with it" "$oracle" -i 500 "$work/a/n0.sock" "$work/b/n1.sock"
finish
