#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# nbar doctor on this machine: without a daemon, with a daemon, and with a socket without a daemon.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh

# doctor STATUS TEXT OPTION...: nbar doctor ends with STATUS and prints TEXT.
doctor() {
	local status=$1 text=$2 rc
	shift 2
	"$BUILD/nbar" doctor "$@" >"$work/doctor" 2>&1
	rc=$?
	cat "$work/doctor"
	[ $rc = "$status" ] && grep -q -- "$text" "$work/doctor"
}

json() {
	"$BUILD/nbar" doctor --json --run-dir "$work/a" | python3 -c '
import json, sys
found = json.load(sys.stdin)
assert {f["grade"] for f in found} <= {"ok", "slow"}, found
assert all(f["next"] for f in found if f["grade"] == "slow"), found
'
}

stale_socket() {
	mkdir -m 700 "$work/stale"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$work/stale/n7.sock"
	doctor 1 'n7 does not answer' --run-dir "$work/stale"
}

ok "no run directory" doctor 1 'bad .*run directory' --run-dir "$work/none"
ok "a daemon starts" daemon "$work/a" --nics 2
ok "its NICs answer" doctor 0 'n1 answers' --run-dir "$work/a"
ok "the address of an in-process NIC, and why it is this one" doctor 0 'in-process NIC .*address .*(' \
	--run-dir "$work/a"
ok "JSON" json
ok "a socket without a daemon" stale_socket
ok "wrong usage" doctor 2 'all arguments must be options' now
finish
