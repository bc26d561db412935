#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests nbar-lab one-to-many. Does not check the figures.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
lab=$BUILD/nbar-lab
own_tmpdir
run="-i 20 -x 2 --peers 4"
tune="--nodes 2,4 --alg dissemination:1,dissemination:2,dissemination:3,mcs --barriers 100"

ping_pong() {
	"$lab" one-to-many $run "$@" >"$work/out" || return 1
	cat "$work/out"
	[ "$(grep -cE '^ping-pong +[2-5] +[1-4] +host' "$work/out")" = 4 ] &&
		grep -qE '^(one process drives all nodes|a process a node); wire (ring|udp); 1 repetition$' "$work/out" &&
		grep -q '^LoP, fitted to the medians: o(P) = [0-9.]*/P + [0-9.]* us, L(P)' "$work/out" &&
		grep -qE 'model suggests, by size: 2: 1, 4: [1-8], .* 1024: [1-8]$' "$work/out"
}

# Tunes sizes 2 and 4. Dissemination has three parameters at size 4, and one at size 2, where others
# would give the same plan; MCS has none. Each runs by NIC and by host.
tuned() {
	"$lab" one-to-many $run $tune --tune --json "$work/json" \
		--launches 2 >"$work/out" || return 1
	cat "$work/out"
	[ "$(grep -cE '^barrier +2 ' "$work/out")" = 4 ] &&
		[ "$(grep -cE '^barrier +4 ' "$work/out")" = 8 ] &&
		[ "$(grep -c 'best' "$work/out")" -ge 4 ] &&
		[ "$(grep -c '^best of those measured, run by the' "$work/out")" = 2 ] &&
		[ "$(grep -c 'best, model' "$work/out")" = "$(grep -o 'suggests at [0-9]*' "$work/out" | awk '{ n += $3 } END { print n }')" ] &&
		grep -q '"experiment": "one-to-many"' "$work/json"
}

# Without --alg and --nodes: 1 to 8 ways, at sizes up to 32, at each size fewer ways than members.
all_ways() {
	"$lab" one-to-many -i 2 -x 0 --peers 2 --tune --barriers 2 --where host >"$work/out" && cat "$work/out" &&
		[ "$(awk '$1 == "barrier" { n[$2]++; ways[$5] } END { print n[2], n[4], n[8], n[16], n[32], length(ways) }' "$work/out")" = \
			"1 3 7 8 8 8" ]
}

ok "one-to-many: the ping-pong and its model" ping_pong
ok "one-to-many: by default all ways" all_ways
ok "one-to-many: with a process per node" ping_pong --drivers nodes
ok "one-to-many: over udp" ping_pong --wire udp
ok "one-to-many: the best of each size" tuned
for wrong in "--peers 1" "--peers 513" "--peers x" "--barriers 0" "--nodes 0" "--what"; do
	ok "one-to-many: '${wrong//$work/DIR}' is wrong usage" \
		wants 2 'nbar-lab one-to-many --help' "$lab" one-to-many $wrong
done
ok "one-to-many: help" "$lab" one-to-many --help
ok "nothing is left in the temporary folder" nothing_left
finish
