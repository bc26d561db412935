#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts with a card each: guests 0 and 2 are the hosts, guests 1 and 3 their cards. The network
# between the NICs joins the cards alone. Members are processes of the hosts, and ranks of both MPIs.
set -u
guests=4 cards=1,3 link=1,3
. "$(dirname "$0")/lib.sh"
if [ "$NBAR_GUESTS" = 0 ]; then
	skip "hosts with a card each" "natively, these tests know one machine"
	finish
fi
bin=$(realpath "$BUILD")

nic() { # HOST: the NIC of this guest's card
	echo "rdma:10.78.0.$(($1 + 2)):7100/n0"
}

begins() { # KEYS: of the NICs' wire; % is the number of the card's address
	local k
	for k in 1 3; do
		at $k bash -c "$start" "$BUILD/nbar-nicd" $times --attach 10.78.0.$((k + 1)):7100 --nic "name=n0,${1//%/$((k + 1))}" || return
	done
}

ends() {
	at 1 bash -c "$stop" && at 3 bash -c "$stop"
}

# both OPTIONS...: barriers of the oracle, with $each members in each host (default 1).
both() {
	local k p=() members=${each:-1}
	run=$((run + 1))
	for k in 0 2; do
		timeout 150 "$NBAR_AGENT" $k "$oracle" -m "$NBAR_SHARED" -k $run -n $((2 * members)) -r $((k / 2 * members)) "$@" \
			$(for ((i = 0; i < members; i++)); do nic $k; done) >"$work/said.$k" 2>&1 &
		p+=($!)
	done
	gather "${p[@]}"
}

algorithms() {
	local alg
	for alg in $(algs) custom; do
		both -i 30 -a "$alg" || { echo "$alg"; return 1; }
	done
	each=2 both -i 30
}

# The tokens of these barriers went from card to card.
packets() {
	local count=300 before sent
	sent='cat /sys/class/net/eth1/statistics/tx_packets'
	before=$(at 1 $sent)
	both -i $count && [ $(($(at 1 $sent) - before)) -ge $count ]
}

# ranks MPI TEST...: two ranks in each host, with the NIC of its card.
ranks() {
	local mpi=$1 start
	local one='k=$(hostname); NBAR_NIC=rdma:10.78.0.$((${k#g} + 2)):7100/n0 exec "$0" "$@"'
	shift
	if [ $mpi = openmpi ]; then
		start=(mpirun.openmpi --mca plm_rsh_agent "$NBAR_AGENT --rsh" -H 10.78.0.1:2,10.78.0.3:2 --bind-to none
			--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca btl self,vader,tcp --mca pml ob1
			--mca mpi_yield_when_idle 1 --mca coll_nbar_enable 1 --mca coll_nbar_verbose 1
			--mca mca_base_component_path "$bin/components:SYS_DEFAULT" --allow-run-as-root)
	else
		printf '#!/bin/sh\nexec "%s" --rsh "$@"\n' "$NBAR_AGENT" >"$work/rsh"
		chmod +x "$work/rsh"
		start=(mpiexec.hydra -launcher rsh -launcher-exec "$work/rsh" -iface eth0 -hosts 10.78.0.1:2,10.78.0.3:2
			-genv LD_PRELOAD "$bin/libnbar-mpi-mpich.so" -genv NBAR_MPI_VERBOSE 1 -genv UCX_TLS tcp,sysv,posix,self)
	fi
	timeout -k 5 400 "${start[@]}" -np 4 bash -c "$one" "$bin/mpi-oracle.$mpi" -s "$NBAR_SHARED" -e nic "$@"
}

# under_way COUNT: a barrier is complete beside the first COUNT of guest 0's NIC.
under_way() {
	[ "$(count_of "$(nic 0)" barriers_completed)" -gt "$1" ]
}

# dies K COMMAND TEXT...: runs COMMAND in guest K amid barriers. Both hosts must get an error; each TEXT
# must be said.
dies() {
	local before k=$1 command=$2 text p
	shift 2
	before=$(count_of "$(nic 0)" barriers_completed)
	(soon under_way "$before" && at $k bash -c "$command") &
	p=$!
	! both -i 100000000 >"$work/out" 2>&1 || { kill $p; return 1; }
	cat "$work/out"
	wait $p || return
	for text; do
		grep -q "$text" "$work/out" || return
	done
}

down() { # INTERFACE: for 20 s, in the background
	echo "(ip link set $1 down; sleep 20; ip link set $1 up) </dev/null >/dev/null 2>&1 &"
}

# The machine of guest 2 is gone at once, amid barriers of both hosts.
host_goes() {
	local before p killer rc=0
	run=$((run + 1))
	before=$(count_of "$(nic 0)" barriers_completed)
	at 2 "$oracle" -m "$NBAR_SHARED" -k $run -n 2 -r 1 -i 100000000 $(nic 2) >/dev/null 2>&1 &
	p=$!
	(soon under_way "$before" && at 2 bash -c '(sleep 1; echo b >/proc/sysrq-trigger) </dev/null >/dev/null 2>&1 &') &
	killer=$!
	! timeout 150 "$oracle" -m "$NBAR_SHARED" -k $run -n 2 -r 0 -i 100000000 $(nic 0) >"$work/out" 2>&1 || rc=1
	kill $p
	wait $killer || rc=1
	cat "$work/out"
	grep -q 'process of rank 1\|NIC of rank 1' "$work/out" && return $rc
}

ok "a daemon in each card, wire verbs" begins wire=verbs,device=rxe1
ok "barriers of 2 hosts" both -i 100
ok "the daemons end" ends
ok "a daemon in each card, wire udp" begins wire=udp,bind=10.79.0.%:7000
ok "the network of the cards carries the tokens" packets
ok "barriers by each algorithm" algorithms
NBAR_WAIT=block ok "asleep" both -i 50
ok "with values" both -v 64 -i 80
ok "signals" both -H -i 50
ok "each member in turn comes late" both -i 4 -d 300
for mpi in openmpi mpich; do
	if [ -x "$bin/mpi-oracle.$mpi" ]; then
		ok "2 ranks of $mpi on each host" ranks $mpi blocking=20 nonblocking=10 split=2 allreduce=10
	else
		skip "2 ranks of $mpi on each host" "no $mpi here"
	fi
done
ok "a process is killed: the error names its rank" dies 2 'pkill -KILL -x oracle' 'process of rank 1 ended'
ok "the network of the cards is down for 20 s: the errors name the rank behind it" dies 3 "$(down eth1)" 'NIC of rank 1' 'NIC of rank 0'
ok "new groups work" soon both -i 30
ok "a daemon is killed: both errors say so" dies 3 'kill -KILL $(cat /tmp/nicd/pid)' 'daemon at .* ended' 'NIC of rank 1'
ok "a new daemon in its place" at 3 bash -c "$start" "$BUILD/nbar-nicd" $times --attach 10.78.0.4:7100 --nic name=n0,wire=udp,bind=10.79.0.4:7000
ok "new groups work" both -i 30
ok "a host's machine is gone: the error names its rank" host_goes
finish
