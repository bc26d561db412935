#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the house may need, how its static functions are named, and what its documents tell. Programs and libraries need
# libc alone, and the libraries of their row below. No name of a static function stands in two files of the product, and
# a static function of more than ten lines has two words in its name. Documents tell no history, and only those of
# $figures have dated measurements. Speaks TAP; run by make check, after the build.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/lib.sh
make_work

# Files of the build, and the libraries that each may need besides libc.
allowed="
nbar-nicd libsodium
nbar-bared
nbar libjansson|libm
nbar-lab libjansson|libm
libnbar.so
libnbar-hostnic.so libsodium
libnbar-tune.so libjansson|libm
libnbar-wire-dpdk.so librte_.*
libnbar-wire-verbs.so libibverbs
libnbar-rdma.so libibverbs|libsodium
libnbar-wire-kernel.so libbpf
libnbar-mpi-.*.so libmpi|libmpich|libopen-.*|libfabric|libucp|libm
nbar-mpi-(bench|profile)-.* libmpi|libmpich|libopen-.*|libjansson|libm|libfabric|libucp
"

# FOLDER: each program and library in it has a row, and needs what its row allows.
check_needed() {
	local file name row lib bad=0 n=0
	for file in "$1"/*; do
		name=${file##*/}
		[[ -f $file && ! -L $file && $name =~ ^(lib)?nbar && ! $name =~ \.(a|elf|service)$ ]] || continue
		n=$((n + 1))
		row=$(while read -r name2 libs; do
			[[ $name =~ ^$name2(\.[0-9]+)?$ ]] && echo "${libs:-none}"
		done <<<"$allowed")
		[ -n "$row" ] || { echo "$name: no row in $0 says what it may need"; bad=1; continue; }
		while read -r lib; do
			[[ $lib =~ ^(libc|ld-linux.*|libasan|libubsan|libtsan|libgcov|$row)\.so ]] ||
				{ echo "$name needs $lib, which its row in $0 does not allow"; bad=1; }
		done < <(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
	done
	echo "$n files"
	[ $n -ge 3 ] && [ $bad = 0 ]
}

check_statics() { # FILE...
	awk '
	FNR == 1 { name = "" }
	/^static / && !/[;=]/ && /\(/ {
		name = $0
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
		first = FNR
		body = 0
	}
	/^{/ { body = 1 }
	/;$/ && !body { name = "" }
	/^}/ && name != "" {
		if (FNR - first > 10 && name !~ /_/) {
			print FILENAME ":" first ": " name " has " FNR - first " lines: name its subject, too"
			bad = 1
		}
		if (file[name] == "")
			file[name] = FILENAME
		else if (file[name] != FILENAME) {
			print FILENAME ":" first ": " name " is also in " file[name]
			bad = 1
		}
		n++
		name = ""
	}
	END { print n " functions"; exit bad }' "$@"
}

# Documents state the present; measurements are in one place for each machine that they need.
figures='tools/README\.md|testbed/verbs/README\.md'
check_present() { # FILE...
	local month='(Jan|Febr)uary|March|April|May|June|July|August|(Septem|Octo|Novem|Decem)ber'
	local told='formerly|previously|used to|no longer(?! than)|recently|earlier version|old name'
	told="$told|(was|were|been) (renamed|mended|fixed)"
	! grep -HnPi "\b($told)\b" "$@" && ! grep -HnP "\b(($month) 20\d\d|20\d\d-\d\d-\d\d)\b" "$@" | grep -vE "^($figures):"
}

plant() { # NAME LINES: a file with a static function
	{ printf 'static int %s(void)\n{\n' "$1"; yes '	x++;' | head -n "$2"; echo '}'; } >"$work/$1.c"
}

finds() { # WORDS COMMAND...
	! "${@:2}" >"$work/found" && cat "$work/found" && grep -qF "$1" "$work/found"
}

other_library() {
	mkdir "$work/build" && gcc -shared -Wl,--no-as-needed -x c /dev/null -lm -o "$work/build/nbar-nicd" &&
		finds "nbar-nicd needs libm.so.6" check_needed "$work/build"
}

twice() {
	mkdir "$work/other" && plant pull_take 8 && cp "$work/pull_take.c" "$work/other" &&
		finds "pull_take is also in" check_statics "$work/pull_take.c" "$work/other/pull_take.c"
}

long() {
	plant take 9 && finds "take has 11 lines" check_statics "$work/take.c"
}

tells() { # WORDS: in a document
	echo "$1" >"$work/story.md" && finds "story.md:1:" check_present "$work/story.md"
}

mapfile -t documents < <(testbed/files | grep -E '\.(md|[1-8])$')
ok "documents state the present" check_present "${documents[@]}"
ok "a history is found" tells "Barriers were mended."
ok "a dated measurement elsewhere is found" tells "In May 2026, it took 3 us."
mapfile -t product < <(testbed/files --sources | grep -E '^(firmware|hostlib|mpi-glue|tools)/.*\.[ch]$')
ok "what is built needs what it may" check_needed "${BUILD:-build}"
ok "names of static functions" check_statics "${product[@]}"
ok "a library that a program may not need is found" other_library
ok "a name in two files is found" twice
ok "a long function with a short name is found" long
finish
