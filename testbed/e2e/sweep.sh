#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The experiments: each runs, its JSON and CSV can be read, it can be interrupted, and it reports
# errors. The figures of a row determine each other; times are not checked.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
lab=$BUILD/nbar-lab
own_tmpdir

# reads FILE EXPERIMENT ROWS: the JSON is complete. Each row has a value per column, and settings
# and machine are there. The rows are those of the settings, in order.
reads() {
	python3 - "$@" <<'END'
import itertools, json, re, sys
r = json.load(open(sys.argv[1]))
assert r["experiment"] == sys.argv[2], r["experiment"]
assert len(r["rows"]) == int(sys.argv[3]), len(r["rows"])
assert r["complete"] is True
for row in r["rows"]:
    assert len(row) == len(r["columns"]), row
names = [c["name"] for c in r["columns"]]
assert names[:3] == ["nodes", "where", "alg"], names
for key in "cpu", "cores", "kernel", "wire", "idle":
    assert key in r["machine"], key
for key in "launches", "seed", "drivers":
    assert key in r["settings"], key

def like(a, b):
    assert abs(a - b) <= 1e-6 * abs(b) + 1e-4, (a, b, row)

settings, experiment = r["settings"], sys.argv[2]
drivers = {"one for all nodes": "one process drives all nodes", "one a node": "a process a node"}[settings["drivers"]]
assert any(n.startswith(drivers + "; wire ") for n in r["notes"]), r["notes"]
axes = {"granularity": {"compute": "compute_us"}, "arrival": {"compute": "compute_us", "variation": "vary_percent"},
        "app": {"application": None}, "combined": {"kind": "kind", "threads": "threads"},
        "efficiency": {"efficiency": "efficiency"}}.get(experiment, {})
steps = {k[12:]: [float(x) for x in v.split(",")] for k, v in settings.items() if k.startswith("application ")}
lists = [settings[k].split(",") if k else list(steps) for k in ["nodes", "alg", *axes.values(), "where"]]
value = lambda x: round(float(x), 2) if re.fullmatch(r"[\d.]+", str(x)) else x
rows = {}
for row in r["rows"]:
    row = dict(zip(names, row))
    rows[tuple(value(row[k]) for k in ["nodes", "alg", *axes, "where"])] = row
assert list(rows) == [tuple(map(value, x)) for x in itertools.product(*lists)], list(rows)
time = {"efficiency": "compute", "app": "execution", "bench": "mean", "combined": "mean"}.get(experiment, "loop")
faster = apart = teams = 0
for at, row in rows.items():
    t, low, high = row[time], row["low"], row["high"]
    if experiment != "efficiency" and settings["launches"] == 2:
        like(t, (low + high) / 2)
    assert low is None or high is None or t is None or 0 < low <= t <= high, row
    host, release = (rows.get((*at[:-1], other), {}) for other in ("host", "nic-release"))
    nic = row["where"] == "nic"
    if experiment == "efficiency":
        assert t is None or t >= row["total"] * row["efficiency"] - 1e-4, row
        assert (row["less_compute"] is not None) == bool(nic and t and host.get(time)), row
        row["less_compute"] is None or like(row["less_compute"], 100 * (1 - t / host[time]))
        continue
    assert (row["speedup"] is not None) == (nic and time in host), row
    row["speedup"] is None or like(row["speedup"], host[time] / t)
    if experiment == "granularity":
        like(row["barrier"], t - row["compute"])
    elif experiment == "arrival":
        like(row["total_variation"], 2 * row["compute"] * row["variation"] / 100)
        nic and like(row["difference"], host[time] - t)
    elif experiment == "app":
        assert row["steps"] == len(steps[row["application"]])
        like(row["compute"], sum(steps[row["application"]]) * settings["scale"])
        like(row["efficiency"], row["compute"] / t)
    elif experiment == "combined" and nic:
        like(row["release"], release[time] / t)
        if row["threads"] > 1:
            teams, faster = teams + 1, faster + (t < release[time])
            apart += high is not None and release["low"] is not None and high < release["low"]
assert experiment != "combined" or (f"polling is faster than the release stage at {faster} of {teams} points of two threads or more, "
                                    f"at {apart} of them with intervals apart") in r["notes"], r["notes"]
END
}

# experiment NAME ROWS COMMAND...: runs the experiment with all outputs, which have ROWS rows.
experiment() {
	local name=$1 rows=$2
	shift 2
	"$BUILD/$@" --check --json "$work/$name.json" --csv "$work/$name.csv" \
		--raw "$work/$name.raw" || return 1
	reads "$work/$name.json" "$name" "$rows" || return 1
	[ "$(grep -vc '^#@' "$work/$name.csv")" = $((rows + 1)) ] &&
		grep -q '^#@experiment='"$name" "$work/$name.csv" &&
		[ "$(grep -cE ',[0-9]+,[0-9]+,[0-9]+$' "$work/$name.raw")" -gt "$rows" ]
}

# POINTS COMMAND...: interrupts it as soon as its raw file has so many points and a head.
cut_off() {
	local raw=$work/long.raw points=$1 pid
	shift
	rm -f "$raw"
	"$lab" "$@" --raw "$raw" >"$work/out" 2>"$work/err" &
	pid=$!
	pids="$pids $pid"
	until [ "$(cut -d, -f1 "$raw" 2>/dev/null | sort -u | wc -l)" -gt $points ]; do
		kill -0 $pid || return
		sleep 0.05
	done
	kill -INT $pid
	wait $pid
	[ $? = 1 ]
}

# SIGINT after the first points: they are printed.
interrupted() {
	local file=$work/long.json
	cut_off 3 sweep granularity --nodes 2 -i 50 -x 1 --launches 10 --points 4 --idle yield --json "$file" || return 1
	cat "$work/out" "$work/err"
	[ ! -e "$file" ] && grep -q '^    2  nic' "$work/out" && grep -q interrupted "$work/err"
}

# COMMAND...: without options, its settings are those that its help names.
defaults() {
	cut_off 1 "$@" --json - && "$lab" "$@" --help | python3 -c '
import json, re, sys
text, settings, last = sys.stdin.read(), json.load(open(sys.argv[1]))["settings"], sys.argv[-1]
print(settings)
keys = {"-i,": "iterations", "--launches": "launches", "--nodes": "nodes", "--vary": "vary_percent", "--scale": "scale",
        "--compute": "compute_us", "--points": "compute_us", "--efficiency": "efficiency", "--threads": "threads", "--kind": "kind"}
found = {o: re.search(rf"^ *{o} [^()]*\(([^;)]*)", text, re.M) for o in keys}
assert sum(map(bool, found.values())) >= 3
for option in filter(found.get, keys):
    want, got = found[option][1].split(","), str(settings[keys[option]]).split(",")
    if option == "--points":
        got = [len(got)]
    elif re.search(r"\d-", want[0]):
        want, got = want[0].split("-"), [got[0], got[-1]]
    number = lambda x: float(x) if re.fullmatch(r"[\d.]+", str(x)) else x
    assert list(map(number, want)) == list(map(number, got)), (option, want, got)
assert settings["warmup"] == (1 if last == "app" else settings["iterations"] // 10)
assert last != "app" or [k for k in settings if k.startswith("app")] == ["application 1", "application 2", "application 3"]
' "$work/out" "$@"
}

few="--idle yield -i 20 -x 2 --nodes 2,3 --launches 2"
ok "bench: every plan, a range of sizes" experiment bench $((4 * $(algs | wc -l))) nbar bench -i 20 -x 2 --nodes 3-4 --alg all
ok "granularity" experiment granularity 24 nbar-lab sweep granularity $few --compute 1-20 --points 6
ok "granularity: a list, a process per node, MCS" experiment granularity 4 nbar-lab sweep granularity -i 20 -x 2 \
	--nodes 3 --compute 0.5,10 --drivers nodes --alg mcs
ok "efficiency" experiment efficiency 8 nbar-lab sweep efficiency $few --efficiency 0.3,0.6
ok "arrival" experiment arrival 16 nbar-lab sweep arrival $few --compute 50,100 --vary 0,100
ok "app: two applications of the literature and two of the user" experiment app 16 nbar-lab app -i 2 --nodes 2,3 --launches 1 \
	--app 1,2 --steps 5 --steps 1,2.5 --scale 0.1
ok "app: only by NIC" experiment app 1 nbar-lab app -i 2 --nodes 2 --launches 1 --app 1 --where nic
ok "combined: two kinds, every barrier of every thread checked" experiment combined 24 nbar-lab sweep combined \
	$few --threads 1,3 --kind sense-reverse,mcs
ok "combined: over udp, all kinds" experiment combined 12 nbar-lab sweep combined -i 20 -x 0 --idle yield --nodes 3 \
	--launches 1 --threads 2 --kind all --alg tournament --wire udp
ok "an interrupted run prints its points, and writes no file of results" interrupted
while read -r words; do
	ok "wrong usage: $words" wants 2 'nbar-lab .*--help' "$lab" $words
done <<'END'
sweep
sweep everything
sweep granularity --nodes 0
sweep granularity --compute 0
sweep granularity --compute 9-3
sweep granularity --points 1
sweep efficiency --efficiency 1
sweep efficiency --efficiency 0.5,,0.9
sweep arrival --vary 101
sweep arrival --alg fastest
sweep combined --threads 0
sweep combined --threads 1025
sweep combined --kind fastest
sweep combined --kind dissemination:0
sweep combined --where threads
sweep combined --drivers 1
app --app 4
app --steps 1,x
app --vary 1,2
app --vary 101
app --scale 1001
app --steps 0.05
sweep arrival --compute 0.05
sweep arrival --compute 1000001
sweep efficiency --efficiency 0.04
sweep efficiency --efficiency 1.0
app --scale 0
app --what
END
for what in "sweep granularity" "sweep efficiency" "sweep arrival" "sweep combined" app; do
	ok "$what: a folder that cannot be written is refused first" \
		wants 1 "cannot write /proc/none/x" "$lab" $what -i 100000000 --json /proc/none/x
	ok "$what: settings without options" defaults $what
	ok "$what: help" sh -c "$lab $what --help | grep -q '^usage: nbar-lab $what'"
done
ok "nothing is left behind" nothing_left
finish
