#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs into an empty folder, as a package would, and tests only the installed files: the library
# with the README's example and pkg-config, the daemon, the tool, the man pages. At the end,
# make uninstall leaves nothing of it.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/e2e/lib.sh
root=$work/root
prefix=$root/usr
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH

flags() {
	pkg-config "$@" nbar
}

needs_libc_alone() {
	local needed
	needed=$(readelf -d "$libdir/libnbar.so" | grep NEEDED)
	echo "$needed"
	[ -n "$needed" ] && ! echo "$needed" | grep -vE "libc\.so|ld-linux"
}

only_our_symbols() {
	nm -D --defined-only "$libdir/libnbar.so" | awk '{print $3}' >"$work/symbols"
	grep -q '^nbar_open' "$work/symbols" && ! grep -vE '^(nbar_|NBAR_)' "$work/symbols"
}

run_example() { # FOLDER NIC NIC NIC
	local meet=$work/$1 i=0 nic pids=
	shift
	mkdir -p "$meet"
	for nic; do
		LD_LIBRARY_PATH=$libdir "$work/hello" "$nic" "$meet" $i $# >"$work/hello.$i" 2>&1 &
		pids="$pids $!"
		i=$((i + 1))
	done
	for i in $pids; do
		wait "$i" || { cat "$work"/hello.*; return 1; }
	done
}

# The list of symbols in debian/ is that of the library.
listed_symbols() {
	sed -nE '/^libnbar\.so/,/^lib[^.]*-/s/^ (nbar_[a-z0-9_]+)@.*/\1/p' debian/libnbar0.symbols | sort >"$work/listed"
	grep '^nbar_' "$work/symbols" | sed 's/@.*//' | sort | diff "$work/listed" - && [ -s "$work/listed" ]
}

one_symbol() { # LIBRARY SYMBOL
	nm -D --defined-only "$libdir/$1".so.* | awk '{print $3}' >"$work/symbols"
	cat "$work/symbols"
	[ "$(cat "$work/symbols")" = "$2" ]
}

only_object_needs() { # WIRE LIBRARY
	! readelf -d "$prefix/bin/nbar-nicd" "$libdir"/libnbar-hostnic.so.* | grep "$2" &&
		readelf -d "$libdir/libnbar-wire-$1.so.0" | grep "$2"
}

alone=host:wire=udp,bind=127.0.0.1:0
man_pages() {
	for page in nbar.1 nbar-mpi-bench.1 nbar.3 nbar_extra.3 nbar_team.3 nbar_process_team.3 nbar-nicd.8; do
		[ -s "$(find "$root" -name "$page")" ] || { echo "no $page"; return 1; }
	done
}

# `man FUNCTION` shows the page whose synopsis has the function.
page_of_each_function() {
	local man3 page name n=0
	man3=$(dirname "$(find "$root" -name nbar.3)")
	for page in nbar nbar_extra nbar_team nbar_process_team nbar_tune; do
		for name in $(sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/s/.*[ *]\(nbar_[a-z_]*\)(.*/\1/p' "$man3/$page.3"); do
			[ "$man3/$name.3" -ef "$man3/$page.3" ] || { echo "man $name is not $page(3)"; return 1; }
			n=$((n + 1))
		done
	done
	echo "$n functions"
	[ $n -gt 40 ]
}

uninstall() { # DESTDIR
	env -u PKG_CONFIG_SYSROOT_DIR -u PKG_CONFIG_PATH make -s uninstall BUILD="$built" prefix=/usr DESTDIR="$1"
}

# Nothing but a file of somebody else is left. Twice: nothing is there any more. DESTDIR may be relative.
uninstalled() {
	touch "$prefix/bin/other"
	uninstall "$root" && uninstall "$(realpath --relative-to=. "$root")" || return 1
	find "$root" ! -type d -o -name '*nbar*'
	[ "$(find "$root" ! -type d -o -name '*nbar*')" = "$prefix/bin/other" ]
}

built=$BUILD
ok "make install into a folder" make -s install BUILD="$BUILD" prefix=/usr DESTDIR="$root"
libdir=$(dirname "$(find "$root" -name libnbar.so)")
PKG_CONFIG_PATH=$libdir/pkgconfig
ok "pkg-config knows nbar" flags --cflags --libs
ok "the example builds from what is installed" cc -Wall -Wextra -Werror hostlib/examples/hello.c \
	$(flags --cflags --libs) -o "$work/hello"
ok "nbar.h compiles as C++, too" g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only $(flags --cflags) -include nbar.h \
	-x c++ /dev/null
ok "the library needs libc alone" needs_libc_alone
ok "the library exports nbar_ names alone" only_our_symbols
ok "debian/libnbar0.symbols lists what the library exports" listed_symbols
ok "the library of NICs in a process exports one name" one_symbol libnbar-hostnic nbar_hostnic
ok "three processes of the example meet without a daemon" run_example alone $alone $alone $alone
ok "man pages are there" man_pages
ok "each function has the page that describes it" page_of_each_function
ok "the module of Python loads the installed library" env -u PYTHONDONTWRITEBYTECODE NBAR_LIBRARY="$libdir/libnbar.so.0" \
	PYTHONPATH="$(dirname "$(find "$root" -name nbar.py)")" python3 -c 'import nbar; nbar.open("'$alone'").close()'
BUILD=$prefix/bin
if [ -x "$BUILD/nbar-lab" ]; then
	ok "the installed report finds its module" "$BUILD/nbar-lab" report --list
	ok "libnbar-tune exports one name" one_symbol libnbar-tune nbar_tune
fi
for sdk in dpdk=librte_eal verbs=libibverbs; do
	if has_wire ${sdk%=*}; then
		ok "the object of the wire ${sdk%=*} exports one name" one_symbol libnbar-wire-${sdk%=*} nbar_wire
		ok "no other program is linked with ${sdk#*=}" only_object_needs ${sdk%=*} ${sdk#*=}
	else
		skip "the wire ${sdk%=*}" "this build has no wire ${sdk%=*}: make deps"
	fi
done
ok "the installed daemon starts" daemon "$work/run" --nics 3
ok "three processes of the example meet" run_example meet "$work"/run/n{0,1,2}.sock
ok "the installed tool shows the NICs" "$prefix/bin/nbar" stat "$work/run/n0.sock"
ok "make uninstall removes it" uninstalled
finish
