#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Files at the edges. Names of files that are no files: each command that reads a file refuses a pipe,
# a device without an end, a folder, and a file that is too long, at once and with a message. Outputs
# that fail: a full disk, a limit of the length. What a killed command leaves.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nbar=$BUILD/nbar
lab=$BUILD/nbar-lab
own_tmpdir

lab_ok() {
	[ ! -x "$lab" ] || ok "$@"
}

# refuses STATUS FILE COMMAND...: ends with STATUS, and names FILE. Memory and time have limits, so a
# command that reads on fails here.
refuses() {
	local status=$1 file=$2
	shift 2
	wants "$status" "$file: " timeout 60 prlimit --as=1200000000 "$@"
}

mkfifo "$work/pipe" && ln -s /dev/zero "$work/zero" && mkdir "$work/folder" &&
	truncate -s 3G "$work/long" && mkdir "$work/results" || exit 1
echo '{"nbar_profile": 1, "hosts": ["a", "b"], "O_ns": [[1, 1], [1, 1]], "L_ns": [[1, 1], [1, 1]]}' >"$work/p"
for kind in pipe zero folder long; do
	file=$work/$kind
	ln -sf "$file" "$work/results/bench.json"
	if [ -z "${SAN:-}" ]; then
		ok "nbar-nicd --config: $kind" refuses 2 "$file" "$BUILD/nbar-nicd" --config "$file" --check-config
		lab_ok "nbar-lab tune: $kind" refuses 1 "$file" "$lab" tune "$file"
		lab_ok "nbar-lab report: $kind" refuses 1 bench.json "$lab" report --render-only "$work/results"
		ok "nbar trace: $kind" refuses 1 "$file" "$nbar" trace "$file" -o "$work/out.json"
	else
		skip "files that are no files: $kind" "a sanitizer reserves more memory than the limit here"
	fi
done

# full WORDS...: with a full disk behind stdout, the command says so and ends with status 1.
full() {
	timeout 100 "$@" 2>"$work/err" >/dev/full
	local rc=$?
	cat "$work/err"
	[ $rc = 1 ] && grep -q 'cannot write' "$work/err"
}

# Each subcommand: its help, and then what those print that need no long run.
while read -r words; do
	ok "$words --help to a full disk" full "$BUILD/"$words --help
done < <(subcommands)
daemon "$work/d" --nics 1 --idle sleep --trace 8 || exit 1
export NBAR_RUN_DIR=$work/d
for words in "nbar help" "nbar --version" "nbar stat" "nbar stat --json" "nbar stat --last" "nbar stat --openmetrics" \
	"nbar stat --watch 1" "nbar stat --watch 1 --json" "nbar doctor" "nbar doctor --json" "nbar trace" \
	"nbar bench --nodes 2 --nic n0 -i 5 -x 1" "nbar bench --nodes 2 --nic n0 -i 5 -x 1 --json -" \
	"nbar-lab tune $work/p" "nbar-lab tune $work/p --emit c" "nbar-lab predict $work/p" "nbar-lab report --list" \
	"nbar-lab simulate --members 4 --alg pairwise" "nbar-lab simulate --members 4 --alg pairwise --csv -" \
	"nbar-lab threads --threads 2 -i 10 --kinds pthread" "nbar-lab profile --nodes 2 -i 5 --output $work/profile"; do
	[ ! -x "$BUILD/${words%% *}" ] || ok "${words//$work/DIR} to a full disk" full "$BUILD/"$words
done
for words in --help --version --list-algs --list-wires "--nics 1 --check-config"; do
	ok "nbar-nicd $words to a full disk" full "$BUILD/nbar-nicd" $words
done
# Each line is a write, and the last flush has nothing to do. stdbuf loads its library before that of a sanitizer.
line_by_line() {
	full env "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" stdbuf -oL "$@"
}
ok "nbar stat --watch, line by line, to a full disk" line_by_line "$nbar" stat --watch 1
ok "nbar-nicd, line by line, to a full disk" line_by_line "$BUILD/nbar-nicd" --list-algs
ok "nbar trace -o a full disk" full "$nbar" trace -o /dev/full
lab_ok "nbar-lab tune -o a full disk" full "$lab" tune "$work/p" --emit c -o /dev/full

# A file that may not become long enough is an error of this file, and kills no process.
limited() {
	(ulimit -f 1 && wants 1 'cannot write' "$nbar" bench --nodes 2 --nic n0 -i 500 -x 0 --where nic --raw "$work/raw")
}

limited_daemon() {
	(ulimit -f 1 && wants 1 'cannot make .*n0.trace.*: File too large' \
		"$BUILD/nbar-nicd" --run-dir "$work/limited" --nics 1 --trace 1000)
}
mkdir -m 700 "$work/limited"
ok "nbar: a limit of the length of files" limited
ok "nbar-nicd: a limit of the length of files" limited_daemon

# Folders of killed commands are removed by the next one; not those of living ones, nor new ones.
left() {
	mkdir "$TMPDIR"/nbar-bench-{killed,lives,new} "$TMPDIR/other" &&
		touch "$TMPDIR/nbar-bench-killed/nicd.log" &&
		touch -d '2 minutes ago' "$TMPDIR"/nbar-bench-{killed,lives} "$TMPDIR/other" || return 1
	flock "$TMPDIR/nbar-bench-lives" "$nbar" bench --nodes 2 -i 5 -x 1 --where nic >"$work/out" || return 1
	ls "$TMPDIR"
	[ "$(ls "$TMPDIR" | tr '\n' ' ')" = 'nbar-bench-lives nbar-bench-new other ' ] && rm -r "$TMPDIR"/*
}
ok "what a killed command left is removed" left
ok "nothing is left in the temporary folder" nothing_left
finish
