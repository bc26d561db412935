# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the end-to-end scripts share: TAP lines, daemons that are ended by pid, a run folder.
# Sourced, with BUILD set. Whoever sources it calls finish at the end.

BUILD=${BUILD:-build}
count=0
failures=0
pids=
work=$(mktemp -d "${TMPDIR:-/tmp}/nbar-e2e.XXXXXX")

cleanup() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null
	done
	for pid in $pids; do
		wait "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# ok TEXT COMMAND...: one test; what the command said is shown if it fails.
ok() {
	local text=$1
	shift
	count=$((count + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $count - $text"
	else
		sed 's/^/# /' "$work/said"
		failures=$((failures + 1))
		echo "not ok $count - $text"
	fi
}

skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

# daemon RUN_DIR ARGUMENTS...: starts a soft NIC and waits until its NICs are ready. $within, if
# set, is the command it runs under.
daemon() {
	local dir=$1 wanted i
	shift
	mkdir -p -m 700 "$dir" # whatever the umask: a daemon wants it for itself
	${within:-} "$BUILD/nbar-nicd" --run-dir "$dir" "$@" >"$dir.out" 2>"$dir.err" &
	pids="$pids $!"
	last_pid=$!
	wanted=1
	for i in $(seq 100); do
		[ "$(grep -c ready "$dir.out")" -ge $wanted ] && [ -S "$dir/${first_nic:-n0}.sock" ] && return 0
		kill -0 "$last_pid" 2>/dev/null || break
		sleep 0.1
	done
	sed 's/^/# nbar-nicd: /' "$dir.out" "$dir.err"
	return 1
}

finish() {
	echo "1..$count"
	[ "$failures" = 0 ]
	exit $?
}
