#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The wire "verbs" between machines: four guests, each with a device, a daemon and a member. The
# oracles share memory, and check each barrier over all guests.
set -u
guests=${NBAR_TEST_GUESTS:-4} # at least 2
. "$(dirname "$0")/lib.sh"
if [ "$NBAR_GUESTS" = 0 ]; then
	skip "verbs between machines" "natively, these tests know one machine"
	finish
fi

algorithms() {
	local alg
	for alg in pairwise dissemination:3 mcs binomial linear custom; do
		across $NBAR_GUESTS -i 40 -a $alg || return
	done
	[ "$mode" = ud ] || return 0
	for alg in pairwise mcs; do # their plans differ where the size is no power of two, in each mode alike
		across $((NBAR_GUESTS - 1)) -i 20 -a $alg || return
	done
}

packets() {
	local before
	before=$(statistic sent_pkts)
	across 2 -i 300 && echo "packets sent by guest 0: $(($(statistic sent_pkts) - before))" || return
	[ $(($(statistic sent_pkts) - before)) -ge 300 ]
}

loss() {
	at each tc qdisc add dev eth0 root netem loss 5% || return
	across $NBAR_GUESTS -i 60 -a dissemination:1 && across 2 -i 60 && across $NBAR_GUESTS -i 60 -v 64
	local rc=$?
	at each tc -s qdisc show dev eth0 >"$work/lost"
	at each tc qdisc del dev eth0 root
	grep -E 'dropped [1-9]' "$work/lost" || { echo "no frame was lost"; rc=1; }
	echo "asked for again by guest 0: $(at 0 "$BUILD/nbar" stat --json /tmp/nicd/n0.sock | grep -o '"pulls_sent": [0-9]*')"
	return $rc
}

# under_way COUNT: a barrier is complete beside the first COUNT of guest 0's NIC.
under_way() {
	[ "$(count_of /tmp/nicd/n0.sock barriers_completed)" -gt "$1" ]
}

# dies COMMAND TEXT: runs COMMAND in guest 1 during barriers. They must end with an error that
# contains TEXT, in at most 700 s.
dies() {
	local before limit="timeout 700" rc
	before=$(count_of /tmp/nicd/n0.sock barriers_completed)
	(soon under_way "$before" && at 1 bash -c "$1") &
	across $NBAR_GUESTS -i 100000000 -a dissemination:2 >"$work/out" 2>&1
	rc=$?
	wait $!
	cat "$work/out"
	[ $rc != 0 ] && [ $rc != 124 ] && grep -q "$2" "$work/out"
}

again() {
	at 1 bash -c "$start" "$BUILD/nbar-nicd" $times --nic "name=n0,wire=verbs,mode=$mode" && across $NBAR_GUESTS -i 50
}

whole() {
	for ((n = 2; n <= NBAR_GUESTS; n++)); do
		ok "$mode: 100 barriers of $n guests" across $n -i 100
	done
	ok "$mode: by each algorithm" algorithms
	ok "$mode: each member in turn comes late" across "$NBAR_GUESTS" -i 8 -d 100
	ok "$mode: the device carried every signal" packets
	ok "$mode: a host is killed: the error names its rank" dies 'pkill -KILL -x oracle' 'rank 1'
}

nic_dies() {
	ok "$mode: a NIC is killed: the error names its rank" dies 'kill -KILL $(cat /tmp/nicd/pid)' 'rank 1'
	ok "$mode: a new NIC in its place, and new groups work" again
}

# What each daemon says from here on is an error.
link_was_said() {
	at 1 grep 'is down' /tmp/nicd/err && at 1 grep 'is up again' /tmp/nicd/err && at each truncate -s 0 /tmp/nicd/err
}

# The link is down until the member behind it has failed, and 15 s more. Where guests get little of the
# machine's processors, their NICs count the retry budget slower than a clock does.
down='(sleep 1; ip link set eth0 down
for i in $(seq 300); do pgrep -x oracle || break; sleep 1; done
sleep 15; ip link set eth0 up) </dev/null >/dev/null 2>&1 &'

link_goes() {
	ok "$mode: a link goes down: the error names the rank behind it" dies "$down" 'rank 1'
	ok "$mode: the link is up again, and new groups work" soon across "$NBAR_GUESTS" -i 50
	ok "$mode: the daemon has said so" link_was_said
}

# All tests in mode $mode if NBAR_MODES is set. Otherwise, to save time, mode $other runs only the
# tests of loss and of the link, and the other modes run all tests except that of the link.
suite() {
	ok "$mode: a daemon in each guest" start_all "name=n0,wire=verbs,mode=$mode"
	if [ "$mode" != $other ] || [ -n "${NBAR_MODES:-}" ]; then
		whole
		nic_dies
	fi
	ok "$mode: with 5 % loss, also with values" loss
	[ "$mode" != $other ] && [ -z "${NBAR_MODES:-}" ] || link_goes
	ok "$mode: the daemons end" stop_all
}

# The guests share memory, in which the oracles check barriers. guests-add uses the first page of
# it, the oracles do not.
add_all() {
	local k p=() rc=0
	for ((k = 0; k < NBAR_GUESTS; k++)); do
		at $k "$BUILD/guests-add" "$NBAR_SHARED" $k "$NBAR_GUESTS" &
		p+=($!)
	done
	for k in "${p[@]}"; do
		wait "$k" || rc=1
	done
	return $rc
}

ok "no addition to shared memory gets lost" add_all
for mode in ${NBAR_MODES:-ud write $other}; do
	suite
done
finish
