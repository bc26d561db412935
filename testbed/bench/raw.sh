#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# raw.sh - compares a barrier of two hosts over net_af_packet and veth with its parts: the one-way
# time of a bare frame of the same driver, and two transfers of a cache line from core to core. Each
# of the $ROUNDS (5) rounds measures the parts, then the barrier, and prints the medians and their
# ratio. Needs root or user namespaces, and two processors. Started by make bench-raw.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
in_namespaces || { echo "bench-raw: network namespaces are not permitted here (run as root)" >&2; exit 77; }

raw() { # sets $frame_ns and $line_ns
	read -r frame_ns line_ns < <("$BUILD/raw-oneway" --no-telemetry --log-level=3 --no-pci --no-huge --no-shconf \
		-m 64 --lcores=0@"$cpu" --vdev=net_af_packet0,iface=ra --vdev=net_af_packet1,iface=rb)
	[ -n "${line_ns:-}" ]
}

barrier() { # sets $barrier_us, the median of a run
	barrier_us=$("$BUILD/nbar" bench --nodes 2 --where nic -i 3000 -x 300 --csv - --nic "$work/a/n0.sock" \
		--nic "$work/b/n1.sock" | awk -F, '
			/^#/ { next }
			!column { for (i = 1; i <= NF; i++) if ($i ~ /p50/) column = i; next }
			{ print $column }')
	[ -n "$barrier_us" ]
}

cpu=$(awk '/^Cpus_allowed_list/ { split($2, a, "[-,]"); print a[1] }' /proc/self/status)
ip link add ra type veth peer name rb && ip link set ra up && ip link set rb up || exit 1
other_namespace && af_packet_here && af_packet_there || exit 1
printf '%12s %14s %14s %8s\n' "barrier us" "one-way us" "cache line us" "ratio"
for ((i = 0; i < ${ROUNDS:-5}; i++)); do
	raw && barrier || exit 1
	awk -v b="$barrier_us" -v f="$frame_ns" -v l="$line_ns" 'BEGIN {
		printf "%12.2f %14.2f %14.3f %8.2f\n", b, f / 1000, l / 1000, b / (f / 1000 + 2 * l / 1000) }'
done
