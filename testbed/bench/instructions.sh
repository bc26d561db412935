#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# instructions.sh [PROGRAM]: counts the instructions of a token in the whole pass of a NIC, by parts. Runs
# bench-loop, or another build of it (PROGRAM), under callgrind. The clock of the NICs is stopped, so the
# counts repeat exactly, also on a busy machine. Started by make bench-instructions.
set -eu
program=${1:-${BUILD:-build}/bench-loop}
command -v valgrind >/dev/null ||
	{ echo "bench-instructions: valgrind is not installed: apt-get install valgrind" >&2; exit 77; }
work=$(mktemp)
trap 'rm -f "$work"' EXIT
times=200
printf '%-26s %8s %8s %8s %8s %8s\n' "instructions a token" "all" engine "NIC loop" wire rest
for point in "token pairwise 2" "token dissemination:1 8" "token dissemination:1 32" "token pairwise 32" \
	"token pairwise 8" "value 1 double" "value 32 doubles"; do
	tokens=$(valgrind -q --tool=callgrind --toggle-collect=repeated --callgrind-out-file="$work" \
		"$program" --repeat $times "$point" | tail -n 1)
	callgrind_annotate --threshold=100 --auto=no --show-percs=no "$work" |
		awk -v point="$point" -v n=$((tokens * times)) '
			/:/ && $1 ~ /^[0-9,]+$/ {
				gsub(",", "", $1)
				part = /firmware\/core\// ? 1 : /firmware\/nic\// ? 2 : /firmware\/wire\/|rte_/ ? 3 : 4
				sum[part] += $1 / n
			}
			END { printf "%-26s %8.1f %8.1f %8.1f %8.1f %8.1f\n", point,
				sum[1] + sum[2] + sum[3] + sum[4], sum[1], sum[2], sum[3], sum[4] }'
done
