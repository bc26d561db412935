#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The README's two commands, `make demo` and `make check`, as a newcomer runs them: in minimal Debian
# systems with git, make and sudo; then `make` with the development packages of both MPIs, and
# `make check` by root in a container that has no terminals and no place for other users.
# DEMO_ONLY=1: only `make demo`, about two minutes for each system; the rest takes about 20 more.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/fresh/lib.sh

demo() {
	inside "$1" newcomer "make demo"
	local rc=$?
	tail -n 12 "$work/out" >"$work/demo"
	[ $rc = 0 ] && grep -q pairwise "$work/demo"
}

check() {
	inside "$1" newcomer "make check"
	local rc=$?
	tail -n 1 "$work/out" >"$work/counts"
	[ $rc = 0 ] && grep -q ' 0 failed' "$work/counts"
}

# As root at home, where nobody else may look, with both MPIs.
check_root() {
	bare=1 inside "$1" root "make check"
	local rc=$?
	tail -n 1 "$work/out" >"$work/counts"
	[ $rc = 0 ] && grep -q ' 0 failed' "$work/counts"
}

with_mpi() {
	inside "$1" root "apt-get install -y -qq --no-install-recommends libopenmpi-dev libmpich-dev openmpi-bin mpich" &&
		inside "$1" newcomer "make clean && make"
}

# Builds the component of Open MPI and runs it. `make openmpi-headers` fetches headers that Debian's
# package lacks.
with_component() {
	inside "$1" newcomer "sudo apt-get install -y -qq --no-install-recommends xz-utils && make openmpi-headers && make all build/cluster-hello.openmpi && mpirun.openmpi -np 2 \
		--oversubscribe --mca mca_base_component_path \$PWD/build/components:SYS_DEFAULT --mca coll_nbar_enable 1 \
		--mca coll_nbar_verbose 1 --mca coll_nbar_nic host:wire=udp,name=r%r build/cluster-hello.openmpi 100" &&
		[ "$(grep -cE '^nbar: [1-9][0-9]* barriers offloaded' "$work/out")" = 2 ]
}

tests() { # RELEASE
	ok "$1: make demo" demo "$1"
	[ -z "${DEMO_ONLY:-}" ] || return 0
	ok "$1: make check" check "$1"
	[ ! -f "$work/counts" ] || echo "# $(cat "$work/counts")"
	ok "$1: make, with both MPIs" with_mpi "$1"
	ok "$1: the component of Open MPI" with_component "$1"
	ok "$1: make check by root, in a system for root alone" check_root "$1"
	[ ! -f "$work/counts" ] || echo "# $(cat "$work/counts")"
}

each_release tests
finish
