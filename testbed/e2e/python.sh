#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the Python module: runs python_nbar.py, with a daemon of two NICs. Skipped where there is no
# Python.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
if [ -n "${SAN:-}" ]; then
	skip "the module nbar" "Python cannot load a library with sanitizers"
	finish
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
	skip "the module nbar" "there is no python3 of version 3.9 or later: apt-get install python3"
	finish
fi
case $BUILD in
/*) bin=$BUILD ;;
*) bin=$PWD/$BUILD ;;
esac
own_tmpdir
export BUILD=$bin NBAR_LIBRARY=$bin/libnbar.so.0 NBAR_HOSTNIC=$bin/libnbar-hostnic.so.0
export PYTHONPATH=$PWD/hostlib/python PYTHONDONTWRITEBYTECODE=1
unset NBAR_NIC NBAR_RUN_DIR NBAR_WAIT
ok "a daemon starts" daemon "$work/run" --nics 2 --idle sleep
first=$count
NBAR_RUN_DIR=$work/run python3 -X dev testbed/e2e/python_nbar.py $first >"$work/tap" &
pids="$pids $!"
wait $!
rc=$?
cat "$work/tap"
count=$((first + $(grep -cE '^(not )?ok ' "$work/tap")))
failures=$((failures + $(grep -c '^not ok ' "$work/tap")))
ok "nbar.py: all tests have run" grep -qx "# status $rc" "$work/tap"
ok "nbar.py: the tests leave nothing behind" nothing_left
finish
