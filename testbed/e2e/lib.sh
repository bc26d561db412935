# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the end-to-end scripts share: daemons, namespaces, names of algorithms. Sourced,
# with BUILD set, in the top folder. The script that sources it must call finish at its end.

BUILD=${BUILD:-build}
. testbed/lib.sh
make_work
oracle=$BUILD/oracle
daemons= # pids, each with the file of its stderr
# The tests count offloaded barriers: MPI programs keep NICs that are slow on this machine.
export NBAR_MPI_WHERE=nic OMPI_MCA_coll_nbar_where=nic

# daemon RUN_DIR ARGUMENTS...: starts a daemon and waits until its NICs are ready. $within, if set,
# is a command that starts it. $first_nic, if set, is the name of its first NIC (n0). $last_pid is
# its pid.
daemon() {
	local dir=$1 wanted i
	shift
	mkdir -p -m 700 "$dir" # a daemon accepts only a private folder
	: >"$dir.out" # an earlier daemon may have written "ready"
	${within:-} "$BUILD/nbar-nicd" --run-dir "$dir" "$@" >"$dir.out" 2>"$dir.err" &
	pids="$pids $!"
	last_pid=$!
	daemons="$daemons $last_pid:$dir.err"
	wanted=1
	for i in $(seq 600); do
		[ "$(grep -c ready "$dir.out")" -ge $wanted ] && [ -S "$dir/${first_nic:-n0}.sock" ] && return 0
		kill -0 "$last_pid" 2>/dev/null || break
		sleep 0.1
	done
	sed 's/^/# nbar-nicd: /' "$dir.out" "$dir.err"
	return 1
}

has_wire() { # NAME: in this build
	"$BUILD/nbar-nicd" --list-wires | grep -q "^$1 "
}

# Runs the script again in its own namespaces, where it may make interfaces. They vanish when it
# ends. Returns 1 where namespaces are not permitted.
in_namespaces() {
	local how
	[ -n "${NBAR_INSIDE:-}" ] && return 0
	for how in "unshare -nm" "unshare -Urnm"; do
		$how ip link show >/dev/null 2>&1 || continue
		rm -rf "$work"
		NBAR_INSIDE=1 exec $how "$0"
	done
	return 1
}

# Makes a second network namespace, of process $other, and joins interface va here and vb there.
other_namespace() {
	unshare -n sleep infinity &
	other=$!
	pids="$pids $other"
	for _ in $(seq 100); do
		[ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
		sleep 0.05
	done
	ip link add va type veth peer name vb netns $other &&
		ip link set va up && nsenter -t $other -n ip link set vb up
}

# Start a daemon with these options on va, or on vb in the other namespace: NIC n0 in $work/a, n1 in
# $work/b.
af_packet_here() {
	daemon "$work/a" "$@" --nic name=n0,wire=dpdk,dev=net_af_packet0 -- --vdev=net_af_packet0,iface=va
}

af_packet_there() {
	local within="nsenter -t $other -n" first_nic=n1
	daemon "$work/b" "$@" --nic name=n1,wire=dpdk,dev=net_af_packet0 -- --vdev=net_af_packet0,iface=vb
}

# The same with the wire kernel, which is that of NICs that name dev= alone; or on an interface of this name, and with
# further options. With their pids.
kernel_here() {
	daemon "$work/a" "${@:2}" --nic "name=n0,wire=kernel,dev=${1:-va}" && here_pid=$last_pid
}

kernel_there() {
	local within="nsenter -t $other -n" first_nic=n1
	daemon "$work/b" "${@:2}" --nic "name=n1,dev=${1:-vb}" && there_pid=$last_pid
}

# TEXT: makes the namespaces, and starts n0 on va. Where the wire kernel cannot run, skips TEXT and ends the script.
kernel_or_skip() {
	if ! has_wire kernel; then
		skip "$1" "this build has no wire kernel: apt-get install clang libbpf-dev"
		finish
	elif ! in_namespaces; then
		skip "$1" "network namespaces are not permitted here (run as root)"
		finish
	fi
	ok "kernel: two network namespaces joined by veth" other_namespace
	if ! kernel_here >"$work/began" && grep -q "take the programs.*not permitted\|attach a program" "$work/began"; then
		daemons=
		skip "$1" "$(grep -h "nic n0" "$work/began" | head -n 1)"
		finish
	fi
	ok "kernel: a daemon in the first" [ -S "$work/a/n0.sock" ]
	ok "kernel: another daemon in the second" kernel_there
}

# Runs barriers between the two, with options of the oracle.
barriers() {
	"$oracle" "$@" "$work/a/n0.sock" "$work/b/n1.sock"
}

# Begins barriers in the background, with pid $main.
begin() {
	"$oracle" "$@" "$work/a/n0.sock" "$work/b/n1.sock" >"$work/out" 2>&1 &
	main=$!
}

# meanwhile COMMAND...: runs a command amid barriers of some seconds, which succeed.
meanwhile() {
	begin -i 1000 -d 10
	sleep 0.3
	kill -0 "$main" && "$@" && kill -0 "$main" && wait "$main" || { cat "$work/out"; return 1; }
}

killed_daemon() {
	begin -i 100000000
	sleep 1
	kill -9 "$there_pid"
	wait "$there_pid" 2>/dev/null
	! wait "$main"
	cat "$work/out"
	grep -q "its daemon at .* ended" "$work/out"
}

each_alg() {
	local a
	for a in $(algs); do
		barriers -i 300 -a "$a" || { echo "algorithm $a"; return 1; }
	done
}

# BARRIERS: of the barriers of n0, the daemon itself has run at most half: it takes the time of each.
in_kernel() {
	"$BUILD/nbar" stat "$work/a/n0.sock" >"$work/stat"
	awk -v wanted="$1" '$1 == "barriers_completed" { all = $2 } /^ *latency of/ { own = $3 }
		{ print } END { exit !(all >= wanted && 2 * own < all) }' "$work/stat"
}

# Prints how many barriers of n0 the daemon itself has run.
by_daemon() {
	"$BUILD/nbar" stat "$work/a/n0.sock" | awk '/^ *latency of/ { own = $3 } END { print own + 0 }'
}

# COMMAND...: runs 300 barriers with values of numbers; where the kernel has programs for them, the daemon runs few.
values_by_programs() {
	local before=$(by_daemon)
	"$@" -v 8 -i 300 || return 1
	[ "$(printf '%s\n' 6.18 "$(uname -r)" | sort -V | head -n 1)" != 6.18 ] || [ $(($(by_daemon) - before)) -lt 150 ]
}

# Prints the algorithms that make plans, from the daemon's table. An algorithm with a parameter
# appears with its first three values.
algs() {
	"$BUILD/nbar-nicd" --list-algs | awk '/^[a-z]/ && $1 !~ /^(auto|custom|signal)$/ {
		if (split($1, part, ":") == 1) {
			print $1
		} else {
			match($0, part[2] ": [0-9]+ to ")
			low = substr($0, RSTART + 3) + 0
			for (n = low; n < low + 3; n++)
				print part[1] ":" n
		}
	}'
}

# Matches reports of sanitizers.
reported='ERROR: [A-Za-z]*Sanitizer|WARNING: [A-Za-z]*Sanitizer|: runtime error: '

# Ends the daemons that still run. Each daemon must have ended with status 0, or by a SIGKILL of the
# test, and without a report of a sanitizer.
daemons_end() {
	local daemon pid rc bad=0
	for daemon in $daemons; do
		pid=${daemon%%:*}
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
		rc=$?
		case $rc in
		0 | 127 | 137) ;; # 127: the test itself has waited for it
		*) echo "nbar-nicd $pid ended with status $rc" ;;
		esac
		case $rc in
		0 | 127 | 137) grep -qE "$reported" "${daemon#*:}" || continue ;;
		esac
		bad=1
		cat "${daemon#*:}"
	done
	daemons=
	return $bad
}

finish() {
	[ -z "$daemons" ] || ok "the daemons end well" daemons_end
	echo "1..$count"
	[ "$failures" = 0 ]
	exit $?
}

# The interface va drops 5 % of the frames that it sends, and duplicates 5 %.
worse_wire() {
	nft -f - <<-'RULES'
		table netdev nbar {
			chain out {
				type filter hook egress device va priority 0;
				numgen random mod 100 < 5 drop
				numgen random mod 100 < 5 dup to va
			}
		}
	RULES
}

# The subcommands, of one word or two, as `nbar help` and `nbar-lab help` list them, behind the program. An installation may
# have no nbar-lab.
subcommands() {
	local program
	for program in nbar nbar-lab; do
		[ ! -x "$BUILD/$program" ] ||
			"$BUILD/$program" help | sed -nE "/^  help /d; s/^  ([a-z-]+( [a-z-]+)?)  .*/$program \\1/p"
	done
}
