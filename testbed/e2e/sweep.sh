#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The experiments: each runs, its JSON and CSV can be read, it can be interrupted, and it reports
# errors. The figures are not checked.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
lab=$BUILD/nbar-lab
own_tmpdir

# reads FILE EXPERIMENT ROWS: the JSON is complete. Each row has a value per column, and settings
# and machine are there.
reads() {
	python3 - "$@" <<'END'
import json, sys
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

# SIGINT after the first points: they are printed.
interrupted() {
	local file=$work/long.json raw=$work/long.raw i
	"$lab" sweep granularity --nodes 2 -i 50 -x 1 --launches 10 --points 4 --idle yield \
		--json "$file" --raw "$raw" >"$work/out" 2>"$work/err" &
	local pid=$!
	pids="$pids $pid"
	for i in $(seq 200); do
		[ "$(cut -d, -f1 "$raw" 2>/dev/null | sort -u | wc -l)" -ge 4 ] && break
		sleep 0.05
	done
	kill -INT $pid
	wait $pid
	[ $? = 1 ] || return 1
	cat "$work/out" "$work/err"
	[ ! -e "$file" ] && grep -q '^    2  nic' "$work/out" && grep -q interrupted "$work/err"
}

few="--idle yield -i 20 -x 2 --nodes 2,3 --launches 2"
ok "bench: every plan, a range of sizes" experiment bench $((4 * $(algs | wc -l))) nbar bench -i 20 -x 2 --nodes 3-4 --alg all
ok "granularity" experiment granularity 24 nbar-lab sweep granularity $few --compute 1-20 --points 6
ok "granularity: a list, a process per node, MCS" experiment granularity 4 nbar-lab sweep granularity -i 20 -x 2 \
	--nodes 3 --compute 0.5,10 --drivers nodes --alg mcs
ok "efficiency" experiment efficiency 8 nbar-lab sweep efficiency $few --efficiency 0.3,0.6
ok "arrival" experiment arrival 16 nbar-lab sweep arrival $few --compute 50,100 --vary 0,20
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
app --scale 0
app --what
END
for what in "sweep granularity" "sweep efficiency" "sweep arrival" "sweep combined" app; do
	ok "$what: a folder that cannot be written is refused first" \
		wants 1 "cannot write /proc/none/x" "$lab" $what -i 100000000 --json /proc/none/x
	ok "$what: help" sh -c "$lab $what --help | grep -q '^usage: nbar-lab $what'"
done
ok "nothing is left behind" nothing_left
finish
