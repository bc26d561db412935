# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the tests of the wire "verbs" share. Sourced with `guests` set to the number of guests
# that the test needs; `cards`: those that are aarch64 machines if NBAR_ARM64 is set; `link`: the two that
# have a second network. On the machine, this file starts the guests, and guest 0 runs the test again.
# So all code after this file runs in guest 0 (with NBAR_NATIVE=1, on the machine).

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
if [ -z "${NBAR_GUESTS:-}" ]; then
	testbed/guests/guest run ${NBAR_NATIVE:+--native} ${NBAR_RELEASE:+--release "$NBAR_RELEASE"} ${NBAR_ARM64:+--arm64 "$cards"} ${link:+--link "$link"} -n "$guests" --processors "$((guests > 1 ? 1 : 2))" --limit "${TEST_LIMIT:-1800}" -- "$0"
	rc=$?
	if [ $rc = 77 ]; then
		echo "ok 1 - $(basename "$0")${NBAR_RELEASE:+, $NBAR_RELEASE} # SKIP no guests: see above"
		echo "1..1"
		exit 0
	fi
	exit $rc
fi
TMPDIR=/tmp
. testbed/e2e/lib.sh
oracle=$BUILD/oracle
within=
limit= # words before the oracle's command
run=0 # number of the last run that used the guests' shared memory
# A guest is slow: early PULLs would only delay the answers.
times="--idle sleep --pull-us 20000 --budget-ms 8000"
device=$(rdma link 2>/dev/null | awk '$1 == "link" { sub("/.*", "", $2); print $2; exit }')
if [ -z "$device" ]; then
	skip "$(basename "$0")" "this machine has no RDMA device"
	finish
fi

# The mode that "write" selects on this device ($suits), and the other write mode ($other). A soft
# device has no entry "device".
if [ -e "/sys/class/infiniband/$device/device" ]; then
	suits=write-rc other=write-uc
else
	suits=write-uc other=write-rc
fi

at() { # K COMMAND...: in guest K, or in "each"
	"$NBAR_AGENT" "$@"
}

# nics NAME KEYS...: starts a daemon in this guest, with run folder $work/NAME. It has a NIC for
# each further argument, n0, n1, ..., in mode $mode and with these keys ("-": no more keys).
nics() {
	local name=$1 word i=0 args=()
	shift
	for word; do
		args+=(--nic "name=n$i,wire=verbs,mode=$mode$([ "$word" = - ] || echo ",$word")")
		i=$((i + 1))
	done
	first_nic=n0 daemon "$work/$name" $times "${args[@]}"
}

statistic() { # COUNTER: of the device
	rdma statistic show link "$device/1" | grep -o "$1 [0-9]*" | cut -d ' ' -f 2
}

# Shell code that starts a daemon in its guest. The daemon's output is in /tmp/nicd.
start='rm -rf /tmp/nicd; mkdir -m 700 /tmp/nicd; cd /tmp/nicd
setsid "$0" --run-dir /tmp/nicd "$@" >out 2>err </dev/null & echo $! >pid
for i in $(seq 300); do [ -S n0.sock ] && exit; kill -0 $! || break; sleep 0.1; done; cat out err; exit 1'

start_all() { # NIC: in each guest
	at each bash -c "$start" "$BUILD/nbar-nicd" $times --nic "$1"
}

# Shell code that ends it. It must have said nothing but what kernels before 6.18 lack.
stop='p=$(cat /tmp/nicd/pid) && [ -e /tmp/nicd/err ] && kill $p || exit 1
while kill -0 $p 2>/dev/null; do sleep 0.1; done; ! grep -v "run in the daemon, not in the kernel" /tmp/nicd/err'

stop_all() {
	at each bash -c "$stop"
}

# gather PID...: waits for these oracles, then prints their output. Fails with 124 if one was stopped by
# its limit.
gather() {
	local p rc=0 its
	for p; do
		wait "$p"
		its=$?
		[ $its = 0 ] || [ $rc = 124 ] || rc=$its
	done
	cat "$work"/said.*
	rm -f "$work"/said.*
	return $rc
}

# across N OPTIONS...: barriers over guests 0 to N-1, one member in each.
across() {
	local n=$1 k p=()
	shift
	run=$((run + 1))
	for ((k = 0; k < n; k++)); do
		at $k $limit "$oracle" -m "$NBAR_SHARED" -k $run -n "$n" -r $k "$@" /tmp/nicd/n0.sock >"$work/said.$k" 2>&1 &
		p+=($!)
	done
	gather "${p[@]}"
}

count_of() { # NIC COUNTER
	"$BUILD/nbar" stat --json "$1" | grep -o "\"$2\": [0-9]*" | cut -d ' ' -f 2
}

resource() { # KIND: how many objects of this kind the device has: "qp", "mr", "cq", "pd" or "ctx"
	rdma resource show "$device" | grep -o " $1 [0-9]*" | head -n 1 | cut -d ' ' -f 3
}

# soon COMMAND...: tries it every tenth of a second until it succeeds; no try begins after 300 s.
soon() {
	local end=$((SECONDS + 300))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}
