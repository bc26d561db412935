#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh - MPI_Barrier between guests: by nbar over the wire "verbs" in both modes, and by Open MPI
# over the same RDMA device and over TCP on the same interface. See --help and README.md.
#
# Started on the machine; it starts itself in the guests, where it prints a line a measurement. Every
# launch is a new job, and new daemons where it has any; launches of all kinds come in random order.
set -u
cd "$(dirname "$0")/../.." || exit 1
number=2 processors=1 ranks=1 launches=5 iterations=300 warmup=50 seed=1 csv= limit=900
all="write write-uc ud host-write host-write-uc host-ud ucx-rc ucx-ud ofi openib tcp"
kinds=$all

usage() {
	cat <<'TEXT'
usage: testbed/verbs/bench.sh [OPTION]...
MPI_Barrier between guests with a soft RDMA device each, in one run: by nbar, and by Open MPI over
the same device and over TCP on the same interface. Medians over launches, in random order.

  --kinds LIST      what is measured (all of these)
       write, write-uc, ud  nbar, daemons with wire=verbs in this mode
       host-write, ...      the same, NICs inside the ranks: no daemon
       ucx-rc, ucx-ud       Open MPI with UCX (pml ucx), transports rc_verbs and ud_verbs
       ofi                  Open MPI with libfabric (mtl ofi), provider verbs;ofi_rxm
       openib               Open MPI with btl openib
       tcp                  Open MPI with btl tcp over eth0
  --guests N        2 to 8 (2)
  --ranks N         of each guest, each with a NIC of its own, as if on hosts of their own (1)
  --processors N    of each guest (1)
  --launches N      of each kind (5)
  -i, --iterations N  barriers measured a launch (300)
  -x, --warmup N    barriers before them (50)
  --seed N          of the order (1)
  --limit SECONDS   for all of it (900)
  --csv FILE        every launch

A guest without KVM is slow, and shares the machine's processors: only ratios mean anything. Exit
status: 0 done, 1 failed, 2 wrong usage, 77 where there can be no guests.
TEXT
}

wrong() {
	echo "bench.sh: $*; see --help" >&2
	exit 2
}

is_number() { # OPTION TEXT LOW HIGH
	[[ $2 =~ ^[0-9]{1,8}$ ]] && [ "$((10#$2))" -ge "$3" ] && [ "$((10#$2))" -le "$4" ] ||
		wrong "$1 wants a number from $3 to $4, not '$2'"
}

options() {
	local kind
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage; exit 0 ;;
		esac
		[ $# -gt 1 ] || wrong "$1 wants a value"
		case $1 in
		--kinds)
			kinds=${2//,/ }
			for kind in $kinds; do
				[[ " $all " == *" $kind "* ]] || wrong "there is no kind '$kind'"
			done
			;;
		--guests) is_number "$1" "$2" 2 8; number=$2 ;;
		--processors) is_number "$1" "$2" 1 64; processors=$2 ;;
		--ranks) is_number "$1" "$2" 1 16; ranks=$2 ;;
		--launches) is_number "$1" "$2" 1 1000; launches=$2 ;;
		-i | --iterations) is_number "$1" "$2" 1 10000000; iterations=$2 ;;
		-x | --warmup) is_number "$1" "$2" 0 10000000; warmup=$2 ;;
		--seed) is_number "$1" "$2" 0 99999999; seed=$2 ;;
		--limit) is_number "$1" "$2" 1 86400; limit=$2 ;;
		--csv) csv=$2 ;;
		*) wrong "there is no option $1" ;;
		esac
		shift 2
	done
}

# In guest 0.

packets() { # what the RDMA devices of all guests have sent
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

# The words of mpirun that are the kind's own. Where ranks share processors, all of them yield.
words_of() { # KIND
	local ucx="--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_NET_DEVICES=rxe0:1"
	local tcp="--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0"
	# UCX before 1.19 finds the address family of a datagram in its service level, where soft RoCE
	# has none, and drops it: connections of rc are made by datagrams, too.
	ucx="$ucx -x UCX_UD_VERBS_ETH_DGID_CHECK=n"
	[ $ranks = 1 ] || echo "--mca mpi_yield_when_idle 1"
	case $1 in
	*write* | ud | host-ud)
		echo "$tcp --mca coll_nbar_enable 1 --mca mca_base_component_path" \
			"$BUILD/components:$(ompi_info --path pkglibdir --parsable | cut -d : -f 3)"
		;;
	esac
	case $1 in
	ucx-rc) echo "$ucx -x UCX_TLS=rc_v,self" ;;
	ucx-ud) echo "$ucx -x UCX_TLS=ud_v,self" ;;
	host-*) echo "--mca coll_nbar_nic host:wire=verbs,mode=${1#host-},pull-us=20000 -x LD_LIBRARY_PATH=$BUILD" ;;
	write* | ud) echo "--mca coll_nbar_nic n%r --mca coll_nbar_wait yield -x NBAR_RUN_DIR=/tmp/nbar" ;;
	# The queues that it wants by default are larger than those of soft RoCE.
	ofi) echo "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm -x FI_UNIVERSE_SIZE=8" \
		"-x FI_OFI_RXM_MSG_TX_SIZE=64 -x FI_OFI_RXM_MSG_RX_SIZE=64 -x FI_OFI_RXM_TX_SIZE=128 -x FI_OFI_RXM_RX_SIZE=128" ;;
	openib) echo "--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0" ;;
	tcp) echo "$tcp" ;;
	esac
}

each() { # COMMAND...: in all guests, at once
	local k p=() rc=0
	for ((k = 0; k < NBAR_GUESTS; k++)); do
		"$NBAR_AGENT" $k "$@" &
		p+=($!)
	done
	for k in "${p[@]}"; do
		wait "$k" || rc=$?
	done
	return $rc
}

mpi() { # KIND METHODS: its rows are in /tmp/rows
	timeout -k 5 120 mpirun --allow-run-as-root --mca plm_rsh_agent "$NBAR_AGENT --rsh" -H "$hosts" -np $((NBAR_GUESTS * ranks)) \
		--bind-to none --mca oob_tcp_if_include eth0 $(words_of "$1") "$BUILD/nbar" mpi-bench --method "$2" \
		-i "$iterations" -x "$warmup" --csv - >/tmp/rows 2>/tmp/said
}

# A daemon in each guest, with the NICs of its ranks: n0 is that of rank 0.
start_all() { # MODE
	local k i p=() rc=0 nics
	for ((k = 0; k < NBAR_GUESTS; k++)); do
		nics=
		for ((i = 0; i < ranks; i++)); do
			nics="$nics --nic name=n$((k * ranks + i)),wire=verbs,mode=$1"
		done
		"$NBAR_AGENT" $k bash -c "$start" "$BUILD/nbar-nicd" --idle $([ "$processors" = 1 ] && echo yield || echo spin) \
			--cpu $((processors - 1)) --pull-us 20000 --budget-ms 4000 $nics >&2 &
		p+=($!)
	done
	for k in "${p[@]}"; do
		wait "$k" || rc=1
	done
	return $rc
}

# launch KIND NUMBER: prints a line for each method.
launch() {
	local kind=$1 methods=mpi before rc sent daemon=
	case $kind in
	write* | ud) methods=nbar,lib; daemon=1; start_all "$kind" || return ;;
	host-*) methods=nbar,lib ;;
	esac
	before=$(packets)
	mpi "$kind" $methods
	rc=$?
	sent=$(($(packets) - before))
	[ -z "$daemon" ] || each bash -c "$stop" >&2
	if [ $rc != 0 ]; then
		broken[$kind]=1
		echo "! $kind $(grep -vE '^(-+|)$' /tmp/said | head -n 12 | tr '\n' ' ' | cut -c 1-600)"
		return 0
	fi
	awk -F , -v "kind=$kind" -v "launch=$2" -v "sent=$sent" -v "ranks=$((NBAR_GUESTS * ranks))" -v "n=$((iterations + warmup))" '
		$1 == "mpi" || $1 == "nbar" || $1 == "lib" { row[++rows] = sprintf("%s,%s,%d,%s,%s", kind, $1, launch, $2, $5) }
		END { for (i = 1; i <= rows; i++) printf "@%s,%.2f\n", row[i], sent / n / rows / ranks }' /tmp/rows
}

inside() {
	local i kind hosts=
	declare -A broken
	for ((i = 1; i <= NBAR_GUESTS; i++)); do
		hosts="$hosts${hosts:+,}10.78.0.$i:$ranks"
	done
	for ((i = 1; i <= launches; i++)); do
		for kind in $(printf '%s\n' $kinds | awk -v "seed=$((seed + i))" 'BEGIN { srand(seed) } { print rand(), $0 }' |
			sort -n | cut -d ' ' -f 2); do
			echo "bench.sh: launch $i of $launches: $kind" >&2
			[ -n "${broken[$kind]:-}" ] || launch "$kind" "$i" || return
		done
	done
}

# On the machine.

# Medians of the launches.
table() {
	awk -F , '
		function median(n, v,    i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
			return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
		}
		/^@/ {
			key = substr($1, 2) "," $2
			if (!(key in count)) order[++keys] = key
			n = ++count[key]; mean[key, n] = $4; p50[key, n] = $5; packets[key, n] = $6
		}
		/^!/ { said[++fails] = substr($0, 3) }
		END {
			printf "%-14s %-7s %8s %10s %10s %9s\n", "kind", "method", "launches", "mean us", "p50 us", "packets"
			for (k = 1; k <= keys; k++) {
				split(order[k], part, ",")
				for (i = 1; i <= count[order[k]]; i++) { a[i] = mean[order[k], i]; b[i] = p50[order[k], i]; c[i] = packets[order[k], i] }
				printf "%-14s %-7s %8d %10.1f %10.1f %9.2f\n", part[1], part[2], count[order[k]], median(count[order[k]], a), \
					median(count[order[k]], b), median(count[order[k]], c)
			}
			for (i = 1; i <= fails; i++) print "does not run: " said[i]
		}' "$1" | { IFS= read -r head; echo "$head"; sort -k 1,1 -k 2,2; }
}

outside() {
	local rc
	rows=$(mktemp) || exit 1
	trap 'rm -f "$rows"' EXIT
	testbed/verbs/guest run -n "$number" --processors "$processors" --limit "$limit" -- "$PWD/testbed/verbs/bench.sh" "${words[@]}" >"$rows"
	rc=$?
	[ $rc = 0 ] || { cat "$rows"; exit $([ $rc = 77 ] && echo 77 || echo 1); }
	table "$rows"
	[ -z "$csv" ] || { echo "kind,method,launch,mean_us,p50_us,packets"; sed -n 's/^@//p' "$rows"; } >"$csv" || exit 1
	echo "medians of $launches launches of $iterations barriers; packets: of all RDMA devices, a barrier and rank"
	echo "$number guests of $processors processor(s), $ranks rank(s) each; soft RoCE, without KVM: only ratios mean anything"
}

words=("$@")
options "$@"
if [ -n "${NBAR_GUESTS:-}" ]; then
	inside
else
	outside
fi
