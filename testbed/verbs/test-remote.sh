#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Remote hosts: they share no memory with their NICs, and reach them by TCP and RDMA writes. Hosts and
# NICs are on one machine with one RDMA device. Each barrier is checked by the oracle.
set -u
guests=1
. "$(dirname "$0")/lib.sh"
at=$(rdma link show "$device/1" | sed -n 's/.* netdev \([^ ]*\).*/\1/p')
at=$(ip -4 -o addr show dev "$at" | sed 's/.* inet \([0-9.]*\).*/\1/'):7100
a=rdma:$at/n0 b=rdma:$at/n1
bin=$(realpath "$BUILD")

begins() {
	daemon "$work/d" $times --attach "$at" --nics 3 "$@"
}

algorithms() { # OPTIONS: of the oracle
	local alg
	for alg in $(algs) custom; do
		"$oracle" "$@" -i 40 -a "$alg" $a $b || { echo "$alg"; return 1; }
	done
}

sizes() {
	"$oracle" -i 50 $a $b rdma:$at/n2 && "$oracle" -i 50 -a mcs $a $a $a $b "$work/d/n2.sock"
}

values() {
	local bytes
	for bytes in 8 64 256; do
		"$oracle" -v $bytes -i 80 $a $b || return
	done
	"$oracle" -v 64 -w 1 -i 9 $a $b rdma:$at/n2
}

waiting() { # WAIT COMMAND...
	NBAR_WAIT=$1 "${@:2}"
}

says() { # TEXT COMMAND...: fails with this text
	local text=$1
	shift
	! "$@" >"$work/out" 2>&1 && cat "$work/out" && grep -qF "$text" "$work/out"
}

# under_way COUNT: a barrier is complete beside the first COUNT.
under_way() {
	[ "$(count_of "$a" barriers_completed)" -gt "$1" ]
}

# dies COMMAND TEXT: runs COMMAND amid barriers. They must end with an error that contains TEXT.
dies() {
	local main
	"$oracle" -i 100000000 $a $b rdma:$at/n2 >"$work/out" 2>&1 &
	main=$!
	soon under_way "$(count_of "$a" barriers_completed)" && eval "$1" || return
	! wait $main && cat "$work/out" && grep -q "$2" "$work/out"
}

unchanged() { # QPS MRS PDS
	[ "$(resource qp)" = "$1" ] && [ "$(resource mr)" = "$2" ] && [ "$(resource pd)" = "$3" ]
}

# Amid barriers, each end of the connections of 2 hosts has a protection domain of its own.
domains() {
	local main rc=0
	"$oracle" -i 100000000 $a $b >"$work/out" 2>&1 &
	main=$!
	soon under_way "$(count_of "$a" barriers_completed)" &&
		unchanged $((qps + 4)) $((mrs + 4)) $((pds + 4)) || rc=1
	rdma resource show "$device"
	kill $main
	wait $main
	return $rc
}

# ranks MPI OPTIONS TEST...: two ranks share a port of each NIC.
ranks() {
	local mpi=$1 start=(mpirun.openmpi)
	local one='NBAR_NIC=${NBAR_NIC%n0}n$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)) exec '${one_out:+"env --ignore-signal=USR1 setsid -w "}'"$0" "$@"'${one_out:+" >>$one_out 2>&1"}
	[ "$mpi" = openmpi ] || start=(mpiexec.hydra -disable-auto-cleanup -genv LD_PRELOAD "$bin/libnbar-mpi-mpich.so" -genv UCX_TLS tcp,sysv,posix,self)
	shift
	timeout -k 5 300 "${start[@]}" -np 4 bash -c "$one" "$bin/mpi-oracle.$mpi" -s "$work/ranks.$mpi" "$@"
}

go_on() { # COUNT
	[ "$(grep -c '^# rank [0-9] goes on' "$work/out")" = "$1" ]
}

# Kills one rank. Each other rank gets an error and continues. RANK 2 has opened its port, RANK 3 has attached to it.
# MPICH's launcher may end before they do, so they write to a file.
rank_dies() { # RANK
	: >"$work/out"
	one_out=$work/out ranks mpich "dies=$1" >"$work/err" 2>&1
	soon go_on 3
	local rc=$?
	cat "$work/out" "$work/err"
	return $rc
}

# More hosts connect than the daemon has descriptors. They say nothing, or stop amid a message.
crowd() {
	local rc=0 fd all=()
	prlimit --pid "$last_pid" --nofile=80:80 || return
	for _ in $(seq 120); do
		exec {fd}<>"/dev/tcp/${at/:/\/}" || { rc=1; break; }
		all+=("$fd")
		[ $((${#all[@]} % 2)) = 0 ] || printf nbar >&"$fd"
	done
	[ $rc = 0 ] && "$oracle" -i 20 $a $b && "$oracle" -i 20 "$work/d/n0.sock" "$work/d/n1.sock" || rc=1
	for fd in "${all[@]}"; do
		exec {fd}>&-
	done
	return $rc
}

ok "an address without an RDMA device is refused" says "no RDMA device" \
	"$BUILD/nbar-nicd" --run-dir "$work/x" --attach 127.0.0.1:7100 --nics 1
ok "nobody listens: the error says so" says "with --attach" "$oracle" -i 1 $a $b
ok "a daemon for remote hosts" begins
qps=$(resource qp) mrs=$(resource mr) pds=$(resource pd)
ok "a NIC that is not there: the error names it" says "no NIC n9" "$oracle" -i 1 rdma:$at/n9 $b
ok "barriers of 2 by each algorithm, spinning" waiting spin algorithms
ok "barriers of 2 by each algorithm, asleep" waiting block algorithms
ok "barriers of 2 by each algorithm, as threads wait by default" algorithms
ok "groups of 3 and 5, with a host of the NIC's own machine" sizes
ok "each member in turn comes late" "$oracle" -i 6 -d 300 $a $b
ok "with values" values
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mca_base_component_path=$bin/components:SYS_DEFAULT OMPI_MCA_coll_nbar_enable=1
export OMPI_MCA_btl=^openib NBAR_NIC=$a
for mpi in openmpi mpich; do
	if [ -x "$bin/mpi-oracle.$mpi" ]; then
		ok "2 ranks of $mpi at each of 2 NICs" ranks $mpi -e nic blocking=20 nonblocking=10 split=3 allreduce=10
	else
		skip "2 ranks of $mpi at each of 2 NICs" "no $mpi here"
	fi
done
for rank in 2 3; do
	if [ -x "$bin/mpi-oracle.mpich" ]; then
		ok "rank $rank of mpich is killed" rank_dies $rank
	else
		skip "rank $rank of mpich is killed" "no mpich here"
	fi
done
unset NBAR_NIC
ok "signals" "$oracle" -H -i 100 $a $b rdma:$at/n2
ok "a program that polls a descriptor" "$BUILD/examples/events" $a
ok "queue pairs and memory of closed ports are given back" soon unchanged "$qps" "$mrs" "$pds"
ok "no host can write to the page of another" domains
ok "a host is killed: the errors name its rank" dies 'kill -KILL $(pgrep -P $main | tail -n 1)' 'process of rank 2 ended'
ok "after it, new groups work" "$oracle" -i 50 $a $b rdma:$at/n2
ok "the connections of a host break: it takes its NIC as lost" dies \
	'"$BUILD/verbs-break" $(pgrep -P $main | head -n 1) line error' 'daemon at .* ended'
ok "after it, new groups work" "$oracle" -i 50 $a $b
ok "the connections of the NICs break: the hosts take them as lost" dies \
	'"$BUILD/verbs-break" $last_pid line error' 'daemon at .* ended'
ok "after it, new groups work" "$oracle" -i 50 $a $b
ok "the daemon is killed: the errors say so" dies "kill -KILL $last_pid" 'daemon at .* ended'
ok "a new daemon at the same address, which does not sleep" begins --idle yield
ok "new groups work" "$oracle" -i 50 $a $b
ok "its connections break: the hosts take them as lost" dies \
	'"$BUILD/verbs-break" $last_pid line error' 'daemon at .* ended'
end_processes
(umask 077; echo 00112233445566778899aabbccddeeff >"$work/key"; echo ff112233445566778899aabbccddeeff >"$work/other")
ok "a daemon with a key" begins --key-file "$work/key"
ok "a host without a key is refused" says "set NBAR_KEY_FILE" "$oracle" -i 1 $a $b
ok "a host with another key is refused" says "another key" env NBAR_KEY_FILE="$work/other" "$oracle" -i 1 $a $b
export NBAR_KEY_FILE=$work/key
ok "a host with the key is let in" "$oracle" -i 50 $a $b
ok "hosts that say nothing keep no other out" crowd
finish
