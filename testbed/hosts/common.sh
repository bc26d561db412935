# SPDX-License-Identifier: BSD-3-Clause
# common.sh - what cluster and hub share: where things are, and how to end with a text. Sourced,
# with $here and $name set.

root=$(cd "$here/../.." && pwd)
. "$root/testbed/lib.sh"
help=cluster
build=${BUILD:-build}
case $build in
/*) ;;
*) build=$root/$build ;;
esac
export BUILD=$build
NICD=$build/nbar-nicd
[ -x "$NICD" ] || NICD=$(command -v nbar-nicd || echo "$NICD")
HOLD=$build/cluster-hold
FINALIZE=$build/libcluster-finalize.so

# When a process started, in ticks: with its number it names the process and no later one. Fails if
# there is none, or nothing of it but its exit status.
started() {
	local stat
	{ read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null
	[ -n "${stat:-}" ] || return 1
	set -- ${stat##*) }
	[ "$1" != Z ] && echo "${20}"
}
