#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers that programs in the kernel run with frames in UDP datagrams, as kernel.sh does with frames on
# Ethernet: of two such NICs, and with one of wire udp; through a router; and where a neighbour changes. Needs the
# right to load programs; skipped without it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh

there() { # COMMAND...
	nsenter -t "$other" -n "$@"
}

# INTERFACE ADDRESS INTERFACE ADDRESS OPTION...: new daemons, here and there.
both() {
	daemons_end && kernel_here "$1,bind=$2:7000" "${@:5}" && kernel_there "$3,bind=$4:7000" "${@:5}"
}

both_6() {
	ip address add 2001:db8::1/64 dev va nodad && there ip address add 2001:db8::2/64 dev vb nodad &&
		both va "[2001:db8::1]" vb "[2001:db8::2]"
}

# A daemon there, whose NIC has the wire udp.
udp_there() {
	daemons_end && kernel_here va,bind=192.0.2.1:7000 || return 1
	local within="nsenter -t $other -n" first_nic=n1
	daemon "$work/b" --nic name=n1,wire=udp,bind=192.0.2.2:7000
}

addresses() {
	ip link set lo up && ip address add 192.0.2.1/24 dev va &&
		there ip link set lo up && there ip address add 192.0.2.2/24 dev vb
}

# By the programs, as n0 has not run them itself.
barriers_in_kernel() {
	local before=$(by_daemon)
	barriers "$@" -i 1000 || return 1
	[ $(($(by_daemon) - before)) -lt 500 ] || { echo "the daemon has run $(by_daemon) barriers"; return 1; }
}

moves() {
	there ip link set vb down && there ip link set vb address 02:00:00:00:00:77 && there ip link set vb up
}

moves_meanwhile() {
	begin -i 200 -d 10
	sleep 0.3
	moves && kill -0 "$main" && wait "$main" || { cat "$work/out"; return 1; }
}

# The network there is behind a router.
routed() {
	unshare -n sleep infinity &
	local router=$! i
	pids="$pids $router"
	for _ in $(seq 100); do
		[ "$(readlink /proc/$router/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
		sleep 0.05
	done
	ip link add wa type veth peer name ra netns $router && ip link add wb netns "$other" type veth peer name rb netns $router || return 1
	ip address add 198.51.100.1/24 dev wa && ip link set wa up && there ip address add 203.0.113.1/24 dev wb &&
		there ip link set wb up || return 1
	for i in "a 198.51.100" "b 203.0.113"; do
		nsenter -t $router -n ip address add "${i#* }.254/24" dev "r${i% *}" && nsenter -t $router -n ip link set "r${i% *}" up || return 1
	done
	nsenter -t $router -n sysctl -qw net.ipv4.ip_forward=1 && ip route add 203.0.113.0/24 via 198.51.100.254 &&
		there ip route add 198.51.100.0/24 via 203.0.113.254 && both wa 198.51.100.1 wb 203.0.113.1 --budget-ms 2000 && barriers_in_kernel
}

# Its frames leave by va, but its programs are on wa.
other_interface() {
	both wa 192.0.2.1 vb 192.0.2.2 && grep -q "192.0.2.1:7000 is not an address of wa" "$work/a.err" &&
		barriers -i 300 && [ "$(by_daemon)" -ge 300 ]
}

# Through an interface of a VLAN: by the programs on it, but not by those on the interface below.
vlan() {
	ip link add link va name xa type vlan id 7 && ip address add 203.0.113.129/30 dev xa && ip link set xa up &&
		there ip link add link vb name xb type vlan id 7 && there ip address add 203.0.113.130/30 dev xb &&
		there ip link set xb up && both xa 203.0.113.129 xb 203.0.113.130 && barriers_in_kernel &&
		both va 203.0.113.129 vb 203.0.113.130 && barriers -i 300 && [ "$(by_daemon)" -ge 300 ]
}

no_ethernet() {
	wants 1 "tn: it has no Ethernet headers" "$BUILD/nbar-nicd" --run-dir "$work/c" --nic wire=kernel,dev=tn,bind=192.0.2.1:7000
}

strange_address() {
	wants 1 "bind=192.0.2.77:7000: Cannot assign requested address" "$BUILD/nbar-nicd" --run-dir "$work/c" \
		--nic wire=kernel,dev=wa,bind=192.0.2.77:7000
}

kernel_or_skip "kernel-udp over veth"
ok "kernel-udp: addresses" addresses
ok "kernel-udp: daemons with frames in datagrams" both va 192.0.2.1 vb 192.0.2.2
ok "kernel-udp: ${ITERATIONS:=5000} barriers of 2" barriers -i "$ITERATIONS"
ok "kernel-udp: the programs have run most of them" in_kernel "$ITERATIONS"
ok "kernel-udp: each algorithm" each_alg
ok "kernel-udp: 500 barriers of hosts that sleep" env NBAR_WAIT=block "$oracle" -i 500 "$work/a/n0.sock" "$work/b/n1.sock"
ok "kernel-udp: late members" barriers -i 20 -d 10
ok "kernel-udp: 300 barriers with values, most by the programs" values_by_programs barriers
ok "kernel-udp: 300 with values that the daemon folds, and with others" barriers -v 256 -i 300
ok "kernel-udp: 500 barriers of 4, two ports on each NIC" "$oracle" -i 500 -a dissemination:3 \
	"$work/a/n0.sock" "$work/a/n0.sock" "$work/b/n1.sock" "$work/b/n1.sock"
ok "kernel-udp: the other NIC gets another MAC address" moves_meanwhile
ok "kernel-udp: 1000 barriers with it" barriers_in_kernel
if command -v nft >/dev/null && worse_wire 2>/dev/null; then
	ok "kernel-udp: 300 barriers of 2 with 5 % loss and 5 % duplicates" barriers -i 300 -a linear
	ok "kernel-udp: 100 with values, and loss" barriers -v 64 -i 100
	nft delete table netdev nbar
else
	skip "kernel-udp: loss and duplicates" "no nftables with an egress hook here (apt-get install nftables)"
fi
ok "kernel-udp: a NIC of wire udp in the other namespace" udp_there
ok "kernel-udp: 1000 barriers with it, most by the programs" barriers_in_kernel
ok "kernel-udp: each algorithm with it" each_alg
ok "kernel-udp: 300 with values and with it, most by the programs" values_by_programs barriers
ok "kernel-udp: daemons with frames over IPv6" both_6
ok "kernel-udp: 1000 barriers over IPv6, most by the programs" barriers_in_kernel
ok "kernel-udp: 300 with values over IPv6, most by the programs" values_by_programs barriers
ok "kernel-udp: through a router" routed
ok "kernel-udp: a daemon is killed amid barriers" killed_daemon
ok "kernel-udp: what leaves by another interface stays with the daemon" other_interface
if ip link add link va name xc type vlan id 8 2>"$work/err"; then
	ok "kernel-udp: through a VLAN" vlan
else
	skip "kernel-udp: through a VLAN" "$(head -n 1 "$work/err")"
fi
daemons_end
ok "kernel-udp: an address of another host is refused" strange_address
if ip tuntap add dev tn mode tun 2>"$work/err"; then
	ok "kernel-udp: an interface without Ethernet headers is refused" no_ethernet
else
	skip "kernel-udp: an interface without Ethernet headers" "$(head -n 1 "$work/err")"
fi
finish
