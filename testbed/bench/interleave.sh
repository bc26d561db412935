#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# interleave.sh A B [N [ARGUMENT...]]: runs `nbar bench` of two builds interleaved: A B B A A B ...,
# N times each (default 6). A and B are build folders with nbar and nbar-nicd; the arguments are those
# of nbar bench. Prints, for each configuration, the medians of the means and of the p50; and for both
# the ratio B / A: the median of the ratios of the repetitions, with its 95 % interval (see ratios.awk).
# nbar bench resolves the p50 to 1 to 2 %.
# $PREFIX_COMMAND, if set, goes before each nbar bench, for example nice -n -20. Do not use a real-time
# class: a process of it that polls can prevent the kernel from ending its children.
set -u
[ $# -ge 2 ] || { echo "usage: $0 A B [N [ARGUMENT...]]" >&2; exit 2; }
a=$1 b=$2 n=${3:-6}
shift $(($# < 3 ? $# : 3))
[ $# -gt 0 ] || set -- --nodes 2,4,8,16,32 --where nic,host --alg pairwise,dissemination:1 --wire ring -i 3000 -x 300
work=$(mktemp)
trap 'rm -f "$work"' EXIT
for ((i = 0; i < n; i++)); do
	# Each side runs first equally often. Both sides use the same seed, and so the same order of
	# ranks.
	for side in $([ $((i % 2)) = 0 ] && echo "a b" || echo "b a"); do
		${PREFIX_COMMAND:-} "${!side}/nbar" bench --nicd "${!side}/nbar-nicd" --seed $((i + 1)) \
			--csv - "$@" >"$work.csv" || { echo "$0: ${!side}: nbar bench failed" >&2; rm -f "$work.csv"; exit 1; }
		grep -v '^#' "$work.csv" | sed "s/^/$side,/" >>"$work"
	done
done
rm -f "$work.csv"
awk -F ',' "$(cat "$(dirname "$0")/ratios.awk")"'
	$2 == "nodes" { for (i = 2; i <= NF; i++) column[$i] = i; next }
	{
		point = $column["nodes"] " " $column["where"] " " $column["alg"]
		if (!(point in seen)) { seen[point] = 1; name[++points] = point }
		k = ++count[$1, point]
		value[$1 ";mean;" point, k] = $column["mean_us"] + 0
		value[$1 ";p50;" point, k] = $column["p50_us"] + 0
	}
	END {
		printf "%5s %-6s %-18s %9s %9s %8s %-13s %9s %9s %8s %s\n", "nodes", "where", "alg", "A mean", "B mean", "B / A", "interval", "A p50", "B p50", "B / A", "interval"
		for (i = 1; i <= points; i++) {
			split(name[i], f, " ")
			line = sprintf("%5s %-6s %-18s", f[1], f[2], f[3])
			for (w = 1; w <= 2; w++) {
				what = w == 1 ? "mean" : "p50"
				x = "a;" what ";" name[i]
				y = "b;" what ";" name[i]
				n = count["b", name[i]]
				line = line sprintf(" %9.2f %9.2f %-22s", median(x, n), median(y, n), ratio(x, y, n))
			}
			print line
		}
	}
	' "$work"
