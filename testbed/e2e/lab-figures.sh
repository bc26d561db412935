#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The figures of nbar-lab simulate, predict and tune, where they can be computed by hand; the bounds of their
# options. Quick; tune.sh has the way from a profile to a barrier.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
lab=$BUILD/nbar-lab

# figures CONDITION COMMAND...: the command writes JSON that meets the condition, a Python expression: row(ALG)
# is the row of an algorithm, r the whole result.
figures() {
	local condition=$1
	shift
	"$lab" "$@" --json "$work/json" >"$work/out" 2>&1 || { cat "$work/out"; return 1; }
	python3 - "$work/json" "$condition" <<'PYTHON'
import json, sys
r = json.load(open(sys.argv[1]))
names = [c["name"] for c in r["columns"]]
rows = {x.get("alg"): x for x in (dict(zip(names, row)) for row in r["rows"])}
row = rows.__getitem__
print(rows, r["settings"], r["notes"])
sys.exit(not eval(f"({sys.argv[2]})"))
PYTHON
}

# A call costs 2 us, a message O + L, but 300 us + L between racks.
profile() { # HOSTS RACKS O_US L_US [MEASURED]
	python3 - "$@" <<'PYTHON'
import json, sys
n, racks, o, l = map(int, sys.argv[1:5])
print(json.dumps({"nbar_profile": 1, "hosts": [f"n{i}" for i in range(n)],
    "O_ns": [[2000 if i == j else 1000 * (o if i * racks // n == j * racks // n else 300) for j in range(n)]
             for i in range(n)],
    "L_ns": [[1000 * l] * n] * n, **json.loads((sys.argv + ["{}"])[5])}))
PYTHON
}

# tunes PROFILE LINE...: nbar-lab tune prints these lines.
tunes() {
	local line profile=$1
	shift
	"$lab" tune "$profile" >"$work/out" || return 1
	cat "$work/out"
	for line in "$@"; do
		grep -qxF -- "$line" "$work/out" || { echo "missing: $line"; return 1; }
	done
}

loggp="--members 8 --alg dissemination:1 --loggp L=1000,o=200,g=0,G=0 --frame 1"
fat="--net fat-tree --hop 150 --rate 8 --frame 100 --loggp L=1000,o=200,g=0,G=0 --alg dissemination:1 --members 2"
profile 3 1 10 2 '{"flat_ns": {"linear": 14000, "dissemination:1": 48000, "dissemination:2": 30000}}' >"$work/near"
profile 12 3 5 20 >"$work/far"
ok "simulate: three rounds of o + L + o" figures \
	'abs(row("dissemination:1")["mean"] - 4.2) < 1e-6 and row("dissemination:1")["tokens"] == 24' simulate $loggp
ok "simulate: delays from host to NIC and back" figures 'abs(row("dissemination:1")["mean"] - 4.2 - 3 - 5) < 1e-6' \
	simulate $loggp --post 3 --notice 5
ok "simulate: six links of a fat tree" figures 'abs(row("dissemination:1")["mean"] - (0.2 + 6 * 0.15 + 0.1 + 0.2)) < 1e-6' \
	simulate $fat
ok "simulate: late messages and stops of cores are on the path" figures \
	'[abs(x["worst"] - 1.4 * x["path_hops"] - x["path_queue"] - x["path_noise"]) < 1e-3 < x["path_noise"] for x in rows.values()] == [True]' \
	simulate $loggp --reorder 100:50 --noise 5:1
ok "simulate: its settings and notes" figures 'r["settings"] == {"net": "dragonfly", "L_ns": 1, "o_ns": 2, "g_ns": 3, "G_ns": 4,
	"hop_ns": 5, "link_byte_ns": 8, "frame_bytes": 6, "cores": 7, "barriers": 8, "loss_percent": 9, "seed": 10} and
	r["notes"][0].startswith("8 barriers a run") and "the process held" in r["notes"][1]' simulate --net dragonfly \
	--loggp L=1,o=2,g=3,G=4 --hop 5 --rate 1 --frame 6 --cores 7 -i 8 --loss 9 --seed 10 --members 9
ok "simulate: a late host" figures '1000 <= row("dissemination:1")["mean"] <= 1010' simulate $loggp --late 7:1000
ok "simulate: a dead NIC is named" wants 1 "7 members failed; most of them blame rank 5" "$lab" simulate $loggp --dead 5
ok "simulate: costs of a profile" figures \
	'abs(row("linear")["mean"] - 30) < 1e-6 and abs(row("dissemination:2")["mean"] - 16) < 1e-6' \
	simulate --profile "$work/near" --members 3 --alg linear,dissemination:2
ok "simulate: the budget is 64 times the pull" figures 'row("dissemination:1")["failed"] == 0' simulate $loggp --budget 64
ok "simulate: a smaller one is refused" wants 2 "at least 64 times" "$lab" simulate --budget 63.9
ok "simulate: a profile of fewer hosts" wants 2 "3 hosts: a group of 4 does not fit" \
	"$lab" simulate --members 4 --profile "$work/near"
ok "predict: beside what was measured" figures \
	'[round(row(a)["predicted"], 6) for a in ("linear", "dissemination:1", "dissemination:2")] == [30, 26, 16] and
	 [row(a)["measured"] for a in ("linear", "dissemination:1", "dissemination:2")] == [14, 48, 30] and
	 abs(row("dissemination:1")["error"] + 100 * 22 / 48) < 1e-4 and row("tuned")["predicted"] == 16 and
	 "tuned: dissemination:2 among n0 n1 n2" in r["notes"] and any(n.startswith("1 of 3 pairs") for n in r["notes"])' predict "$work/near"
ok "predict: no measured barriers for some of the hosts" figures 'row("linear")["measured"] is None' \
	predict "$work/near" --hosts n1,n0,n2
ok "predict: messages to a rank that waits" figures 'row("mcs")["predicted"] < 30' \
	predict "$work/near" --formula waiting --alg mcs
# Two rounds up and two down cost 25 us each, the racks meet in 340 us, a call takes 2 us.
ok "tune: three racks meet once" tunes "$work/far" "dissemination:2 among n0 n4 n8" "  arrive tournament, release mcs: n0 n1 n2 n3" \
	"  arrive tournament, release mcs: n8 n9 n10 n11" \
	"predicted: 442.00 us; the best flat barrier, dissemination:11: 522.00 us"
# Measured / predicted: 14 / 30, 48 / 26 and 30 / 16; the first scales the prediction of 16 us.
ok "tune: measured barriers scale the prediction" tunes "$work/near" \
	"predicted: 7.47 us; the best flat barrier, linear: 14.00 us" \
	"the best flat barrier takes 0.47 times as long as predicted; median deviation of the measured flat barriers: 1.6 %"
# 16 us * 48 / 28.
profile 3 1 10 2 '{"flat_ns": {"pairwise": 48000}}' >"$work/pairwise"
ok "tune: one of them is enough" tunes "$work/pairwise" "predicted: 27.43 us; the best flat barrier, dissemination:2: 27.43 us"
ok "profile: of eight hosts by default" figures 'len(r["rows"]) == 56 and {"nodes": "8", "where": "nic", "iterations": 100,
	"warmup": 10, "ranks": "sorted"}.items() <= r["settings"].items()' profile --output "$work/own"
ok "profile: medians of 100 barriers" grep 'nbar-lab profile --where nic, wire ring, percentile 50 of 100 barriers a pair' "$work/own"
finish
