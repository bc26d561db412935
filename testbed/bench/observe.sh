#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# observe.sh OFF ON [N [ARGUMENT...]]: measures the cost of histograms and metrics. OFF is a build without
# histograms, ON a build with histograms. Prints, for both, the instructions of a token, if valgrind is
# installed; then, in interleaved runs with N repetitions of each (default 40), the processor time of a
# token (compare), and the results of `nbar bench` with the ARGUMENTs (interleave.sh), while the metrics
# of ON's daemons are read every second. Started by make bench-observe.
set -u
[ $# -ge 2 ] || { echo "usage: $0 OFF ON [N [ARGUMENT...]]" >&2; exit 2; }
here=$(dirname "$0")
off=$1 on=$2 n=${3:-40}
shift $(($# < 3 ? $# : 3))
if command -v valgrind >/dev/null; then
	for build in "$off" "$on"; do
		echo "$build:"
		"$here/instructions.sh" "$build/bench-loop" || exit
	done
fi
"$here/compare" "$off/bench-loop" "$on/bench-loop" "$n" "token pairwise 2" "token dissemination:1 8" \
	"token pairwise 32" || exit
[ $# -gt 0 ] || set -- --nodes 2,8 --where nic,host --alg pairwise --wire ring -i 5000 -x 500
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# In place of the daemon of ON: starts it, and a process that reads its metrics until it ends.
cat >"$work/nbar-nicd" <<END
#!/usr/bin/env bash
for ((i = 1; i < \$#; i++)); do
	[ "\${!i}" != --run-dir ] || { i=\$((i + 1)); export NBAR_RUN_DIR=\${!i}; }
done
daemon=\$\$
while kill -0 \$daemon; do
	"$(realpath "$on")/nbar" stat --openmetrics 2>/dev/null | grep -c nbar_barriers_completed >>"$work/reads"
	sleep 1
done </dev/null >/dev/null 2>&1 &
exec "$(realpath "$on")/nbar-nicd" "\$@"
END
chmod +x "$work/nbar-nicd"
ln -s "$(realpath "$on")/nbar" "$work/nbar"
"$here/interleave.sh" "$off" "$work" "$n" "$@" || exit 1
grep -q '[1-9]' "$work/reads" || { echo "$0: nobody could read the metrics" >&2; exit 1; }
echo "metrics were read $(grep -c "[1-9]" "$work/reads") times"
