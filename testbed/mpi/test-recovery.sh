#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A daemon is killed and started again while an MPI program runs: the barriers of later communicators
# are offloaded again. With each installed MPI; two ranks with a NIC each, as on two hosts. Needs no
# privileges.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
unset NBAR_NIC NBAR_WAIT
bin=$(realpath "$BUILD")
export NBAR_RUN_DIR=$work/d

start() { # MPI
	case $1 in
	openmpi)
		timeout -k 5 300 mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 --mca mpi_yield_when_idle 1 \
			--mca mca_base_component_path "$bin/components:SYS_DEFAULT" --mca coll_nbar_enable 1 \
			--mca coll_nbar_nic n%r "$bin/mpi-recover.$1" "$work/meet.$1" ;;
	mpich)
		timeout -k 5 300 mpiexec.mpich -np 2 -genv NBAR_MPI_NIC n%r -genv LD_PRELOAD \
			"$bin/libnbar-mpi-mpich.so" "$bin/mpi-recover.$1" "$work/meet.$1" ;;
	esac
}

offloaded_again() { # MPI
	local pid _
	mkdir "$work/meet.$1"
	start "$1" >"$work/program" 2>&1 &
	pid=$!
	pids="$pids $pid"
	for _ in $(seq 3000); do
		[ -e "$work/meet.$1/ready" ] && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$last_pid"
	wait "$last_pid"
	daemon "$work/d" --nics 2 --idle sleep || return 1
	touch "$work/meet.$1/again"
	wait $pid
	local rc=$?
	cat "$work/program"
	return $rc
}

# At the end, both ranks have given back all ports and groups.
all_back() {
	local _
	for _ in $(seq 200); do
		"$BUILD/nbar" stat >"$work/stat" || return 1
		[ "$(grep -c 'ports 0, groups 0' "$work/stat")" = 2 ] && return 0
		sleep 0.05
	done
	cat "$work/stat"
	return 1
}

ok "a daemon with two NICs" daemon "$work/d" --nics 2 --idle sleep
for mpi in openmpi mpich; do
	if [ ! -x "$bin/mpi-recover.$mpi" ] || [ -n "${SAN:-}" ]; then
		skip "$mpi: a daemon that ends and runs again" "no $mpi here, or sanitizers"
		continue
	fi
	ok "$mpi: a daemon ends and runs again: a later communicator is offloaded" offloaded_again $mpi
	ok "$mpi: all ports and groups are given back" all_back
done
finish
