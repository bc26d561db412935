#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A group over two RISC-V NICs, of 64 and of 32 bits, and a soft NIC on DPDK. A bridge joins a TAP
# interface for each machine and one end of a veth pair; the soft NIC uses the other end
# (net_af_packet). Needs root or user namespaces, and /dev/net/tun; skipped without them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
. testbed/riscv/lib.sh
need_machine
if ! in_namespaces; then
	skip "RISC-V NICs and a soft NIC in one network" "network namespaces are not permitted here (run as root)"
	finish
fi

network() {
	ip link add name bridge0 type bridge && ip link set bridge0 up &&
		ip link add va type veth peer name vb && ip link set vb master bridge0 &&
		ip link set va up && ip link set vb up || return 1
	for tap in tap0 tap1; do
		ip tuntap add dev $tap mode tap && ip link set $tap master bridge0 && ip link set $tap up || return 1
	done
}

if [ ! -c /dev/net/tun ] || ! network 2>"$work/why"; then
	skip "RISC-V NICs and a soft NIC in one network" "no TAP interfaces here: $(tail -n 1 "$work/why" 2>/dev/null)"
	finish
fi

machines() {
	bared "$work/m0" n0 --wire tap:tap0 && bared "$work/m1" n1 $BITS_32 --wire tap:tap1
}

soft() {
	first_nic=n2 daemon "$work/s" --pull-us 20000 --nic name=n2,wire=dpdk,dev=net_af_packet0 -- \
		--vdev=net_af_packet0,iface=va
}

barriers() { # ALGORITHM OPTIONS...
	timeout 300 "$BUILD/oracle" -i 20 -a "$@" "$work/m0/n0.sock" "$work/s/n2.sock" "$work/m1/n1.sock"
}

ok "two RISC-V NICs on TAP interfaces" machines
ok "a soft NIC on net_af_packet" soft
for alg in dissemination:1 pairwise linear; do
	ok "20 barriers of all three, $alg" barriers $alg
done
for bytes in 8 256; do
	ok "20 barriers of all three with values of $bytes bytes" barriers auto -v $bytes
done
ok "the soft NIC's host posts another value: every host gets an error" barriers auto -v 8 -w 1
finish
