#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs every plan over the wire "verbs", by the NICs and by the hosts over signals, on one device. The
# oracle checks each barrier. In each mode (NBAR_MODES: ud, write-rc, write-uc): on three NICs of two
# daemons, and on three in-process NICs. NBAR_ROUNDS (200) barriers of 4 members, a tenth as many
# of 7.
set -u
guests=1
. "$(dirname "$0")/lib.sh"
rounds=${NBAR_ROUNDS:-200}
slowest=5
. testbed/e2e/plans.sh

for mode in ${NBAR_MODES:-ud write-rc write-uc}; do
	ok "$mode: a daemon with two NICs" nics $mode-a - -
	ok "$mode: another with one" nics $mode-b -
	every "$mode" "$work/$mode-a/n0.sock" "$work/$mode-a/n1.sock" "$work/$mode-b/n0.sock"
	end_processes
	in_process=host:wire=verbs,mode=$mode,pull-us=20000
	every "$mode, in-process" $in_process $in_process $in_process
done
finish
