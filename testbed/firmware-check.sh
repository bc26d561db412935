#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks what the firmware needs from outside, and the include rules: builds core and nic for
# several machines without a libc, and looks at the objects. Speaks TAP; needs no root. Called by
# make check-firmware, which gives the flags of the units in CFLAGS_FW and CFLAGS_LIB.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/lib.sh
top=$PWD
: "${CFLAGS_FW:?is not set: run make check-firmware}" "${CFLAGS_LIB:?is not set: run make check-firmware}"
# Bytes of code and constants, of each library. The core holds plans, their check and the table of
# algorithms beside the engine, and the arithmetic of values; nic is a whole NIC, with its requests.
declare -A TEXT_MAX=([core]=18432 [nic]=46080)
FRAME_MAX=512 # bytes of stack, of each function
WARN="-Wall -Wextra -Wpedantic -Wconversion -Wmissing-prototypes -Wstrict-prototypes -Wvla -Werror"
make_work

build() {
	local cc=$1
	shift
	# Without unwind tables, which firmware does not need. Not position-independent: tables of
	# functions are then constant.
	(cd "$work/o" &&
		$cc -std=c11 -Os "$@" $WARN -ffreestanding -fno-pic -fno-asynchronous-unwind-tables -nostdinc \
			-isystem "$($cc -print-file-name=include)" -I"$top/firmware/include" \
			-I"$top/firmware/core" -I"$top/firmware/nic" -c \
			"$top"/firmware/core/*.c "$top"/firmware/nic/*.c)
}

# Undefined names. Uses readelf, because it reads objects of any machine.
undefined() {
	readelf -sW "$work"/o/*.o | awk '$5 == "GLOBAL" && $7 == "UND" { used[$8] }
		$5 == "GLOBAL" && $7 != "UND" { defined[$8] }
		END { for (name in used) if (!(name in defined)) print name }'
}

# __aeabi_mem*: what the ARM ABI calls memcpy, memmove and memset.
only_mem() {
	! undefined | grep -vE '^(__aeabi_)?mem(cpy|move|set|clr|cmp)[48]?$'
}

# section_bytes PATTERN OBJECT...: the sizes of all sections whose name matches, added up.
section_bytes() {
	local pattern=$1
	shift
	readelf -SW "$@" | sed -n 's/^ *\[ *[0-9]*\] *//p' | awk -v p="$pattern" '$1 ~ p { print $5 }' |
		{ sum=0; while read -r hex; do sum=$((sum + 0x$hex)); done; echo $sum; }
}

at_most() {
	echo "$1 bytes, at most $2"
	[ "$1" -gt 0 ] && [ "$1" -le "$2" ]
}

no_data() {
	local bytes
	bytes=$(section_bytes '^[.](s?data|s?bss|tdata|tbss)' "$work"/o/*.o)
	echo "$bytes bytes"
	[ "$bytes" = 0 ]
}

no_dynamic() {
	! grep -h dynamic "$work"/o/*.su | grep -v bounded # bounded: arguments pushed for a call
}

objects() {
	for f in "$top/firmware/$1"/*.c; do
		echo "$work/o/$(basename "$f" .c).o"
	done
}

# target NAME COMPILER FLAG...
target() {
	local name=$1 cc=$2 text frame max
	shift 2
	if ! command -v "$cc" >/dev/null; then
		skip "$name" "$cc is not installed: apt-get install $cc"
		return
	fi
	rm -rf "$work/o"
	mkdir "$work/o"
	if [ "$cc" = gcc ]; then
		ok "$name: builds without a warning" build "$cc" "$@" -fstack-usage
		frame=$(cut -f 2 "$work"/o/*.su | sort -n | tail -n 1)
		ok "$name: the largest stack frame has $frame bytes (at most $FRAME_MAX)" \
			at_most "$frame" $FRAME_MAX
		ok "$name: no frame grows at run time" no_dynamic
	else
		ok "$name: builds without a warning, no stack frame above $FRAME_MAX bytes" \
			build "$cc" "$@" -Wframe-larger-than=$FRAME_MAX
	fi
	ok "$name: needs nothing but mem*" only_mem
	ok "$name: no .data, no .bss" no_data
	for part in core nic; do
		text=$(section_bytes '^[.](text|rodata)' $(objects $part))
		ok "$name: $part has $text bytes of text (at most ${TEXT_MAX[$part]})" \
			at_most "$text" "${TEXT_MAX[$part]}"
	done
}

target "x86-64 gcc" gcc
target "x86-64 clang" clang
target "riscv32 clang" clang --target=riscv32-unknown-elf -march=rv32imac -mabi=ilp32
target "riscv64 clang" clang --target=riscv64-unknown-elf -march=rv64imac -mabi=lp64
target "armv7m clang" clang --target=armv7m-none-eabi -mthumb
target "aarch64 clang" clang --target=aarch64-none-elf

# compiles HEADER COMPILER FLAG...: a file that only includes the header.
compiles() {
	local header=$1
	shift
	echo "#include \"$header\"" | "$@" -Ifirmware/include -Ihostlib/include -Wall -Wextra \
		-Wpedantic -Werror -fsyntax-only -
}

for cc in "gcc -std=c11 -x c" "clang -std=c11 -x c" "g++ -std=c++17 -x c++" "clang++ -std=c++17 -x c++"; do
	for header in nbar_abi.h nbar.h nbar_extra.h; do
		if command -v ${cc%% *} >/dev/null; then
			ok "$header alone: $cc" compiles $header $cc
		else
			skip "$header alone: $cc" "${cc%% *} is not installed: apt-get install gcc g++ clang"
		fi
	done
done
only_stdint() {
	grep '#include' firmware/include/nbar_abi.h
	[ "$(grep '#include' firmware/include/nbar_abi.h)" = "#include <stdint.h>" ]
}
ok "nbar_abi.h includes stdint.h and nothing else" only_stdint

# includes FLAGS HEADER: whether a file of the unit with these flags may include it.
includes() {
	echo "#include $2" | ${CC:-gcc} -std=c11 $1 -x c -fsyntax-only -
}

refused() {
	local out
	out=$(includes "$@" 2>&1) && return 1
	echo "$out"
	# Only this header may be missing.
	[[ $out == *"No such file"* || $out == *"file not found"* ]]
}

# Files of a folder that call each other in a circle: tsort names them.
no_circle() {
	nm -A -g "$@" | sed -E 's/^([^:]*):/\1 /' | awk '
		$(NF - 1) == "U" { used[$1 " " $NF]; next }
		$(NF - 1) ~ /^[TDBRWV]$/ { by[$NF] = $1 }
		END {
			for (u in used) {
				split(u, part, " ")
				if (by[part[2]] && by[part[2]] != part[1])
					print part[1], by[part[2]]
			}
		}' | sort -u | tsort >/dev/null 2>"$work/loops"
	cat "$work/loops"
	[ ! -s "$work/loops" ]
}

# circles FOLDER UNIT: the objects that make has built of this folder.
circles() {
	local source object objects=()
	for source in "$1"/*.c; do
		object=${BUILD:-build}/$2/${source%.c}.o
		[ ! -f "$object" ] || objects+=("$object")
	done
	if [ ${#objects[@]} -gt 0 ]; then
		ok "no circle between files of $1" no_circle "${objects[@]}"
	else
		skip "no circle between files of $1" "it is not built: make all"
	fi
}

circles firmware/core fw
circles firmware/nic fw
circles firmware/wire nicd
circles firmware/wire/dpdk dpdk
circles firmware/wire/verbs verbs
circles firmware/platform/daemon nicd
circles firmware/platform/inproc nicd
circles hostlib/src lib
for folder in $(testbed/files | sed -nE '/peers/d; s|^(tools/.*)/[^/]*\.c$|\1|p' | sort -u); do
	case $folder in
	tools/lab/mpi) circles "$folder" profile-openmpi ;;
	tools/lab/compose) circles "$folder" tune ;;
	tools/lab/*) circles "$folder" lab ;;
	*) circles "$folder" tools ;;
	esac
done

ok "the core may include engine.h" includes "$CFLAGS_FW" '"engine.h"'
ok "the core may not include nbar.h" refused "$CFLAGS_FW" '"nbar.h"'
ok "the core may not include stdio.h" refused "$CFLAGS_FW" '<stdio.h>'
ok "the host library may include nbar.h" includes "$CFLAGS_LIB" '"nbar.h"'
ok "the host library may not include engine.h" refused "$CFLAGS_LIB" '"engine.h"'
ok "the host library may not include nic.h" refused "$CFLAGS_LIB" '"nic.h"'
finish
