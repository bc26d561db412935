#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the suites that depend on an MPI, DPDK, rdma-core or a compiler, in minimal Debian systems with
# these packages. Each suite prints a line of a table: version and counts of tests.
# SUITES="gcc clang dpdk openmpi mpich verbs" selects suites; all by default.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/fresh/lib.sh
packages="gcc g++ clang llvm pkg-config libc6-dev libdpdk-dev libcmocka-dev libjansson-dev libck-dev libsodium-dev
	iproute2 nftables iputils-ping procps python3 xz-utils
	openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran libpmix-dev
	qemu-system-x86 cpio busybox-static kmod libibverbs-dev ibverbs-providers rdma-core strace"

install_all() {
	inside "$1" root "apt-get install -y -qq --no-install-recommends $(tr -s '\n\t' ' ' <<<"$packages")" &&
		inside "$1" root "chmod 755 ~newcomer" && inside "$1" newcomer "make openmpi-headers"
}

# version RELEASE PACKAGE: prints the upstream version of the package.
version() {
	inside "$1" root "dpkg-query -W -f '\${Version}' $2" | sed -E 's/^[0-9]+://; s/.*\+really//; s/[-+~].*//'
}

# suite RELEASE NAME WHAT PACKAGE COMMAND: runs the command as root, because test hosts and guests
# need root. Then prints the line of the table.
suite() {
	local counts
	[[ " ${SUITES:-gcc clang dpdk openmpi mpich verbs} " = *" $2 "* ]] || return 0
	ok "$1: $3: $5" inside "$1" root "cd ~newcomer/nbar && $5"
	counts=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1, \2, \3/p' "$work/out" | tail -n 1)
	grep -E '^ *skipped: ' "$work/out" | sed 's/^/#/'
	echo "# | Debian $(inside "$1" root "cut -d. -f1 /etc/debian_version") | $3 $(version "$1" "$4") | \`$5\` | $counts |"
}

tests() { # RELEASE
	ok "$1: packages" install_all "$1" || return
	suite "$1" gcc gcc gcc "make -j2 check-unit"
	suite "$1" clang clang clang "make -j2 check-unit CC=clang BUILD=build-clang"
	suite "$1" dpdk DPDK libdpdk-dev \
		"make -j2 check-nodeps TEST_LIST='testbed/e2e/netns.sh testbed/e2e/af_xdp.sh testbed/e2e/wires.sh'"
	suite "$1" openmpi "Open MPI" libopenmpi-dev \
		"slow=1 make check-cluster-nodeps CLUSTER_LIST=testbed/mpi/test-component.sh"
	suite "$1" mpich MPICH libmpich-dev \
		"make check-cluster-nodeps CLUSTER_LIST=testbed/mpi/test-pmpi-mpich.sh"
	suite "$1" verbs rdma-core rdma-core "make check-verbs-nodeps"
}

each_release tests
finish
