# SPDX-License-Identifier: BSD-3-Clause
# suite.sh - tests that every glue must pass. The test of a glue sources it when a cluster of four
# hosts is up, with `slow` set if the MPI's own collectives are slow.

few() { # N: prints N, or a fifth of it if slow
	[ -n "${slow:-}" ] && echo $((($1 + 4) / 5)) || echo "$1"
}

basic="blocking=$(few 20000) nonblocking=$(few 5000) mixed=$(few 2000) outstanding=$(few 20)
       persistent=$(few 500)"
comms="split=$(few 40) storm=$(few 300) freed=$(few 50) order=$(few 60) inter=6"
going="rendezvous=8 probe=8"
recovery=-disable-auto-cleanup
one_sided=
proc_failed= # the error that the MPI itself may return for a barrier with a dead rank
if [ $mpi = openmpi ] && mpirun.openmpi --version | grep -q ') [1-4]\.'; then
	recovery=--enable-recovery
	one_sided="--mca osc pt2pt" # the default of Open MPI 4 does not work between these hosts
elif [ $mpi = openmpi ]; then
	recovery="--with-ft ulfm"
	proc_failed="|MPI_ERR_PROC_FAILED"
fi

# told NAME TEXT COMMAND...: the command succeeds, and its output contains TEXT.
told() {
	"${@:2}" >"$work/told" 2>&1
	local rc=$?
	cat "$work/told"
	[ $rc = 0 ] && grep -q -- "$1" "$work/told"
}

one_a_host() {
	oracle "4 hosts" 4 nic $basic $comms $going late short="$(few 100)" allreduce="$(few 2000)"
	report "4 hosts" ranks 4 $one_sided -- -s "$work/share.4" one-sided
	[ $mpi != openmpi ] || oracle "4 hosts" 4 nic records
	oracle "4 hosts, threads" 4 nic threads="$(few 100)"
	export NBAR_MPI_WAIT=block OMPI_MCA_coll_nbar_wait=block
	oracle "4 hosts, block" 4 nic idle blocking=500
	unset NBAR_MPI_WAIT OMPI_MCA_coll_nbar_wait
}

several_a_host() {
	oracle "4 hosts, 6 ranks" 6 nic blocking="$(few 5000)" nonblocking="$(few 1000)" \
		mixed="$(few 500)" outstanding="$(few 10)" split="$(few 20)" storm="$(few 100)" \
		order="$(few 20)" freed="$(few 20)" $going late allreduce="$(few 500)"
	oracle "4 hosts, 6 ranks, threads" 6 nic threads="$(few 25)"
}

# Each rank in its own container: ranks cannot read each other's /proc, which MPICH's UCX needs.
containers() {
	if ! $cluster exec 0 unshare -Ur true 2>/dev/null; then
		skip "$glue, 4 hosts, 6 ranks, a user namespace each" "this machine permits none"
		return
	fi
	export UCX_POSIX_USE_PROC_LINK=n
	wrap="$PWD/testbed/mpi/user-namespace" oracle "4 hosts, 6 ranks, a user namespace each" 6 nic \
		blocking="$(few 500)" nonblocking="$(few 100)" split="$(few 10)"
	unset UCX_POSIX_USE_PROC_LINK
}

# In-process NICs without a daemon: the first rank of a host has the NIC, the others share it.
in_process() {
	export NBAR_MPI_WHERE=host OMPI_MCA_coll_nbar_where=host
	oracle "4 hosts, 6 ranks, in-process NICs" 6 nic blocking="$(few 2000)" nonblocking="$(few 500)" \
		mixed="$(few 300)" outstanding="$(few 5)" split="$(few 10)" storm="$(few 50)" \
		freed="$(few 10)" order="$(few 10)" $going late allreduce="$(few 300)"
	export NBAR_MPI_WAIT=block OMPI_MCA_coll_nbar_wait=block
	oracle "4 hosts, in-process NICs, block" 4 nic blocking=200
	unset NBAR_MPI_WAIT OMPI_MCA_coll_nbar_wait
	export NBAR_MPI_NIC=host:budget-ms=6000 OMPI_MCA_coll_nbar_nic=host:budget-ms=6000
	ok "$glue, 4 hosts, in-process NICs: a rank is killed" rank_dies 4 2
	ok "$glue, 4 hosts, 6 ranks, in-process NICs: the first of a host is killed" rank_dies 6 0
	ok "$glue, 4 hosts, 6 ranks, in-process NICs: the second of a host is killed" rank_dies 6 4
	export NBAR_MPI_NIC=n0 OMPI_MCA_coll_nbar_nic=n0
	ok "$glue, in-process NICs: a NIC of a daemon is refused" \
		told 'does not begin with host:; all barriers are left to MPI' \
		ranks 4 -- -s "$work/share.4" blocking=3
	unset NBAR_MPI_NIC OMPI_MCA_coll_nbar_nic
	export NBAR_NIC=n0
	ok "$glue, in-process NICs: a NIC of a daemon in NBAR_NIC is refused, too" \
		told '"n0" does not begin with host:; all barriers are left to MPI' \
		ranks 4 -- -s "$work/share.4" blocking=3
	unset NBAR_NIC
	export NBAR_MPI_WHERE=nic OMPI_MCA_coll_nbar_where=nic
}

# An invalid setting: a message names it, and the counters say that the MPI runs the barriers.
refused() {
	export NBAR_MPI_WAIT=soon OMPI_MCA_coll_nbar_wait=soon
	export NBAR_MPI_VERBOSE=1 OMPI_MCA_coll_nbar_verbose=1
	ok "$glue: the message names a setting that is refused" told 'is "soon": it must be' \
		ranks 4 -- -s "$work/share.4" blocking=3
	ok "$glue: the line of counters says that settings were refused" \
		told '^nbar: [1-9][0-9]* barriers by fallback: .* refused its settings' \
		ranks 4 -- -s "$work/share.4" blocking=3
	unset NBAR_MPI_WAIT OMPI_MCA_coll_nbar_wait NBAR_MPI_VERBOSE OMPI_MCA_coll_nbar_verbose
}

# 80 ranks on each host; each rank is the first of its host in one communicator, so it needs a port.
# Not with MPICH, whose own collectives would take minutes. The exit status of mpirun does not
# count: mpirun loses some ranks, with and without nbar.
many_ranks() {
	[ -z "${slow:-}" ] || return
	export OMPI_MCA_coll_nbar_wait=block
	limit=600 ranks 160 -- -s "$work/share.160" -e nic pairs=3 >"$work/out" 2>"$work/err"
	unset OMPI_MCA_coll_nbar_wait
	ok "$glue, 2 hosts, 160 ranks: a port for each" \
		[ "$(grep -c '^ok' "$work/out") $(grep -c '^not ok' "$work/out")" = "2 0" ]
}

# More communicators than a NIC has groups: the surplus communicators fall back, on all their ranks.
many_alive() {
	oracle "2 hosts" 2 nic alive=1100
}

# If one host has no NIC, the MPI runs the barriers of all communicators with ranks there, and rank
# 0 prints the reason.
one_without() {
	$cluster exec 2 mv /run/nbar/n0.sock /run/nbar/away.sock
	oracle "4 hosts, one has no NIC" 4 mpi blocking=50 nonblocking=50 mixed=50 outstanding=3 order=20 allreduce=30
	ok "$glue, 4 hosts: the message names the rank without a NIC, and the reason" \
		told "nbar: communicator of 4 ranks: fallback to MPI's barrier: rank 2: no port of a NIC could be opened: no NIC n0 at" \
		ranks 4 -- -s "$work/share.4" blocking=3
	$cluster exec 2 mv /run/nbar/away.sock /run/nbar/n0.sock
	# All ranks know from the start that rank 0 has no NIC, and do not vote.
	$cluster exec 0 mv /run/nbar/n0.sock /run/nbar/away.sock
	oracle "4 hosts, the first has no NIC" 4 mpi blocking=50 mixed=50
	ok "$glue, 4 hosts: the message names rank 0, which has no NIC, and says what to do" \
		told "nbar: communicator of 4 ranks: fallback to MPI's barrier: rank 0: no port of a NIC could be opened: no NIC n0 at .* when MPI started: start one" \
		ranks 4 -- -s "$work/share.4" blocking=3
	$cluster exec 0 mv /run/nbar/away.sock /run/nbar/n0.sock
}

# waiting COMMAND...: runs COMMAND while a program runs barriers without end. Returns the exit
# status of the program.
waiting() {
	local pid
	: >"$work/out" # removes the output of the test before
	ranks 4 -- -s "$work/share.4" fails \
		>"$work/out" 2>"$work/err" &
	pid=$!
	for _ in $(seq 1200); do
		grep -q "waiting to fail" "$work/out" && break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	"$@"
	wait $pid
}

# daemon_ends SIGNAL: the daemon gets SIGNAL: all ranks get an error with the reason, and can go on.
daemon_ends() {
	waiting $cluster exec head kill "-$1" "$(cat "$dir/nicd.head.pid")"
	local rc=$?
	cat "$work/out" "$work/err"
	[ $rc = 0 ] && [ "$(times '# rank [0-3]: nbar: barrier over 4 ranks failed; missing: ' "$work/out")" = 4 ]
}

# Each frame of the NICs takes 20 ms: the ranks agree to give them up, unless the user wants them. One of
# the MPI takes 1 ms, so that a set-up soon pays.
slow_nics() {
	LD_PRELOAD=$bin/libslow.so up 2 --wire udp --delay 1000
	oracle "2 hosts, slow NICs that are wanted" 2 nic blocking=50
	export NBAR_MPI_WHERE=auto OMPI_MCA_coll_nbar_where=auto
	export NBAR_MPI_VERBOSE=1 OMPI_MCA_coll_nbar_verbose=1
	ok "$glue, 2 hosts: slow NICs are given up" \
		told "nbar: communicator of 2 ranks: fallback to MPI's barrier: the NICs were slower: [0-9.]* us by nbar, [0-9.]* us by the MPI" \
		ranks 2 -- -s "$work/share.2" blocking=200 mixed=50
	unset NBAR_MPI_VERBOSE OMPI_MCA_coll_nbar_verbose
	export NBAR_MPI_WHERE=nic OMPI_MCA_coll_nbar_where=nic
	down
}

# A rank is killed: the launcher ends the other ranks, and all ports are given back to the NICs.
rank_ends() {
	local k
	waiting $cluster exec 1 pkill -KILL -f "^$oracle" && return 1
	for k in 0 1 2 3; do
		for _ in $(seq 100); do
			$cluster exec $k "$bin/nbar" stat n0 >"$work/stat"
			grep -q 'ports 0, groups 0' "$work/stat" && continue 2
			sleep 0.1
		done
		cat "$work/out" "$work/err" "$work/stat"
		return 1
	done
}

# rank_dies NP RANK: a rank is killed, and the launcher does not end the others: they get errors
# that name the rank, and go on. MPICH's launcher sends a signal to the other ranks on that host,
# and may itself end. So the ranks run in their own sessions, and write to a file.
rank_dies() {
	local np=$1 pid=
	: >"$work/out"
	echo "exec env --ignore-signal=USR1 setsid -w \"\$@\" >>$work/out 2>&1" >"$work/alone"
	wrap="sh $work/alone" limit=150 ranks "$np" $recovery -- -s "$work/share.$np" "dies=$2" \
		>"$work/err" 2>&1 &
	pid=$!
	for _ in $(seq 1200); do
		[ "$(grep -cE '^# rank [0-9]+ (goes on|has no)' "$work/out")" = $((np - 1)) ] && break
		sleep 0.1
	done
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	cat "$work/out" "$work/err"
	[ "$(grep -c '^# rank [0-9]* goes on' "$work/out")" = $((np - 1)) ] &&
		[ "$(grep -cE "missing: rank ([0-9]+(,| or) )*$2((,| or) [0-9]+)* \\($proc_failed" "$work/out")" = $((4 * (np - 1))) ]
}

# Rank 2 of 4 is killed; the others shrink the communicator, and nbar runs barriers of the new one.
shrinks() {
	: >"$work/out"
	limit=150 ranks 4 --with-ft ulfm -- -s "$work/share.4" shrinks=2 >"$work/out" 2>"$work/err"
	cat "$work/out" "$work/err"
	[ "$(times '# rank [013]: 3 ranks, [^#]*: goes on' "$work/out")" = 3 ]
}

# User-level failure mitigation: Open MPI has it from 5.0 on.
ulfm() {
	[ $mpi = openmpi ] || return 0
	if ! grep -q MPIX_Comm_shrink "$standard"; then
		skip "$glue: revoked communicators" "this Open MPI has no ULFM"
		return 0
	fi
	ok "$glue, 4 hosts: a rank is killed, and the others shrink the communicator" shrinks
	oracle=$standard report "revoked, 4 hosts" ranks 2 --with-ft ulfm -- revoked
}

# The daemon of one host is killed: the errors of the other ranks name its rank.
one_daemon_ends() {
	waiting $cluster exec 2 kill -KILL "$(cat "$dir/nicd.2.pid")"
	local rc=$?
	cat "$work/out" "$work/err"
	[ $rc = 0 ] &&
		[ "$(times '# rank [013]: nbar: barrier over 4 ranks failed; missing: rank 2 ' "$work/out")" = 3 ]
}

# NICs have asked for lost tokens, and have received tokens twice.
suffered() {
	local k
	for k in 0 1 2; do
		$cluster exec $k "$bin/nbar" stat n0
	done >"$work/stat"
	cat "$work/stat"
	grep -qE 'pulls_sent +[1-9]' "$work/stat" &&
		grep -qE '(tokens_duplicate|tokens_stale) +[1-9]' "$work/stat"
}

bad_network() {
	up 3 --wire af_packet --loss 5 --duplicate 5 --reorder 5 >/dev/null
	case $? in
	0) ;;
	*) skip "$glue, bad network" "$(tail -n 1 "$work/up")"; return ;;
	esac
	oracle "3 hosts, 5 % loss, duplicates and reordering" 3 nic blocking=300 nonblocking=100 \
		outstanding=2 split=5 allreduce=100
	ok "$glue, 3 hosts: some frames were lost, and some came twice" suffered
	down
}

# many RANKS: prints a number of barriers: 100,000, or 10,000 where ranks share processors.
many() {
	[ "$1" -le "$(nproc)" ] && echo "${LONG_N:-100000}" || echo $((${LONG_N:-100000} / 10))
}

# All sizes: 2 to 8 hosts with 1 to 3 ranks, also with a bad network. Takes hours.
suite_long() {
	local hosts each np
	limit=3600
	for hosts in ${LONG_HOSTS:-2 3 4 5 6 7 8}; do
		down && up "$hosts" ${LONG_UP:-}
		for each in ${LONG_RANKS:-1 2 3}; do
			np=$((hosts * each))
			oracle "$hosts hosts, $np ranks" $np nic "blocking=$(many $np)" \
				"nonblocking=$(($(many $np) / 5))" outstanding=20 late \
				"allreduce=$(($(many $np) / 5))"
		done
	done
	for hosts in ${LONG_BAD-4 8}; do
		down && up "$hosts" --wire af_packet --loss 5 --duplicate 5 --reorder 5
		oracle "$hosts hosts, 5 % loss, duplicates and reordering" "$hosts" nic \
			"blocking=$(many 1000)" "nonblocking=$(($(many 1000) / 5))" outstanding=5 late
		ok "$glue, $hosts hosts: some frames were lost, and some came twice" suffered
	done
	down
}

# Rules of the standard, each in its own run: on two hosts, with NICs in daemons and in-process
# NICs, and on one host.
standard_tests="ahead ahead-offloaded receives receives-offloaded receives-ahead status order
                persistent-crossed persistent-among probe freed handle-again requests threads stack
                counters inter spawn sessions memory descriptors fails fails-freed handlers
                wrong-communicator allreduce allreduce-fails allreduce-inter
                allreduce-threads"

[ $mpi != openmpi ] || standard_tests="$standard_tests allreduce-arguments"

standard_on() { # NAME
	local test oracle=$standard limit=${ORACLE_LIMIT:-120}
	for test in $standard_tests; do
		if [ "$test" = sessions ] && ! grep -q MPI_Session_init "$standard"; then
			skip "$1: sessions" "this MPI has no sessions"
			continue
		fi
		# MPICH of Debian 12 cannot spawn processes.
		if [ "$test" = spawn ] && [ $mpi = mpich ] &&
			! timeout -k 5 60 $cluster mpiexec -np 2 "$standard" spawn >/dev/null 2>&1; then
			skip "$1: spawn" "this MPI cannot spawn a process, with nbar or without"
			continue
		fi
		report "$1" ranks 2 -- "$test"
	done
}

standard() {
	local standard_tests=$standard_tests
	down && up 2
	standard_on "standard, 2 hosts"
	export NBAR_MPI_WHERE=host OMPI_MCA_coll_nbar_where=host
	standard_tests="${STANDARD:+$standard_tests}"
	standard_tests="${standard_tests:-ahead-offloaded receives-offloaded receives-ahead status
		probe freed threads stack inter memory descriptors fails-freed}"
	standard_on "standard, 2 hosts, in-process NICs"
	export NBAR_MPI_WHERE=nic OMPI_MCA_coll_nbar_where=nic
	down && up 1
	standard_tests="ahead ahead-offloaded receives receives-offloaded receives-ahead status order
		probe freed handle-again requests threads stack counters inter memory descriptors
		allreduce allreduce-inter"
	standard_on "standard, 1 host"
	down
}

suite() {
	if [ -n "${STANDARD:-}" ]; then
		standard
		up 2 && many_ranks
		return
	fi
	if [ -n "${LONG:-}" ]; then
		suite_long
		return
	fi
	one_a_host
	several_a_host
	containers
	in_process
	refused
	many_alive
	one_without
	ok "$glue: a rank is killed: the NICs have no port and no group left" rank_ends
	ok "$glue, 4 hosts: a rank is killed" rank_dies 4 2
	ok "$glue, 4 hosts, 6 ranks: the first of a host is killed" rank_dies 6 0
	ok "$glue, 4 hosts, 6 ranks: the second of a host is killed" rank_dies 6 4
	ulfm
	ok "$glue: the daemon ends: all ranks get an error" daemon_ends TERM
	down && up 4
	ok "$glue: the daemon is killed: all ranks get an error" daemon_ends KILL
	down && up 1
	oracle "1 host, 4 ranks" 4 host allreduce=30 blocking="$(few 20000)" nonblocking="$(few 2000)" \
		outstanding="$(few 20)" split="$(few 20)" freed="$(few 20)" order="$(few 20)" $going late
	export NBAR_MPI_WAIT=block OMPI_MCA_coll_nbar_wait=block
	oracle "1 host, block" 3 host idle blocking=500
	unset NBAR_MPI_WAIT OMPI_MCA_coll_nbar_wait
	ok "$glue, 1 host: a rank is killed" rank_dies 4 2
	down && up 4 --wire udp --nicd-args "--idle sleep"
	ok "$glue, a daemon on each host: one is killed" one_daemon_ends
	down
	slow_nics
	up 4
	standard
	bad_network
}
