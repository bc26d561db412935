#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares the numbers of states that the model checkers have visited with those in states.list. Speaks TAP. `make check`
# runs this script after the checkers; it then compares the lines "check". --full: first runs all configurations, then
# compares all lines.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
list=testbed/mc/states.list
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
	case $1 in connect* | reuse* | three* | no-room* | value*) one= ;; esac # mc-nics: a line per configuration
	grep -hE "^(not )?ok [0-9]+ - $1$one: " "$log/mc-group.log" "$log/mc-nics.log" |
		sed -E 's/.*\(([0-9]+) states.*/\1/' | awk '{ n += $1 } END { print n }'
}
wanted='^check '
[ "${1:-}" = --full ] && wanted='^[a-z]'
rows=$(grep "$wanted" $list) || { echo "not ok 1 - $list has no lines"; echo 1..1; exit 1; }
n=0
while read -r _ name members plan want; do
	n=$((n + 1))
	have=$(states "$name" "$members" "$plan")
	if [ -n "$have" ] && [ "$have" = "$want" ]; then
		echo "ok $n - $name has the states of the list: $have"
	else
		echo "not ok $n - $name has ${have:-no} states, $list says $want; if you meant to change this, correct the list"
		bad=1
	fi
done <<<"$rows"
echo "1..$n"
exit $bad
