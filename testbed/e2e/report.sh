#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# nbar-lab report: a page from real runs, and from prepared results. No failure may lose results.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
lab=$BUILD/nbar-lab
dir=$work/report
own_tmpdir
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
	skip "nbar-lab report" "there is no python3 of version 3.9 or later: apt-get install python3"
	finish
fi

measured() {
	"$lab" report --quick --only bench "$dir" >"$work/out" 2>"$work/err" || {
		cat "$work/err"
		return 1
	}
	[ "$(cat "$work/out")" = "$dir/index.html" ] && grep -q '1 of 1: bench' "$work/err" &&
		[ -s "$dir/bench.json" ] && [ -s "$dir/bench.csv" ] && [ -s "$dir/bench.txt" ]
}

page() {
	grep -q '<h2>Latency over size</h2>' "$dir/index.html" &&
		grep -q 'Published, on other hardware' "$dir/index.html" &&
		grep -q 'times as long if the hosts run' "$dir/index.html" &&
		[ "$(grep -c '<td>dissemination' "$dir/index.html")" -gt 5 ]
}

well_formed() {
	xmllint --noout "$1/index.html"
}

figures() {
	[ "$(grep -c '<div class="wide"><svg' "$dir/index.html")" = 2 ] &&
		[ "$(grep -c '<div class="narrow"><svg' "$dir/index.html")" = 2 ] &&
		grep -q 'var(--c1)' "$dir/index.html"
}

# commands LENGTH: prints, from --list, the estimated seconds and the command of each experiment.
commands() {
	"$lab" report --list | sed -nE "s/^    ($1): (.*) \(about ([0-9]+) s\)\$/\3 \2/p"
}

# By its own estimates a report takes at most 3 minutes with --quick, 30 by default, and 2 hours with
# --thorough.
lengths() {
	local n=$("$lab" report --list | grep -c '^[a-z]') length seconds
	for length in --quick:180 default:1800 --thorough:7200; do
		seconds=$(commands ${length%:*} | awk '{ s += $1 } END { print s }')
		echo "${length%:*}: $seconds s"
		[ "$(commands ${length%:*} | wc -l)" = "$n" ] && [ "$seconds" -le ${length#*:} ] || return 1
	done
	[ "$seconds" -gt 1800 ]
}

# A result is that of an experiment if its command begins with the experiment's. So no command may be the
# beginning of another.
no_command_begins_another() {
	commands '[a-z-]+' | cut -d ' ' -f 2- | LC_ALL=C sort -u | awk '
		NR > 1 && index($0, last " ") == 1 { print last; bad = 1 }
		{ last = $0 }
		END { exit bad }'
}

# keeps FILE STATUS WORDS COMMAND...: the command ends with STATUS and WORDS, and does not change
# FILE.
keeps() {
	local file=$1 before after
	shift
	before=$(cksum <"$file")
	wants "$@" || return 1
	after=$(cksum <"$file")
	[ "$before" = "$after" ]
}

# changed NAME SED: makes a changed copy of the results, in $work/NAME.
changed() {
	mkdir -p "$work/$1"
	sed -e "$2" "$dir/bench.json" >"$work/$1/bench.json"
}

hostile() {
	changed hostile 's,"dissemination:3","<script>alert(1)</script>",' &&
		"$lab" report --render-only "$work/hostile" &&
		grep -q '&lt;script&gt;' "$work/hostile/index.html" &&
		! grep -qi '<script' "$work/hostile/index.html"
}

# A package that is missing is named.
no_python() {
	wants 1 'cannot run python3: .*install the package python3' env PATH=/nowhere "$lab" report --list
}

no_module() {
	mkdir "$work/alone" && cp tools/lab/report/*.py "$work/alone" || return 1
	wants 1 'install the package python3-nbar' env -u PYTHONPATH python3 -BS "$work/alone/report.py" "$lab" --list
}

# interrupted: the results of bench are there, and threads is interrupted. The page has bench.
interrupted() {
	local i
	changed cut '' || return 1
	"$lab" report --quick --only bench,threads "$work/cut" >"$work/out" 2>"$work/cut.err" &
	local report=$!
	pids="$pids $report"
	for i in $(seq 600); do
		grep -q '^1 of 1: threads' "$work/cut.err" && break
		sleep 0.1
	done
	kill -INT $report
	wait $report
	[ $? = 1 ] && cat "$work/cut.err" && grep -q 'run this command again' "$work/cut.err" &&
		[ ! -s "$work/cut/threads.json" ] && ! grep -q 'Barriers of threads' "$work/cut/index.html" &&
		grep -q 'Latency over size' "$work/cut/index.html"
}

goes_on() {
	keeps "$work/cut/bench.json" 0 '1 of 1: threads' "$lab" report --quick --only bench,threads "$work/cut" &&
		[ -s "$work/cut/threads.json" ] && grep -q 'Barriers of threads' "$work/cut/index.html"
}

# mpi LAUNCHER: the experiments over MPI, started by this launcher.
mpi() {
	"$lab" report --quick --only mpi-barrier --mpirun "$1" "$work/mpi" >"$work/out" 2>"$work/err" || {
		cat "$work/err"
		return 1
	}
	grep -q '<h2>Barriers of an MPI program</h2>' "$work/mpi/index.html" &&
		grep -q '<td>nbar</td>' "$work/mpi/index.html"
}

no_mpi() {
	mkdir -p "$work/bin" && ln -sf "$(python3 -c 'import sys; print(sys.executable)')" "$work/bin/python3" || return 1
	wants 0 'mpi-app is left out: there is no mpirun here' \
		env PATH="$work/bin" "$lab" report --quick --only mpi-app "$dir"
}

ok "report: three lengths" lengths
ok "report: no command is the beginning of another" no_command_begins_another
ok "report: measures, and writes a page" measured
ok "report: the page has table, summary and published values" page
if command -v xmllint >/dev/null; then
	ok "report: the page is well-formed" well_formed "$dir"
else
	skip "report: the page is well-formed" "no xmllint"
fi
ok "report: the page has its figures, for wide and narrow screens" figures
ok "report: an experiment that has its results is not run again" \
	keeps "$dir/bench.json" 0 'not run again' "$lab" report --quick --only bench "$dir"
ok "report: results of other runs are refused" \
	keeps "$dir/bench.json" 1 'another command' "$lab" report --only bench "$dir"
ok "report: --thorough refuses results of short runs" \
	keeps "$dir/bench.json" 1 'another command' "$lab" report --thorough --only bench "$dir"
ok "report: --render-only" keeps "$dir/bench.json" 0 '' "$lab" report --render-only "$dir"
changed foreign 's/"host": "[^"]*"/"host": "elsewhere"/'
ok "report: results of another machine are refused" \
	keeps "$work/foreign/bench.json" 1 'another machine (elsewhere)' \
	"$lab" report --quick --only bench "$work/foreign"
changed broken '5,$d'
ok "report: a broken result is named, and remains" \
	keeps "$work/broken/bench.json" 1 'broken/bench.json has no results.*line' \
	"$lab" report --quick --only bench "$work/broken"
ok "report: no page is made of a broken result" \
	keeps "$work/broken/bench.json" 1 'has no results' "$lab" report --render-only "$work/broken"
ok "report: no text of a result is taken for HTML" hostile
for part in headline noise figures numbers hostile refused tables; do
	ok "report: prepared results: $part" python3 -B testbed/e2e/report_page.py "$lab" "$work/prepared" $part
done
ok "report: no python3" no_python
ok "report: no module nbar" no_module
if command -v xmllint >/dev/null; then
	ok "report: the page with hostile text is well-formed" well_formed "$work/hostile"
fi
ok "report: experiments over MPI are left out where there is none" no_mpi
components=$(realpath "$BUILD")/components
if [ -z "${SAN:-}" ] && command -v mpirun.openmpi >/dev/null && [ -e "$components" ]; then
	ok "report: experiments over MPI, by the given launcher" mpi \
		"mpirun.openmpi --allow-run-as-root --oversubscribe --mca mca_base_component_path $components:SYS_DEFAULT --mca coll_nbar_enable 1 -np 3 --mca mpi_yield_when_idle 1"
else
	skip "report: experiments over MPI" "no Open MPI here, or sanitizers"
fi
ok "report: SIGINT keeps the results of completed experiments" interrupted
ok "report: the same command continues the interrupted report" goes_on
mkdir "$work/empty"
touch "$work/file"
ok "report: no results" wants 1 'no result' "$lab" report --render-only "$work/empty"
ok "report: no such folder" wants 1 'cannot be looked at: .*; name another: nbar-lab report DIR' "$lab" report --render-only "$work/none"
ok "report: a file is no folder" wants 1 'file cannot be written in: Not a directory; name another' "$lab" report "$work/file"
ok "report: a folder that cannot be made" wants 1 'cannot be made: .*; name another' "$lab" report "$work/none/below"
for wrong in "" "--only bench" "--only nothing $work/x" "a b" "--render-only --quick $work/x" "--quick --thorough $work/x" "--what x"; do
	ok "report: '${wrong//$work/DIR}' is wrong usage" wants 2 'nbar-lab report --help' "$lab" report $wrong
done
ok "report: help" sh -c "$lab report --help && $lab report --list"
ok "report: nothing is left in the temporary folder" nothing_left
finish
