#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers over Ethernet: two daemons on DPDK's net_af_packet, in two network namespaces joined by a
# veth pair; the oracle checks each barrier. Then with loss and duplication made by nftables. Needs
# root or user namespaces; skipped without them. All that the test makes is in its own namespaces, and
# vanishes with them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
if ! has_wire dpdk; then
	skip "dpdk over veth" "this build has no wire dpdk: apt-get install libdpdk-dev"
	finish
elif ! in_namespaces; then
	skip "dpdk over veth" "network namespaces are not permitted here (run as root)"
	finish
fi
oracle=$BUILD/oracle

frames() { # BARRIERS: at least one frame per barrier left through interface va
	awk -v wanted="$1" '$1 == "va:" { found = $11 >= wanted } END { exit !found }' /proc/net/dev
}

recovered() { # NICs have sent PULLs, and counted duplicates
	"$BUILD/nbar" stat --json "$work/b/n1.sock" >"$work/stat"
	grep -qE '"pulls_sent": [1-9]' "$work/stat" && grep -qE '"tokens_(duplicate|stale)": [1-9]' "$work/stat"
}

named() { # by its device and its MAC address
	local mac=$(ip -o link show va | sed 's/.*ether //; s/ .*//')
	grep -i "^nic n0 ready: .* net_af_packet0 $mac," "$work/a.out" || { cat "$work/a.out"; return 1; }
}

ok "dpdk: two network namespaces joined by veth" other_namespace
ok "dpdk: a daemon on net_af_packet in the first" af_packet_here
ok "dpdk: its NIC is named" named
ok "dpdk: another daemon in the second" af_packet_there
ok "dpdk: ${ITERATIONS:=5000} barriers of 2" "$oracle" -i "$ITERATIONS" "$work/a/n0.sock" "$work/b/n1.sock"
ok "dpdk: at least as many frames on the wire" frames "$ITERATIONS"
ok "dpdk: 2,000 barriers of 4, two ports on each NIC" "$oracle" -i 2000 -a dissemination:3 \
	"$work/a/n0.sock" "$work/a/n0.sock" "$work/b/n1.sock" "$work/b/n1.sock"
if command -v nft >/dev/null && worse_wire 2>/dev/null; then
	# Linear: rank 0 sends nothing before the token of rank 1 arrives. In a pairwise exchange it
	# would send its next token, and the kernel would send the dropped frame with it: no PULL
	# would be needed.
	ok "dpdk: 1,000 barriers of 2 with 5 % loss and 5 % duplicates" \
		"$oracle" -i 1000 -a linear "$work/a/n0.sock" "$work/b/n1.sock"
	ok "dpdk: 300 barriers of 2 with values, 5 % loss and 5 % duplicates" \
		"$oracle" -v 64 -i 300 -a linear "$work/a/n0.sock" "$work/b/n1.sock"
	ok "dpdk: NICs asked for lost tokens, and dropped duplicates" recovered
else
	skip "dpdk: loss and duplicates" "no nftables with an egress hook here (apt-get install nftables)"
fi

# Again with a key, where the build has tags.
nft delete table netdev nbar 2>/dev/null
(umask 077 && head -c 16 /dev/urandom >"$work/key")
if "$BUILD/nbar-nicd" --nics 1 --key-file "$work/key" --check-config 2>&1 | grep -q "built without libsodium"; then
	skip "dpdk: tags of frames" "this build has no libsodium: apt-get install libsodium-dev"
else
	ok "dpdk: the daemons end" daemons_end
	ok "dpdk: a daemon with a key" af_packet_here --key-file "$work/key"
	ok "dpdk: another daemon with the same key" af_packet_there --key-file "$work/key"
	ok "dpdk: 1,000 barriers of 2 with tags" "$oracle" -i 1000 "$work/a/n0.sock" "$work/b/n1.sock"
	ok "dpdk: 200 barriers of 2 with values and tags" "$oracle" -v 256 -i 200 "$work/a/n0.sock" "$work/b/n1.sock"
fi
finish
