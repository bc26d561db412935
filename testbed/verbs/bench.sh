#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh - MPI_Barrier between guests: by nbar over the wire "verbs", and Open MPI's own over the
# same RDMA device, or over TCP on the same interface. Prints medians over repetitions of both
# latencies and of their ratio in each job; with in-process NICs, also of the ratio of write to ud.
#
# Started on the machine; it starts itself in guest 0, where it prints a line for each method of
# each repetition. Every repetition starts a new job, and new daemons if the pair uses daemons. A
# job measures both barriers in turns: so other work of the machine hardly changes their ratio. If a
# guest has fewer processors than ranks and daemons, they yield; a daemon then takes time from Open
# MPI, too. Started by make bench-verbs.
#
# Environment: PAIRS: NBAR+MPI, in random order; GUESTS: 2 to 8; RANKS and PROCESSORS of each guest;
# REPEAT; BARRIERS of each method in a repetition; LIMIT: seconds. NBAR: host-ud, host-write,
# host-write-rc, host-write-uc: in-process NICs with this mode; ud, write, write-rc, write-uc: a
# daemon in each guest. MPI: ucx-ud, ucx-rc, tcp, ofi, openib. Exit status: 77 where there can be no
# guests.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/lib.sh
job_limit=300 warmup=50
number=${GUESTS:-2} processors=${PROCESSORS:-1} ranks=${RANKS:-1} repetitions=${REPEAT:-5} iterations=${BARRIERS:-300}
pairs=${PAIRS:-host-write+ucx-ud host-write+ucx-rc host-write+tcp host-ud+ucx-ud host-ud+ucx-rc host-ud+tcp}

# In guest 0.

packets() { # prints how many packets the RDMA devices of all guests have sent
	local k all=0
	for ((k = 0; k < NBAR_GUESTS; k++)); do
		all=$((all + $("$NBAR_AGENT" $k rdma statistic show link rxe0/1 | grep -o 'sent_pkts [0-9]*' | cut -d ' ' -f 2)))
	done
	echo $all
}

start='rm -rf /tmp/nbar; mkdir -m 700 /tmp/nbar; cd /tmp/nbar
setsid "$0" --run-dir /tmp/nbar "$@" >out 2>err </dev/null & echo $! >pid
for i in $(seq 300); do grep -q ready out && exit; kill -0 $! || break; sleep 0.1; done; cat out err; exit 1'
stop='p=$(cat /tmp/nbar/pid); kill $p; while kill -0 $p 2>/dev/null; do sleep 0.1; done; cat /tmp/nbar/err'

# Prints the options of mpirun for Open MPI's own barrier. UCX before 1.19 reads the address family
# of a received datagram from its service level. Soft RoCE does not set it there, so UCX would drop
# the datagram; UCX_UD_VERBS_ETH_DGID_CHECK=n prevents this. rc connections need datagrams too. The
# default queues of libfabric are larger than soft RoCE permits.
words_of_mpi() { # NAME
	local ucx="--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_NET_DEVICES=rxe0:1 -x UCX_UD_VERBS_ETH_DGID_CHECK=n"
	case $1 in
	ucx-rc) echo "$ucx -x UCX_TLS=rc_v,sysv,posix,self" ;;
	ucx-ud) echo "$ucx -x UCX_TLS=ud_v,sysv,posix,self" ;;
	ofi) echo "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm -x FI_UNIVERSE_SIZE=8" \
		"-x FI_OFI_RXM_MSG_TX_SIZE=64 -x FI_OFI_RXM_MSG_RX_SIZE=64 -x FI_OFI_RXM_TX_SIZE=128 -x FI_OFI_RXM_RX_SIZE=128" ;;
	openib) echo "--mca pml ob1 --mca btl openib,vader,self --mca btl_openib_allow_ib 1" \
		"--mca btl_openib_warn_no_device_params_found 0" ;;
	tcp) echo "--mca pml ob1 --mca btl tcp,vader,self --mca btl_tcp_if_include eth0" ;;
	esac
}

in_process=host:wire=verbs,pull-us=20000,mode # description of an in-process NIC; the mode follows

# Prints the options of mpirun for nbar.
words_of_nbar() { # NAME
	local busy=$ranks wait=spin
	echo "--mca coll_nbar_enable 1 --mca mca_base_component_path" \
		"$BUILD/components:$(ompi_info --path pkglibdir --parsable | cut -d : -f 3)"
	case $1 in
	host-*) echo "--mca coll_nbar_where host --mca coll_nbar_nic $in_process=${1#host-}" \
		"-x LD_LIBRARY_PATH=$BUILD" ;;
	*)
		busy=$((ranks + 1))
		echo "--mca coll_nbar_nic n0 -x NBAR_RUN_DIR=/tmp/nbar"
		;;
	esac
	[ $busy -le "$processors" ] || wait=yield
	[ "$ranks" -le "$processors" ] || echo "--mca mpi_yield_when_idle 1"
	echo "--mca coll_nbar_wait $wait -x NBAR_WAIT=$wait"
}

# Prints the methods of nbar mpi-bench. lib: by the library, without MPI; lib2: by the library over
# a second NIC in the other mode, to compare write and ud in one job.
other_mode() { # NAME
	case $1 in
	host-ud) echo "--method mpi,nbar,lib,lib2 --nic2 $in_process=write" ;;
	host-write*) echo "--method mpi,nbar,lib,lib2 --nic2 $in_process=ud" ;;
	*) echo "--method mpi,nbar,lib" ;;
	esac
}

mpi() { # NBAR MPI: runs the job; its results are in /tmp/rows
	timeout -k 5 "$job_limit" mpirun --allow-run-as-root --mca plm_rsh_agent "$NBAR_AGENT --rsh" -H "$hosts" \
		-np $((NBAR_GUESTS * ranks)) --bind-to none --mca oob_tcp_if_include eth0 \
		$(words_of_mpi "$2") $(words_of_nbar "$1") "$BUILD/nbar" mpi-bench $(other_mode "$1") \
		-i "$iterations" -x "$warmup" --csv - >/tmp/rows 2>/tmp/said
}

# A daemon in each guest, with one NIC.
start_all() { # MODE
	"$NBAR_AGENT" each bash -c "$start" "$BUILD/nbar-nicd" --idle $([ "$processors" -le "$ranks" ] && echo yield || echo spin) \
		--cpu $((processors - 1)) --pull-us 20000 --budget-ms 4000 --nic "name=n0,wire=verbs,mode=$1" >&2
}

# repetition PAIR NUMBER: prints a line for each method. The last column: packets per rank and
# barrier, where only barriers of methods that use the device count.
repetition() {
	local nbar=${1%+*} mpi=${1#*+} before sent daemon= rc methods=3
	[ "$mpi" != tcp ] || methods=2 # methods that use the device
	case $nbar in
	host-*) methods=$((methods + 1)) ;;
	*) daemon=1; start_all "$nbar" || return ;;
	esac
	before=$(packets)
	mpi "$nbar" "$mpi"
	rc=$?
	sent=$(($(packets) - before))
	[ -z "$daemon" ] || "$NBAR_AGENT" each bash -c "$stop" >&2
	if [ $rc != 0 ]; then
		broken[$1]=1
		echo "! $1 $(grep -vE '^(-+|)$' /tmp/said | head -n 12 | tr '\n' ' ' | cut -c 1-600)"
		return 0
	fi
	awk -F , -v "pair=$1" -v "launch=$2" -v "sent=$sent" -v "ranks=$((NBAR_GUESTS * ranks))" \
		-v "n=$(((iterations + warmup) * methods))" '
		$1 ~ /^(mpi|nbar|lib2?)$/ { printf "@%s,%s,%d,%s,%s,%.2f\n", pair, $1, launch, $2, $5, sent / n / ranks }' /tmp/rows
}

in_process() {
	local i pair hosts=
	declare -A broken
	for ((i = 1; i <= NBAR_GUESTS; i++)); do
		hosts="$hosts${hosts:+,}10.78.0.$i:$ranks"
	done
	for ((i = 1; i <= repetitions; i++)); do
		for pair in $(printf '%s\n' $pairs | awk -v "seed=$i" 'BEGIN { srand(seed) } { print rand(), $0 }' |
			sort -n | cut -d ' ' -f 2); do
			echo "bench.sh: repetition $i of $repetitions: $pair" >&2
			[ -n "${broken[$pair]:-}" ] || repetition "$pair" "$i" || return
		done
	done
}

# On the machine.

# Medians of the repetitions; of ratios also the least and the greatest.
table() {
	awk -F , '
		function median(n, v,    i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
			return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
		}
		function over(what, by,    i, n, v, m) { # ratios of two methods, per repetition
			for (i = 1; i <= last; i++)
				if ((what, i) in us && us[by, i] > 0) v[++n] = us[what, i] / us[by, i]
			if (!n) return ""
			m = median(n, v)
			return sprintf("%.2f (%.2f-%.2f)", m, v[1], v[n])
		}
		function of(what,    i, n, v) {
			for (i = 1; i <= last; i++) if ((what, i) in us) v[++n] = us[what, i]
			return median(n, v)
		}
		function row(pair, method, by) {
			printf "%-24s %-6s %9.1f %9.1f", pair, method, of(pair SUBSEP method SUBSEP "mean"), of(pair SUBSEP method SUBSEP "p50")
			printf "  %-18s %-18s\n", by ? over(pair SUBSEP method SUBSEP "mean", pair SUBSEP by SUBSEP "mean") : "", \
				by ? over(pair SUBSEP method SUBSEP "p50", pair SUBSEP by SUBSEP "p50") : ""
		}
		function direct(pair,    a, b) { # write over ud, of the library in one job
			a = pair SUBSEP (pair ~ /^host-write/ ? "lib" : "lib2") SUBSEP
			b = pair SUBSEP (pair ~ /^host-write/ ? "lib2" : "lib") SUBSEP
			if (!over(a "p50", b "p50")) return
			if (!told++) print "\nwrite over ud, by the library in the same job:"
			printf "%-51s  %-18s %-18s\n", pair, over(a "mean", b "mean"), over(a "p50", b "p50")
		}
		/^@/ {
			pair = substr($1, 2)
			if (!(pair in seen)) { seen[pair] = 1; order[++pairs] = pair }
			us[pair, $2, "mean", $3] = $4; us[pair, $2, "p50", $3] = $5; us[pair, "packets", "", $3] = $6
			if ($3 > last) last = $3
		}
		/^!/ { said[++fails] = substr($0, 3) }
		END {
			printf "%-24s %-6s %9s %9s  %-18s %-18s\n", "pair", "method", "mean us", "p50 us", "mean / mpi", "p50 / mpi"
			for (k = 1; k <= pairs; k++) {
				row(order[k], "mpi", ""); row(order[k], "nbar", "mpi"); row(order[k], "lib", "mpi")
			}
			for (k = 1; k <= pairs; k++) direct(order[k])
			for (k = 1; k <= pairs; k++) printf "%s%s %.2f", (k > 1 ? ", " : "\npackets: "), order[k], of(order[k] SUBSEP "packets" SUBSEP "")
			print ""
			for (i = 1; i <= fails; i++) print "does not run: " said[i]
		}' <(sort "$1") | sed "s/ *$//"
}

outside() {
	local rc
	rows=$(mktemp) || exit 1
	trap 'rm -f "$rows"' EXIT
	testbed/guests/guest run -n "$number" --processors "$processors" --limit "${LIMIT:-1800}" -- env "PAIRS=$pairs" \
		"RANKS=$ranks" "PROCESSORS=$processors" "REPEAT=$repetitions" "BARRIERS=$iterations" \
		"$PWD/testbed/verbs/bench.sh" >"$rows"
	rc=$?
	[ $rc = 0 ] || { cat "$rows"; exit $([ $rc = 77 ] && echo 77 || echo 1); }
	table "$rows"
	echo "medians of $repetitions repetitions of $iterations barriers of each method; ratios within a job (least-greatest)"
	echo "packets: of all RDMA devices, a rank and barrier that goes by them, connections included"
	echo "$number guests of $processors processor(s), $ranks rank(s) each; soft RoCE, without KVM: only ratios mean anything"
}

if [ -n "${NBAR_GUESTS:-}" ]; then
	in_process
else
	outside
fi
