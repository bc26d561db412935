#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Counts the instructions and the bytes of the NIC on RISC-V, and compares each with its limit. Needs
# QEMU and the image; skipped without them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
. testbed/riscv/lib.sh
need_machine
TEXT_MAX=53248 # 44 KB, and 8 KB for barriers that carry values

# The limits, in instructions. A test fails if its count is more than MARGIN percent above the
# limit. Counts repeat exactly; the margin is for other compilers. If a change is worth more
# instructions, set the new counts here.
MARGIN=5
limits="idle 154  doorbell 400  frame 174  completion 305  step 535  pack 110  unpack 163  send 217"

count_them() {
	timeout 100 "$QEMU" -M virt -m 4M -smp 1 -icount shift=0 -bios none -nodefaults -display none \
		-monitor none -serial stdio -global virtio-mmio.force-legacy=false -netdev user,id=w,restrict=on \
		-device virtio-net-device,netdev=w -kernel "$BUILD/riscv-count.elf" </dev/null >"$work/figures"
	cat "$work/figures"
	grep -q "^end" "$work/figures"
}

within() { # NAME LIMIT
	local n
	n=$(sed -n "s/^$1 \([0-9]*\).*/\1/p" "$work/figures")
	echo "$1: $n instructions, at most $2 + $MARGIN %"
	[ -n "$n" ] && [ $((n * 100)) -le $(($2 * (100 + MARGIN))) ]
}

small() { # code and constants fit into TEXT_MAX bytes
	local bytes
	bytes=$(readelf -SW "$IMAGE" | sed -n 's/^ *\[ *[0-9]*\] *//p' |
		awk '$1 == ".text" || $1 == ".rodata" { print $5 }' |
		{ sum=0; while read -r hex; do sum=$((sum + 0x$hex)); done; echo $sum; })
	echo "# code and constants: $bytes bytes" >&3
	[ "$bytes" -gt 0 ] && [ "$bytes" -le $TEXT_MAX ]
}

exec 3>&1
ok "instructions are counted" count_them
set -- $limits
while [ $# -gt 1 ]; do
	ok "$1: $(sed -n "s/^$1 //p" "$work/figures") instructions (limit $2 + $MARGIN %)" within "$1" "$2"
	shift 2
done
ok "the image has at most $TEXT_MAX bytes of code and constants" small
finish
