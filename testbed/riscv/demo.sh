#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two RISC-V machines as NICs, a cable between them, and barriers of 2 and 4 hosts. Called by make
# demo-riscv. Leaves nothing behind.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
. testbed/lib.sh
make_work

for i in 0 1; do
	"$BUILD/nbar-bared" --run-dir "$work/$i" --name n$i --wire "unix:$work/w$i,$work/w$((1 - i))" >"$work/out$i" &
	pids="$pids $!"
done
for i in 0 1; do
	while ! grep -q ready "$work/out$i"; do
		kill -0 $pids || exit 1
		sleep 0.1
	done
	cat "$work/out$i"
done
"$BUILD/nbar" bench --nic "$work/0/n0.sock" --nic "$work/1/n1.sock" --nodes 2,4 --where nic,host \
	--alg dissemination:1 -i 200 -x 20 || exit 1
"$BUILD/nbar" stat "$work/0/n0.sock"
echo "The machines are emulated: the times say nothing, the counters do."
