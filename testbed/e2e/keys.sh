#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Daemons with a key: barriers between NICs of one key, also with an in-process NIC; NICs of other keys refuse each
# other and say why; frames that others make are counted by cause.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
own_tmpdir
mkdir "$work/meet"
(umask 077 && echo 000102030405060708090a0b0c0d0e0f >"$work/key" && echo "a different key!" | head -c 16 >"$work/other")

checks() { # STATUS WORDS ARGUMENTS...: of --check-config
	local status=$1 words=$2
	shift 2
	wants "$status" "$words" "$BUILD/nbar-nicd" --run-dir "$work/check" --nics 1 "$@" --check-config
}

if checks 2 "built without libsodium" --key-file "$work/key" >/dev/null; then
	skip "tags of frames" "this build has no libsodium: apt-get install libsodium-dev"
	finish
fi

nic() { # NAME OPTIONS...
	local name=$1
	shift
	daemon "$work/$name" "$@" --nic name=n0,wire=udp,bind=127.0.0.1:0
}

from_a_file() {
	echo "key-file $work/key" >"$work/conf"
	checks 0 "" --config "$work/conf"
}

open_to_all() {
	cp "$work/key" "$work/open" && chmod 644 "$work/open" && checks 2 "other users may read" --key-file "$work/open"
}

no_tags() { # a wire to other machines that has none
	wants 2 "frames on wire verbs cannot have tags" "$BUILD/nbar-nicd" --run-dir "$work/check" --key-file "$work/key" \
		--nic name=n0,wire=verbs
}

# Members of two NICs connect: each says why it cannot.
refused() { # NIC NIC WORDS WORDS
	local pid
	rm -f "$work"/meet/*
	NBAR_RUN_DIR=$work/$1 "$BUILD/member" n0 "$work/meet" 0 2 </dev/null >"$work/out-0" 2>&1 &
	pid=$!
	pids="$pids $pid"
	NBAR_RUN_DIR=$work/$2 "$BUILD/member" n0 "$work/meet" 1 2 </dev/null >"$work/out-1" 2>&1
	wait "$pid"
	cat "$work/out-0" "$work/out-1"
	grep -q "no way to the NIC of rank 1: $3" "$work/out-0" && grep -q "no way to the NIC of rank 0: $4" "$work/out-1"
}

count_of() { # NIC COUNTER
	"$BUILD/nbar" stat --json "$work/$1/n0.sock" | sed -n "s/.*\"$2\": \([0-9]*\).*/\1/p"
}

# Sends a frame until the NIC counts it: UDP may lose it.
counts() { # NIC COUNTER FILE
	local port before _
	port=$(sed -n 's/.*address 127\.0\.0\.1:\([0-9]*\),.*/\1/p' "$work/$1.out")
	before=$(count_of "$1" "$2")
	for _ in $(seq 600); do
		cat "$work/$3" >"/dev/udp/127.0.0.1/$port"
		[ "$(count_of "$1" "$2")" -gt "$before" ] && return 0
		sleep 0.1
	done
	"$BUILD/nbar" stat -a "$work/$1/n0.sock"
	return 1
}

nothing_else() { # NIC: strangers and malformed frames
	[ "$(count_of "$1" frames_stranger)$(count_of "$1" frames_malformed)" = 00 ]
}

# Two PULLs for the handle 0: one without a tag, one with a wrong tag.
{ printf '\1\2' && head -c 46 /dev/zero; } >"$work/plain"
{ printf '\101\2' && head -c 54 /dev/zero; } >"$work/tagged"

ok "a key file may be named in a configuration file" from_a_file
ok "a key that others may read is refused" open_to_all
ok "a daemon with a key" nic a --key-file "$work/key"
ok "another with the same" nic b --key-file "$work/key"
ok "one with another key" nic c --key-file "$work/other"
ok "one without" nic d
[ "$failures" = 0 ] || finish
ok "one key: ${ITERATIONS:=1000} barriers of 3" "$BUILD/oracle" -i "$ITERATIONS" "$work"/{a,b,b}/n0.sock
ok "one key: 200 barriers with an in-process NIC" "$BUILD/oracle" -i 200 "$work/a/n0.sock" \
	"host:wire=udp,bind=127.0.0.1:0,key-file=$work/key"
ok "one key: nothing is refused" nothing_else a
ok "two keys: both members are told" refused a c "it has another key" "it has another key"
ok "a key and none: both members are told" refused a d "it has no key" "it has a key"
ok "a frame without a tag is counted" counts a frames_untagged plain
ok "a frame with a wrong tag is counted" counts a frames_forged tagged
ok "a frame with a tag is counted where there is no key" counts d frames_tagged tagged
ok "none of them came through" nothing_else a
case "$("$BUILD/nbar-nicd" --version)" in
*verbs*) ok "a wire without tags is refused" no_tags ;;
*) skip "a wire without tags is refused" "this build has no wire verbs: apt-get install libibverbs-dev" ;;
esac
ok "barriers go on" "$BUILD/oracle" -i 200 "$work"/{a,b}/n0.sock
finish
