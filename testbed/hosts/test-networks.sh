#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs of both MPIs with NICs on "udp" that choose their addresses themselves, on test hosts with
# bridges of containers, IPv6 only, IPv4 and IPv6, a second network that leads nowhere, and a
# firewall: each job ends with status 0, offloaded where NICs can reach each other, with one line
# where not. Skipped where namespaces are not permitted; in part where an MPI or nftables is missing.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
case $BUILD in
/*) bin=$BUILD ;;
*) bin=$PWD/$BUILD ;;
esac
unset NBAR_RUN_DIR NBAR_NIC NBAR_CLUSTER_DIR NBAR_WAIT
cluster="testbed/hosts/cluster --run-dir $work/cluster"
trap '$cluster down 2>/dev/null; cleanup' EXIT
component=$bin/components/mca_coll_nbar.so

on() {
	$cluster exec "$@"
}

# Ends what earlier tests have added to the hosts.
plain() {
	local k
	for k in 0 1 2; do
		on $k sh -c 'for i in docker0 eth1 far; do ip link del $i; done; nft flush ruleset
			ip route del default; ip addr replace 10.77.0.$0/24 dev eth0
			echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6' $((k + 1)) >/dev/null 2>&1
	done
	return 0
}

# bridge K carrier|none: a bridge as that of containers, the same on each host. The kernel lists it
# before eth0, which gets its address again.
bridge() {
	on "$1" sh -c 'ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0 &&
		ip link set docker0 up || exit 1
		[ "$0" = none ] || { ip link add eth1 type veth peer name far && ip link set eth1 master docker0 up &&
			ip link set far up; }' "$2"
}

# dead_end K eth0|eth1: a second network that leads nowhere; the default route goes by the interface.
dead_end() {
	on "$1" sh -c 'ip link add eth1 type veth peer name far && ip link set far up &&
		ip addr add 192.168.9.$1/24 dev eth1 && ip link set eth1 up && ip route add default dev "$0"' \
		"$2" $((10 + $1))
}

nicds=()
daemons_start() {
	local k
	for k in 0 1 2; do
		$cluster exec $k "$bin/nbar-nicd" --run-dir /run/nbar --idle sleep --nic name=n0,wire=udp >"$work/nicd.$k" 2>&1 &
		nicds+=($!)
	done
	for k in $(seq 1200); do
		[ "$(cat "$work"/nicd.? | grep -c ready)" = 3 ] && return
		sleep 0.05
	done
	cat "$work"/nicd.?
	return 1
}

daemons_stop() {
	kill "${nicds[@]}" && wait "${nicds[@]}" 2>/dev/null
	nicds=()
}

# run MPI WHERE: three ranks on three hosts, by in-process NICs or by daemons. Prints what they say.
run() {
	if [ "$1" = openmpi ]; then
		timeout -k 5 60 $cluster mpirun -np 3 --mca coll_nbar_enable 1 --mca coll_nbar_where "$2" \
			--mca mca_base_component_path "$(dirname "$component"):SYS_DEFAULT" \
			--mca coll_nbar_verbose 2 "$bin/cluster-hello.openmpi" 300
	else
		timeout -k 5 60 $cluster mpiexec -np 3 -genv NBAR_MPI_WHERE "$2" -genv NBAR_MPI_VERBOSE 2 -genv UCX_NET_DEVICES eth0 \
			-genv LD_PRELOAD "$bin/libnbar-mpi-mpich.so" "$bin/cluster-hello.mpich" 300
	fi >"$work/job" 2>&1
	local rc=$?
	cat "$work/job"
	return $rc
}

# offloaded MPI WHERE, fallback MPI WHERE TEXT: the job ends well; NICs run its barriers, or one line
# says why not.
offloaded() {
	run "$@" && ! grep 'fallback to' "$work/job" && grep -qE 'barriers (by in-process|offloaded to) NICs' "$work/job"
}

fallback() {
	run "$1" "$2" && grep -c 'of 3 ranks: fallback to' "$work/job" | grep -qx 1 && grep -qE "$3" "$work/job"
}

# each MPI: the cases of a job.
each() {
	local mpi=$1 k
	if [ ! -x "$bin/cluster-hello.$mpi" ]; then
		skip "$mpi" "no $mpi here"
		return
	fi
	plain
	for k in 0 1 2; do bridge $k carrier; done
	ok "$mpi: bridges with a carrier on all hosts, in-process NICs" offloaded "$mpi" host
	daemons_start
	ok "$mpi: bridges with a carrier on all hosts, daemons" offloaded "$mpi" nic
	daemons_stop
	plain
	bridge 1 carrier
	ok "$mpi: a bridge on one host" offloaded "$mpi" host
	plain
	bridge 0 none
	bridge 2 none
	ok "$mpi: bridges without a carrier on the other hosts" offloaded "$mpi" host
	plain
	for k in 0 1 2; do dead_end $k eth0; done
	ok "$mpi: a second network that leads nowhere" offloaded "$mpi" host
	plain
	for k in 0 1 2; do dead_end $k eth1; done
	ok "$mpi: the default route leads nowhere" fallback "$mpi" host \
		'do not hear each other: the NIC of rank [12], 192.168.9.1[12]:.* the NIC of this host, 192.168.9.10:'
	plain
	if ! on 1 nft add table inet wall 2>/dev/null; then
		skip "$mpi: a firewall" "no nftables here"
		return
	fi
	on 1 sh -c 'nft add chain inet wall in "{ type filter hook input priority 0; }"
		nft add rule inet wall in meta l4proto udp ip saddr 10.77.0.1 drop'
	ok "$mpi: a firewall drops one direction, in-process NICs" fallback "$mpi" host \
		'do not hear each other: the NIC of rank [01], 10.77.0.[12]:.* the NIC of this host, 10.77.0.[12]:'
	daemons_start
	ok "$mpi: a firewall drops one direction, daemons" fallback "$mpi" nic 'do not hear each other: the NIC of rank [01], 10'
	daemons_stop
}

# family TEXT: daemons on all hosts take addresses that match TEXT, and barriers over them complete.
family() {
	local k rc nics=()
	daemons_start || return 1
	for k in 0 1 2; do
		nics+=("/proc/$(cat "$work/cluster/host.$k")/root/run/nbar/n0.sock")
	done
	on head timeout 60 "$bin/oracle" -i 100 "${nics[@]}"
	rc=$?
	cat "$work"/nicd.?
	daemons_stop
	[ $rc = 0 ] && [ "$(cat "$work"/nicd.? | grep -cE "$1")" = 3 ]
}

ipv6() {
	local k
	plain
	for k in 0 1 2; do
		on $k sh -c 'echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6 &&
			ip addr add fd00:77::$0/64 dev eth0 nodad' $((k + 1)) || return 1
	done
}

$cluster up 3 --wire none >"$work/up" 2>&1
case $? in
0) ;;
77)
	skip "networks" "$(head -n 1 "$work/up")"
	finish
	;;
*)
	ok "up 3" cat "$work/up"
	ok "up 3: it came up" false
	finish
	;;
esac
each openmpi
each mpich
if ipv6 2>/dev/null; then
	ok "IPv4 and IPv6: NICs take IPv4" family 'address 10.77.0.[123]:.*\(eth0, '
	for k in 0 1 2; do
		on $k ip addr flush dev eth0 scope global
		on $k ip addr add fd00:77::$((k + 1))/64 dev eth0 nodad
		bridge $k carrier
	done
	ok "IPv6 only, beside bridges with IPv4: NICs take IPv6" family 'address \[fd00:77::[123]\]:.*\(eth0, '
else
	skip "IPv6" "no IPv6 here"
fi
plain
ok "down" $cluster down
finish
