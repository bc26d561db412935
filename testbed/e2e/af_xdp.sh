#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers over AF_XDP: two daemons on DPDK's net_af_xdp, in two network namespaces joined by a veth
# pair, each barrier checked by the oracle. The test sends several times as many frames as the pool
# has buffers and the kernel's rings have entries. Needs real root, not root of a user namespace,
# because it loads a program into the kernel.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
if ! has_wire dpdk; then
	skip "af_xdp over veth" "this build has no wire dpdk: apt-get install libdpdk-dev"
	finish
elif [ "$(awk '{ print $3 }' /proc/self/uid_map)" != 4294967295 ] || ! in_namespaces; then
	skip "af_xdp over veth" "network namespaces with programs in the kernel are not permitted here (run as root)"
	finish
fi
if ! grep -q ' xsk_' /proc/kallsyms; then
	skip "af_xdp over veth" "this kernel was built without AF_XDP (CONFIG_XDP_SOCKETS)"
	finish
fi
oracle=$BUILD/oracle
# libxdp frees its memory only when the process ends: this is no leak of nbar.
echo leak:xsk_umem__create >"$work/leaks"
export LSAN_OPTIONS=suppressions=$work/leaks:print_suppressions=0
within_other=

af_xdp() { # DIRECTORY NIC INTERFACE
	first_nic=$2 within=$within_other daemon "$work/$1" --nic "name=$2,wire=dpdk,dev=net_af_xdp0" -- \
		"--vdev=net_af_xdp0,iface=$3"
}

ok "af_xdp: two network namespaces joined by veth" other_namespace
ok "af_xdp: a daemon on net_af_xdp in the first" af_xdp a n0 va
within_other="nsenter -t $other -n"
ok "af_xdp: another daemon in the second" af_xdp b n1 vb
ok "af_xdp: 10,000 barriers of 2" "$oracle" -i 10000 "$work/a/n0.sock" "$work/b/n1.sock"
ok "af_xdp: 2,000 barriers of 4, two ports on each NIC" "$oracle" -i 2000 -a dissemination:3 \
	"$work/a/n0.sock" "$work/a/n0.sock" "$work/b/n1.sock" "$work/b/n1.sock"
finish
