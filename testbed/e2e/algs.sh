#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks that there is only one table of algorithms: manual page, help and messages have each row, and
# no other source contains the name of an algorithm.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
"$BUILD/nbar-nicd" --list-algs >"$work/table"
names=$(sed -n 's/^\([a-z][a-zA-Z:]*\) .*/\1/p' "$work/table")
plans=$(echo "$names" | grep -vxE 'auto|custom|signal')

# each TEXT NAME...: each name is a whole word of the text.
each() {
	local text=$1 name
	shift
	for name in "$@"; do
		grep -qw -- "$name" <<<"$text" || { echo "$name is missing in: $text"; return 1; }
	done
}

page_has_table() {
	local line
	[ "$(wc -l <"$work/table")" -gt 10 ] || return
	while read -r line; do
		grep -qF -- "$line" firmware/platform/daemon/nbar-nicd.8 || { echo "missing: $line"; return 1; }
	done <"$work/table"
}

bench_refuses() {
	local said
	said=$("$BUILD/nbar" bench --alg nonsense 2>&1) && return 1
	each "$said" auto $plans
}

daemon_refuses() {
	daemon "$work/d" --nics 1 || return
	"$BUILD/oracle" -i 1 -a nonsense "$work/d/n0.sock" "$work/d/n0.sock" >"$work/said" 2>&1 && return 1
	each "$(cat "$work/said")" $names
}

# No other source contains a name. Exceptions: the table; two defaults; experiments, which are
# command lines; the kinds of teams; and models, which have the name of the algorithm that they
# model.
spelled_once() {
	local words
	words=$(echo "$plans" | sed 's/:.*//' | paste -sd '|')
	! grep -rnE "\"([^\"]*[^a-zA-Z-])?($words)([^a-zA-Z-]|\")" --include=*.c --include=*.h \
		firmware hostlib mpi-glue tools | grep -vE '^[^:]*:[0-9]+: \*|n-way (dissemination|"dissemination)' |
		grep -vE '^(firmware/core/alg.h|tools/main/(algs.h|published.c)|hostlib/src/team_kind.c|hostlib/include/nbar[_a-z]*.h|hostlib/examples/openmp.c|tools/lab/threads/.*|tools/lab/sweep/sweep_combined.c):'
}

ok "the manual page of nbar-nicd has the table" page_has_table
ok "nbar bench --help has each name" each "$("$BUILD/nbar" bench --help)" auto all $plans
ok "nbar mpi-bench --help has each name" each "$("$BUILD/nbar" mpi-bench --help)" auto all $plans
ok "nbar bench refuses an unknown name, and lists all names" bench_refuses
ok "a NIC refuses an unknown name, and lists all names" daemon_refuses
ok "no other source contains a name" spelled_once
finish
