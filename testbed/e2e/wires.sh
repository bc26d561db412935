#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Real barriers over real wires, each checked by the oracle: `ring` within one daemon, `udp` between
# two daemons. `dpdk` is in netns.sh; every plan on all of them in matrix.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
oracle=$BUILD/oracle
within=

ring() {
	local d=$work/ring
	ok "ring: four NICs of one daemon start" daemon "$d" --nics 4
	ok "ring: 100,000 barriers of 4, dissemination:1" \
		"$oracle" -i 100000 -a dissemination:1 "$d"/n{0,1,2,3}.sock
	ok "ring: 20,000 barriers of 3, pairwise" "$oracle" -i 20000 -a pairwise "$d"/n{0,1,2}.sock
	ok "ring: 20,000 barriers of 4, dissemination:3" \
		"$oracle" -i 20000 -a dissemination:3 "$d"/n{0,1,2,3}.sock
	ok "ring: each member in turn comes late" "$oracle" -i 8 -d 50 "$d"/n{0,1,2,3}.sock
}

udp() {
	local a=$work/udp-a b=$work/udp-b
	ok "udp: a daemon with two NICs starts" daemon "$a" \
		--nic name=n0,wire=udp,bind=127.0.0.1:0 --nic name=n1,wire=udp,bind=127.0.0.1:0
	first_nic=n2 ok "udp: another with one" daemon "$b" --nic name=n2,wire=udp,bind=127.0.0.1:0
	ok "udp: 10,000 barriers of 3 between two daemons" \
		"$oracle" -i 10000 "$a/n0.sock" "$a/n1.sock" "$b/n2.sock"
}

# What is wrong whatever the machine has is told before its devices are looked for.
verbs() {
	case "$("$BUILD/nbar-nicd" --version)" in
	*verbs*) ;;
	*)
		skip "verbs: a mode that there is not" "this build has no wire verbs"
		return
		;;
	esac
	ok "verbs: a mode that there is not" no_mode
}

no_mode() {
	timeout 60 "$BUILD/nbar-nicd" --run-dir "$work" --nic name=n0,wire=verbs,mode=fast >"$work/out" 2>&1
	local rc=$?
	cat "$work/out"
	[ $rc = 2 ] && grep -q 'mode=fast: it is ud, write' "$work/out"
}

ring
udp
verbs
finish
