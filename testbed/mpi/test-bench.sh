#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `nbar mpi-bench` on test hosts, with each installed MPI: its columns and formats, its errors, and
# whether each method runs the right barrier. Asserts no time.
set -u
glue="mpi-bench"
mpi=openmpi
. "$(dirname "$0")/lib.sh"
nbar=$bin/nbar
path=$bin/components:SYS_DEFAULT
# command_of HOW NP: prints the command that starts NP ranks on the cluster. HOW: with the component
# of Open MPI (component), MPICH's PMPI library (mpich), or Open MPI without nbar (plain).
command_of() {
	case $1 in
	component) echo "$cluster mpirun -np $2 --mca mca_base_component_path $path --mca coll_nbar_enable 1" ;;
	mpich) echo "$cluster mpiexec -np $2 -genv LD_PRELOAD $bin/libnbar-mpi-mpich.so" ;;
	plain) echo "$cluster mpirun -np $2" ;;
	esac
}

# bench HOW NP ARGUMENTS...: runs nbar mpi-bench. Its outputs are in $work/out and $work/err;
# returns its exit status.
bench() {
	local how=$1 np=$2
	shift 2
	timeout -k 5 "${ORACLE_LIMIT:-100}" $(command_of "$how" "$np") "$nbar" mpi-bench "$@" >"$work/out" 2>"$work/err"
}

# says HOW NP STATUS TEXT ARGUMENTS...: the command ends with STATUS, and its output has exactly one
# line with TEXT.
says() {
	local how=$1 np=$2 status=$3 text=$4 rc
	shift 4
	bench "$how" "$np" "$@"
	rc=$?
	cat "$work/out" "$work/err"
	[ $rc = "$status" ] && [ "$(cat "$work/out" "$work/err" | grep -c -- "$text")" = 1 ]
}

# table HOW NP COLUMNS METHODS ARGUMENTS...: a row of numbers for each method.
table() {
	local how=$1 np=$2 columns=$3 methods=$4 m rc
	shift 4
	bench "$how" "$np" --method "$methods" "$@"
	rc=$?
	cat "$work/out" "$work/err"
	[ $rc = 0 ] && grep -q "^method *$columns\$" "$work/out" || return 1
	for m in ${methods//,/ }; do
		[ "$(grep -cE "^$m( +[0-9]+\.[0-9]+)+( +-)?\$" "$work/out")" = 1 ] || return 1
	done
}

json() { # HOW NP METHODS ARGUMENTS...
	local how=$1 np=$2 methods=$3
	shift 3
	bench "$how" "$np" --method "$methods" --json - "$@" || { cat "$work/err"; return 1; }
	python3 - "$work/out" "$methods" "$np" <<'PY'
import json, sys
got = json.load(open(sys.argv[1]))
columns = [c["name"] for c in got["columns"]]
units = [c["unit"] for c in got["columns"]]
rows = [dict(zip(columns, row)) for row in got["rows"]]
assert [r["method"] for r in rows] == sys.argv[2].split(","), got
assert got["settings"]["ranks"] == int(sys.argv[3]), got["settings"]
machine = got["machine"]
assert machine["mpi"] and machine["kernel"] and machine["nbar"] and machine["wire"], machine
assert got["settings"]["where"] == "nic" and got["settings"]["nic"] == "default", got["settings"]
for row in got["rows"]:
    numbers = [v for v, unit in zip(row, units) if unit == "us"]
    assert len(numbers) >= 3 and all(v > 0 for v in numbers), row
PY
}

csv() { # HOW NP FILE
	bench "$1" "$2" -i 20 -x 5 --csv "$3" --raw "$3.raw" || { cat "$work/err"; return 1; }
	cat "$3"
	[ "$(grep -cE '^(mpi|nbar),,[0-9],[0-9]+$' "$3.raw")" = 20 ] || return 1
	grep -q '^#@mpi=.*[0-9]' "$3" && grep -qE '^method,avg_us,min_us,max_us,([a-z0-9.]+_us,){3,}speedup$' "$3" &&
		[ "$(grep -cE '^(mpi|nbar)(,[0-9.e+-]+){6,},[0-9.e+-]*$' "$3")" = 2 ]
}

# counts HOW NP METHOD PATTERN: the method runs the barrier of its name: the counters that the glue
# prints match PATTERN.
counts() {
	export NBAR_MPI_VERBOSE=1 OMPI_MCA_coll_nbar_verbose=1
	bench "$1" "$2" --method "$3" -i 100 -x 0 --blocks 1
	local rc=$?
	unset NBAR_MPI_VERBOSE OMPI_MCA_coll_nbar_verbose
	cat "$work/err"
	[ $rc = 0 ] && [ "$(times "nbar: $4" "$work/err")" = "$2" ]
}

# A row for each application and method. The same seed gives the same computations.
apps() { # HOW NP
	bench "$1" "$2" --test app --app 1,1 --steps 5,7.5 --scale 0.1 --vary 20 --method mpi,nbar,lib,p2p:mcs \
		-i 4 -x 1 --blocks 2 --csv "$work/apps.csv"
	local rc=$?
	cat "$work/out" "$work/err"
	[ $rc = 0 ] && grep -q '^application *steps *compute *method *execution *low *high *efficiency *speedup$' "$work/out" &&
		[ "$(grep -cE '^1,8,36,(mpi|nbar|lib|p2p:mcs),([0-9.e+-]+,){4}[0-9.e+-]*$' "$work/apps.csv")" = 8 ] &&
		[ "$(grep -cE '^own 3,2,1.25,(mpi|nbar|lib|p2p:mcs),([0-9.e+-]+,){4}[0-9.e+-]*$' "$work/apps.csv")" = 4 ] &&
		grep -q '^#@application own 3=5,7.5$' "$work/apps.csv"
}

# columns_of TEST: prints a pattern of the test's columns, from the help text.
columns_of() {
	"$nbar" mpi-bench --help | sed -n "s/^  $1  *//p" | sed 's/, / */g'
}
columns=$(columns_of barrier)

# Tests for each glue.
with_glue() { # HOW
	ok "$glue, $1: latency" table "$1" 4 "$columns" mpi,nbar,lib -i 20 -x 5
	ok "$glue, $1: latency of an allreduce" table "$1" 4 "$columns" mpi,nbar --test allreduce --value 64 -i 20 -x 5
	ok "$glue, $1: a rank is busy" table "$1" 4 "$(columns_of busy)" mpi,nbar,lib --test busy -i 4 -x 1
	ok "$glue, $1: barriers of method nbar are offloaded" counts "$1" 3 nbar "10[0-9] barriers offloaded"
	ok "$glue, $1: barriers of method mpi are not" counts "$1" 3 mpi "0 barriers offloaded, 0 within the host, 0 by fallback"
	export NBAR_MPI_MIN_HOSTS=9 OMPI_MCA_coll_nbar_min_nodes=9
	ok "$glue, $1: the message gives the reason of a fallback" says "$1" 3 1 "the MPI runs these barriers: it is over fewer hosts"
	unset NBAR_MPI_MIN_HOSTS OMPI_MCA_coll_nbar_min_nodes
	export NBAR_MPI_WAIT=soon OMPI_MCA_coll_nbar_wait=soon
	ok "$glue, $1: the message says that settings were refused" says "$1" 3 1 \
		"the MPI runs these barriers: .*refused its settings at the start; a line on stderr gives the cause"
	unset NBAR_MPI_WAIT OMPI_MCA_coll_nbar_wait
}

# In-process NICs: the methods nbar and lib use them, and the result names them. The sockets of the
# daemons are away.
in_process() { # HOW
	export NBAR_MPI_WHERE=host OMPI_MCA_coll_nbar_where=host
	ok "$glue, $1: in-process NICs" in_process_told "$1" host:
	export NBAR_MPI_WHERE=nic OMPI_MCA_coll_nbar_where=nic
	export NBAR_MPI_NIC=host:wire=udp OMPI_MCA_coll_nbar_nic=host:wire=udp
	ok "$glue, $1: in-process NICs, selected only by the name host:" in_process_told "$1" host:wire=udp
	unset NBAR_MPI_NIC OMPI_MCA_coll_nbar_nic
}

# A parameter of the component works from a file of parameters, too.
from_file() {
	echo "coll_nbar_nic = host:wire=udp" >"$work/params.conf"
	export OMPI_MCA_mca_base_param_files=$work/params.conf
	ok "$glue, component: in-process NICs, by a file of parameters" in_process_told component host:wire=udp
	unset OMPI_MCA_mca_base_param_files
}

daemons_away() { # FROM TO
	local k
	for k in 0 1 2 3; do
		$cluster exec $k mv "/run/nbar/$1.sock" "/run/nbar/$2.sock"
	done
}

in_process_told() { # HOW NIC
	daemons_away n0 away
	bench "$1" 6 --method nbar,lib --json - -i 20 -x 5 --blocks 2
	local rc=$?
	daemons_away away n0
	cat "$work/out" "$work/err"
	[ $rc = 0 ] && grep -q '"where": "host"' "$work/out" && grep -q "\"nic\": \"$2\"" "$work/out" &&
		grep -q '"wire": "[a-z]' "$work/out" && grep -q "where host, NIC $2, wire [a-z]" "$work/out"
}

# Tests for each MPI.
with_mpi() { # HOW
	ok "$glue, $1: plans over messages, with 5 ranks on 4 hosts" table "$1" 5 \
		"$columns" nbar,lib,p2p:pairwise,p2p:dissemination:3,p2p:mcs,p2p:tournament,p2p:binomial,p2p:linear \
		-i 10 -x 1 --blocks 2
	ok "$glue, $1: overlap" table "$1" 3 "$(columns_of ibarrier)" mpi,nbar,lib,p2p:mcs \
		--test ibarrier -i 20 -x 2
	ok "$glue, $1: synthetic applications" apps "$1" 3
	ok "$glue, $1: JSON" json "$1" 3 nbar,mpi -i 20 -x 5 --blocks 4
	ok "$glue, $1: CSV" csv "$1" 3 "$work/$1.csv"
	ok "$glue, $1: wrong options" says "$1" 3 2 "mpi-bench: --test: 'x' is none of" --test x
	ok "$glue, $1: lib has no allreduce" says "$1" 3 2 "allreduce has the methods mpi and nbar" \
		--test allreduce --method nbar,lib
	ok "$glue, $1: help" says "$1" 3 0 "^usage: " --help
}

two_nics() { # HOW NIC
	bench "$1" 6 --method nbar,lib,lib2 --nic2 "$2" --json - -i 20 -x 5 --blocks 2
	local rc=$?
	cat "$work/out" "$work/err"
	[ $rc = 0 ] && grep -q '^ *"lib2",' "$work/out" && grep -q "\"nic2\": \"$2\"" "$work/out"
}

no_name() { # HOW: several ranks may print the message before the first of them ends the job
	bench "$1" 2 --method lib2 --nic2 n%z
	local rc=$?
	cat "$work/err"
	[ $rc = 1 ] && grep -q "is not a NIC name" "$work/err"
}

# Tests that run once.
refuses() {
	ok "$glue: always the same rank is busy, and spins" table "$1" 3 \
		"wait .* *fastest *slowest *of mpi" mpi,nbar -f --test busy --busy-rank 1 \
		--compute-by spin --compute 1000 -i 4 -x 1 --blocks 2
	ok "$glue: JSON of the busy test" json "$1" 3 mpi,nbar --test busy -i 4 -x 1 --blocks 2
	ok "$glue: JSON of applications, which sleep" json "$1" 2 mpi,nbar --test app --app 1 --scale 0.1 \
		--compute-by sleep -i 4 -x 1 --blocks 2
	ok "$glue: the result says how much MPI adds to the library" says "$1" 2 0 "MPI adds" --method nbar,lib -i 20 -x 5
	ok "$glue: two NICs side by side" two_nics "$1" host:wire=udp,name=two
	ok "$glue: the second NIC does not exist" says "$1" 2 1 "lib2: rank 0: " --method lib,lib2 --nic2 n9
	ok "$glue: the name of the second NIC is invalid" no_name "$1"
	ok "$glue: no such rank" says "$1" 3 2 "there are ranks 0 to 2" --test busy --busy-rank 3
	ok "$glue: only one rank" says "$1" 1 2 "start two ranks or more"
	ok "$glue: a folder that does not exist" says "$1" 3 1 "cannot write $work/no/file" --json "$work/no/file"
}

alone() { # STATUS TEXT ARGUMENTS...
	local status=$1 text=$2 rc
	shift 2
	env -u OMPI_COMM_WORLD_RANK -u PMI_RANK -u PMIX_RANK "$nbar" mpi-bench "$@" >"$work/out" 2>&1
	rc=$?
	cat "$work/out"
	[ $rc = "$status" ] && grep -q -- "$text" "$work/out"
}

ok "$glue: without a launcher, the message says what to do" alone 2 "mpirun --mca coll_nbar_enable 1 -np 4 nbar mpi-bench"
ok "$glue: an unknown method" alone 2 "'x' is none of mpi, nbar, lib, lib2, p2p:ALG" --method mpi,x
ok "$glue: --nic2 without method lib2" alone 2 "lib2 needs --nic2" --nic2 n1
ok "$glue: method lib2 without --nic2" alone 2 "lib2 needs --nic2" --method lib,lib2
ok "$glue: an unknown plan" alone 2 "none of auto" --method p2p:custom
ok "$glue: a method twice" alone 2 "is in the list twice" --method mpi,mpi
ok "$glue: options of another test" alone 2 "is for --test ibarrier" --compute 5
ok "$glue: applications of another test" alone 2 "are for --test app" --steps 5,10
ok "$glue: no such application" alone 2 "is not 1, 2 or 3" --test app --app 4
ok "$glue: a step that is no number" alone 2 "is not a number from" --test app --steps 5,,10
if [ ! -x "$bin/nbar-mpi-bench-openmpi" ] && [ ! -x "$bin/nbar-mpi-bench-mpich" ]; then
	skip "$glue" "no MPI here"
	finish
fi
up 4
if [ $? = 77 ]; then
	skip "$glue" "$(head -n 1 "$work/up")"
	finish
fi
if [ -x "$bin/nbar-mpi-bench-openmpi" ]; then
	with_glue component
	in_process component
	from_file
	with_mpi component
	refuses component
	ok "$glue: method nbar without nbar in MPI: the message says so" says plain 2 1 "this program runs without nbar"
	export NBAR_MPI_WHERE=host NBAR_NIC=n0
	ok "$glue: lib with a NIC that is refused" says plain 2 1 "^nbar mpi-bench: lib: the NIC .* is refused" \
		--method lib
	unset NBAR_NIC
	ok "$glue: lib with in-process NICs, without nbar in MPI" table plain 3 "$columns" mpi,lib -i 20 -x 5
	export NBAR_MPI_WHERE=nic
	ok "$glue: the other methods need no nbar in MPI" table plain 2 "$columns" \
		mpi,lib,p2p:linear -i 20 -x 5
else
	skip "$glue, Open MPI" "no Open MPI here"
fi
if [ -x "$bin/nbar-mpi-bench-mpich" ]; then
	with_glue mpich
	in_process mpich
	with_mpi mpich
else
	skip "$glue, MPICH" "no MPICH here"
fi
finish
