#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The component of Open MPI and the PMPI library of MPICH, quickly and without privileges: three ranks of
# this machine, which take two NICs and so count as two hosts. For make check-mutants; the tests on test
# hosts are deeper. Skips an MPI that is not installed.
set -u
. "$(dirname "$0")/one-host-lib.sh"
quick="blocking=100 nonblocking=50 mixed=50 outstanding=3 persistent=20 split=5 freed=5 order=3 inter=2 storm=20
	threads=10 rendezvous=2 probe=2 allreduce=60"

# Rules of the standard, all in one run of two ranks.
rules="status requests inter allreduce allreduce-fails fails fails-freed handlers wrong-communicator"

# The NICs of the first two ranks, and of the third.
here=n0 there=n2

with_openmpi() {
	timeout -k 5 60 mpirun.openmpi -np 2 -x NBAR_NIC=$here "$bin/mpi-oracle.openmpi" -s "$work/o" "$@" : \
		-np 1 -x NBAR_NIC=$there "$bin/mpi-oracle.openmpi" -s "$work/o" "$@"
}

with_mpich() {
	timeout -k 5 60 mpiexec.mpich -np 2 -env NBAR_NIC $here -env LD_PRELOAD "$bin/libnbar-mpi-mpich.so" \
		"$bin/mpi-oracle.mpich" -s "$work/m" "$@" : -np 1 -env NBAR_NIC $there -env LD_PRELOAD \
		"$bin/libnbar-mpi-mpich.so" "$bin/mpi-oracle.mpich" -s "$work/m" "$@"
}

standard() { # MPI [RULES]
	local rules=${2:-$rules}
	case $1 in
	openmpi)
		timeout -k 5 "${ORACLE_LIMIT:-120}" mpirun.openmpi -np 1 -x NBAR_NIC=$here "$bin/mpi-standard.openmpi" $rules : \
			-np 1 -x NBAR_NIC=$there "$bin/mpi-standard.openmpi" $rules ;;
	mpich)
		timeout -k 5 "${ORACLE_LIMIT:-120}" mpiexec.mpich -np 1 -env NBAR_NIC $here -env LD_PRELOAD "$bin/libnbar-mpi-mpich.so" \
			"$bin/mpi-standard.mpich" $rules : -np 1 -env NBAR_NIC $there -env LD_PRELOAD \
			"$bin/libnbar-mpi-mpich.so" "$bin/mpi-standard.mpich" $rules ;;
	esac
}

# A request fails, among several, in a communicator whose errors end the job: the text names the reason.
fatal() {
	! standard $1 fatal >"$work/out" 2>&1
	local rc=$?
	cat "$work/out"
	[ $rc = 0 ] && ! grep -q 'did not end' "$work/out" && grep -q 'nbar: barrier over 2 ranks failed; missing: ' "$work/out"
}

# Without "threads": the component of Open MPI looks for messages less often then.
in_process() {
	local here=host:wire=udp,bind=127.0.0.1:0 there=host:wire=udp,bind=127.0.0.2:0
	OMPI_MCA_coll_nbar_where=host NBAR_MPI_WHERE=host with_$1 -e nic blocking=20 outstanding=5 probe=2
}

# All ranks know the reason; the first names it for each communicator, and all count alike.
one_without() { # MPI RANK
	local here=none there=n2 nic= lacks=none allreduces=43 since=" when MPI started"
	[ "$2" = 0 ] || nic=n%r lacks=n1 since= # n0, n1, n2; the daemon has two
	# Open MPI starts nonblocking ones that look like those of the oracle, so it leaves them all alone.
	[ "$1" = mpich ] || allreduces=5
	NBAR_MPI_VERBOSE=1 OMPI_MCA_coll_nbar_verbose=1 NBAR_MPI_NIC=$nic OMPI_MCA_coll_nbar_nic=$nic \
		with_$1 -e mpi blocking=20 nonblocking=20 order=3 >"$work/out" 2>&1 ||
		{ cat "$work/out"; return 1; }
	sed -n '/^nbar: /{s///;s# at /.*\( when MPI started\).*#\1#;s# at /.*##;p}' "$work/out" | LC_ALL=C sort | uniq -c | tee "$work/said"
	LC_ALL=C sort -k 2 <<-SAID | diff -w "$work/said" -
		3 0 allreduces offloaded, $allreduces by fallback
		3 0 barriers offloaded, 0 within the host, 137 by fallback, 0 failed, on 5 communicators
		3 45 barriers by fallback: they have taken too little time yet, or are nonblocking
		3 $allreduces allreduces by fallback: they have taken too little time yet, or are nonblocking
		3 92 barriers by fallback: no port of a NIC could be opened
		5 communicator of 3 ranks: fallback to MPI's barrier: rank $2: no port of a NIC could be opened: no NIC $lacks$since
	SAID
}

# Ranks of one host need no NIC.
within() {
	local here=none there=none
	with_$1 -e host blocking=20
}

off() {
	OMPI_MCA_coll_nbar_enable=0 NBAR_MPI_ENABLE=0 with_$1 blocking=20
}

# An empty text is the default.
empty() {
	NBAR_MPI_NIC= NBAR_MPI_WAIT= NBAR_MPI_ALG= OMPI_MCA_coll_nbar_nic= OMPI_MCA_coll_nbar_wait= \
		OMPI_MCA_coll_nbar_algorithm= with_$1 -e nic blocking=20
}

ok "a daemon starts" daemon "$work/d" --nic name=n0 --nic name=n2
for mpi in openmpi mpich; do
	if [ ! -x "$bin/mpi-oracle.$mpi" ]; then
		skip "barriers of $mpi" "no $mpi here"
		continue
	fi
	ok "$mpi: barriers by NICs" with_$mpi -e nic $quick
	ok "$mpi: rules of the standard" standard $mpi
	# Open MPI prints the text, but its launcher sometimes loses it.
	[ $mpi = openmpi ] || ok "$mpi: the text of a fatal error" fatal $mpi
	ok "$mpi: in-process NICs" in_process $mpi
	ok "$mpi: one host without a NIC" within $mpi
	ok "$mpi: switched off" off $mpi
	ok "$mpi: empty settings" empty $mpi
	ok "$mpi: the second rank has no NIC" one_without $mpi 1
	ok "$mpi: the first host has no NIC" one_without $mpi 0
done
finish
