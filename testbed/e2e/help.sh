#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks the help of `nbar`: every subcommand has a help text that fits a screen, and a manual page.
# Every metric of the table is in help, manual page and results.
set -u
cd "$(dirname "$0")/../.." || exit 1
. testbed/e2e/lib.sh
nbar=$BUILD/nbar

# fits COMMAND...: at most 40 lines of 80 columns.
fits() {
	"$@" >"$work/help" || return 1
	cat "$work/help"
	[ "$(wc -l <"$work/help")" -le 40 ] && ! grep -E '.{81}' "$work/help"
}

# The subcommands, of one word or two, as `nbar help` lists them.
subcommands() {
	"$nbar" help | sed -nE 's/^  ([a-z-]+( [a-z-]+)?)  .*/\1/p' | grep -v '^help$'
}

# help_and_usage SUBCOMMAND...: its help is the text of `nbar help SUBCOMMAND`, and contains its
# name.
help_and_usage() {
	fits "$nbar" "$@" --help && grep -qE "^usage: (mpirun .* )?nbar $*" "$work/help" &&
		"$nbar" help "$@" | cmp - "$work/help"
}

# page FILE NAME...: groff reads the manual page without a warning, and each name is a tag in it.
page() {
	local page=$BUILD/man/$1 name
	shift
	man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>"$work/warnings" >/dev/null
	cat "$work/warnings"
	[ ! -s "$work/warnings" ] && ! grep '^\.METRICS' "$page" || return 1
	for name in "$@"; do
		grep -qx -- "\.B $name" "$page" || { echo "no $name"; return 1; }
	done
}

columns() {
	"$nbar" bench --nodes 2 --where nic -i 20 -x 2 --full --json - | python3 -c '
import json, sys
print("\n".join(c["name"].replace("_", " ") for c in json.load(sys.stdin)["columns"][3:]))'
}

helps() {
	local name
	"$nbar" bench --help | sed -n '/^Columns/,$p' >"$work/columns"
	for name in "$@"; do
		grep -qwF -- "$name" "$work/columns" || { echo "no $name"; return 1; }
	done
}

# Every subcommand has a page with its name, or is in the page of its first word.
pages() {
	local words
	while read -r words; do
		[ -s "$BUILD/man/nbar-${words##* }.1" ] || grep -q "nbar $words" "$BUILD/man/nbar-${words%% *}.1" ||
			{ echo "no page: $words"; return 1; }
	done < <(subcommands)
}

ok "every subcommand has a manual page" pages
ok "nbar help fits a screen" fits "$nbar" help
while read -r words; do
	ok "nbar $words: help fits a screen" help_and_usage $words
done < <(subcommands)
mapfile -t names < <(columns)
ok "bench has columns" [ ${#names[@]} -ge 10 ]
ok "bench: each column is in --help" helps "${names[@]}"
if command -v man >/dev/null; then
	ok "bench: each column is in the manual page" page nbar-bench.1 "${names[@]}"
	for file in "$BUILD"/man/*.1; do
		ok "$(basename "$file"): a manual page without a warning" page "$(basename "$file")"
	done
else
	skip "manual pages" "there is no man here: apt-get install man-db"
fi
finish
