#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `nbar-lab threads`: every barrier that was built runs, nbar's own and those of other libraries;
# results can be read; an interrupted run prints its points; wrong usage gets a message. The figures are
# not checked.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
lab=$BUILD/nbar-lab
few="-i 50 -x 5 --launches 2 --limit 20"

# refuses WORDS OPTION...: the command ends with status 2, and prints WORDS.
refuses() {
	local words=$1
	shift
	"$lab" threads "$@" >"$work/out" 2>&1
	[ $? = 2 ] && grep -q -e "$words" "$work/out" || { cat "$work/out"; return 1; }
}

# reads BARRIER...: the results have the right rows for these barriers with 2 and 3 threads, and for
# the transfer of a cache line if there are two processors. --raw has a line per thread and
# repetition.
reads() {
	python3 - "$work/t.json" "$work/t.csv" "$work/t.raw" "$@" <<'END'
import csv, json, os, sys
r = json.load(open(sys.argv[1]))
kinds = sys.argv[4:]
assert r["experiment"] == "threads" and r["complete"] is True
names = [c["name"] for c in r["columns"]]
rows = [dict(zip(names, row)) for row in r["rows"]]
want = [(t, k) for t in (2, 3) for k in kinds]
assert [(x["threads"], x["barrier"]) for x in rows if x["barrier"] != "transfer"] == want, rows
assert len(rows) - len(want) == (len(os.sched_getaffinity(0)) > 1)
assert all(x["low"] <= x["time"] <= x["high"] and x["time"] > 0 for x in rows), rows
for t in 2, 3:
    best = [x["best"] for x in rows if x["threads"] == t and x["of"] == "nbar"]
    assert min(best) == 1, best
lines = [l for l in open(sys.argv[2]) if not l.startswith("#@")]
assert len(list(csv.reader(lines))) == len(rows) + 1
raw = list(csv.DictReader(open(sys.argv[3])))
got = sorted((x["point"], x["rank"], x["index"]) for x in raw if "transfer" not in x["point"])
assert got == sorted((f"{k}/{t}", str(m), str(l)) for t, k in want for m in range(t)
                     for l in range(2)), got
END
}

measures() {
	"$lab" threads $few --threads 2,3 --kinds "${1// /,}" --json "$work/t.json" \
		--csv "$work/t.csv" --raw "$work/t.raw" && reads $1
}

all_there_is() {
	"$lab" threads $few --launches 1 --threads 2 >"$work/out" 2>&1 || return 1
	cat "$work/out"
	grep -q 'sense-reverse *nbar' "$work/out" && grep -q 'pthread *libc' "$work/out"
}

more_threads_than_processors() {
	local kind
	for kind in sense-reverse mcs tournament dissemination:1 dissemination:16 pthread; do
		"$lab" threads $few --launches 1 --threads 1,33,64 --kinds $kind || return 1
	done
}

interrupted() {
	local pid i
	"$lab" threads -i 100000 --launches 200 --limit 50 --threads 2 --kinds mcs,pthread \
		--json "$work/long.json" --raw "$work/long.raw" >"$work/out" 2>&1 &
	pid=$!
	pids="$pids $pid"
	for i in $(seq 200); do
		[ "$(grep -cE '^(mcs|pthread)/' "$work/long.raw" 2>/dev/null)" -ge 3 ] 2>/dev/null && break
		sleep 0.1
	done
	kill -INT $pid
	wait $pid
	[ $? = 1 ] || return 1
	cat "$work/out"
	grep -Eq '(mcs|pthread) ' "$work/out" && [ ! -s "$work/long.json" ]
}

unwritable() {
	! "$lab" threads $few --json "$work/none/t.json" >"$work/out" 2>&1 &&
		grep -q "none/t.json" "$work/out"
}

own="sense-reverse mcs tournament dissemination:1 dissemination:2"
ok "nbar's own kinds, and that of pthread" measures "$own pthread"
for peer in omp-gcc omp-llvm ck-barrier; do
	kinds=$peer
	program=omp-barrier-${peer#omp-}
	if [ $peer = ck-barrier ]; then
		kinds="ck-centralized ck-combining ck-dissemination ck-tournament ck-mcs"
		program=$peer
	fi
	if [ -x "$BUILD/libexec/nbar/$program" ]; then
		ok "$peer: runs beside nbar's own kinds" measures "sense-reverse $kinds"
	else
		skip "$peer: runs beside nbar's own kinds" "its compiler or library was not found"
	fi
done
ok "by default all kinds that were built run" all_there_is
ok "one thread, and more threads than processors" more_threads_than_processors
ok "an interrupted run prints its points, and writes no file of results" interrupted
ok "an unknown kind is refused" refuses "'senseless'" --kinds senseless
ok "an empty kind is refused" refuses "''" --kinds ""
ok "a dissemination of 17 ways is refused" refuses "dissemination:17" --kinds dissemination:17
ok "a kind twice is refused" refuses "twice" --kinds mcs,mcs
ok "0 threads are refused" refuses "'0'" --threads 0
ok "too many threads are refused" refuses "'257'" --threads 257
ok "0 iterations are refused" refuses "'0'" -i 0
ok "0 repetitions are refused" refuses "'0'" --launches 0
ok "an unknown option is refused" refuses "--nodes" --nodes 2
ok "an argument is refused" refuses "is not an option" 16
ok "a result that cannot be written is refused before the work" unwritable
ok "--help lists the options" grep -q -- --limit <("$lab" threads --help)
finish
