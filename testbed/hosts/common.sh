# SPDX-License-Identifier: BSD-3-Clause
# common.sh - what cluster and hub share: paths, and the start time of a process. Sourced, with $here
# set.

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

# Prints the start time of a process, in ticks. Pid and start time together identify a process, even
# if the pid is used again. Fails if the process does not exist or is a zombie.
started() {
	local stat
	{ read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null
	[ -n "${stat:-}" ] || return 1
	set -- ${stat##*) }
	[ "$1" != Z ] && echo "${20}"
}
