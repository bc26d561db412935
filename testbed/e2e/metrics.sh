#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Metrics of NICs for Prometheus: the text of `nbar stat --openmetrics`, also while barriers run; the
# command of the systemd unit that answers a request; the dashboard.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
dashboard=tools/stat/grafana.json
unit=firmware/platform/daemon/systemd/nbar-metrics@.service

text() {
	"$BUILD/nbar" stat --openmetrics --run-dir "$work/run"
}

# openmetrics.py refuses each of these changes of a valid text.
faults_are_found() {
	local change
	text >"$work/right" || return 1
	for change in '$d' '1d' '/^# HELP nbar_ports/d' 's/^nbar_ports{nic="n0"}/nbar_ports{nic="n1"}/' \
		's/_total{/{/' 's/{nic="n0"} 0/{nic="n0} 0/' 's/} 0$/}  0/' 's/^# TYPE nbar_groups gauge/&\n&/'; do
		sed -e "$change" "$work/right" >"$work/wrong"
		! cmp -s "$work/right" "$work/wrong" || { echo "no change: $change"; return 1; }
		! testbed/e2e/openmetrics.py <"$work/wrong" || { echo "accepted: $change"; return 1; }
	done
}

# value NAME NIC: prints the value of a sample.
value() {
	text | sed -n "s/^$1{nic=\"$2\"} //p"
}

barriers_count() {
	timeout 100 "$BUILD/oracle" -i 50 -a pairwise "$work"/run/n{0,1,2}.sock &&
		[ "$(value nbar_barriers_completed_total n1)" = 50 ] && [ "$(value nbar_barrier_seconds_count n1)" = 50 ]
}

# Each counter has the same value in the JSON and in the text.
same_as_json() {
	"$BUILD/nbar" stat --json --run-dir "$work/run" >"$work/stat" && text >"$work/text" || return 1
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

# A server in place of systemd runs the command of the unit for one request.
unit_answers() {
	mkdir -p "$work/bin" && ln -sf "$(realpath "$BUILD/nbar")" "$work/bin/nbar" || return 1
	PATH=$work/bin:$PATH timeout 60 python3 - "$unit" "$work/run" >"$work/text" <<'PYTHON' || return 1
import re, shlex, socket, subprocess, sys, urllib.request, threading
unit, run_dir = sys.argv[1:]
command = shlex.split(re.search("(?m)^ExecStart=(.*)$", open(unit).read())[1])
# What systemd does with the text of a command.
command[2] = command[2].replace("$$", "$").replace(r"\r", "\r").replace(r"\n", "\n").replace("/run/nbar", run_dir)
listener = socket.create_server(("127.0.0.1", 0))
def serve():
    with listener.accept()[0] as s:
        subprocess.run(command, stdin=s, stdout=s, check=True)
server = threading.Thread(target=serve)
server.start()
with urllib.request.urlopen(f"http://127.0.0.1:{listener.getsockname()[1]}/metrics") as answer:
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    sys.stdout.write(answer.read().decode())
server.join()
PYTHON
	testbed/e2e/openmetrics.py <"$work/text"
}

no_nic() {
	! "$BUILD/nbar" stat --openmetrics --run-dir "$work/none" >"$work/none.out" && [ ! -s "$work/none.out" ]
}

daemon "$work/run" --nics 3 --idle sleep || exit 1
ok "OpenMetrics, each line, and each metric of the dashboard" eval 'text | testbed/e2e/openmetrics.py "$dashboard"'
ok "the strict reader finds faults" faults_are_found
ok "barriers are counted" barriers_count
ok "each counter is that of the JSON" same_as_json
if command -v promtool >/dev/null; then
	ok "promtool check metrics" eval 'text | promtool check metrics'
else
	skip "promtool check metrics" "there is no promtool here: apt-get install prometheus"
fi
ok "the command of the systemd unit answers a request" unit_answers
ok "no text without a NIC" no_nic
finish
