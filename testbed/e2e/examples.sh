#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The examples of the library run, against a real daemon.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
within=
NBAR_RUN_DIR=$work/run
export NBAR_RUN_DIR

hello() { # three processes synchronise
	local i members=
	mkdir -p "$work/meet"
	for i in 0 1 2; do
		"$BUILD/examples/hello" n$i "$work/meet" $i 3 &
		members="$members $!"
	done
	for i in $members; do
		wait "$i" || return 1
	done
	[ -z "$(ls "$work/meet")" ]
}

no_daemon() { # without a NIC, the message names the next step
	! "$BUILD/examples/hello" n9 "$work/meet" 0 1 >"$work/told" 2>&1 &&
		grep -q 'nbar-nicd --nic name=n9' "$work/told"
}

events() {
	"$BUILD/examples/events" n0 >"$work/told" || return 1
	cat "$work/told"
	grep -q '^waiting for rank 1$' "$work/told" && grep -q '^complete$' "$work/told" &&
		grep -q '^given up: .*aborted' "$work/told"
}

cg() { # NIC: all processes get the same bits, on each wire
	timeout 60 "$BUILD/examples/cg" "$1" 5 >"$work/told" || return 1
	cat "$work/told"
	[ "$(wc -l <"$work/told")" -eq 5 ] && [ "$(sort -u "$work/told" | wc -l)" -eq 1 ] &&
		[ "$(awk '{ print ($1 > 5 && $1 < 1000) }' "$work/told" | sort -u)" = 1 ]
}

bad_kind() {
	! "$BUILD/examples/openmp" senseless >"$work/told" 2>&1 && grep -q '"senseless"' "$work/told"
}

ok "a daemon starts" daemon "$NBAR_RUN_DIR" --nics 3
ok "hello: barriers of three processes" hello
ok "hello: without its NIC, the message says what to do" no_daemon
ok "events: the late rank is named in an event loop, then the group is aborted" events
for nic in n0 host:wire=shm,dir="$work/shm" host:wire=udp,bind=127.0.0.1:0; do
	ok "cg: dot products by barriers with a value, ${nic%%,*}" cg "$nic"
done
if [ ! -x "$BUILD/examples/openmp" ]; then
	skip "openmp: the threads of a process" "this compiler has no OpenMP"
elif [[ ${SAN:-} == *thread* ]]; then
	skip "openmp: the threads of a process" "ThreadSanitizer does not know OpenMP's own barriers"
else
	for kind in sense-reverse mcs tournament dissemination:1 dissemination:3; do
		ok "openmp: $kind: threads in one team, no NIC" "$BUILD/examples/openmp" $kind
		ok "openmp: $kind: threads in two teams, through a NIC" "$BUILD/examples/openmp" $kind n1
	done
	ok "openmp: an unknown kind is refused with a message" bad_kind
fi
finish
