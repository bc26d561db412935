#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# raw.sh - measures a barrier of two hosts over net_af_packet and veth, and its parts: the one-way time of
# a bare frame through this driver, and the time of a cache line from core to core. Measures them in
# turns, $ROUNDS (5) times. Needs root or user namespaces. Started by make bench-raw.
#
# * "one thread": one thread runs both hosts and both NICs. The lower bound of a barrier is two frames,
#   one after the other.
# * "four threads", if there are four processors: each host and each NIC has its own. The lower bound is
#   a frame each way at the same time, and two cache lines: from host to NIC and back.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
in_namespaces || { echo "bench-raw: network namespaces are not permitted here (run as root)" >&2; exit 77; }

raw() { # sets $frame_ns and $line_ns
	read -r frame_ns line_ns < <("$BUILD/raw-oneway" --no-telemetry --log-level=3 --no-pci --no-huge --no-shconf \
		-m 64 --lcores=0@"$cpu" --vdev=net_af_packet0,iface=ra --vdev=net_af_packet1,iface=rb)
	[ -n "${line_ns:-}" ]
}

one_thread() { # sets $barrier_ns, the median of a run
	barrier_ns=$(taskset -c "$cpu" "$BUILD/bench-loop" --af-packet ra rb)
	[ -n "$barrier_ns" ]
}

four_threads() { # sets $barrier_ns, too
	barrier_ns=$("$BUILD/nbar" bench --nodes 2 --where nic -i 3000 -x 300 --csv - --nic "$work/a/n0.sock" \
		--nic "$work/b/n1.sock" | awk -F, '
			/^#/ { next }
			!column { for (i = 1; i <= NF; i++) if ($i ~ /p50/) column = i; next }
			{ print $column * 1000 }')
	[ -n "$barrier_ns" ]
}

line() { # NAME FRAMES CACHE_LINES: prints a result; the lower bound has so many of them in sequence
	awk -v name="$1" -v frames="$2" -v lines="$3" -v b="$barrier_ns" -v f="$frame_ns" -v l="$line_ns" 'BEGIN {
		printf "%-12s %12.2f %12.2f %14.3f %8.2f\n", name, b / 1000, f / 1000, l / 1000,
			b / (frames * f + lines * l) }'
}

cpu=$(awk '/^Cpus_allowed_list/ { split($2, a, "[-,]"); print a[1] }' /proc/self/status)
ip link add ra type veth peer name rb && ip link set ra up && ip link set rb up || exit 1
if [ "$(nproc)" -ge 4 ]; then
	other_namespace && af_packet_here && af_packet_there || exit 1
else
	echo "bench-raw: four threads are left out: $(nproc) processors" >&2
fi
printf '%-12s %12s %12s %14s %8s\n' "" "barrier us" "one-way us" "cache line us" "ratio"
for ((i = 0; i < ${ROUNDS:-5}; i++)); do
	raw && one_thread || exit 1
	line "one thread" 2 0
	[ -z "$daemons" ] || { four_threads && line "four threads" 1 2; } || exit 1
done
