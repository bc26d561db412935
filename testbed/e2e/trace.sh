#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# nbar trace: the timeline of real barriers is right; traces of another machine and of a daemon that
# was killed; missing and foreign files.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nbar=$BUILD/nbar

# timeline MEMBERS BARRIERS SLACK TEXT ARGUMENTS...: nbar trace writes JSON with a slice for each
# barrier of each member, on tracks where slices nest, and with an arrow for each token. No arrow
# arrives more than SLACK us before it left. TEXT is on stderr.
reader='
import collections, json, re, sys
path, members, barriers, slack = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
events = json.load(open(path))["traceEvents"]
seen, with_barriers = collections.Counter(), set()
tracks, sent = collections.defaultdict(list), {}
for e in events:
    if e["ph"] == "X":
        tracks[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        if m := re.fullmatch(r"barrier (\d+): .*", e["name"]):
            seen[int(m[1])] += 1
            with_barriers.add((e["pid"], e["tid"]))
    elif e["ph"] == "s":
        sent[e["id"]] = e["ts"]
    elif e["ph"] == "f" and e["ts"] < sent[e["id"]] - slack:
        sys.exit(f"arrow {e} left at {sent[e['"'"'id'"'"']]}")
for slices in tracks.values():
    ends = []
    for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= begin + 1e-9:
            ends.pop()
        if ends and end > ends[-1] + 1e-9:
            sys.exit(f"slices {begin} to {end} and to {ends[-1]} do not nest")
        ends.append(end)
want = {epoch: members for epoch in range(1, barriers + 1)}
tokens = sum(e["ph"] == "s" and e["name"] == "TOKEN" for e in events)
outs = sum(e["ph"] == "X" and e["name"].startswith("TOKEN to") for e in events)
print(len(seen), "barriers,", tokens, "arrows of tokens,", outs, "tokens")
sys.exit(seen != want or len(with_barriers) != members or not tokens or tokens > outs)
'
timeline() {
	"$nbar" trace -o "$work/timeline" "${@:5}" >"$work/notes" 2>&1
	local rc=$?
	cat "$work/notes"
	[ $rc = 0 ] && python3 -c "$reader" "$work/timeline" "$1" "$2" "$3" && grep -q "$4" "$work/notes"
}

# The trace has as many frames as the NICs have counted: not fewer than the counters before nbar
# trace, and not more than the counters after it.
as_counted() {
	"$nbar" stat --json --run-dir "$work/d" >"$work/before" &&
		"$nbar" trace --run-dir "$work/d" -o "$work/counted" &&
		"$nbar" stat --json --run-dir "$work/d" >"$work/after" || return 1
	python3 - "$work/before" "$work/counted" "$work/after" <<'PYTHON'
import json, sys
def counted(path, counter):
    return sum(nic["counters"][counter] for nic in json.load(open(path))["nics"])
events = json.load(open(sys.argv[2]))["traceEvents"]
for counter, name in (("tokens_sent", "TOKEN to"), ("pulls_sent", "PULL to"), ("laters_sent", "LATER to")):
    before, after = counted(sys.argv[1], counter), counted(sys.argv[3], counter)
    noted = sum(e["ph"] == "X" and e["name"].startswith(name) for e in events)
    print(counter, before, noted, after)
    if not before <= noted <= after:
        sys.exit(1)
PYTHON
}

# With --slowest, the trace has what lies in the window of the longest barrier, to within 2 ns, and no
# more. The NICs may write events meanwhile: so it is compared with whole traces before and after.
slowest() {
	"$nbar" trace --run-dir "$work/d" -o "$work/whole" &&
		"$nbar" trace --run-dir "$work/d" --slowest -o "$work/slowest" &&
		"$nbar" trace --run-dir "$work/d" -o "$work/later" || return 1
	python3 - "$work"/{whole,slowest,later} <<'PYTHON'
import collections, json, sys
def slices(path):
    return [e for e in json.load(open(path))["traceEvents"] if e["ph"] == "X"]
def names(events):
    return collections.Counter((e["pid"], e["tid"], e["name"]) for e in events)
def inside(events, one, more):
    begin, end = one["ts"] - one["dur"] / 10 - more, one["ts"] + 1.1 * one["dur"] + more
    return names(e for e in events if e["ts"] <= end and e["ts"] + e["dur"] * is_barrier(e) >= begin)
def is_barrier(e):
    return e["name"].startswith("barrier ")
whole, part, later = map(slices, sys.argv[1:])
longest = max(e["dur"] for e in whole if is_barrier(e))
print(len(whole), len(part), longest)
sys.exit(not any(inside(whole, e, -0.002) <= names(part) <= inside(later, e, 0.002)
                 for e in whole if is_barrier(e) and e["dur"] == longest))
PYTHON
}

# Changes a trace as if it came from another machine: another boot, and a clock that is ahead by an
# hour.
other_machine() {
	mkdir -p "$work/far" && cp "$work/u/n1.trace" "$work/far/n1.trace" || return 1
	python3 - "$work/far/n1.trace" <<'PYTHON'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
capacity, written = struct.unpack_from("<I", data, 8)[0], struct.unpack_from("<Q", data, 160)[0]
data[112:148] = b"another-boot".ljust(36, b"\0")
for i in range(min(capacity, written)):
    at = 4096 + 32 * i
    struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] + 3600 * 10**9)
open(sys.argv[1], "wb").write(data)
PYTHON
}

killed() {
	kill -9 "$last_pid"
	wait "$last_pid" 2>/dev/null
	"$nbar" trace --run-dir "$1" -o /dev/null n0
}

goes_with_the_daemon() {
	daemon "$1" --nics 1 --idle sleep && [ ! -e "$1/n0.trace" ]
}

daemon "$work/d" --nics 4 --idle sleep --trace 100000 || exit 1
ok "barriers of 4" "$BUILD/oracle" -i 30 -a pairwise "$work"/d/n{0,1,2,3}.sock
ok "a slice per barrier and member, an arrow per token" timeline 4 30 0 'slowest: barrier' --run-dir "$work/d"
ok "the trace has all tokens that the counters have" as_counted
ok "only the slowest barrier" slowest
ok "traces named by their files" timeline 4 30 0 'NICs: 4' "$work"/d/n{0,1,2,3}.trace
ok "no such NIC" wants 1 'start the daemon with --trace' "$nbar" trace --run-dir "$work/d" n9
ok "no such run directory" wants 1 "no trace in $work/none: No such file or directory: start nbar-nicd with --trace" \
	"$nbar" trace --run-dir "$work/none"
ok "a run directory without a trace" wants 1 "no trace in $work/d/empty: start nbar-nicd with --trace" \
	eval 'mkdir "$work/d/empty" && "$nbar" trace --run-dir "$work/d/empty"'
ok "a file that is not a trace" wants 1 'not a trace of a daemon' "$nbar" trace "$work/d/nicd.lock" ./Makefile
ok "too many traces" wants 2 'at most [0-9]* traces' "$nbar" trace $(yes "$work/d/n0.trace" | head -n 257)
ok "a wrong number" wants 2 'not a number' "$BUILD/nbar-nicd" --nics 1 --trace 0
ok "a daemon with a configuration file, over UDP" eval \
	'printf "nic wire=udp,bind=127.0.0.1:0\nnic wire=udp,bind=127.0.0.1:0\ntrace 8192\nidle sleep\n" >"$work/conf" &&
	 daemon "$work/u" --config "$work/conf"'
ok "barriers of 2 over UDP" "$BUILD/oracle" -i 100 -a dissemination:1 "$work"/u/n{0,1}.sock
ok "their timeline" timeline 2 100 0 'NICs: 2' --run-dir "$work/u"
ok "a file of another machine" other_machine
ok "clocks of two machines are aligned" timeline 2 100 0.001 'aligned by [0-9]* frames' "$work/u/n0.trace" \
	"$work/far/n1.trace"
ok "a clock is named once; a run directory with one trace" eval \
	'[ "$("$nbar" trace -o /dev/null "$work/u/n0.trace" "$work"/far/n1.trace{,} 2>&1 | grep -c "^clock of")" = 1 ] &&
	 "$nbar" trace -o /dev/null --run-dir "$work/far"'
ok "the trace of a daemon that was killed" killed "$work/u"
ok "the next daemon removes this trace" goes_with_the_daemon "$work/u"
finish
