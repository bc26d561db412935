#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# nbar stat --watch: a terminal, and its ends; and nbar stat --last.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
stat="$BUILD/nbar stat --run-dir $work/d"

# ends SIGNAL: nbar stat --watch ends with status 0 after SIGNAL.
ends() {
	local i
	rm -f "$work/ends" # of an earlier call: its text would say that this command is ready
	$stat --watch 1 >"$work/ends" &
	local pid=$!
	pids="$pids $pid"
	for i in $(seq 600); do
		[ -s "$work/ends" ] && break
		sleep 0.1
	done
	kill -"$1" $pid
	wait $pid
}

# On a terminal of 12 rows and 40 columns the screens fit; Ctrl-C ends the command.
terminal='
import fcntl, os, pty, re, struct, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 40, 0, 0))
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(slave, fd)
    os.execvp(sys.argv[1], sys.argv[1:])
os.close(slave)
out, ended = b"", False
while True:
    try:
        part = os.read(master, 65536)
    except OSError:
        break
    if not part:
        break
    out += part
    if not ended and out.count(b"\033[J") >= 2:
        os.write(master, b"\003")
        ended = True
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
screens = re.findall(rb"\033\[H(.*?)\033\[J", out, re.S)
rows = [screen.split(b"\r\n") for screen in screens]
print(status, out.decode(errors="replace"))
widest = max(len(row.replace(b"\033[K", b"").strip(b"\r")) for screen in rows for row in screen)
sys.exit(not (status == 0 and len(screens) >= 2 and max(map(len, rows)) <= 12 and widest <= 40
              and b"n1 " in screens[-1]))
'
terminal() {
	timeout 100 python3 -c "$terminal" $stat --watch 1
}

no_reader() {
	local status
	timeout 100 $stat --watch 1 2>"$work/err" | head -n 1
	status=${PIPESTATUS[0]}
	cat "$work/err"
	[ "$status" = 141 ] && [ ! -s "$work/err" ] # SIGPIPE
}

# A group with one member has run three barriers, each complete when its host arrived.
last_tokens() {
	local i rc=1
	mkdir "$work/meet" && mkfifo "$work/in" || return 1
	NBAR_RUN_DIR=$work/d "$BUILD/member" n0 "$work/meet" 0 1 <"$work/in" >"$work/member" 2>&1 &
	pids="$pids $!"
	exec 7>"$work/in"
	printf '\n\n\n' >&7
	for i in $(seq 600); do
		$stat --last n0 >"$work/last" || break
		grep -q '^    own host last: 3 barriers$' "$work/last" &&
			grep -q '^  latency of 3 barriers, ' "$work/last" && rc=0 && break
		sleep 0.1
	done
	cat "$work/last" "$work/member"
	[ $rc = 0 ] && $stat --last --json n0 | python3 -c '
import json, sys
nic = json.load(sys.stdin)["nics"][0]
last, latency = nic["groups"][0]["last"], nic["latency"]
print(last, latency)
sys.exit(not (last["ranks"] == [{"rank": 0, "barriers": 3, "seconds": 0.0, "most": 0.0}] and
              latency == {"barriers": 3, "seconds": 0.0, "buckets": [{"below": 5.12e-07, "barriers": 3}]}))'
	rc=$?
	exec 7>&-
	return $rc
}

daemon "$work/d" --nics 2 --idle sleep || exit 1
ok "SIGINT ends the command with status 0" ends INT
ok "SIGTERM ends the command with status 0" ends TERM
if python3 -c 'import pty; pty.openpty()' 2>/dev/null; then
	ok "on a terminal, screens fit; Ctrl-C ends the command" terminal
else
	skip "on a terminal" "this system has no terminal to give: mount /dev/pts"
fi
ok "without a reader the command ends" no_reader
ok "last tokens of a group" last_tokens
finish
