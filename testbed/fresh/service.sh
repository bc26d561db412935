#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# service.sh USER: the commands of packaging/README.md that follow the installation of the packages, on two test
# hosts. On each host, the command lines of the systemd unit run as the unit's user, without
# capabilities. Then USER starts mpirun: before and after USER becomes a member of
# the group nbar, and without the module.
# Called by test-packages.sh as root, in a minimal system without systemd.
set -eu
cd "$(dirname "$0")/../.."
user=$1
work=$(mktemp -d)
cluster="testbed/hosts/cluster --run-dir $work/cluster"
trap '$cluster down; rm -rf "$work"' EXIT
chmod 755 "$work"
unit=$(dpkg -L nbar-nicd | grep '/nbar-nicd\.service$')

# unit_says KEY: prints the value of this key of the unit.
unit_says() {
	sed -n "s/^$1=//p" "$unit"
}

# start K: starts the unit on host K: RuntimeDirectory, ExecStartPre and ExecStart. The hosts share
# /etc, so each host mounts its own configuration.
start() {
	local run
	run="setpriv --reuid $(unit_says User) --regid $(unit_says Group) --init-groups --no-new-privs \
		--bounding-set=-all --inh-caps=-all --"
	$cluster exec "$1" sh -ec "
		sed 's/127\.0\.0\.1:/10.77.0.$(($1 + 1)):/' /etc/nbar/nicd.conf >/run/nicd.conf
		mount --bind /run/nicd.conf /etc/nbar/nicd.conf
		chown $(unit_says User): /run/$(unit_says RuntimeDirectory)
		$run $(unit_says ExecStartPre)
		exec $run $(unit_says ExecStart)" >"$work/nicd.$1" 2>&1 &
	disown
	for _ in $(seq 600); do
		! grep -qs ready "$work/nicd.$1" || return 0
		kill -0 $! || break
		sleep 0.1
	done
	cat "$work/nicd.$1"
	return 1
}

# mpirun uses this script as ssh: it enters the host as root, and becomes the user there.
cat >"$work/agent" <<END
#!/bin/sh
host=\$1
shift
exec sudo -E $PWD/testbed/hosts/agent --cd / "\$host" runuser -u $user -- sh -c "\$*"
END
chmod +x "$work/agent"
cat >"$work/app.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	for (int i = 0; i < 100; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
END
mpicc.openmpi -o "$work/app" "$work/app.c"

# A new login: runuser reads the groups of the user again.
mpirun() {
	$cluster exec head runuser -u "$user" -- env -u NBAR_RUN_DIR OMPI_MCA_pml=ob1 \
		OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_mpi_yield_when_idle=1 \
		OMPI_MCA_plm_rsh_agent="$work/agent" OMPI_MCA_orte_tmpdir_base=/dev/shm OMPI_MCA_oob_tcp_if_include=eth0 \
		OMPI_MCA_hwloc_base_binding_policy=none \
		PRTE_MCA_plm=ssh PRTE_MCA_plm_ssh_agent="$work/agent" PRTE_MCA_prte_tmpdir_base=/dev/shm \
		PRTE_MCA_prte_if_include=eth0 PRTE_MCA_hwloc_default_binding_policy=none \
		bash -c '. /usr/share/modules/init/bash; module use /usr/share/modulefiles; eval "$1"; shift; exec "$@"' login "$modules" \
		timeout 120 mpirun.openmpi -np 2 -H h0,h1 --mca coll_nbar_where nic --mca coll_nbar_verbose 1 "$work/app" 2>&1
}

$cluster up 2 --wire none
start 0
start 1
# The daemon runs as the unit's user, and has no capability.
$cluster exec 0 sh -c 'grep -E "^(Uid|CapEff|CapBnd)" /proc/$(head -n 1 /run/nbar/nicd.lock | grep -o "^[0-9]*")/status' >"$work/status"
cat "$work/status"
grep -q "^Uid:.$(id -u "$(unit_says User)")" "$work/status"
[ "$(grep -cE '^Cap(Eff|Bnd):.0+$' "$work/status")" = 2 ]
# offloaded PATTERN: on both ranks, the number of offloaded barriers matches PATTERN.
offloaded() {
	mpirun >"$work/out" || { cat "$work/out"; return 1; }
	cat "$work/out"
	[ "$(grep -c "^nbar: $1 barriers offloaded" "$work/out")" = 2 ]
}
modules='module load nbar'
offloaded 0 # not yet a member
adduser "$user" nbar
offloaded '9[0-9]'
modules='module load nbar; module unload nbar'
mpirun >"$work/out"
! grep nbar "$work/out"
