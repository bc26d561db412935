# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - emulated NICs for the scripts of this folder. Sourced after testbed/e2e/lib.sh.

QEMU=${QEMU:-qemu-system-riscv64}
IMAGE=$BUILD/nbar-riscv64.elf
# Arguments of bared for a machine of 32 bits instead of 64.
BITS_32="--qemu qemu-system-riscv32 --image $BUILD/nbar-riscv32.elf"

# Where QEMU or the image is missing, prints a skipped test and ends the script.
need_machine() {
	if ! command -v "$QEMU" >/dev/null; then
		skip "a NIC on RISC-V" "$QEMU is not installed: apt-get install qemu-system-misc"
		finish
	fi
	if [ ! -f "$IMAGE" ]; then
		skip "a NIC on RISC-V" "there is no image: apt-get install gcc-riscv64-unknown-elf, make"
		finish
	fi
}

# bared DIR NAME ARGUMENTS...: starts an emulated NIC and waits until it is ready; $last_pid is its
# host process. $within, if set, is the command that it runs under.
bared() {
	local dir=$1 name=$2
	shift 2
	mkdir -p -m 700 "$dir"
	: >"$dir.out" # a NIC that ran here before has written "ready", too
	${within:-} "$BUILD/nbar-bared" --run-dir "$dir" --name "$name" --qemu "$QEMU" "$@" \
		>"$dir.out" 2>"$dir.err" &
	last_pid=$!
	pids="$pids $last_pid"
	for _ in $(seq 600); do
		grep -q ready "$dir.out" && return 0
		kill -0 "$last_pid" 2>/dev/null || break
		sleep 0.1
	done
	sed 's/^/# nbar-bared: /' "$dir.out" "$dir.err"
	return 1
}

# Starts two NICs: n0 in $work/a (64 bits) and n1 in $work/b (32 bits), joined by a cable, or by the
# relay if it runs. $work/both has the sockets of both. $bared_a and $bared_b are the pids of their
# host processes.
pair() {
	local ends_a=w0,w1 ends_b=w1,w0
	[ -S "$work/r0" ] && ends_a=w0,r0 ends_b=w1,r1
	bared "$work/a" n0 --mac 02:00:00:00:00:01 --wire "unix:$work/${ends_a%,*},$work/${ends_a#*,}" "$@" || return 1
	bared_a=$last_pid
	bared "$work/b" n1 $BITS_32 --mac 02:00:00:00:00:02 --wire "unix:$work/${ends_b%,*},$work/${ends_b#*,}" "$@" || return 1
	bared_b=$last_pid
	mkdir -p -m 700 "$work/both"
	ln -sf "$work/a/n0.sock" "$work/b/n1.sock" "$work/both"
}

# Ends a host process; returns its exit status.
end() {
	kill "$1" 2>/dev/null
	wait "$1"
}

# Prints the pid of the QEMU that is the child of a host process.
machine_of() {
	cat "/proc/$1/task/$1/children" | tr -d ' '
}
