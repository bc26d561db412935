# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the tests of the glues share. Sourced, with `glue` set to the subject of the test, for
# test names, and `mpi` to openmpi or mpich. The script that sources it defines ranks_command, which
# prints the command that starts the MPI oracle on the cluster, with the glue.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. testbed/e2e/lib.sh
case $BUILD in
/*) bin=$BUILD ;;
*) bin=$PWD/$BUILD ;;
esac
unset NBAR_RUN_DIR NBAR_NIC NBAR_CLUSTER_DIR NBAR_WAIT
dir=$work/cluster
cluster="testbed/hosts/cluster --run-dir $dir"
trap '$cluster down 2>/dev/null; cleanup' EXIT
oracle=$bin/mpi-oracle.$mpi
standard=$bin/mpi-standard.$mpi
limit=${ORACLE_LIMIT:-150} # of a run of the oracle, in s; set it higher on a busy machine
wrap= # words before the oracle's command

up() {
	$cluster up "$@" >"$work/up" 2>&1
	local rc=$?
	[ $rc = 0 ] || sed 's/^/# /' "$work/up"
	return $rc
}

down() {
	$cluster down
}

# Skips all tests if this machine cannot run them.
need() {
	if [ ! -x "$oracle" ] || [ ! -e "$1" ]; then
		skip "$glue" "no $mpi here"
		finish
	fi
	up 4
	if [ $? = 77 ]; then
		skip "$glue" "$(head -n 1 "$work/up")"
		finish
	fi
}

# times TEXT FILE: prints how often TEXT, a regular expression without .*, is in FILE. Not the number
# of lines: a launcher may read a rank's line without its end, and write another rank's text behind it.
times() {
	grep -oE -- "$1" "$2" | wc -l
}

# ranks NP [OPTIONS OF THE MPI] -- ARGUMENTS: runs the oracle.
ranks() {
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	timeout -k 5 "$limit" $(ranks_command "${options[@]}") "$@"
}

# report NAME COMMAND...: runs the command, such as ranks. Each test that it reports is a test here.
report() {
	local name=$1 rc line
	shift
	"$@" >"$work/out" 2>"$work/err"
	rc=$?
	while read -r line; do
		count=$((count + 1))
		case $line in
		"not ok "*) failures=$((failures + 1)); echo "not ok $count - $glue, $name: ${line#* - }" ;;
		"ok "*) echo "ok $count - $glue, $name: ${line#* - }" ;;
		*) count=$((count - 1)); echo "$line" ;;
		esac
	done < <(grep -E '^(ok|not ok|#) ' "$work/out")
	if [ $rc != 0 ]; then
		count=$((count + 1)) failures=$((failures + 1))
		echo "not ok $count - $glue, $name: ended with status $rc"
		tail -n 20 "$work/err" "$work/out" | sed 's/^/# /'
	fi
}

# oracle NAME NP EXPECT TESTS...: runs tests of the oracle. EXPECT: how nbar must run the barriers
# (nic, host or mpi).
oracle() {
	local name=$1 np=$2 expect=$3
	shift 3
	report "$name" ranks "$np" -- -s "$work/share.$np" -e "$expect" "$@"
}
