#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs into an empty folder, as a package would, and uses what is there and nothing else: the
# library by pkg-config from the README's example, the daemon, the tool, the man pages.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/e2e/lib.sh
root=$work/root
prefix=$root/usr
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH

flags() {
	pkg-config "$@" nbar
}

no_firmware_inside() { # the library must depend on libc alone
	! readelf -d "$prefix"/lib*/libnbar.so* "$prefix"/lib/*/libnbar.so* 2>/dev/null |
		grep NEEDED | grep -vE "libc\.so|ld-linux"
}

only_our_symbols() {
	! nm -D --defined-only "$(find "$root" -name 'libnbar.so.*' -type f)" | awk '{print $3}' |
		grep -vE '^(nbar_|NBAR_)'
}

run_example() {
	local i pids=
	mkdir -p "$work/meet"
	for i in 0 1 2; do
		LD_LIBRARY_PATH=$libdir "$work/hello" "$work/run/n$i.sock" "$work/meet" $i 3 >"$work/hello.$i" 2>&1 &
		pids="$pids $!"
	done
	for i in $pids; do
		wait "$i" || { cat "$work"/hello.*; return 1; }
	done
}

man_pages() {
	for page in nbar.1 nbar.3 nbar-nicd.8; do
		[ -s "$(find "$root" -name "$page")" ] || { echo "no $page"; return 1; }
	done
}

ok "make install into a folder" make -s install BUILD="$BUILD" PREFIX=/usr DESTDIR="$root"
libdir=$(dirname "$(find "$root" -name libnbar.so)")
PKG_CONFIG_PATH=$libdir/pkgconfig
ok "pkg-config knows nbar" flags --cflags --libs
ok "the example builds from what is installed" cc -Wall -Wextra -Werror hostlib/examples/hello.c \
	$(flags --cflags --libs) -o "$work/hello"
ok "as C++ too" g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only $(flags --cflags) -include nbar.h \
	-x c++ /dev/null
ok "the library needs libc alone" no_firmware_inside
ok "and exports nbar_ names alone" only_our_symbols
ok "man pages are there" man_pages
BUILD=$prefix/bin
ok "the installed daemon starts" daemon "$work/run" --nics 3
ok "three processes of the example meet" run_example
ok "the installed tool shows the NICs" "$prefix/bin/nbar" stat "$work/run/n0.sock"
finish
