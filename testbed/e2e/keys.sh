#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Daemons with a key: barriers between NICs with the same key, also with an in-process NIC; NICs with
# different keys refuse each other with the reason; frames without a valid tag are counted by cause.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
own_tmpdir
mkdir "$work/meet"
(umask 077 && echo 000102030405060708090a0b0c0d0e0f >"$work/key" && echo "a different key!" | head -c 16 >"$work/other")

checks() { # STATUS WORDS ARGUMENTS...: --check-config ends with STATUS and prints WORDS
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

no_tags() { # a wire to other machines, which has no tags, is refused with a key
	wants 2 "frames on wire verbs cannot have tags" "$BUILD/nbar-nicd" --run-dir "$work/check" --key-file "$work/key" \
		--nic name=n0,wire=verbs
}

# Members on two NICs try to connect: each prints the reason why it cannot.
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

# Sends a frame again and again until the NIC counts it, because UDP may lose it.
counts() { # NIC COUNTER FILE
	local port before _
	port=$(sed -n 's/.*address 127\.0\.0\.1:\([0-9]*\)[ ,].*/\1/p' "$work/$1.out")
	before=$(count_of "$1" "$2")
	for _ in $(seq 600); do
		cat "$work/$3" >"/dev/udp/127.0.0.1/$port"
		[ "$(count_of "$1" "$2")" -gt "$before" ] && return 0
		sleep 0.1
	done
	"$BUILD/nbar" stat -a "$work/$1/n0.sock"
	return 1
}

nothing_else() { # NIC: it has counted no stranger and no malformed frame
	[ "$(count_of "$1" frames_stranger)$(count_of "$1" frames_malformed)" = 00 ]
}

# Two PULLs for the handle 0: one without a tag, one with a wrong tag.
{ printf '\2\2' && head -c 46 /dev/zero; } >"$work/plain"
{ printf '\102\2' && head -c 54 /dev/zero; } >"$work/tagged"

ok "a key file may be named in a configuration file" from_a_file
ok "a key file that other users may read is refused" open_to_all
ok "a daemon with a key" nic a --key-file "$work/key"
ok "another daemon with the same key" nic b --key-file "$work/key"
ok "a daemon with another key" nic c --key-file "$work/other"
ok "a daemon without a key" nic d
[ "$failures" = 0 ] || finish
ok "one key: ${ITERATIONS:=1000} barriers of 3" "$BUILD/oracle" -i "$ITERATIONS" "$work"/{a,b,b}/n0.sock
ok "one key: 200 barriers with values" "$BUILD/oracle" -v 64 -i 200 "$work"/{a,b,b}/n0.sock
ok "one key: 200 barriers with an in-process NIC" "$BUILD/oracle" -i 200 "$work/a/n0.sock" \
	"host:wire=udp,bind=127.0.0.1:0,key-file=$work/key"
ok "one key: no frame is refused" nothing_else a
ok "two keys: both members get the reason" refused a c "it has another key" "it has another key"
ok "a key and no key: both members get the reason" refused a d "it has no key" "it has a key"
ok "a frame without a tag is counted" counts a frames_untagged plain
ok "a frame with a wrong tag is counted" counts a frames_forged tagged
ok "a frame with a tag is counted by a NIC without a key" counts d frames_tagged tagged
ok "no such frame reached the NIC" nothing_else a
case "$("$BUILD/nbar-nicd" --version)" in
*verbs*) ok "a wire without tags is refused" no_tags ;;
*) skip "a wire without tags is refused" "this build has no wire verbs: apt-get install libibverbs-dev" ;;
esac
ok "barriers go on" "$BUILD/oracle" -i 200 "$work"/{a,b}/n0.sock
finish
