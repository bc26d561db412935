#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers over a real Ethernet wire: two daemons on DPDK's net_af_packet, in two network namespaces
# joined by a veth pair, each barrier checked by the oracle; then with loss and duplication made by
# nftables. Needs root or user namespaces; skipped aloud without.
# Everything it makes lives in namespaces of its own and goes with them.
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ -z "${NBAR_INSIDE:-}" ]; then
	export NBAR_INSIDE=1
	for how in "unshare -nm" "unshare -Urnm"; do
		$how ip link show >/dev/null 2>&1 && exec $how "$0"
	done
	echo "ok 1 - dpdk over veth # SKIP network namespaces are not permitted here (run as root)"
	echo "1..1"
	exit 0
fi
. testbed/e2e/lib.sh
oracle=$BUILD/oracle
within=

other_namespace() {
	unshare -n sleep 600 &
	other=$!
	pids="$pids $other"
	for _ in $(seq 100); do
		[ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
		sleep 0.05
	done
	ip link add va type veth peer name vb netns $other &&
		ip link set va up && nsenter -t $other -n ip link set vb up
}

second_daemon() {
	within="nsenter -t $other -n"
	first_nic=n1 daemon "$work/b" --nic name=n1,wire=dpdk,dev=net_af_packet0 \
		-- --vdev=net_af_packet0,iface=vb
}

frames() { # the tokens of so many barriers went over this wire: one each way
	awk -v wanted="$1" '$1 == "va:" { found = $11 >= wanted } END { exit !found }' /proc/net/dev
}

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

recovered() { # what was lost was asked for again, what came twice was counted
	"$BUILD/nbar" stat --json "$work/b/n1.sock" >"$work/stat"
	grep -qE '"pulls_sent": [1-9]' "$work/stat" && grep -qE '"tokens_(duplicate|stale)": [1-9]' "$work/stat"
}

ok "dpdk: two network namespaces joined by veth" other_namespace
ok "dpdk: a daemon on net_af_packet in the first" daemon "$work/a" \
	--nic name=n0,wire=dpdk,dev=net_af_packet0 -- --vdev=net_af_packet0,iface=va
ok "dpdk: another in the second" second_daemon
within=
ok "dpdk: ${ITERATIONS:=5000} barriers of 2" "$oracle" -i "$ITERATIONS" "$work/a/n0.sock" "$work/b/n1.sock"
ok "dpdk: at least as many frames on the wire" frames "$ITERATIONS"
ok "dpdk: 2,000 barriers of 4, two ports a NIC" "$oracle" -i 2000 -a dissemination:3 \
	"$work/a/n0.sock" "$work/a/n0.sock" "$work/b/n1.sock" "$work/b/n1.sock"
if command -v nft >/dev/null && worse_wire 2>/dev/null; then
	# Linear: rank 0 has nothing to send before it has heard of rank 1. In an exchange it would send
	# its next token, and the kernel with it the one that was dropped: no need to ask for it.
	ok "dpdk: 1,000 barriers of 2 with 5 % loss and 5 % duplicates" \
		"$oracle" -i 1000 -a linear "$work/a/n0.sock" "$work/b/n1.sock"
	ok "dpdk: lost tokens were pulled, second ones dropped" recovered
else
	skip "dpdk: loss and duplicates" "no nftables with an egress hook here (apt-get install nftables)"
fi
finish
