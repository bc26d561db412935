# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the scripts of the testbed share: messages of commands, TAP lines, a temporary
# folder, processes that are ended by pid. Sourced; it has only functions, so sourcing it changes
# nothing.

# --- commands: $name is theirs, $failure the exit status of die ---------------------------------

die() {
	echo "$name: $*" >&2
	exit "${failure:-1}"
}

wrong() {
	echo "$name: $*; see ${help:-$name} --help" >&2
	exit 2
}

is_number() { # OPTION TEXT LOW HIGH
	[[ $2 =~ ^[0-9]{1,8}$ ]] && [ "$((10#$2))" -ge "$3" ] && [ "$((10#$2))" -le "$4" ] ||
		wrong "$1 wants a number from $3 to $4, not '$2'"
}

# --- a folder $work and processes $pids that go when the script ends ----------------------------

make_work() {
	pids=
	work=$(mktemp -d "${TMPDIR:-/tmp}/nbar-test.XXXXXX") || exit 1
	trap cleanup EXIT
	trap 'exit 1' INT TERM
}

end_processes() {
	local pid
	[ -z "$pids" ] || kill $pids 2>/dev/null
	for pid in $pids; do
		wait "$pid" 2>/dev/null
	done
	pids=
}

cleanup() {
	end_processes
	rm -rf "$work"
}

# Temporary files of programs go to a separate folder, which nothing_left checks.
own_tmpdir() {
	export TMPDIR=$work/tmp
	mkdir -p "$TMPDIR"
}

# Prints the processes that were started for files in this folder.
started() {
	grep -lsz -e "^$TMPDIR/" /proc/[0-9]*/cmdline
}

# True if no file and no process is left. A process that is ending gets a moment.
nothing_left() {
	local i
	for i in $(seq 50); do
		[ -z "$(ls -A "$TMPDIR")" ] && [ -z "$(started)" ] && return 0
		sleep 0.1
	done
	ls -A "$TMPDIR"
	started
	return 1
}

# --- TAP ----------------------------------------------------------------------------------------

count=0
failures=0

# ok TEXT COMMAND...: one test; if it fails, the output of the command is shown.
ok() {
	local text=$1
	shift
	count=$((count + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $count - $text"
	else
		tr -d '\000' <"$work/said" | sed -e 's/^/# /' -e '$a\' # ends with a newline
		failures=$((failures + 1))
		echo "not ok $count - $text"
	fi
}

skip() { # TEXT REASON
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

finish() {
	echo "1..$count"
	[ "$failures" = 0 ]
	exit $?
}

# wants STATUS WORDS COMMAND...: exit status, and words on stderr, are as expected. Both outputs are
# in $work/out and $work/err.
wants() {
	local status=$1 words=$2 got
	shift 2
	"$@" >"$work/out" 2>"$work/err"
	got=$?
	cat "$work/out" "$work/err"
	[ $got = "$status" ] && { [ -z "$words" ] || grep -q -e "$words" "$work/err"; }
}
