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
		grep -q '"experiment": "one-to-many"' "$work/json"
}

ok "one-to-many: the ping-pong and its model" ping_pong
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
