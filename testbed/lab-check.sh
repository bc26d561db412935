#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lab-check.sh - nothing outside tools/lab includes or links a file of it: a copy of the tree without that folder
# builds, installs, and passes tests. Reuses the objects of BUILD.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/lib.sh
make_work
BUILD=$(realpath "${BUILD:-build}")
tree=$work/tree

# No row of the map but those of tests allows the folder.
check_rows() { # FILE
	! grep -E '^\| `[^`]*` \|.*\|.*`tools/lab' "$1" | grep -v '^| `testbed/'
}

copy() {
	mkdir "$tree" && testbed/files | grep -v '^tools/lab/' | xargs cp -p --parents -t "$tree" && cp -a "$BUILD" "$tree/build" &&
		rm -rf "$tree"/build/{lab,tune,log,libexec,man} && find "$tree/build" -maxdepth 1 ! -type d -delete
}

in_copy() {
	(cd "$tree" && env -u BUILD -u TMPDIR nice make -s -j"$(nproc)" BUILD=build "$@")
}

no_lab() {
	! find "$tree/build" "$work/root" -name 'nbar-lab*' -o -name 'libn*tune*' -o -name report.py -o -name '*-barrier*' | grep .
}

# Each test that is left can be built.
dry_run() {
	in_copy -n check-nodeps >"$work/commands" 2>&1 || { tail "$work/commands"; return 1; }
	! grep -nE '(^| |/)tools/lab/' "$work/commands"
}

ok "no row of the map but those of tests allows tools/lab" check_rows CONTRIBUTING.md
printf '| `tools/bench` | x | `tools/main`, `tools/lab` |\n' >"$work/row"
ok "a row that allows it is found" eval '! check_rows "$work/row"'
ok "the tree is copied without tools/lab" copy
ok "the copy builds" in_copy all
ok "it installs" in_copy install prefix=/usr DESTDIR="$work/root"
ok "nothing of the lab is there" no_lab
ok "each of its tests can be built" dry_run
ok "nbar bench says what a composed barrier needs" wants 1 'cannot load libnbar-tune.*install the Debian package nbar-lab' \
	"$tree/build/nbar" bench --nodes 2 -i 1 --where host --alg tuned:x
tests=$(cd "$tree" && echo testbed/unit/tools/test_*.c | sed -E 's|[^ ]*/(test_[a-z_]*)\.c|build/\1|g')
ok "unit tests of its tools are built" in_copy $tests
ok "unit tests of its tools, and its helps, pass" eval '(cd "$tree" && BUILD=build testbed/run $tests testbed/e2e/help.sh)'
finish
