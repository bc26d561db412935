#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Shows that the model checkers of engine and NIC loop find bugs. For each bug in mutate/bugs.list with a configuration
# of the checkers, the script links them with one patched object of the firmware, and expects a bad run. Speaks TAP; run
# by make check. Arguments: names of bugs (default: all). -v prints each bad run.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
cc=${CC:-gcc}
build=${BUILD:-build}
. testbed/lib.sh
make_work
verbose=
while [[ ${1:-} == -* ]]; do
	verbose=1
	shift
done
flags="-std=c11 -O0 -w ${SAN:+-fsanitize=$SAN} -ffreestanding -I$work -Ifirmware/include -Ifirmware/core -Ifirmware/nic"
objects() { # NAME...
	printf "$build/test/testbed/mc/%s.o " "$@"
}
group_obj=$(objects group group_world group_events group_probe group_same chart search states)
nics_obj=$(objects nics nics_world nics_events nics_save chart search states)

bugs=$(grep '^[a-z][^ ]* [^-]' testbed/mutate/bugs.list)
[ $# = 0 ] || bugs=$(for name in "$@"; do grep "^$name " <<<"$bugs"; done)
echo "1..$(echo "$bugs" | wc -l)"
n=0 bad=0
while read -r name config file expression; do
	n=$((n + 1))
	folder=firmware/core
	sources=$group_obj
	[ -e "$folder/$file" ] || folder=firmware/nic
	case $folder/$config in */nic/* | */value*) sources=$nics_obj ;; esac
	sed "$expression" "$folder/$file" >"$work/$file"
	if cmp -s "$work/$file" "$folder/$file"; then
		verdict="not ok $n - seeded bug $name changes nothing: its sed expression is out of date"
	elif ! $cc $flags -c "$work/$file" -o "$work/patched.o" ||
		! $cc ${SAN:+-fsanitize=$SAN} $sources "$work/patched.o" "$build/libnbnic.a" "$build/libnbfw.a" -o "$work/mc"; then
		verdict="not ok $n - seeded bug $name does not compile"
	else
		"$work/mc" --first "$config" >"$work/out" 2>&1
		rc=$?
		verdict="ok $n - seeded bug $name is found: $(sed -n 's/^not ok [0-9]* - //p' "$work/out")"
		[ $rc = 1 ] && grep -q '^not ok' "$work/out" || verdict="not ok $n - seeded bug $name is not found"
		[ -z "$verbose" ] || sed '/^not ok/,$d; /^ok/d' "$work/out"
	fi
	rm -f "$work/$file"
	echo "$verdict"
	case $verdict in not*) bad=$((bad + 1)) ;; esac
done <<<"$bugs"
[ "$bad" = 0 ]
