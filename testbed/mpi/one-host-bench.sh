#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The numbers of `nbar mpi-bench`, quickly and without privileges, on one machine, as one-host.sh. For make
# check-mutants; test-bench.sh is deeper. With one iteration of two ranks, the figures determine each other.
set -u
. "$(dirname "$0")/one-host-lib.sh"

# FIRST ARGUMENTS...: FIRST ranks with the first NIC, and one with the second.
openmpi() {
	local first=$1
	shift
	timeout -k 5 60 mpirun.openmpi -np "$first" -x NBAR_NIC=n0 "$bin/nbar" mpi-bench "$@" : \
		-np 1 -x NBAR_NIC=n1 "$bin/nbar" mpi-bench "$@"
}

mpich() {
	local first=$1
	shift
	timeout -k 5 60 mpiexec.mpich -genv LD_PRELOAD "$bin/libnbar-mpi-mpich.so" -np "$first" -env NBAR_NIC n0 \
		"$bin/nbar" mpi-bench "$@" : -np 1 -env NBAR_NIC n1 "$bin/nbar" mpi-bench "$@"
}

# MPI FIRST TEST ARGUMENTS...
numbers() {
	local mpi=$1 first=$2 test=$3
	shift 3
	$mpi "$first" --test "$test" "$@" --seed 9 --json "$work/json" --raw "$work/raw" >"$work/out" 2>"$work/err" ||
		{ cat "$work/err"; return 1; }
	python3 - "$mpi" "$((first + 1))" "$test" "$work/json" "$work/raw" <<'PY'
import json, os, re, statistics, sys
mpi, ranks, test, path, raw = sys.argv[1:]
got, ranks = json.load(open(path)), int(ranks)
columns = [c["name"] for c in got["columns"]]
rows = [dict(zip(columns, r)) for r in got["rows"]]
settings, machine, notes = got["settings"], got["machine"], got["notes"]
n, blocks = settings["iterations"], settings["blocks"]

def like(a, b, part=1e-6, at_least=1e-6):
    assert abs(a - b) <= part * abs(b) + at_least, (a, b, rows)

glue = {"openmpi": "component coll/nbar", "mpich": "PMPI library"}[mpi]
assert machine["nbar"] == glue and machine["wire"] == "ring" and machine["wait"] == os.environ.get("OMPI_MCA_coll_nbar_wait", "auto"), machine
assert re.match({"openmpi": "Open MPI v", "mpich": "MPICH "}[mpi] + r"\d", machine["mpi"]) and \
    machine["algorithm"] == os.environ.get("OMPI_MCA_coll_nbar_algorithm", "auto")
want = {"test": test, "where": "nic", "nic": "n0", "ranks": ranks, "hosts": 2, "least_ranks_a_host": 1,
        "most_ranks_a_host": ranks - 1, "crowded": "yes" if ranks > len(os.sched_getaffinity(0)) else "no", "seed": 9}
assert want.items() <= settings.items(), settings
assert settings["warmup"] == {"busy": 10}.get(test, 2), settings
assert got["experiment"] == "mpi-" + test
assert notes[0] == f"{ranks} ranks on 2 hosts, {machine['mpi']}, nbar: {glue}"
assert notes[1] == "where nic, NIC n0, wire ring"
assert notes[2] == f"{n} iteration{'s'} in {blocks} block{'s' * (blocks > 1)}, medians over the blocks"
of = {r["method"]: r for r in rows}
first = {"barrier": "avg", "ibarrier": "overall", "busy": "wait", "app": "execution"}[test]
lines = [line.strip().split(",") for line in open(raw)][1:]
assert len(lines) == blocks * len(rows)
for k, r in enumerate(rows):
    name = r["method"] + (f" application {r['application']}" if test == "app" else "")
    mine = [line for line in lines if line[0] == name]
    assert [line[2] for line in mine] == [str(b) for b in range(blocks)], mine
    ns = [float(line[3]) for line in mine]
    like(r[first] * 1e3, statistics.median(ns), 0, 1)
    if "low" in r and blocks > 1:
        like(r["low"] * 1e3, min(ns), 0, 1), like(r["high"] * 1e3, max(ns), 0, 1)
    base = [b for b in rows if b["method"] == "mpi" and b.get("application") == r.get("application")][0]
    if "speedup" in r:
        assert (r["speedup"] is None) == (r is base)
        r is base or like(r["speedup"], base[first] / r[first])
    if "p50" in r:
        assert 0 < r["p50"] <= r["p99"] <= r["p99.9"], r
if test == "barrier":
    for r in rows:
        assert r["min"] <= r["avg"] <= r["max"] and r["skew"] >= 0, r
        if ranks == 2 and n == 1:
            like(r["avg"], (r["min"] + r["max"]) / 2)
            like(r["p50"], r["min"], 0.02), like(r["p99.9"], r["max"], 0.02)
    # The scheduler may delay a rank in the barrier before, too.
    assert ranks > 2 or n > 1 or any(r["skew"] <= r["max"] - r["min"] + 1e3 for r in rows), rows
    assert notes[-1] == f"MPI adds {of['nbar']['avg'] - of['lib']['avg']:.2f} us to the library's own barrier (nbar - lib)"
elif test == "ibarrier":
    for r in rows:
        assert r["compute"] >= settings["compute_us"] > 0 and r["overall"] > r["compute"] and r["pure"] > 0
        like(r["overlap"], min(100, max(0, 100 * (1 - (r["overall"] - r["compute"]) / r["pure"]))), 1e-4)
elif test == "busy":
    for r in rows:
        like(r["wait"], r["max"]), like(r["p50"], r["max"])
        r is of["mpi"] or like(r["of_mpi"], 100 * r["wait"] / of["mpi"]["wait"])
    assert settings["busy_rank"] == 1 and settings["compute_us"] == 2000
else:
    steps = {"1": [10, 20, 30, 40, 50, 60, 70, 80], "own 2": [50, 75.5]}
    for r in rows:
        assert r["steps"] == len(steps[r["application"]])
        like(r["compute"], sum(steps[r["application"]]))
        assert r["execution"] >= r["compute"], r
        like(r["efficiency"], r["compute"] / r["execution"])
    assert settings["compute_by"] == "spin" and notes[4] == "a rank that computes spins"
PY
}

# says MPI STATUS TEXT ARGUMENTS...: it fails with this status, and one rank says the text.
says() {
	local mpi=$1 status=$2 text=$3
	shift 3
	$mpi 2 "$@" >"$work/out" 2>&1
	[ $? = "$status" ] && [ "$(grep -c -- "$text" "$work/out")" = 1 ] || { cat "$work/out"; return 1; }
}

# A launcher, but a program that is not there.
no_program() {
	PMI_RANK=0 "$work/alone/nbar" mpi-bench >"$work/out" 2>&1
	[ $? = 1 ] && grep -q "there is no nbar-mpi-bench-mpich in $work/alone or $work/alone/../libexec/nbar: build nbar where mpicc.mpich is" "$work/out"
}

ok "a daemon starts" daemon "$work/d" --nics 2
for mpi in openmpi mpich; do
	if [ ! -x "$bin/mpi-oracle.$mpi" ]; then
		skip "mpi-bench of $mpi" "no $mpi here"
		continue
	fi
	ok "$mpi: settings, and medians of blocks" numbers $mpi 2 barrier --method mpi,nbar,lib,p2p:mcs -i 21 -x 2 --blocks 2
	ok "$mpi: a busy rank" numbers $mpi 1 busy --method mpi,nbar,lib -i 1 --blocks 1 --compute 2000 --busy-rank 1
	ok "$mpi: wrong usage" says $mpi 2 "nonsense" --test nonsense
	[ $mpi = openmpi ] || continue
	OMPI_MCA_coll_nbar_min_nodes=9 ok "$mpi: why the MPI runs the barriers" says $mpi 1 \
		"the MPI runs these barriers: it is over fewer hosts than the minimum; NBAR_MPI_VERBOSE" -i 1 -x 0
	ok "$mpi: one barrier" numbers $mpi 1 barrier --method mpi,nbar,lib -i 1 -x 2 --blocks 1
	OMPI_MCA_coll_nbar_wait=yield OMPI_MCA_coll_nbar_algorithm=mcs ok "$mpi: overlap, settings of the component" numbers $mpi 1 ibarrier --method mpi,nbar,lib -i 3 -x 2 --blocks 1 --compute 700
	ok "$mpi: applications" numbers $mpi 1 app --method mpi,nbar,lib -i 2 -x 2 --blocks 1 --app 1 --steps 50,75.5 --vary 0 --compute-by spin
done
mkdir "$work/alone"
cp "$bin/nbar" "$work/alone/nbar"
ok "a program that is not there" no_program
finish
