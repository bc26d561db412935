#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Metrics of a daemon for Prometheus: both text formats, by TCP and by a socket file, and while
# barriers run; the options; the dashboard.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nicd=$BUILD/nbar-nicd
dashboard=firmware/platform/daemon/grafana.json

# fetch ADDRESS [ACCEPT]: prints the body of /metrics; its HTTP header is in $work/head.
fetch='
import socket, sys
where, accept = sys.argv[1], sys.argv[2]
if where.startswith("unix:"):
    s = socket.socket(socket.AF_UNIX)
    s.connect(where[5:])
else:
    host, port = where.rsplit(":", 1)
    s = socket.create_connection((host.strip("[]"), int(port)))
s.sendall(f"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n".encode())
data = b""
while part := s.recv(65536):
    data += part
head, body = data.split(b"\r\n\r\n", 1)
open(sys.argv[3], "wb").write(head)
sys.stdout.buffer.write(body)
'
fetch() {
	timeout 60 python3 -c "$fetch" "$1" "${2:-*/*}" "$work/head"
}

# strict FORMAT ADDRESS [DASHBOARD]: openmetrics.py accepts the text.
strict() {
	local accept='*/*'
	[ "$1" = plain ] || accept='application/openmetrics-text;version=1.0.0,text/plain;q=0.5'
	fetch "$2" "$accept" >"$work/text" || return 1
	cat "$work/head"
	grep -q '^HTTP/1.1 200 OK' "$work/head" && testbed/e2e/openmetrics.py "$1" ${3:+"$3"} <"$work/text"
}

# openmetrics.py refuses each of these changes of a valid text.
faults_are_found() {
	local change
	fetch "$1" "application/openmetrics-text" >"$work/right" || return 1
	for change in '$d' '1d' '/^# HELP nbar_ports/d' 's/^nbar_ports{nic="n0"}/nbar_ports{nic="n1"}/' \
		's/_total{/{/' 's/{nic="n0"} 0/{nic="n0} 0/' 's/} 0$/}  0/' 's/^# TYPE nbar_groups gauge/&\n&/'; do
		sed -e "$change" "$work/right" >"$work/wrong"
		! cmp -s "$work/right" "$work/wrong" || { echo "no change: $change"; return 1; }
		! testbed/e2e/openmetrics.py open <"$work/wrong" || { echo "accepted: $change"; return 1; }
	done
}

# value ADDRESS NAME NIC: prints the value of a sample.
value() {
	fetch "$1" | sed -n "s/^$2{nic=\"$3\"} //p"
}

# The text counts the barriers that a program has run. It may be old by a tenth of a second.
barriers_count() {
	local i
	timeout 100 "$BUILD/oracle" -i 50 -a pairwise "$1"/n{0,1,2}.sock || return 1
	for i in $(seq 100); do
		[ "$(value "$2" nbar_barriers_completed_total n1)" = 50 ] &&
			[ "$(value "$2" nbar_barrier_seconds_count n1)" = 50 ] && return 0
		sleep 0.1
	done
	fetch "$2"
	return 1
}

# same_as_stat RUN_DIR ADDRESS: each counter has the same value in nbar stat and in the text.
same_as_stat() {
	"$BUILD/nbar" stat --json --run-dir "$1" >"$work/stat" && fetch "$2" >"$work/text" || return 1
	python3 - "$work/stat" "$work/text" <<'PYTHON'
import json, sys
text = set(open(sys.argv[2]).read().split("\n"))
seen = 0
for nic in json.load(open(sys.argv[1]))["nics"]:
    for name, value in nic["counters"].items():
        line = f'nbar_{name}_total{{nic="{nic["nic"]}"}} {value}'
        if line not in text:
            sys.exit("not there: " + line)
        seen += 1
print(seen, "counters")
sys.exit(seen < 60)
PYTHON
}

# refused TEXT ARGUMENTS...: --check-config refuses them with this text.
refused() {
	local text=$1
	shift
	"$nicd" --nics 1 "$@" --check-config >"$work/refused" 2>&1
	[ $? = 2 ] && grep -q -- "$text" "$work/refused" || { cat "$work/refused"; return 1; }
}

in_a_file() {
	printf 'nics 2\nmetrics unix:%s/in-file\n' "$work" >"$work/conf"
	"$nicd" --config "$work/conf" --check-config
}

off_by_default() {
	daemon "$work/off" --nics 1 --idle sleep || return 1
	cat "$work/off.out"
	! grep -q metrics "$work/off.out"
}

port_in_use() {
	! "$nicd" --run-dir "$work/second" --nics 1 --metrics "$tcp" 2>"$work/err" && grep "cannot listen" "$work/err"
}

promtool_accepts() {
	fetch "$1" >"$work/text" && promtool check metrics <"$work/text"
}

file_is_gone() {
	kill "$last_pid" && wait "$last_pid" && [ ! -e "$work/file/metrics" ]
}

daemon "$work/tcp" --nics 3 --idle sleep --metrics 127.0.0.1:0 || exit 1
tcp=127.0.0.1:$(sed -n 's/^metrics: port //p' "$work/tcp.out")
ok "OpenMetrics, each line" strict open "$tcp"
ok "the strict reader finds faults" faults_are_found "$tcp"
ok "the older text format, each line" strict plain "$tcp"
ok "the daemon has each metric of the dashboard" strict plain "$tcp" "$dashboard"
ok "barriers are counted" barriers_count "$work/tcp" "$tcp"
ok "each counter is that of nbar stat" same_as_stat "$work/tcp" "$tcp"
if command -v promtool >/dev/null; then
	ok "promtool check metrics" promtool_accepts "$tcp"
else
	skip "promtool check metrics" "there is no promtool here: apt-get install prometheus"
fi
ok "a port in use is refused" port_in_use
mkdir -m 700 "$work/file"
ok "a daemon with a socket file, by its configuration file" eval \
	'printf "nics 1\nidle sleep\nmetrics unix:%s/metrics\n" "$work/file" >"$work/conf" &&
	 daemon "$work/file" --config "$work/conf" && strict open "unix:$work/file/metrics"'
ok "the daemon removes the socket file at its end" file_is_gone
ok "off by default" off_by_default
ok "a configuration file may have the option" in_a_file
ok "a host name is no address" refused "unix:PATH or ADDRESS:PORT" --metrics localhost:9480
ok "a name that a NIC's socket could have is refused" refused "end in .sock" --run-dir "$work/r" --metrics "unix:$work/r/m.sock"
finish
