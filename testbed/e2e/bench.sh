#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The command nbar: bench and stat. They run, report errors, and leave nothing behind. The figures are
# not checked.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nbar=$BUILD/nbar
within=
own_tmpdir
run="-i 200 -x 20"

# children PID: prints the children of a process, in the order in which they were started. Sorts by
# start time first, because pids wrap.
children() {
	local file rest
	for file in /proc/[0-9]*/stat; do
		{ read -r rest <"$file"; } 2>/dev/null || continue
		set -- "$1" "${file//[!0-9]/}" ${rest##*) } # $3: state, $4: parent, ...
		[ "$4" = "$1" ] && echo "${22} $2"
	done | sort -n -k 1,1 -k 2,2 | cut -d " " -f 2
}

# Prints the daemons and hosts of a bench.
started() {
	grep -lsz -e "^$TMPDIR/nbar-bench" -e "^$work/long.json" /proc/[0-9]*/cmdline
}

table() {
	"$nbar" bench $run --nodes 2,5 -f --check --launches 2 >"$work/out" || return 1
	cat "$work/out"
	grep -qE '^nodes +where +alg +mean +low +high +.* +mean avg *$' "$work/out" &&
		[ "$(grep -cE '^ +[25] +(nic|host) +dissemination:1( +([0-9]+\.[0-9]+|-)){10,}$' "$work/out")" = 4 ]
}

# Each barrier's sum is checked.
values() { # BYTES ROWS
	"$nbar" bench $run --nodes 2,5 --check --value "$1" >"$work/out" || return 1
	cat "$work/out"
	grep -q "^the barriers carry sums of $1 bytes" "$work/out" &&
		[ "$(awk '$3 == "pairwise" { print $1 $2 }' "$work/out" | sort | xargs)" = "$2" ]
}

csv() {
	"$nbar" bench $run --nodes 3 --alg pairwise,dissemination:2 --drivers 1 --check --csv - \
		>"$work/out" || return 1
	cat "$work/out"
	grep -q '^#@version=' "$work/out" && grep -q '^#@cpu=' "$work/out" &&
		grep -q '^#@wire=ring' "$work/out" && grep -q '^#@iterations=200' "$work/out" &&
		grep -qE '^nodes,where,alg,mean_us,low_us,high_us,([a-z0-9.]+_us,){4,}speedup$' "$work/out" &&
		[ "$(grep -cE '^3,(nic|host),(pairwise|dissemination:2),[0-9.e+-]+,,(,[0-9.e+-]+){4,},[0-9.e+-]*$' \
			"$work/out")" = 4 ] &&
		! grep -q '^nodes  ' "$work/out"
}

json() {
	local key
	"$nbar" bench $run --nodes 2 --json "$work/result.json" || return 1
	cat "$work/result.json"
	for key in experiment version commit command machine settings columns rows notes wire \
		iterations launches; do
		grep -q "\"$key\":" "$work/result.json" || return 1
	done
	# The daemon has the first core, hosts have the others.
	python3 - "$work/result.json" <<-'END' || return 1
		import json, os, sys
		m, cores = json.load(open(sys.argv[1]))["machine"], sorted(os.sched_getaffinity(0))
		assert m["daemon_cpu"] == cores[0] and m["idle"] == ("spin" if cores[1:] else "yield"), m
		assert m["host_cpus"] == ",".join(map(str, cores[1:65] or cores)), m
	END
	for key in nodes where alg mean p50 p99 max skew speedup; do
		grep -q "\"name\": \"$key\"" "$work/result.json" || return 1
	done
}

# $work may be longer than the 47 characters that a wire with its keys may have.
udp() {
	"$nbar" bench $run --nodes 2 --wire udp --check && "$nbar" bench $run --nodes 2 --wire udp,bind=127.0.0.1:0 --check &&
		(nbar=$(realpath "$nbar") && cd "$work" && "$nbar" bench $run --nodes 2,4 --wire shm,dir=meet --check)
}

# start_long WHERE: starts a bench in the background that would run for hours; $bench is its pid.
start_long() {
	local processes=4 # the daemon first, then three hosts
	[ "$1" != host-udp ] || processes=3
	"$nbar" bench -i 100000000 --nodes 3 --where "$1" --json "$work/long.json" \
		>"$work/long.out" 2>"$work/long.err" &
	bench=$!
	pids="$pids $bench"
	for i in $(seq 100); do
		[ "$(children $bench | wc -l)" = $processes ] && sleep 0.2 && return 0
		sleep 0.1
	done
	return 1
}

# ends STATUS WORDS: the bench ends with STATUS, prints WORDS, and leaves nothing behind.
ends() {
	local status
	wait "$bench"
	status=$?
	cat "$work/long.err"
	[ $status = "$1" ] && grep -q "$2" "$work/long.err" && [ ! -e "$work/long.json" ] &&
		nothing_left
}

# Another bench leaves its folder alone, old as it is.
interrupted() {
	start_long nic && touch -d '-2 minutes' "$TMPDIR"/nbar-bench-* && "$nbar" bench $run --nodes 2 --where nic >/dev/null &&
		[ "$(ls "$TMPDIR"/nbar-bench-*/*.sock | sed 's:.*/::' | xargs)" = "n0.sock n1.sock n2.sock" ] && kill -INT "$bench" && ends 1 interrupted
}

terminated() {
	start_long host && kill -TERM "$bench" && ends 1 interrupted
}

host_killed() {
	start_long "$1" && kill -KILL "$(children "$bench" | tail -n 1)" &&
		ends 1 'the host process of rank [0-2] was killed by signal 9'
}

daemon_killed() {
	start_long "$1" && kill -KILL "$(children "$bench" | head -n 1)" &&
		ends 1 'nbar-nicd was killed by signal 9'
}

# A bench ended by SIGKILL leaves its folder. But its daemon ends, and removes its
# sockets.
bench_killed() {
	local i
	start_long nic && kill -KILL "$bench" || return 1
	wait "$bench"
	for i in $(seq 50); do
		[ -z "$(started)" ] && break
		sleep 0.1
	done
	started
	ls "$TMPDIR"/nbar-bench-*
	[ -z "$(started)" ] && ! ls "$TMPDIR"/nbar-bench-*/*.sock && rm "$work"/long.json* || return 1
	# A young folder may be of a bench that begins. The next bench removes an old one.
	"$nbar" bench $run --nodes 2 --where nic >/dev/null && [ -d "$TMPDIR"/nbar-bench-* ] && touch -d '-2 minutes' "$TMPDIR"/nbar-bench-* &&
		"$nbar" bench $run --nodes 2 --where nic >/dev/null && nothing_left
}

# A bench that fails does not change an older result.
keeps_old() {
	echo old >"$work/old.json"
	wants 1 'ended with status' "$nbar" bench $run --nicd /bin/false --json "$work/old.json" &&
		[ "$(cat "$work/old.json")" = old ]
}

attached() {
	"$nbar" bench $run --nodes 2,3 --nic "$work/d/n0.sock" --nic "$work/d/n1.sock" --check
}

in_process() {
	"$nbar" bench $run --nodes 2,3 --where nic,host-udp,host-shm --check >"$work/out" &&
		cat "$work/out" && grep -q 'speedup: host mean / NIC mean, if both are run' "$work/out" &&
		grep -q 'host-udp: .*no speedup, because' "$work/out" &&
		"$nbar" bench $run --nodes 2,5 --where host-udp --drivers 1 --nicd /nowhere/nicd --check
}

stat_text() {
	"$nbar" stat --run-dir "$work/d" >"$work/out" || return 1
	cat "$work/out"
	[ "$(grep -c '^NIC n[01]: wire ring' "$work/out")" = 2 ] &&
		grep -qE '^  barriers_completed +[1-9]' "$work/out" &&
		grep -q 'dissemination:1 .* linger' "$work/out" &&
		! grep -q '^  frames_malformed' "$work/out" &&
		"$nbar" stat -a "$work/d/n1.sock" | grep -qE '^  frames_malformed +0'
}

stat_json() {
	"$nbar" stat --json --run-dir "$work/d" n0 >"$work/out" || return 1
	cat "$work/out"
	grep -q '"barriers_completed": [1-9]' "$work/out" && grep -q '"waits_for": null' "$work/out"
}

# A host is stopped: nbar stat names its rank as late, at the NICs of the other members.
stat_names_the_late() {
	local i
	start_long nic || return 1
	local dir=$(echo "$TMPDIR"/nbar-bench-*) host=$(children "$bench" | tail -n 1)
	for i in $(seq 50); do
		"$nbar" stat --run-dir "$dir" >"$work/out"
		[ "$(grep -cE ' connected +[1-9]' "$work/out")" = 3 ] && break
		sleep 0.1
	done
	kill -STOP "$host"
	for i in $(seq 50); do
		"$nbar" stat --run-dir "$dir" >"$work/out"
		grep -qE 'waits for [0-2]; late: [0-2]' "$work/out" && break
		sleep 0.1
	done
	cat "$work/out"
	kill -INT "$bench"
	ends 1 interrupted && grep -qE 'waits for [0-2]; late: [0-2]' "$work/out"
}

ok "bench: a table, every barrier checked" table
ok "bench: barriers with values" values 8 "2host 2nic 5host 5nic"
ok "bench: barriers with values of a whole frame" values 256 "2nic 5nic"
ok "bench: only NICs carry them" wants 2 'carries 8 bytes' "$nbar" bench --value 16 --where nic,host
ok "bench: CSV, one driver, two algorithms" csv
ok "bench: JSON" json
ok "bench: over udp, and over shm" udp
ok "bench: its progress, on a terminal" eval 'python3 -c "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))" \
	"$nbar" bench $run --nodes 2 --where nic </dev/null >"$work/out" && grep -q "0 %  2 nodes, nic, dissemination:1" "$work/out"'
ok "bench: in-process NICs, with and without a daemon beside them" in_process
ok "bench: an RDMA device that does not exist" \
	wants 1 'device=none: there is no such RDMA device\|package nbar-nicd-verbs' \
	"$nbar" bench $run --where host-verbs --host-keys device=none
ok "bench: a wire that does not exist" eval \
	'! "$nbar" bench $run --nodes 2 --wire nowhere 2>"$work/out" && grep -A1 "nbar-nicd ended with status .; it last said:$" "$work/out" |
		grep "no such wire here, but: $("$BUILD/nbar-nicd" --list-wires | cut -d " " -f 1 | head -n 1)"'
ok "bench: keys that are too long" \
	wants 2 '--host-keys: at most 190 characters' \
	"$nbar" bench $run --where host-verbs --host-keys "$(printf 'mode=write,%.0s' $(seq 20))"
ok "bench: --host-keys without in-process NICs" \
	wants 2 '--wire WIRE,KEYS' "$nbar" bench $run --host-keys mode=ud
ok "bench: --nic takes no in-process NIC" \
	wants 2 '--where host-WIRE' "$nbar" bench $run --nic host:wire=udp
ok "bench: leaves nothing behind" nothing_left
ok "bench: SIGINT ends it and all processes that it started" interrupted
ok "bench: SIGTERM ends it and all processes that it started" terminated
ok "bench: a host is killed: the message names it (nic)" host_killed nic
ok "bench: a host is killed: the message names it (host)" host_killed host
ok "bench: a host is killed: the message names it (host-udp)" host_killed host-udp
ok "bench: its daemon is killed: the message says so" daemon_killed host
ok "bench: nbar bench is killed: its daemon ends" bench_killed
ok "bench: a failure keeps the results of an earlier run" keeps_old
for wrong in "--nodes 0" "--nodes 2000" "-i 0" "--alg fastest" "--where there" "--drivers 2" "--what"; do
	ok "bench: $wrong is wrong usage" wants 2 'nbar bench --help' "$nbar" bench $wrong
done
ok "bench: an output that cannot be written is refused first" \
	wants 1 "cannot write $work/none/x: .*; make its folder, or name another file with --json" \
	"$nbar" bench -i 100000000 --json "$work/none/x"
ok "bench: an output that is a folder is refused first" \
	wants 1 "cannot write $work: .*; let it be written, or name another file with --csv" \
	"$nbar" bench -i 100000000 --csv "$work"
ok "bench: results for which there is no room" \
	wants 1 'cannot write /dev/full: .*; make room there, or name another file with --json' \
	"$nbar" bench $run --nodes 2 --json /dev/full
ok "bench: no such daemon" wants 1 'cannot run /nowhere/nicd' "$nbar" bench --nicd /nowhere/nicd
ok "bench: no folder for sockets" wants 1 "cannot make a folder $work/none/nbar-bench-......: No such file .*; set TMPDIR" \
	env TMPDIR="$work/none" "$nbar" bench $run
ok "bench: no such NIC" wants 1 '--nic .*none.sock: .' "$nbar" bench --nic "$work/none.sock"
ok "nbar: an unknown subcommand" wants 2 'nbar --help' "$nbar" brew
ok "nbar: help" sh -c "$nbar help && $nbar help bench && $nbar stat --help && $nbar --version"
ok "a daemon with two NICs" daemon "$work/d" --nics 2
ok "bench: attached to running NICs, two ports on one of them" attached
ok "stat: counters and groups of all NICs" stat_text
ok "stat: JSON" stat_json
ok "stat: the late rank is named" stat_names_the_late
ok "stat: no such run directory" wants 1 'start nbar-nicd' "$nbar" stat --run-dir "$work/none"
ok "stat: wrong usage" wants 2 'nbar stat --help' "$nbar" stat --watch 0
ok "nothing is left behind" nothing_left
finish
