#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests nbar-lab one-to-many, and a daemon with the tune file that it writes. Does not check the
# figures.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nbar=$BUILD/nbar
lab=$BUILD/nbar-lab
nicd=$BUILD/nbar-nicd
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
	"$lab" one-to-many $run $tune --tune-file "$work/tune" --json "$work/json" \
		--launches 2 >"$work/out" || return 1
	cat "$work/out" "$work/tune"
	[ "$(grep -cE '^barrier +2 ' "$work/out")" = 4 ] &&
		[ "$(grep -cE '^barrier +4 ' "$work/out")" = 8 ] &&
		[ "$(grep -c 'best' "$work/out")" -ge 4 ] &&
		[ "$(grep -c '^best of those measured, run by the' "$work/out")" = 2 ] &&
		[ "$(head -n 1 "$work/tune")" = 'nbar-tune 1' ] &&
		[ "$(grep -cE '^[24] (dissemination:[123]|mcs) # [0-9.]+ us$' "$work/tune")" = 2 ] &&
		grep -q '"experiment": "one-to-many"' "$work/json"
}

# The daemon accepts the tune file, and auto selects the algorithm of the file.
auto_is() {
	local want
	want=$(sed -n 's/^4 \([a-z:0-9]*\).*/\1/p' "$work/tune")
	daemon "$work/a" --nics 1 --tune "$work/tune" &&
		"$nbar" bench -i 50 -x 5 --nodes 4 --alg auto --where nic --check --nic "$work/a/n0.sock" &&
		"$nbar" stat --run-dir "$work/a" >"$work/out" || return 1
	cat "$work/out"
	[ -n "$want" ] && [ "$(grep -cE " [0-3]/4 $want " "$work/out")" = 4 ]
}

# If auto selects different algorithms at two members, they get an error and do not hang.
disagree() {
	printf 'nbar-tune 1\n2 mcs\n' >"$work/mcs"
	daemon "$work/b" --nic name=n0,wire=udp,bind=127.0.0.1:0 --tune "$work/mcs" &&
		daemon "$work/c" --nic name=n0,wire=udp,bind=127.0.0.1:0 &&
		wants 1 'another size, algorithm or tag' "$nbar" bench -i 50 --nodes 2 --where nic \
			--alg auto --nic "$work/b/n0.sock" --nic "$work/c/n0.sock" &&
		"$nbar" bench -i 50 -x 5 --nodes 2 --where nic --alg mcs --nic "$work/b/n0.sock" \
			--nic "$work/c/n0.sock"
}

bad_tune() {
	printf "$1" >"$work/bad"
	wants 2 "$2" "$nicd" --run-dir "$work/bad.d" --nics 1 --tune "$work/bad"
}

ok "one-to-many: the ping-pong and its model" ping_pong
ok "one-to-many: with a process per node" ping_pong --drivers nodes
ok "one-to-many: over udp" ping_pong --wire udp
ok "one-to-many: tunes, and writes a tune file" tuned
ok "nicd: auto selects the algorithm of the tune file" auto_is
ok "nicd: members whose NICs do not agree on auto are refused" disagree
ok "nicd: an empty tune file" bad_tune '' 'it is empty'
ok "nicd: a file that is no tune file" bad_tune '2 mcs\n' 'line 1: not a tune file'
ok "nicd: a tune file with an unknown algorithm" bad_tune 'nbar-tune 1\n2 fast\n' 'line 2: the algorithm'
ok "nicd: a tune file out of order" bad_tune 'nbar-tune 1\n4 mcs\n2 mcs\n' 'line 3: sizes must ascend'
ok "nicd: a tune file that does not exist" \
	wants 2 'No such file or directory' "$nicd" --run-dir "$work/bad.d" --nics 1 --tune "$work/none"
for wrong in "--peers 1" "--peers 513" "--peers x" "--barriers 0" "--nodes 0" "--what" \
	"--tune-file $work/t --where host" "--tune-file $work/t --alg linear"; do
	ok "one-to-many: '${wrong//$work/DIR}' is wrong usage" \
		wants 2 'nbar-lab one-to-many --help' "$lab" one-to-many $wrong
done
ok "one-to-many: a tune file that cannot be written is refused first" \
	wants 1 "cannot write $work/none/t" "$lab" one-to-many -i 1000000 --tune-file "$work/none/t"
ok "one-to-many: help" "$lab" one-to-many --help
ok "nothing is left in the temporary folder" nothing_left
finish
