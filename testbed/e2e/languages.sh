#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the library from C++ (nbar.hpp), in a PMIx job (nbar_pmix.h), and with remote writes
# ("quiet, then barrier"). Compiles its programs; skips tests whose compiler or library is missing.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
flags="-Wall -Wextra -Werror -O1 -g -Ihostlib/include -Ifirmware/include"
alone=host:wire=udp,bind=127.0.0.1:0
export NBAR_HOSTNIC=$PWD/$BUILD/libnbar-hostnic.so.0
# There may be more ranks than processors, so they must not spin. MPI uses shared memory; the NICs of
# the ranks ($alone) use the loopback interface.
start="mpirun --oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1"
[ "$(id -u)" != 0 ] || start="$start --allow-run-as-root"

if [ -n "${SAN:-}" ]; then
	skip "other languages" "a library with sanitizers does not link with other compilers"
	finish
fi

for cxx in g++ clang++; do
	if ! command -v $cxx >/dev/null; then
		skip "nbar.hpp by $cxx" "$cxx is not installed"
		continue
	fi
	ok "nbar.hpp compiles by $cxx" $cxx -std=c++17 $flags -Wpedantic -Wconversion \
		testbed/unit/hostlib/hpp.cc "$BUILD/libnbar.a" -o "$work/hpp.$cxx"
	ok "nbar.hpp works by $cxx" timeout 60 "$work/hpp.$cxx"
done

# ranks N PROGRAM ROUNDS TEXT: runs the program; all N ranks print TEXT.
ranks() {
	local out
	out=$(timeout 90 $start -n "$1" "$2" $alone "$3" 2>&1) || { echo "$out"; return 1; }
	echo "$out"
	[ "$(grep -o -- "$4" <<<"$out" | wc -l)" = "$1" ] # lines of two ranks may be one
}

if ! command -v mpirun >/dev/null; then
	skip "addresses by PMIx" "there is no mpirun: apt-get install openmpi-bin"
elif ! pkg-config --exists pmix; then
	skip "addresses by PMIx" "PMIx is not installed: apt-get install libpmix-dev"
else
	ok "the example of PMIx compiles" cc $flags hostlib/examples/pmix.c "$BUILD/libnbar.a" \
		$(pkg-config --cflags --libs pmix) -o "$work/pmix"
	ok "three processes exchange addresses by PMIx" ranks 3 "$work/pmix" 200 ': 200 barriers'
	ok "the example of PMIx says that it needs a launcher" sh -c "! '$work/pmix' $alone 1 2>'$work/why' &&
		grep -q 'cannot join the job' '$work/why'"
fi

if ! command -v mpicc.openmpi >/dev/null || ! command -v mpirun >/dev/null; then
	skip "quiet, then barrier" "there is no Open MPI: apt-get install libopenmpi-dev"
else
	ok "the example of remote writes compiles" env OMPI_CC=cc mpicc.openmpi $flags \
		hostlib/examples/quiet.c "$BUILD/libnbar.a" -o "$work/quiet"
	ok "quiet, then barrier: no word is read before it is written" ranks 3 "$work/quiet" 300 \
		': 0 words were wrong'
fi
finish
