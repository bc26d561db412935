#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the command `cluster`, with a cluster of three hosts. Skipped where namespaces are not
# permitted; in part where an MPI is missing, or where the kernel can lose no frames.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
case $BUILD in
/*) bin=$BUILD ;;
*) bin=$PWD/$BUILD ;;
esac
unset NBAR_RUN_DIR NBAR_NIC NBAR_CLUSTER_DIR
dir=$work/cluster
cluster="testbed/hosts/cluster --run-dir $dir"
trap '$cluster down 2>/dev/null; cleanup' EXIT

# Prints everything of the machine that a cluster could change or leave behind.
machine() {
	hostname
	ip -o link | cut -d : -f 2
	ip -o address | grep -F 10.77.0.
	awk '{print $5}' /proc/self/mountinfo
	ls -d /run/mount /run/nbar /dev/shm/*.h[0-9].* /tmp/*.h[0-9].* /tmp/*.head.* 2>/dev/null
}

machine_untouched() {
	machine >"$work/after"
	diff "$work/before" "$work/after"
}

# Prints the processes of this cluster: all have its folder in their environment.
processes() {
	grep -lsz "^NBAR_CLUSTER_DIR=$dir\$" /proc/[0-9]*/environ
}

# says TEXT COMMAND...: the command succeeds and prints exactly TEXT.
says() {
	local said
	said=$("${@:2}") && [ "$said" = "$1" ] || { echo "wanted: $1"; echo "got: $said"; return 1; }
}

# ends STATUS TEXT COMMAND...: the command ends with STATUS, and its messages contain TEXT.
ends() {
	"${@:3}" >"$work/ends" 2>&1
	local rc=$?
	cat "$work/ends"
	echo "status $rc, wanted $1 and: $2"
	[ $rc = "$1" ] && { [ -z "$2" ] || grep -q -- "$2" "$work/ends"; }
}

on() {
	$cluster exec "$@"
}

hostnames() {
	for k in 0 1 2; do
		says "h$k" on $k hostname || return 1
	done
}

no_shared_memory() {
	on 0 sh -c 'echo a >/dev/shm/mark; echo b >/run/mark' && on 0 test -e /dev/shm/mark &&
		! on 1 ls /dev/shm/mark && ! on 1 ls /run/mark && ! ls /dev/shm/mark
}

no_shared_ipc() {
	on 0 ipcmk -M 4096 && on 0 ipcs -m | grep '^0x' && ! on 1 ipcs -m | grep '^0x'
}

separate_networks() {
	says "eth0 lo" sh -c "$cluster exec 1 ls /sys/class/net | xargs" && machine_untouched
}

pings() {
	on 0 ping -q -c 3 -i 0.2 -W 5 h2 && on 2 ping -q -c 3 -i 0.2 -W 5 10.77.0.1
}

# Frames within a rack and between two racks: only the latter are delayed and counted.
racks() {
	$cluster up --racks 2x2 --wire none --uplink-delay 1000 || return 1
	on 0 ping -q -c 3 -i 0.2 -W 5 h1 && on 0 ping -q -c 3 -i 0.2 -W 5 h3 &&
		on head ip -o link show master rack1 | grep -c ': p[23]@' | grep -qx 2
	local rc=$?
	$cluster down && return $rc
}

words_kept() {
	says "$PWD|y  z|" on 1 sh -c 'printf "%s|" "$PWD" "$1"' x 'y  z'
}

killed_with_nsenter() {
	local pid inner i
	$cluster exec 0 sh -c 'echo $$ >"$NBAR_CLUSTER_DIR/inner"; exec sleep 1000' &
	pid=$!
	for i in $(seq 100); do
		[ -s "$dir/inner" ] && break
		sleep 0.05
	done
	inner=$(cat "$dir/inner")
	on head test -e "/proc/$inner" && kill $pid
	wait $pid
	for i in $(seq 100); do
		on head test -e "/proc/$inner" || return 0
		sleep 0.05
	done
	return 1
}

nics() {
	local k
	for k in 0 1 2; do
		on $k "$bin/nbar" stat n0 || return 1
	done
	on head "$bin/oracle" -i 500 "$dir"/nic/n{0,1,2}.sock
}

# hello mpirun|mpiexec MPI: six ranks on three hosts, two on each.
hello() {
	timeout 120 $cluster "$1" -np 6 "$bin/cluster-hello.$2" >"$work/hello" 2>&1
	local rc=$?
	cat "$work/hello"
	[ $rc = 0 ] && [ "$(grep -cE '^rank [0-5] of 6 on h[0-2], 2 there$' "$work/hello")" = 6 ] &&
		[ "$(grep -oE 'on h[0-2]' "$work/hello" | sort | uniq -c | awk '{print $1}' | xargs)" = "2 2 2" ] &&
		grep -q '^words that arrived wrong: 0$' "$work/hello"
}

mpi() {
	local name=$1 word=$2 mpi=$3
	if [ ! -x "$bin/cluster-hello.$mpi" ]; then
		skip "$name: hello on all hosts" "no $name here"
		return
	fi
	ok "$name: hello on all hosts" hello "$word" "$mpi"
	ok "$name: exit status" ends 5 "" timeout 60 $cluster "$word" -np 3 sh -c 'exit 5'
	ok "$name: the caller's environment" preloads "$word"
}

preloads() {
	export NBAR_TEST_WORD=kept
	says "kept kept kept" sh -c "timeout 60 $cluster $1 -np 3 sh -c 'echo \$NBAR_TEST_WORD' | grep -o kept | xargs"
}

status_of_gone_host() {
	on head sh -c 'kill -9 $(cat "$NBAR_CLUSTER_DIR/host.1")'
	ends 1 "h1 10.77.0.2: gone" $cluster status && ends 125 "host 1 is gone" on 1 true
}

leaves_nothing() {
	[ ! -e "$dir" ] && [ -z "$(processes)" ] && machine_untouched || { processes; ls "$dir"; return 1; }
}

crash() {
	local pid start
	$cluster up 2 --wire none || return 1
	on 0 sh -c 'setsid sleep 1000 >/dev/null 2>&1 &'
	read -r pid start <"$dir/hub.pid"
	kill -9 "$pid"
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.05
	done
	ends 1 "ended badly" $cluster status && ends 125 "no cluster is up" on 0 true &&
		ends 1 "clean up with: cluster down" $cluster up 2 && $cluster down && leaves_nothing
}

two_at_once() {
	$cluster up 1 --run-dir "$work/other" --wire none &&
		says h0 $cluster exec --run-dir "$work/other" h0 hostname && on 2 hostname &&
		$cluster down --run-dir "$work/other" && [ ! -e "$work/other" ] && on 2 hostname
}

# Some frames are lost and some are duplicated: 400 round trips, 10 % in each direction.
frames_suffer() {
	on 0 ping -q -c 400 -i 0.002 -W 1 h1 >"$work/ping"
	cat "$work/ping"
	grep -qE '[1-9][0-9]*% packet loss' "$work/ping" && grep -qE '\+[0-9]+ duplicates' "$work/ping" &&
		! grep -q ' 100% packet loss' "$work/ping"
}

# Some answers overtake others: counts those with a lower sequence number than the answer before.
out_of_order() {
	on 0 ping -c 400 -i 0.0002 -l 8 -W 1 h1 >"$work/ping"
	tail -n 3 "$work/ping"
	awk -F 'icmp_seq=' '/icmp_seq=/ { split($2, n, " "); if (n[1] + 0 < last) late++; last = n[1] + 0 }
		END { print late + 0 " out of order"; exit late == 0 }' "$work/ping"
}

nic_frames_suffer() {
	on head timeout 120 "$bin/oracle" -i 300 "$dir"/nic/n{0,1}.sock &&
		on 0 "$bin/nbar" stat n0 >"$work/stat"
	cat "$work/stat"
	grep -qE 'pulls_sent +[1-9]' "$work/stat" && grep -qE '(tokens_duplicate|tokens_stale) +[1-9]' "$work/stat"
}

# In its own PID namespace the daemon has another pid.
daemon_by_number() {
	local pid
	pid=$("$bin/nbar" stat --json "$dir/nic/n0.sock" | sed -n 's/^ *"pid": \([0-9]*\),*$/\1/p' | head -n 1)
	says nbar-nicd cat "/proc/$pid/comm"
}

delayed() {
	on 0 ping -q -c 10 -i 0.05 h1 >"$work/ping"
	cat "$work/ping"
	awk -F '[=/ ]+' '/^rtt/ { exit $6 < 10 }' "$work/ping"
}

bad_network() {
	ok "up with 10 % loss, 10 % duplicates, 10 % reordering" $cluster up 2 --wire af_packet --loss 10 \
		--duplicate 10 --reorder 10
	ok "IP: frames are lost and duplicated" frames_suffer
	ok "IP: frames overtake others" out_of_order
	ok "frames of NICs are lost and duplicated, and barriers complete" nic_frames_suffer
	ok "nbar stat prints the pid that the daemon has in the caller's namespace" daemon_by_number
	[ ! -x "$bin/cluster-hello.openmpi" ] ||
		ok "TCP: messages of an MPI arrive unchanged" timeout 120 $cluster mpirun -np 2 "$bin/cluster-hello.openmpi"
	ok "down" $cluster down
	ok "up with 5 ms delay" $cluster up 2 --wire none --delay 5000
	ok "a round trip takes 10 ms or more" delayed
	ok "down" $cluster down
}

machine >"$work/before"
$cluster up 3 >"$work/up" 2>&1
case $? in
77)
	sed 's/^/# /' "$work/up"
	skip "test hosts" "$(head -n 1 "$work/up")"
	finish
	;;
esac
ok "up 3" grep '^up: 3 hosts' "$work/up"
ok "each host has its name" hostnames
ok "no /dev/shm or /run in common" no_shared_memory
ok "no System V shared memory in common" no_shared_ipc
ok "each host sees its own network, and the machine sees none of it" separate_networks
ok "ping by name and by address" pings
ok "exec: exit status of the command" ends 7 "" on 1 sh -c 'exit 7'
ok "exec: a command that does not exist" ends 127 "not found" on 1 no-such-command
ok "exec: a host that does not exist" ends 125 "no host" on 3 true
ok "exec: the command gets folder and arguments unchanged" words_kept
ok "exec is killed: its command ends too" killed_with_nsenter
ok "a NIC on each host, and barriers over them" nics
mpi "Open MPI" mpirun openmpi
mpi MPICH mpiexec mpich
ok "up twice is refused" ends 1 "already up" $cluster up 2
ok "two clusters at once" two_at_once
ok "status: all hosts are up" ends 0 "h2 10.77.0.3: up" $cluster status
ok "status: a host that is gone" status_of_gone_host
ok "down, with a program left running" sh -c "$cluster exec 0 sh -c 'setsid sleep 1000 >/dev/null 2>&1 &' && $cluster down"
ok "down has left nothing" leaves_nothing
ok "down twice is refused" ends 1 "there is no cluster" $cluster down
ok "a crashed cluster can be taken down, and leaves nothing" crash
ok "wrong usage: hosts" ends 2 "1 to 64" $cluster up 65
ok "wrong usage: a percentage" ends 2 "percentage" $cluster up 2 --loss 101
ok "wrong usage: wire and daemon" ends 2 "daemon" $cluster up 2 --wire ring --daemon each
ok "wrong usage: racks" ends 2 "RxK" $cluster up --racks 3
ok "wrong usage: racks and hosts" ends 2 "not 5 hosts" $cluster up 5 --racks 2x2
ok "wrong usage: an uplink without racks" ends 2 "wants --racks" $cluster up 4 --uplink-delay 300
ok "wrong usage: an uplink and other delays" ends 2 "cannot go with" \
	$cluster up --racks 2x2 --uplink-delay 300 --delay 1
ok "--emulate netem works, or is refused where the kernel lacks it" sh -c \
	"$cluster up 1 --wire none --loss 1 --emulate netem && $cluster down || $cluster up 1 --loss 1 --emulate netem 2>&1 | grep 'tc netem: '"
$cluster up 1 --wire none --loss 1 --reorder 1 >"$work/up" 2>&1
case $? in
0)
	$cluster down && bad_network
	ok "racks, with a delay between them" racks
	;;
*) skip "loss, duplicates, reordering, delay" "$(grep 'cannot do' "$work/up" || echo "up failed: $(tail -n 1 "$work/up")")" ;;
esac
finish
