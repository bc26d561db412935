#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Names of files that are no files: each command that reads a file refuses a pipe, a device without an
# end, a folder, and a file that is too long, at once and with a message.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nbar=$BUILD/nbar
own_tmpdir

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
	if [ -z "${SAN:-}" ]; then # a sanitizer reserves more memory than the limit
		ok "nbar-nicd --config: $kind" refuses 2 "$file" "$BUILD/nbar-nicd" --config "$file" --check-config
		ok "nbar-nicd --tune: $kind" refuses 2 "$file" "$BUILD/nbar-nicd" --tune "$file" --check-config
		ok "nbar tune: $kind" refuses 1 "$file" "$nbar" tune "$file"
		ok "nbar predict --measured: $kind" refuses 1 "$file" "$nbar" predict "$work/p" --measured "$file"
		ok "nbar report: $kind" refuses 1 bench.json "$nbar" report --render-only "$work/results"
		ok "nbar trace: $kind" refuses 1 "$file" "$nbar" trace "$file" -o "$work/out.json"
	else
		skip "files that are no files: $kind" "sanitizers"
	fi
done
finish
