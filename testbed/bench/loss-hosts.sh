#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The latency of a barrier over the loss of frames, on test hosts: a daemon for each host, on UDP.
# nftables drops frames, and on request duplicates some and delays some. Prints the floor of theory
# (loss.c) beside each result; the floor uses the time of a signal that follows from the latency at
# 0 %. This is not a test, but it fails if a barrier fails, or if the counters of nftables show that a
# fault did not happen. Started by make bench-loss-hosts.
#
# Environment: PERCENTS of lost frames (integers, 0 first), HOSTS, BARRIERS, and DUPLICATE and
# REORDER, percentages of the frames, which do not apply to the first run, at 0 % of loss.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/lib.sh
BUILD=${BUILD:-build} name=loss-hosts
make_work
percents=${PERCENTS:-0 1 5 10 20 30} hosts=${HOSTS:-8} barriers=${BARRIERS:-3000}
[[ $percents =~ ^0(\ [1-9][0-9]?)*$ ]] || die "PERCENTS='$percents': integers below 100, 0 first: PERCENTS='0 10 30'"
[[ $hosts =~ ^[1-9][0-9]*$ ]] && [ "$hosts" -ge 2 ] || die "HOSTS='$hosts': at least 2"
alg=dissemination:1 warmup=100
cluster="testbed/hosts/cluster --run-dir $work/cluster"
trap '$cluster down 2>/dev/null; cleanup' EXIT

bench() {
	local i nics=
	for ((i = 0; i < hosts; i++)); do
		nics+=" --nic $work/cluster/nic/n$i.sock"
	done
	timeout -k 5 $((300 + barriers / 2)) $cluster exec head "$BUILD/nbar" bench --nodes "$hosts" --where nic --alg $alg --drivers 1 \
		$nics -i "$barriers" -x $warmup --csv "$work/result" >"$work/out" 2>&1 || die "a barrier failed: $(cat "$work/out")"
}

# Prints the column with this name.
column() {
	awk -F, -v name="$1" '/^#/ { next } !at { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
		{ print $at }' "$work/result"
}

# fate drop|dup|fwd: prints how many frames nftables has dropped, duplicated or forwarded to
# cluster-hold.
fate() {
	awk -v word="$1" '{ for (i = 1; i < NF; i++) if ($i == "packets") n = $(i + 1) }
		$0 ~ " " word "( |$)" { sum += n } END { print sum + 0 }' "$work/rules"
}

# Prints how many frames the NICs have sent.
sent() {
	local i
	for ((i = 0; i < hosts; i++)); do
		$cluster exec head "$BUILD/nbar" stat -a "$work/cluster/nic/n$i.sock" || return
	done >"$work/stat" || die "nbar stat failed"
	awk '$1 ~ /^(tokens|pulls|laters|aborts)_sent$/ { n += $2 } END { print n }' "$work/stat"
}

# happened PERCENT drop|dup|fwd: ends the script if PERCENT is not 0 and this has not happened, or
# if PERCENT is 0 and it has.
happened() {
	local n
	n=$(fate "$2")
	[[ $1 =~ [1-9] ]] && [ "$n" -gt 0 ] || { [[ ! $1 =~ [1-9] ]] && [ "$n" = 0 ]; } ||
		die "$1 % of the frames should meet the fate '$2', but nftables has counted $n"
}

point() { # PERCENT
	local p50 floor frames duplicate=0 reorder=0
	[ "$1" = 0 ] || duplicate=${DUPLICATE:-0} reorder=${REORDER:-0}
	$cluster up "$hosts" --wire udp --emulate nft --nicd-args "--idle sleep" --loss "$1" \
		--duplicate "$duplicate" --reorder "$reorder" >"$work/up" 2>&1 || { cat "$work/up"; exit 1; }
	bench
	$cluster exec head nft list ruleset >"$work/rules" || exit 1
	happened "$1" drop
	happened "$duplicate" dup
	happened "$reorder" fwd
	p50=$(column p50_us)
	hop=${hop:-$(awk -v p50="$p50" -v n="$hosts" 'BEGIN { for (d = 1; d < n; d *= 2) r++; print p50 / r }')}
	frames=$(sent) || exit 1
	floor=$("$BUILD/bench-loss" --floor "$hop" "$1" "$hosts" 100000) || exit 1
	awk -v percent="$1" -v floor="$floor" -v p50="$p50" -v p99="$(column p99_us)" -v mean="$(column mean_us)" \
		-v n=$((barriers + warmup)) -v sent="$frames" -v lost="$(fate drop)" -v twice="$(fate dup)" \
		-v held="$(fate fwd)" 'BEGIN {
			split(floor, f, " ")
			printf "%6s %9.0f %9.0f %9.0f %9.0f %10.0f %9.2f %9.2f %9.2f %9.2f\n", percent, f[1], f[2], p50, p99,
				1e6 / mean, sent / n, lost / n, twice / n, held / n
		}'
	$cluster down
}

echo "$hosts hosts, a daemon on each, udp; $alg, $barriers barriers; ${DUPLICATE:-0} % of the frames twice," \
	"${REORDER:-0} % held back for 200 us; times in us; frames of one barrier"
printf '%6s %9s %9s %9s %9s %10s %9s %9s %9s %9s\n' "loss %" "floor p50" p99 "NICs p50" p99 "barriers/s" sent lost twice held
hop=
for percent in $percents; do
	point "$percent"
done
