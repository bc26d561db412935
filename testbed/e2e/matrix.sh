#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every plan on every wire, by the NICs and by the hosts over the NICs' signals. The oracle
# checks each barrier: NBAR_ROUNDS (50) with 4 members, a tenth as many with 7. The wire dpdk
# (net_af_packet between two network namespaces) is skipped where namespaces are not permitted.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
in_namespaces
may=$?
rounds=${NBAR_ROUNDS:-50}
slowest=50
. testbed/e2e/plans.sh

end_daemons() {
	for pid in $pids; do
		kill "$pid"
		wait "$pid"
	done
	pids=
}

ok "ring: a daemon with four NICs" daemon "$work/ring" --nics 4
every ring "$work"/ring/n{0,1,2,3}.sock
end_daemons

[ $may = 0 ] && ip link set lo up
ok "udp: a daemon with two NICs" daemon "$work/udp-a" \
	--nic name=n0,wire=udp,bind=127.0.0.1:0 --nic name=n1,wire=udp,bind=127.0.0.1:0
first_nic=n2 ok "udp: another daemon with one NIC" daemon "$work/udp-b" --nic name=n2,wire=udp,bind=127.0.0.1:0
every udp "$work"/udp-a/n{0,1}.sock "$work/udp-b/n2.sock"
end_daemons

ok "shm: a daemon with two NICs" daemon "$work/shm-a" \
	--nic "name=n0,wire=shm,dir=$work/meet" --nic "name=n1,wire=shm,dir=$work/meet"
first_nic=n2 ok "shm: another daemon with one NIC" daemon "$work/shm-b" --nic "name=n2,wire=shm,dir=$work/meet"
every shm "$work"/shm-a/n{0,1}.sock "$work/shm-b/n2.sock"
end_daemons

if ! has_wire dpdk; then
	skip "dpdk" "this build has no wire dpdk: apt-get install libdpdk-dev"
	finish
elif [ $may != 0 ]; then
	skip "dpdk" "network namespaces are not permitted here (run as root)"
	finish
fi
ok "dpdk: two network namespaces joined by veth" other_namespace
ok "dpdk: a daemon on net_af_packet in the first" af_packet_here
ok "dpdk: another daemon in the second" af_packet_there
every dpdk "$work/a/n0.sock" "$work/b/n1.sock"
finish
