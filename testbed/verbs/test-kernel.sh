#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The wire "kernel" over virtio_net, between two guests, with the kernels of Debian 12, which is too old for it, and of
# Debian 13. They need no RDMA device, but these tests start their guests as the others of this folder do.
set -u
if [ -z "${NBAR_RELEASE:-}" ]; then
	rc=0
	for NBAR_RELEASE in bookworm trixie; do
		NBAR_RELEASE=$NBAR_RELEASE "$0" || rc=1
	done
	exit $rc
fi
guests=2
. "$(dirname "$0")/lib.sh"
what="kernel $(uname -r)"
nic=name=n0,wire=kernel,dev=eth0

algorithms() {
	local a
	for a in $(algs); do
		across 2 -i 40 -a "$a" || { echo "algorithm $a"; return 1; }
	done
}

# The programs, not the daemon, have run most barriers.
in_programs() {
	ln -sfn /tmp/nicd "$work/a" && in_kernel 100
}

loss() {
	at each tc qdisc add dev eth0 root netem loss 5% && across 2 -i 100 -a linear
	local rc=$?
	at each tc qdisc del dev eth0 root
	return $rc
}

links() {
	KINDS="mtu9000 macvlan vlan bond" testbed/e2e/kernel-links.sh >"$work/links"
	local rc=$?
	cat "$work/links"
	[ $rc = 0 ] && ! grep SKIP "$work/links"
}

datagrams() {
	testbed/e2e/kernel-udp.sh >"$work/udp"
	local rc=$?
	cat "$work/udp"
	[ $rc = 0 ] && ! grep -v "loss and duplicates\|without Ethernet" "$work/udp" | grep SKIP
}

start_datagrams() {
	local k
	for k in 0 1; do
		at $k bash -c "$start" "$BUILD/nbar-nicd" $times --nic "$nic,bind=10.78.0.$((k + 1)):7000" || return 1
	done
}

refused() {
	wants 1 "Linux 6.6 or later" "$BUILD/nbar-nicd" --run-dir "$work/a" --nic "$nic" && [ "$(wc -l <"$work/err")" = 1 ]
}

if ! has_wire kernel; then
	skip "$what" "this build has no wire kernel: apt-get install clang libbpf-dev"
elif [ "$(printf '%s\n' 6.6 "$(uname -r)" | sort -V | head -n 1)" != 6.6 ]; then
	ok "$what: one line says which kernel is needed" refused
else
	ok "$what: a daemon in each guest" start_all "$nic"
	ok "$what: 300 barriers" across 2 -i 300
	ok "$what: the programs have run most of them" in_programs
	ok "$what: 300 with values, most by the programs if it takes them" values_by_programs across 2
	ok "$what: 100 with values that the daemon folds, and with others" across 2 -v 256 -i 100
	ok "$what: each algorithm" algorithms
	ok "$what: with 5 % loss" loss
	ok "$what: the daemons end" stop_all
	ok "$what: large frames, macvlan, VLAN, bond" links
	ok "$what: a daemon in each guest, with frames in datagrams" start_datagrams
	ok "$what: 300 barriers with them" across 2 -i 300
	ok "$what: the programs have run most of them" in_programs
	ok "$what: with 5 % loss" loss
	ok "$what: the daemons end" stop_all
	ok "$what: kernel-udp.sh" datagrams
fi
finish
