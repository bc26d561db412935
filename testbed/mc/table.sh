#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares the numbers of states that the model checkers have visited with the table in firmware/PROTOCOL.md, "Model
# checking". These numbers do not depend on machine or compiler. Speaks TAP. `make check` runs this script after the
# checkers; it then compares the lines with a *. --full: first runs all configurations, then compares all lines.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
doc=firmware/PROTOCOL.md
log=$build/log
bad=0
mkdir -p "$log"
for name in mc-group mc-nics; do
	if [ "${1:-}" = --full ]; then
		"$build/$name" --full | tee "$log/$name.log" || bad=1
	elif [ ! "$log/$name.log" -nt "$build/$name" ]; then
		"$build/$name" >"$log/$name.log" || bad=1
	fi
done
states() { # NAME MEMBERS PLAN: prints the states of one plan, or of all plans together, from the checkers' output
	local one=", $3, $2 members"
	[ "$3" != all ] || one='(, .*)?'
	case $1 in connect* | reuse* | three* | no-room*) one= ;; esac # mc-nics: a line per configuration
	grep -hE "^(not )?ok [0-9]+ - $1$one: " "$log/mc-group.log" "$log/mc-nics.log" |
		sed -E 's/.*\(([0-9]+) states.*/\1/' | awk '{ n += $1 } END { print n }'
}
rows=$(awk -F'|' '/^\| configuration/ { table = 1; next } !/^\|/ { table = 0 }
	table && !/---/ { gsub(/[ ,]/, "", $6); sub(/[-,].*/, "", $3); print $2, $3, $5, $6 }' $doc)
[ "${1:-}" = --full ] || rows=$(grep '\*' <<<"$rows")
rows=${rows// \*/}
[ -n "$rows" ] || { echo "not ok 1 - $doc has no table of configurations"; echo 1..1; exit 1; }
n=0
while read -r name members plan want; do
	n=$((n + 1))
	have=$(states "$name" "$members" "$plan")
	if [ -n "$have" ] && [ "$have" = "$want" ]; then
		echo "ok $n - $name has the states of the table: $have"
	else
		echo "not ok $n - $name has ${have:-no} states, the table in $doc says $want; if you meant to change this, correct the table"
		bad=1
	fi
done <<<"$rows"
echo "1..$n"
exit $bad
