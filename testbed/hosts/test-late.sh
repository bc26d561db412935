#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The delay check of Meyer and Elster on test hosts: each rank in turn enters a barrier a second
# late, and no other rank may leave this barrier before the late rank has entered it. Barriers: a
# flat plan, the plan for a profile, and the C file that nbar-lab tune writes. Checks the order of
# events, no times. Skipped where namespaces are not permitted, or where an MPI is missing.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
case $BUILD in
/*) bin=$BUILD ;;
*) bin=$PWD/$BUILD ;;
esac
unset NBAR_RUN_DIR NBAR_NIC NBAR_CLUSTER_DIR NBAR_WAIT
cluster="testbed/hosts/cluster --run-dir $work/cluster"
trap '$cluster down 2>/dev/null; cleanup' EXIT
hosts=5 late_ms=1000 rounds=10

# Two racks, of three and two hosts: the plan has a cluster for each.
awk -v n=$hosts 'BEGIN {
	for (i = 0; i < n; i++) {
		names = names (i ? ", " : "") "\"h" i "\""
		for (j = 0; j < n; j++) {
			o = o (j ? ", " : i ? "], [" : "") ((i < 3) == (j < 3) ? 1000 : 300000)
			l = l (j ? ", " : i ? "], [" : "") ((i < 3) == (j < 3) ? 1000 : 100000)
		}
	}
	printf "{\"nbar_profile\": 1, \"hosts\": [%s], \"O_ns\": [[%s]], \"L_ns\": [[%s]]}\n", names, o, l
}' >"$work/profile"

# late WORDS COMMAND...: the command makes each rank late once, then runs some barriers in a row.
# Its output contains WORDS.
late() {
	local words=$1
	shift
	rm -f "$work/entered"
	timeout -k 5 300 "$@" >"$work/out" 2>&1
	local rc=$?
	cat "$work/out"
	[ $rc = 0 ] && grep -q "^$hosts ranks, each late once by $late_ms ms: seen by all" "$work/out" &&
		grep -q -e "$words" "$work/out"
}

# offloaded ALG MPI COMMAND...: NICs run the barriers, with this algorithm.
offloaded() {
	local alg=$1 mpi=$2
	shift 2
	NBAR_MPI_ALG=$alg OMPI_MCA_coll_nbar_algorithm=$alg NBAR_MPI_VERBOSE=2 OMPI_MCA_coll_nbar_verbose=2 \
		late "on $hosts hosts: barriers offloaded to NICs, $alg" "$@" \
		"$work/late.$mpi" "$work/entered" $late_ms $rounds mpi
}

compiles() {
	"$bin/nbar-lab" tune "$work/profile" --emit c -o "$work/tuned.c" &&
		"mpicc.$1" -std=c11 -D_GNU_SOURCE -O2 -Wno-stringop-overflow testbed/e2e/tuned_mpi.c \
			"$work/tuned.c" -o "$work/late.$1"
}

# with_mpi MPI FILE LAUNCHER OPTIONS...: FILE is the glue, LAUNCHER a command of cluster.
with_mpi() {
	local mpi=$1 file=$2
	shift 2
	if [ ! -e "$file" ] || ! command -v "mpicc.$mpi" >/dev/null; then
		skip "$mpi: late ranks" "no $mpi here"
		return
	fi
	ok "$mpi: the C file of nbar-lab tune is compiled" compiles "$mpi"
	ok "$mpi: late ranks, the plan for a profile" offloaded "tuned:$work/profile" "$mpi" $cluster "$@"
	[ "$mpi" = openmpi ] || return 0 # a run of MPICH takes long: its ranks poll and do not yield
	ok "$mpi: late ranks, dissemination:1" offloaded dissemination:1 "$mpi" $cluster "$@"
	ok "$mpi: late ranks, the C file of nbar-lab tune" late "" $cluster "$@" \
		"$work/late.$mpi" "$work/entered" $late_ms $rounds
}

composed() {
	"$bin/nbar-lab" tune "$work/profile" >"$work/out" && cat "$work/out" &&
		[ "$(grep -c '^  arrive ' "$work/out")" = 2 ]
}

$cluster up $hosts >"$work/up" 2>&1
case $? in
0) ;;
77)
	skip "late ranks" "$(head -n 1 "$work/up")"
	finish
	;;
*)
	ok "up $hosts" cat "$work/up"
	ok "up $hosts: it came up" false
	finish
	;;
esac
ok "the plan for the profile has a cluster for each rack" composed
component=$bin/components/mca_coll_nbar.so
with_mpi openmpi "$component" mpirun -np $hosts --mca coll_nbar_enable 1 \
	--mca mca_base_component_path "$(dirname "$component"):SYS_DEFAULT"
with_mpi mpich "$bin/libnbar-mpi-mpich.so" mpiexec -np $hosts -genv LD_PRELOAD "$bin/libnbar-mpi-mpich.so"
ok "down" $cluster down
finish
