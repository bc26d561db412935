#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Remote hosts and their NICs on two machines: guest 0 is the host, guest 1 the card, whose daemon has
# two NICs. Counts what crosses the bus in a barrier, and breaks what can break.
set -u
guests=2 cards=1
. "$(dirname "$0")/lib.sh"
if [ "$NBAR_GUESTS" = 0 ]; then
	skip "remote hosts" "natively, these tests know one machine"
	finish
fi
card=10.78.0.2:7100
a=rdma:$card/n0 b=rdma:$card/n1

begins() {
	at 1 bash -c "$start" "$BUILD/nbar-nicd" $times --attach $card --nics 2 "$@"
}

ends() {
	at 1 bash -c "$stop"
}

algorithms() {
	local alg
	for alg in $(algs) custom; do
		"$oracle" -i 40 -a "$alg" $a $b || { echo "$alg"; return 1; }
	done
}

waiting() { # WAIT COMMAND...
	NBAR_WAIT=$1 "${@:2}"
}

# COUNT barriers of a host here and a process of the card.
both_sides() {
	local rc=0 p
	run=$((run + 1))
	at 1 "$oracle" -m "$NBAR_SHARED" -k $run -n 2 -r 1 -i "$1" /tmp/nicd/n1.sock &
	p=$!
	"$oracle" -m "$NBAR_SHARED" -k $run -n 2 -r 0 -i "$1" $a || rc=1
	wait $p || rc=1
	return $rc
}

# A host that spins, and a NIC that does not sleep: for each barrier the host sends a write for its
# post, and the acknowledgement of the completion. A second write would be one packet more for each
# barrier. On a busy machine there are signs of life, each 200 ms, and packets that are sent again.
writes() {
	local count=10000 before after
	before=$(statistic sent_pkts)
	NBAR_WAIT=spin both_sides $count || return
	after=$(statistic sent_pkts)
	echo "packets of the host in $count barriers: $((after - before))"
	[ $((after - before)) -ge $((2 * count)) ] && [ $((after - before)) -le $((2 * count + count / 2)) ]
}

# NICs against hosts, over the same connection.
ratio() {
	"$BUILD/nbar" bench --nic $a --nic $b --nodes 2 --where nic,host --alg dissemination:1 -i 100 -x 10 \
		--launches 3 >"$work/ratio" 2>&1
}

# under_way COUNT: a barrier is complete beside the first COUNT.
under_way() {
	[ "$(count_of "$a" barriers_completed)" -gt "$1" ]
}

# begin: barriers under way, of process $main.
begin() {
	"$oracle" -i "${1:-100000000}" $a $b >"$work/out" 2>&1 &
	main=$!
	soon under_way "$(count_of "$a" barriers_completed)"
}

# Barriers of process $main still complete, and it says nothing.
goes_on() {
	soon under_way "$(($(count_of "$a" barriers_completed) + 10))" || return
	kill $main
	wait $main
	cat "$work/out"
	[ ! -s "$work/out" ]
}

# dies COMMAND TEXT: runs COMMAND amid barriers. They must end with an error that contains TEXT.
dies() {
	begin && eval "$1" || return
	! wait $main && cat "$work/out" && grep -q "$2" "$work/out"
}

# The wire loses all for a second; then the barriers go on.
silent_for() { # SECONDS
	begin || return
	tc qdisc add dev eth0 root netem loss 100%
	sleep "$1"
	tc qdisc del dev eth0 root
	goes_on
}

# The link is down for 20 s: the host takes its NIC as lost, and the card closes the ports.
link_goes() {
	dies 'ip link set eth0 down; sleep 20; ip link set eth0 up' 'daemon at .* ended'
}

# The daemon is stopped for a second, then a member: barriers go on.
stopped() {
	local p
	begin || return
	at 1 bash -c 'kill -STOP $(cat /tmp/nicd/pid); sleep 1; kill -CONT $(cat /tmp/nicd/pid)'
	p=$(pgrep -P $main | head -n 1)
	kill -STOP $p
	sleep 1
	kill -CONT $p
	goes_on
}

no_port() {
	"$BUILD/nbar" stat "$a" | grep -q 'ports 0, groups 0'
}

ok "a daemon in the card that does not sleep" begins --idle yield
ok "a post is one write, a completion is one write" writes
ok "barriers by the NICs, and by the hosts" ratio
sed 's/^/# /' "$work/ratio"
ok "the daemon ends" ends
ok "a daemon in the card" begins
ok "barriers of 2 by each algorithm, spinning" waiting spin algorithms
ok "barriers of 2 by each algorithm, asleep" waiting block algorithms
ok "with values" "$oracle" -v 64 -i 80 $a $b
ok "signals" "$oracle" -H -i 100 $a $b
ok "a process of the card is a member, too" both_sides 300
ok "the wire loses all for a second: barriers go on" silent_for 1
ok "daemon and host are stopped for a second each: barriers go on" stopped
ok "a host is killed: the error names its rank" dies 'kill -KILL $(pgrep -P $main | tail -n 1)' 'process of rank 1 ended'
ok "the link is down for 20 s: the host takes the NIC as lost" link_goes
ok "the card has closed the ports" soon no_port
ok "the link is up: new groups work" soon "$oracle" -i 50 $a $b
ok "the daemon is killed: the error says so" dies 'at 1 bash -c "kill -KILL \$(cat /tmp/nicd/pid)"' 'daemon at .* ended'
ok "a new daemon in the card" begins
ok "new groups work" "$oracle" -i 50 $a $b
ok "the daemon ends" ends
finish
