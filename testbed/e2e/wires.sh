#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers over the wires `ring` within one daemon, `udp` between two daemons, and `shm` between two
# daemons and an in-process NIC; the oracle checks each barrier. Options that a daemon refuses. netns.sh
# tests barriers over `dpdk`; matrix.sh tests every plan on all these wires.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
oracle=$BUILD/oracle
within=

ring() {
	local d=$work/ring
	ok "ring: four NICs of one daemon start" daemon "$d" --nics 4
	ok "ring: 100,000 barriers of 4, dissemination:1" \
		"$oracle" -i 100000 -a dissemination:1 "$d"/n{0,1,2,3}.sock
	ok "ring: 20,000 barriers of 3, pairwise" "$oracle" -i 20000 -a pairwise "$d"/n{0,1,2}.sock
	ok "ring: 20,000 barriers of 4, dissemination:3" \
		"$oracle" -i 20000 -a dissemination:3 "$d"/n{0,1,2,3}.sock
	ok "ring: 2,000 barriers of 4 with values" "$oracle" -v 256 -i 2000 "$d"/n{0,1,2,3}.sock
	ok "ring: each member in turn comes late" "$oracle" -i 8 -d 50 "$d"/n{0,1,2,3}.sock
}

udp() {
	local a=$work/udp-a b=$work/udp-b
	ok "udp: a daemon with two NICs starts" daemon "$a" \
		--nic name=n0,wire=udp,bind=127.0.0.1:0 --nic name=n1,wire=udp,bind=127.0.0.1:0
	first_nic=n2 ok "udp: another daemon with one NIC" daemon "$b" --nic name=n2,wire=udp,bind=127.0.0.1:0
	ok "udp: 10,000 barriers of 3 between two daemons" \
		"$oracle" -i 10000 "$a/n0.sock" "$a/n1.sock" "$b/n2.sock"
	ok "udp: 1,000 barriers of 3 with values" "$oracle" -v 64 -i 1000 "$a/n0.sock" "$a/n1.sock" "$b/n2.sock"
	if grep -q '^0*1 ' /proc/net/if_inet6 2>/dev/null; then
		ok "udp: 1,000 barriers of 2 in-process NICs over IPv6" \
			"$oracle" -i 1000 'host:wire=udp,bind=[::1]:0' 'host:wire=udp,bind=[::1]:0'
	else
		skip "udp: IPv6" "this machine has no IPv6"
	fi
}

shm_daemon() { # LETTER NIC NIC: starts a daemon with two NICs
	first_nic=$2 daemon "$work/shm-$1" --nic "name=$2,wire=shm,dir=$work/meet" --nic "name=$3,wire=shm,dir=$work/meet"
}

shm_four() { # BARRIERS ALGORITHM
	"$oracle" -i "$1" -a "$2" "$work"/shm-a/n0.sock "$work"/shm-b/n2.sock "$work"/shm-a/n1.sock "$work"/shm-b/n3.sock
}

# A daemon is killed while barriers run: the members on the other daemon must get an error.
shm_completed() {
	"$BUILD/nbar" stat "$work/shm-b/n2.sock" | sed -nE 's/.*barriers_completed +([0-9]+).*/\1/p' | head -n 1
}

shm_killed() {
	local rc _ pid before
	before=$(shm_completed)
	[ -n "$before" ] || return
	shm_four 100000000 pairwise >"$work/shm-out" 2>&1 &
	pid=$!
	pids="$pids $pid"
	for _ in $(seq 400); do # until barriers of this program run
		[ "$(shm_completed)" -gt $((before + 10)) ] && break
		sleep 0.05
	done
	[ "$(shm_completed)" -gt $((before + 10)) ] || { echo "no barrier runs"; return 1; }
	kill -9 "$shm_b"
	wait "$shm_b" 2>/dev/null
	wait "$pid"
	rc=$?
	cat "$work/shm-out"
	[ $rc != 0 ] && grep -qE 'does not answer|NIC is down|connection' "$work/shm-out"
}

shm_files() { # COUNT: the folder of the wire has so many rings
	ls "$work/meet"
	[ "$(ls "$work/meet" | grep -c ring)" = "$1" ]
}

shm() {
	ok "shm: a daemon with two NICs starts" shm_daemon a n0 n1
	ok "shm: another daemon starts" shm_daemon b n2 n3
	shm_b=$last_pid
	ok "shm: 10,000 barriers of 4 between two daemons" shm_four 10000 dissemination:1
	ok "shm: 2,000 barriers of 4, linear" shm_four 2000 linear
	ok "shm: 1,000 barriers of 3 with values" "$oracle" -v 256 -i 1000 "$work"/shm-a/n{0,1}.sock "$work/shm-b/n2.sock"
	ok "shm: 1,000 barriers of 2 with an in-process NIC" "$oracle" -i 1000 "$work/shm-a/n0.sock" \
		"host:wire=shm,dir=$work/meet"
	ok "shm: a daemon is killed: the error names it" shm_killed
	ok "shm: it starts again" shm_daemon b n2 n3
	ok "shm: the rings of the killed daemon are gone" shm_files 4
	ok "shm: 1,000 barriers of 4 with the new daemon" shm_four 1000 pairwise
}

# Options of a NIC that a daemon refuses.
refuses() { # STATUS TEXT OPTIONS [EAL...]
	timeout 60 "$BUILD/nbar-nicd" --run-dir "$work" --nic "name=n0,$3" "${@:4}" >"$work/out" 2>&1
	local rc=$?
	cat "$work/out"
	[ $rc = "$1" ] && grep -q "$2" "$work/out"
}

dpdk() {
	local eal="-- --no-pci --no-huge -m 64"
	if ! has_wire dpdk; then
		skip "dpdk: what it refuses" "this build has no wire dpdk: apt-get install libdpdk-dev"
		return
	fi
	ok "dpdk: no device" refuses 2 'needs port=INDEX or dev=NAME' wire=dpdk $eal
	ok "dpdk: two devices" refuses 2 'needs port=INDEX or dev=NAME' wire=dpdk,port=0,dev=eth1 $eal
	ok "dpdk: a number without a device" refuses 1 'has no ethdev 7' wire=dpdk,port=7 $eal
	ok "dpdk: a name without a device" refuses 1 'has no ethdev eth1' wire=dpdk,dev=eth1 $eal
	ok "dpdk: a processor for the EAL" refuses 2 'chosen by --cpu' wire=dpdk,port=0 -- -l 0
}

lists() { # WIRE...: the daemon has these wires alone
	[ "$("$BUILD/nbar-nicd" --list-wires | awk '/^[a-z]/ { print $1 }' | sort | xargs)" = "$*" ]
}

built() { # the wires of this build
	{ printf '%s\n' ring shm udp; ls "$BUILD" | sed -n 's/^libnbar-wire-\(.*\)\.so\.0$/\1/p'; } | sort
}

# A daemon that is alone in its folder.
no_object() {
	local built=$BUILD BUILD=$work/bin host
	if ldconfig -p 2>/dev/null | grep -q libnbar-wire-; then
		skip "no object of a wire" "an object is installed on this machine"
		return
	fi
	mkdir "$BUILD" && cp "$built"/{nbar-nicd,oracle,libnbar-hostnic.so.0} "$BUILD"
	ok "no object: the daemon lists the other wires" lists ring shm udp
	ok "no object of dpdk: wire=dpdk is refused" refuses 2 \
		'libnbar-wire-dpdk.so.0: cannot open .* install the Debian package nbar-nicd-dpdk, or install libdpdk-dev' wire=dpdk,port=0
	ok "no object of verbs: wire=verbs is refused" refuses 2 \
		'libnbar-wire-verbs.so.0: cannot open .* install the Debian package nbar-nicd-verbs, or install libibverbs-dev' wire=verbs
	host=host:wire=verbs
	ok "no object of verbs: an in-process NIC is refused" wants 1 'libnbar-wire-verbs.so.0: cannot open .* package nbar-nicd-verbs' \
		env NBAR_HOSTNIC="$BUILD/libnbar-hostnic.so.0" "$BUILD/oracle" -i 1 $host
	ok "no object: EAL arguments are refused" refuses 2 'for DPDK, and no NIC here uses it' wire=ring -- --no-pci
	ok "no object: NICs on the wire ring start" daemon "$work/no-object" --nics 2
	ok "no object: 1,000 barriers of 2" "$oracle" -i 1000 "$work"/no-object/n{0,1}.sock
	cp "$built/libnbar-hostnic.so.0" "$BUILD/libnbar-wire-dpdk.so.0"
	ok "another file in its place: wire=dpdk is refused" refuses 2 'libnbar-wire-dpdk.so.0: undefined symbol' wire=dpdk,port=0
	if [ -e "$built/libnbar-wire-verbs.so.0" ]; then
		local text=$(sed -n 's/.*WIRE_BUILD "\(.*\)"/\1/p' "$built/wire_build/wire_build.h")
		LC_ALL=C sed "s/${text//./\\.}/${text%?}x/" "$built/libnbar-wire-verbs.so.0" >"$BUILD/libnbar-wire-verbs.so.0"
		ok "an object of another build: wire=verbs is refused" refuses 2 \
			'libnbar-wire-verbs.so.0 is of another build of nbar' wire=verbs
	else
		skip "an object of another build: wire=verbs is refused" "apt-get install libibverbs-dev"
	fi
}

# Errors that do not depend on the machine are reported before the daemon looks for devices.
verbs() {
	if has_wire verbs; then
		ok "verbs: a mode that does not exist" refuses 2 'mode=fast: it is ud, write' wire=verbs,mode=fast
		ok "verbs: EAL arguments are refused" refuses 2 'for DPDK, and no NIC here uses it' wire=verbs -- --no-pci
	else
		skip "verbs: a mode that does not exist" "this build has no wire verbs"
	fi
}

ok "the daemon lists the wires of this build" lists $(built)
ring
udp
shm
dpdk
no_object
verbs
finish
