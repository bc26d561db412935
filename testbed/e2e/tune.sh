#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From a profile to a barrier: nbar-lab profile, predict and tune, --alg tuned:FILE, and the C file that
# nbar-lab tune writes, with each MPI that is installed. The figures are not checked.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nbar=$BUILD/nbar
lab=$BUILD/nbar-lab
own_tmpdir

# prof RACKS HOSTS: prints a profile of RACKS racks with HOSTS hosts each, n0, n1, ...; messages
# between racks cost more.
prof() {
	awk -v racks="$1" -v hosts="$2" 'BEGIN {
		n = racks * hosts
		printf "{\"nbar_profile\": 1, \"hosts\": ["
		for (i = 0; i < n; i++) printf "%s\"n%d\"", i ? ", " : "", i
		printf "], \"O_ns\": ["
		for (i = 0; i < n; i++) {
			printf "%s[", i ? ", " : ""
			for (j = 0; j < n; j++)
				printf "%s%d", j ? ", " : "", int(i / hosts) == int(j / hosts) ? 1000 : 300000
			printf "]"
		}
		printf "], \"L_ns\": ["
		for (i = 0; i < n; i++) {
			printf "%s[", i ? ", " : ""
			for (j = 0; j < n; j++) printf "%s%d", j ? ", " : "", 20000
			printf "]"
		}
		printf "]}\n"
	}'
}

# FILE HOSTS: in the profile, every call costs something. On a busy machine, a single message may seem to be free.
costs() {
	python3 - "$@" <<'PYTHON'
import json, sys
p, n = json.load(open(sys.argv[1])), int(sys.argv[2])
at = p.get("class", range(n))
assert len(p["hosts"]) == len(at) == n
assert all(p["self_ns"][i] if "class" in p else p["O_ns"][i][i] for i in at), p
assert "class" in p or any(p["O_ns"][i][j] + p["L_ns"][i][j] for i in at for j in at if i != j), p
PYTHON
}

measures() {
	"$lab" profile --nodes 5 -i 10 -x 2 --output "$work/own" "$@" >"$work/out" || return 1
	cat "$work/out" "$work/own"
	[ "$(grep -cE '^n[0-4] +n[0-4] +[0-9.]+ +[0-9.]+' "$work/out")" = 20 ] &&
		grep -q '"hosts": \["n0", "n1", "n2", "n3", "n4"\]' "$work/own" && costs "$work/own" 5 &&
		"$lab" tune "$work/own"
}

runs() {
	"$nbar" bench --nodes 5,12 --alg "dissemination:1,tuned:$work/p" -i 50 -x 5 --check \
		--drivers 1 >"$work/out" || return 1
	cat "$work/out"
	[ "$(grep -cE '^ +(5|12) +(nic|host) +tuned' "$work/out")" = 4 ]
}

runs_over_udp() {
	"$nbar" bench --nodes 5 --where nic --alg "tuned:$work/p" -i 20 -x 2 --check --wire udp
}

composes() {
	"$lab" tune "$work/p" >"$work/out" && cat "$work/out" &&
		grep -qE '^dissemination:2 among n[0-9]+ n[0-9]+ n[0-9]+$' "$work/out" &&
		[ "$(grep -c '^  arrive ' "$work/out")" = 3 ]
}

predicts() {
	"$lab" predict "$work/own" >"$work/out" && cat "$work/out" &&
		grep -qE '^dissemination:1 +[0-9.]+ +[0-9.]+ +-?[0-9.]+$' "$work/out" &&
		grep -qE '^tuned +[0-9.]+ +- +-$' "$work/out" &&
		grep -qE '^[0-9]+ of [0-9]+ pairs that differ by more than 20 %' "$work/out"
}

# A profile by clusters (--sample): every host has a class.
samples() {
	"$lab" profile --sample --nodes 5 -i 10 -x 2 --output "$work/sample" "$@" >"$work/out" || return 1
	cat "$work/out" "$work/sample"
	grep -qE '^[1-5] clusters; hosts of a cluster' "$work/out" && grep -q '"how": "nbar-lab profile --sample' "$work/sample" && costs "$work/sample" 5 &&
		"$lab" tune "$work/sample" && "$lab" predict "$work/sample"
}

# Profiles of NICs that share a processor, and the simulator with such a profile.
simulates() {
	grep -q '"processor": \[0, 0, 0, 0, 0\]' "$work/own" && grep -q '"step_ns": [0-9.]*' "$work/own" &&
		grep -qE '"flat_ns": {"pairwise": [0-9.]+, "dissemination:1": [0-9.]+' "$work/own" &&
		"$lab" simulate --members 5 --profile "$work/own" --alg tuned,pairwise >"$work/out" &&
		grep -qE '^ +5 +tuned ' "$work/out"
}

# A barrier composed for a topology, without a profile.
for_topology() {
	"$lab" simulate --members 300 --net fat-tree --alg dissemination:1,tuned >"$work/out" &&
		"$lab" simulate --members 300 --net dragonfly --alg tuned >>"$work/out" || return 1
	cat "$work/out"
	[ "$(grep -cE '^ +300 +tuned ' "$work/out")" = 2 ]
}

# mpi NAME LAUNCHER...: compiles the C file of nbar-lab tune with an MPI, and runs it.
mpi() {
	local name=$1
	shift
	"$lab" tune "$work/p3" --emit c -o "$work/tuned.c" &&
		"mpicc.$name" -std=c11 -Wall -Wextra -Wno-stringop-overflow -Werror -c "$work/tuned.c" -o "$work/tuned.o" &&
		"mpicc.$name" -std=c11 -D_GNU_SOURCE -O2 testbed/e2e/tuned_mpi.c "$work/tuned.o" \
			-o "$work/tuned.$name" &&
		rm -f "$work/entered" && "$@" -np 3 "$work/tuned.$name" "$work/entered" 20 20
}

# mpi_profile LAUNCHER...: makes a profile by messages of an MPI. Of three ranks, one says an error.
mpi_profile() {
	local words options
	"$@" -np 3 "$lab" profile --output "$work/by-mpi" --hosts n0,n1,n2 -i 3 && cat "$work/by-mpi" && costs "$work/by-mpi" 3 &&
		grep -q '"hosts": \["n0", "n1", "n2"\]' "$work/by-mpi" && "$lab" tune "$work/by-mpi" &&
		grep -qE '"how": "mpirun nbar-lab profile, (Open MPI|MPICH).*, medians of 3 round trips"' "$work/by-mpi" || return 1
	rm -f "$work/none"
	while IFS='|' read -r words options; do
		"$@" -np 3 "$lab" profile $options >"$work/out" 2>&1 </dev/null
		[ $? != 0 ] && cat "$work/out" && [ "$(grep -c -- "$words" "$work/out")" = 1 ] && [ ! -e "$work/none" ] || return 1
	done <<-END
		ranks 0 and 1 are on host .*: start one rank per host|--output $work/none
		--hosts has no name for rank 2|--output $work/none --hosts n0,n1
		name a file for the profile|-i 3
		'0' is not a number from 1|-i 0 --output $work/none
	END
}

# fitted WORDS PROFILE NAME LAUNCHER OPTIONS...: runs an MPI program with offloaded barriers of the
# algorithm tuned:PROFILE. Each rank has its own NIC, so it counts as a host. The glue prints WORDS.
fitted() {
	local words=$1 profile=$2 name=$3
	shift 3
	[ -d "$work/fit" ] || daemon "$work/fit" --nics 3 || return 1
	rm -f "$work/entered"
	NBAR_RUN_DIR=$work/fit NBAR_MPI_VERBOSE=2 OMPI_MCA_coll_nbar_verbose=2 \
		NBAR_MPI_ALG=tuned:$profile OMPI_MCA_coll_nbar_algorithm=tuned:$profile \
		NBAR_MPI_NIC=n%r OMPI_MCA_coll_nbar_nic=n%r \
		"$@" -np 3 "$work/tuned.$name" "$work/entered" 20 20 mpi >"$work/out" 2>&1
	local rc=$?
	cat "$work/out"
	[ $rc = 0 ] && grep -q -e "$words" "$work/out" && grep -q 'on 3 hosts: barriers offloaded to NICs' "$work/out"
}

# others_profile NAME LAUNCHER OPTIONS...: rank 1 finds a different profile under the same name.
others_profile() {
	local name=$1
	shift
	mkdir -p "$work/0" "$work/1" && cp "$work/p3" "$work/0/profile" &&
		sed 's/20000/21000/' "$work/p3" >"$work/1/profile" || return 1
	cat >"$work/tuned.each-$name" <<END
#!/bin/sh
cd "$work/\$((\${OMPI_COMM_WORLD_RANK-\$PMI_RANK} == 1))" && exec "$work/tuned.$name" "\$@"
END
	chmod +x "$work/tuned.each-$name"
	fitted "algorithm auto in place of .*: rank [012]: has another profile than other ranks" profile "each-$name" "$@"
}

# with_glue NAME FILE LAUNCHER OPTIONS...: tests the algorithm tuned in the glue FILE of an MPI.
with_glue() {
	local name=$1 file=$2
	shift 2
	if [ ! -e "$file" ] || [ ! -x "$work/tuned.$name" ] || [ -n "${SAN:-}" ]; then
		skip "$name: barriers fitted to a profile" "no $name here, or sanitizers"
		return
	fi
	ok "$name: barriers fitted to a profile" fitted "offloaded to NICs, tuned:$work/p3" "$work/p3" "$name" "$@"
	ok "$name: a host that the profile lacks" \
		fitted "algorithm auto in place of .*: rank 2: the profile does not have its host" \
		"$work/p2" "$name" "$@"
	ok "$name: a profile that does not exist" \
		fitted "algorithm auto in place of .*: rank 0: cannot read the profile" "$work/none" "$name" "$@"
	ok "$name: a rank with a different profile" others_profile "$name" "$@"
}

with_mpi() {
	local name=$1
	shift
	if command -v "mpicc.$name" >/dev/null && command -v "$1" >/dev/null; then
		ok "tune --emit c: compiled and called with $name" mpi "$name" "$@"
	else
		skip "tune --emit c: compiled and called with $name" "no mpicc.$name or $1 here"
	fi
	# Not with a sanitizer, which reports memory that the libraries of an MPI do not free.
	if [ -x "$BUILD/nbar-mpi-bench-$name" ] && command -v "$1" >/dev/null && [ -z "${SAN:-}" ]; then
		ok "profile: by messages of $name" mpi_profile "$@"
	else
		skip "profile: by messages of $name" "no $name here, or sanitizers"
	fi
}

cut_short() {
	head -c 200 "$work/p" >"$work/cut"
	wants 1 'no JSON' "$lab" tune "$work/cut" && [ ! -s "$work/out" ] &&
		wants 1 'no JSON' "$nbar" bench --nodes 2 --alg "tuned:$work/cut" -i 10
}

two_ranks() {
	"$lab" tune "$work/p3" --hosts n0,n0,n1,n1,n2,n2 >"$work/out" && cat "$work/out" &&
		grep -q '^6 members, ' "$work/out" && "$lab" predict "$work/p3" --hosts n0,n1,n2,n0,n1,n2
}

nothing_left() {
	[ -z "$(ls -A "$TMPDIR")" ]
}

prof 3 4 >"$work/p"
prof 1 3 >"$work/p3"
prof 1 2 >"$work/p2"
ok "profile: of NICs" measures
ok "profile: of hosts" measures --where host
ok "profile: with a process per node" measures --drivers nodes
ok "simulate: with a profile" simulates
ok "profile: of clusters" samples
ok "profile: of clusters, with a process per node" samples --drivers nodes
ok "simulate: --alg tuned on a topology" for_topology
ok "tune: racks become clusters" composes
ok "bench: --alg tuned runs it, by NIC and by host" runs
ok "bench: --alg tuned over udp, with a process per node" runs_over_udp
ok "predict: beside measured times" predicts
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_btl=self,vader OMPI_MCA_plm=isolated
with_mpi openmpi mpirun.openmpi
with_mpi mpich mpiexec.mpich
component=$BUILD/components/mca_coll_nbar.so
with_glue openmpi "$component" mpirun.openmpi --mca coll_nbar_enable 1 \
	--mca mca_base_component_path "$(realpath "$(dirname "$component")"):SYS_DEFAULT"
glue=$BUILD/libnbar-mpi-mpich.so
with_glue mpich "$glue" mpiexec.mpich -genv LD_PRELOAD "$(realpath "$glue")"
ok "tune: a profile that was cut short" cut_short
ok "tune: a profile that does not exist" wants 1 "cannot read the profile $work/none" "$lab" tune "$work/none"
ok "bench: a node whose host the profile lacks" wants 1 "no host 'n12'" \
	"$nbar" bench --nodes 13 --alg "tuned:$work/p" -i 10
ok "tune and predict: two ranks on each host" two_ranks
ok "tune: a host that the profile lacks" wants 2 "no host 'x'" "$lab" tune "$work/p" --hosts n1,x
for wrong in "tune" "tune $work/p $work/p" "tune $work/p --emit svg" "tune $work/p --what" \
	"predict" "predict $work/p --alg fast" "predict $work/p --formula x" \
	"simulate --alg tuned" "profile" "profile --output $work/o --nodes 2,3" "profile --output $work/o --where nic,host"; do
	ok "'nbar-lab ${wrong//$work/DIR}' is wrong usage" wants 2 'try `nbar' "$lab" $wrong
done
ok "bench: tuned without a profile is wrong usage" wants 2 'try `nbar' "$nbar" bench --alg tuned:
for name in profile predict tune; do
	ok "$name: help" "$lab" $name --help
done
ok "nothing is left in the temporary folder" nothing_left
finish
