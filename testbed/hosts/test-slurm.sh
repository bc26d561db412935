#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs of Slurm on test hosts: slurmctld on the head, slurmd and munged on each of two hosts, and MPI
# programs by `srun --mpi=pmix`. nbar offloads their barriers: to daemons that mpi-glue/slurm/prolog
# starts, and to in-process NICs. Needs root. Skipped where Slurm, Open MPI or namespaces are missing.
set -u
glue="Slurm"
mpi=openmpi
. "$(dirname "$0")/../mpi/lib.sh"
component=$bin/components/mca_coll_nbar.so
library=$bin/libnbar-mpi-mpich.so
slurm=$dir/slurm # in the folder of the cluster, which is removed with the cluster
export SLURM_CONF=$slurm/slurm.conf
export OMPI_MCA_mca_base_component_path=$(dirname "$component"):SYS_DEFAULT OMPI_MCA_coll_nbar_enable=1 \
	OMPI_MCA_coll_nbar_verbose=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp \
	OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_mpi_yield_when_idle=1 NBAR_MPI_VERBOSE=1

missing() {
	local program
	for program in slurmctld slurmd srun munged; do
		command -v $program >/dev/null || { echo "there is no $program: apt-get install slurmctld slurmd slurm-client munge"; return; }
	done
	[ "$(id -u)" = 0 ] || echo "munged and slurmd need root"
	[ -e "$component" ] || echo "there is no component for Open MPI: apt-get install libopenmpi-dev"
	srun --mpi=list 2>&1 | grep -q pmix || [ -n "$(find /usr/lib -name 'mpi_pmix*.so' -print -quit)" ] ||
		echo "this Slurm has no PMIx"
}

# Writes the configuration. CgroupPlugin: slurmd finds no control groups on the test hosts, so it
# needs the name of a plugin; no other plugin here uses control groups.
configure() {
	local script
	mkdir -p "$slurm/state" && chmod 755 "$dir" "$slurm" && (umask 077 && head -c 1024 /dev/urandom >"$slurm/key") &&
		echo "CgroupPlugin=cgroup/v1" >"$slurm/cgroup.conf" || return 1
	for script in prolog epilog; do # they find nbar-nicd where it was built
		printf '#!/bin/sh\nPATH=%s:$PATH exec %s\n' "$bin" "$PWD/mpi-glue/slurm/$script" >"$slurm/$script" &&
			chmod +x "$slurm/$script" || return 1
	done
	cat >"$SLURM_CONF" <<-CONF
		ClusterName=nbar
		SlurmctldHost=head(10.77.0.254)
		SlurmUser=root
		AuthType=auth/munge
		AuthInfo=socket=/run/munge.socket
		CredType=cred/munge
		StateSaveLocation=$slurm/state
		SlurmdSpoolDir=/run/slurmd
		TmpFS=/run
		SlurmctldPidFile=/run/slurmctld.pid
		SlurmdPidFile=/run/slurmd.pid
		SlurmctldLogFile=$slurm/slurmctld.log
		SlurmdLogFile=$slurm/slurmd.%n.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/linear
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		SlurmdParameters=config_overrides
		MpiDefault=pmix
		ReturnToService=2
		MessageTimeout=60
		Prolog=$slurm/prolog
		Epilog=$slurm/epilog
		TaskProlog=$PWD/mpi-glue/slurm/task-prolog
		PrologFlags=Alloc
		NodeName=h0 NodeAddr=10.77.0.1
		NodeName=h1 NodeAddr=10.77.0.2
		PartitionName=all Nodes=h0,h1 Default=YES State=UP OverSubscribe=FORCE
	CONF
}

start() {
	local host
	for host in head 0 1; do
		$cluster exec $host munged --force --socket=/run/munge.socket --key-file="$slurm/key" \
			--pid-file=/run/munged.pid --log-file="$slurm/munge.$host" --seed-file="$slurm/seed.$host" || return 1
	done
	$cluster exec head slurmctld -c || return 1
	for host in 0 1; do
		$cluster exec $host sh -c "mkdir -p /run/slurmd && exec slurmd -N h$host" || return 1
	done
	for _ in $(seq 600); do
		[ "$($cluster exec head sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
		sleep 0.1
	done
	timeout 60 $cluster exec head srun -N2 -n2 --mpi=none true && return 0
	$cluster exec head sinfo
	tail -qn 20 "$slurm"/*.log
	return 1
}

# job --job-name=NAME OPTIONS AND PROGRAM...: srun of two tasks, on two hosts; each offloads 191
# barriers.
job() {
	timeout -k 5 "$limit" $cluster exec head srun -N2 -n2 "$@" >"$work/met.$1" 2>&1
	local rc=$?
	cat "$work/met.$1"
	[ $rc = 0 ] && [ "$(grep -o ': 0 early' "$work/met.$1" | wc -l)" = 2 ] &&
		[ "$(grep -o 'nbar: 191 barriers offloaded' "$work/met.$1" | wc -l)" = 2 ] && return 0
	tail -n 20 "$slurm"/slurm*.log
	return 1
}

jobs_at_once() {
	local first
	job --job-name=a --mpi=pmix "$work/c" &
	first=$!
	job --job-name=b --mpi=pmix "$work/c"
	local second=$?
	wait $first && [ $second = 0 ]
}

in_process() {
	OMPI_MCA_coll_nbar_where=host job --job-name=host --mpi=pmix "$work/c"
}

# The epilog may end after srun.
nothing_stays() {
	local host
	for host in 0 1; do
		for _ in $(seq 300); do
			[ -z "$($cluster exec $host sh -c 'ls -d /run/nbar-*' 2>/dev/null)" ] && continue 2
			sleep 0.1
		done
		$cluster exec $host sh -c 'ls -d /run/nbar-*; cat /run/nbar-*.log'
		return 1
	done
}

why=$(missing)
if [ -n "$why" ]; then
	skip "jobs of Slurm" "$(head -n 1 <<<"$why")"
	finish
fi
up 2 --wire none
if [ $? = 77 ]; then
	skip "jobs of Slurm" "$(head -n 1 "$work/up")"
	finish
fi
ok "Slurm: configuration" configure
if ! start >"$work/started" 2>&1; then # no fault of nbar: Slurm does not run on this machine
	sed 's/^/# /' "$work/started"
	skip "jobs of Slurm" "Slurm does not run here: $(tail -n 1 "$work/started")"
	finish
fi
ok "Slurm: the program compiles" env OMPI_CC=cc mpicc.openmpi -std=c11 -D_GNU_SOURCE -O1 \
	testbed/mpi/languages/meet.c -o "$work/c"
ok "Slurm: srun --mpi=pmix: barriers are offloaded to the daemons of the prolog" job --job-name=one --mpi=pmix "$work/c"
ok "Slurm: two jobs at once, each with its daemons" jobs_at_once
ok "Slurm: in-process NICs" in_process
if [ -e "$library" ]; then
	ok "Slurm: the program compiles for MPICH" mpicc.mpich -std=c11 -D_GNU_SOURCE -O1 testbed/mpi/languages/meet.c \
		-o "$work/c.mpich"
	# finalize.c says why MPICH before 4.2 needs libcluster-finalize.so.
	ok "Slurm: MPICH by srun --mpi=pmi2" job --job-name=mpich --mpi=pmi2 \
		env LD_PRELOAD="$library:$bin/libcluster-finalize.so" "$work/c.mpich"
else
	skip "Slurm: MPICH" "there is no library for MPICH: apt-get install libmpich-dev"
fi
ok "Slurm: the epilog ends the daemons and leaves nothing" nothing_stays
finish
