#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A tracer attaches to the USDT probes of a daemon and sees its barriers. Skipped where the daemon has
# no probes or the kernel permits no tracer.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nicd=$BUILD/nbar-nicd

barriers='
rm -rf "$1/meet" && mkdir "$1/meet" || exit 1
timeout 60 "$2" n0 "$1/meet" 0 2 &
timeout 60 "$2" n1 "$1/meet" 1 2
rc=$?
wait $! && exit $rc'

if ! readelf -n "$nicd" | grep -q 'Provider: nbar'; then
	skip "a tracer sees the barriers" "nbar-nicd has no probes: apt-get install systemtap-sdt-dev"
	finish
fi
export NBAR_RUN_DIR=$work/run
daemon "$work/run" --nics 2 --idle yield || exit 1
testbed/e2e/probes.py "$nicd" "$last_pid" sh -c "$barriers" sh "$work" "$BUILD/examples/hello" >"$work/counts" 2>&1
rc=$?
case $rc in
77) skip "a tracer sees the barriers" "$(tail -n 1 "$work/counts")" ;;
*) ok "a tracer sees the barriers" eval 'cat "$work/counts"; [ $rc = 0 ]' ;;
esac
ok "barriers go on without a tracer" sh -c "$barriers" sh "$work" "$BUILD/examples/hello"
finish
