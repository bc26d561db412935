#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The daemon as a service: configuration files, readiness and signs of life, the units.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
units=firmware/platform/daemon/systemd
nicd=$BUILD/nbar-nicd

# check_config LINE...: runs --check-config with a file of these lines.
check_config() {
	printf '%s\n' "$@" >"$work/conf"
	"$nicd" --config "$work/conf" --check-config
}

# refused TEXT LINE...: a file of these lines is refused with TEXT.
refused() {
	local text=$1 rc
	shift
	check_config "$@" >"$work/refused" 2>&1
	rc=$?
	cat "$work/refused"
	[ $rc = 2 ] && grep -q -- "$text" "$work/refused"
}

same_as_command_line() {
	check_config "# a comment" "" "  nic   name=a,wire=ring  " "nic name=b,wire=udp,bind=127.0.0.1:0" \
		"budget-ms 2000" "mode 0660" "idle sleep" >"$work/valid" || return 1
	cat "$work/valid"
	grep -q 'number of NICs: 2' "$work/valid"
}

example_is_valid() {
	sed '/^group/d' "$units/nicd.conf" >"$work/conf"
	"$nicd" --config "$work/conf" --check-config
}

command_line_comes_last() {
	printf 'nics 1\nidle nonsense\n' >"$work/conf"
	! "$nicd" --config "$work/conf" --check-config || return 1
	printf 'nics 1\nbudget-ms 1\n' >"$work/conf"
	! "$nicd" --config "$work/conf" --check-config || return 1
	"$nicd" --config "$work/conf" --budget-ms 1000 --check-config
}

file_faults() {
	! "$nicd" --config "$work/absent" --check-config || return 1
	! "$nicd" --config "$work" --check-config || return 1
	head -c 70000 /dev/zero | tr '\0' '#' >"$work/long"
	! "$nicd" --config "$work/long" --check-config || return 1
	printf 'nics 1\n\0\n' >"$work/binary"
	! "$nicd" --config "$work/binary" --check-config
}

# A service manager: records the messages that it receives, until the last.
manager='
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
s.settimeout(60)
state = ""
while state != "STOPPING=1":
    state = s.recv(4096).decode()
    print(state, flush=True)
'

# The control thread leaves the processor of the polling thread to it, if there is another.
shares_no_processor() {
	python3 - "$1" <<'PYTHON'
import os, sys
polls = os.sched_getaffinity(int(sys.argv[1]))
tasks = [(open(f"/proc/{sys.argv[1]}/task/{t}/comm").read().strip(), os.sched_getaffinity(int(t)))
         for t in os.listdir(f"/proc/{sys.argv[1]}/task")]
print(polls, tasks)
control = [cpus for name, cpus in tasks if name == "nbar-control"]
sys.exit(len(polls) != 1 or len(control) != 1 or len(os.sched_getaffinity(0)) > 1 and bool(polls & control[0]))
PYTHON
}

serve() {
	python3 -c "$manager" "$work/notify" >"$work/states" &
	local of_manager=$! i
	pids="$pids $of_manager"
	for i in $(seq 100); do
		grep -q bound "$work/states" && break
		sleep 0.1
	done
	printf 'nic name=n0,wire=ring\nidle sleep\ntrace 16\n' >"$work/conf"
	NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=300000 daemon "$work/service" --config "$work/conf" || return 1
	for i in $(seq 200); do
		[ "$(grep -c WATCHDOG=1 "$work/states")" -ge 2 ] && break
		sleep 0.1
	done
	shares_no_processor "$last_pid" && [ -e "$work/service/n0.trace" ] || return 1
	kill "$last_pid"
	wait "$last_pid" || return 1
	wait "$of_manager" || return 1
	cat "$work/states" "$work/service.err"
	[ ! -s "$work/service.err" ] && [ ! -e "$work/service/n0.trace" ] || return 1
	sed -n 2p "$work/states" | grep -q '^READY=1$' && [ "$(grep -c WATCHDOG=1 "$work/states")" -ge 2 ]
}

no_manager() {
	NOTIFY_SOCKET=$work/nobody within="prlimit --nofile=256:" daemon "$work/alone" --nics 1 || return 1
	# As many descriptors as it may have.
	awk '/^Max open files/ { exit $4 != $5 }' "/proc/$last_pid/limits" || return 1
	kill "$last_pid"
	wait "$last_pid" || return 1
	cat "$work/alone.err"
	grep -q 'service manager' "$work/alone.err"
}

journal() {
	local stream rc
	: >"$work/journal"
	stream=$(stat -c '%d:%i' "$work/journal")
	JOURNAL_STREAM=$stream "$nicd" --nics nonsense 2>"$work/journal"
	cat "$work/journal"
	grep -q '^<3>nbar-nicd: ' "$work/journal" || return 1
	"$nicd" --nics nonsense 2>"$work/journal"
	grep -q '^nbar-nicd: ' "$work/journal"
}

exposure() {
	local figure
	figure=$(systemd-analyze security --offline=true "$1" | sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p')
	echo "exposure: $figure"
	awk -v f="$figure" 'BEGIN { exit !(f > 0 && f <= 2.0) }'
}

ok "options in a configuration file have the same effect as on the command line" same_as_command_line
ok "the example of a configuration is valid" example_is_valid
ok "the command line overrides a configuration file" command_line_comes_last
ok "files that cannot be read" file_faults
ok "an unknown word names its line" refused "line 2" "nics 1" "nick 2"
ok "an option that takes no value" refused "no such option" "nics 1" "list-algs yes"
ok "a configuration file cannot name another" refused "no such option" "config other"
ok "a word without a value" refused "has no value" "nics"
ok "a wrong value names its line" refused "line 3" "nics 1" "" "mode 9"
ok "no NIC" refused "no NIC to run" "mode 0600"
ok "the daemon reports that it is ready, and signs of life" serve
ok "a wire that is misspelt is wrong usage" wants 2 "bind" "$nicd" --run-dir "$work/usage" --nic wire=udp,bind=here
ok "an address that is not here is a failure" wants 1 "192.0.2.1" "$nicd" --run-dir "$work/usage" --nic wire=udp,bind=192.0.2.1:7000
ok "a daemon" daemon "$work/taken" --nics 1
ok "its run directory is refused to another" wants 1 "another daemon of nbar, process" \
	timeout 20 "$nicd" --run-dir "$work/taken" --nic name=other,wire=ring
ok "a service manager that is gone" no_manager
ok "lines have a priority prefix in the journal, and nowhere else" journal
if systemd-analyze security --help 2>/dev/null | grep -q offline; then
	ok "exposure of nbar-nicd.service is at most 2.0" exposure "$BUILD/nbar-nicd.service"
	ok "exposure of nbar-nicd@.service is at most 2.0" exposure "$units/nbar-nicd@.service"
else
	skip "exposure of the units" "systemd-analyze of systemd 250 or later is missing"
fi
finish
