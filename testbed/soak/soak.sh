#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many jobs on the same daemon: JOBS (20) one after the other, every fifth of them killed while it
# runs; then as many again, 8 at a time; then a job of each installed MPI. Afterwards the daemon must
# have no more descriptors and memory than before, and a rank of MPI no more than after a quarter of
# its programs. Needs no privileges.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
unset NBAR_NIC NBAR_WAIT
jobs=${JOBS:-20}
bin=$(realpath "$BUILD")
oracle=$bin/oracle
export NBAR_RUN_DIR=$work/d
nics=("$work"/d/n{0,1,2,3}.sock)
GROWTH_KIB=512 # permitted growth of the daemon

# True if all ports and groups are given back. The daemon notices ended programs with some delay.
all_back() {
	local _
	for _ in $(seq 200); do
		"$BUILD/nbar" stat >"$work/stat" || return 1
		[ "$(grep -c 'ports 0, groups 0' "$work/stat")" = 4 ] && return 0
		sleep 0.05
	done
	cat "$work/stat"
	return 1
}

descriptors() {
	ls "/proc/$nicd/fd" | wc -l
}

memory() {
	awk '/^VmRSS/ { print $2 }' "/proc/$nicd/status"
}

measure() {
	all_back
	had_descriptors=$(descriptors)
	had_memory=$(memory)
}

# flat TEXT: nothing has grown since measure.
flat() {
	ok "$1: all ports and groups are given back" all_back
	echo "# descriptors $had_descriptors, then $(descriptors); memory $had_memory KiB, then $(memory)"
	# The daemon closes those of nbar stat some time after it has ended.
	for _ in $(seq 100); do
		[ "$(descriptors)" -gt "$had_descriptors" ] || break
		sleep 0.1
	done
	ok "$1: descriptors of the daemon" [ "$(descriptors)" -le "$had_descriptors" ]
	ok "$1: memory of the daemon" [ "$(memory)" -le $((had_memory + GROWTH_KIB)) ]
}

# job N: a job of 2 to 4 members.
job() {
	"$oracle" -i 200 "${nics[@]:0:$((2 + $1 % 3))}"
}

# A job whose members are all killed once they have groups.
killed_job() {
	local pid _ there=
	"$oracle" -i 1000000000 "${nics[@]:0:3}" >"$work/killed" 2>&1 &
	pid=$!
	for _ in $(seq 400); do
		"$BUILD/nbar" stat n2 | grep -q 'groups 1' && there=1 && break
		sleep 0.05
	done
	kill -KILL $pid
	wait $pid 2>/dev/null
	[ -n "$there" ] && all_back
}

one_after_the_other() { # N
	local i
	for ((i = 0; i < $1; i++)); do
		if [ $((i % 5)) = 4 ]; then
			killed_job
		else
			job $i
		fi || { echo "job $i"; return 1; }
	done
}

eight_at_once() { # ROUNDS
	local i k pid
	for ((i = 0; i < $1; i++)); do
		pid=()
		for ((k = 0; k < 8; k++)); do
			job $((i + k)) >"$work/job.$k" 2>&1 &
			pid+=($!)
		done
		for ((k = 0; k < 8; k++)); do
			wait "${pid[k]}" || { cat "$work/job.$k"; return 1; }
		done
	done
}

mpi_job() { # MPI PROGRAMS: random MPI programs, by two ranks with a NIC each
	case $1 in
	openmpi)
		timeout -k 5 500 mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 --mca mpi_yield_when_idle 1 \
			--mca mca_base_component_path "$bin/components:SYS_DEFAULT" --mca coll_nbar_enable 1 \
			--mca coll_nbar_nic n%r "$bin/mpi-random.$1" -f -s "$work/share" -e nic 1 "$2" ;;
	mpich)
		timeout -k 5 500 mpiexec.mpich -np 2 -genv NBAR_MPI_NIC n%r -genv LD_PRELOAD \
			"$bin/libnbar-mpi-mpich.so" "$bin/mpi-random.$1" -f -s "$work/share" -e nic 1 "$2" ;;
	esac
}

mpi_jobs() {
	local mpi
	for mpi in openmpi mpich; do
		if [ ! -x "$bin/mpi-random.$mpi" ] || [ -n "${SAN:-}" ]; then
			skip "soak: jobs of $mpi" "no $mpi here, or sanitizers"
			continue
		fi
		ok "soak: a job of $mpi: ranks hold the same after $((2 * jobs)) programs as after a quarter of them" \
			mpi_job $mpi $((2 * jobs))
		grep '^# rank .*: descriptors' "$work/said"
		ok "soak: $mpi: all ports and groups are given back" all_back
	done
}

ok "soak: a daemon with four NICs" daemon "$work/d" --nics 4 --idle sleep
nicd=$last_pid
one_after_the_other 5 >/dev/null
eight_at_once 2 >/dev/null
measure
ok "soak: $jobs jobs one after the other" one_after_the_other "$jobs"
flat "soak: one after the other"
ok "soak: $((jobs / 8 + 1)) times 8 jobs at once" eight_at_once $((jobs / 8 + 1))
flat "soak: 8 at once"
mpi_jobs
flat "soak: at the end"
finish
