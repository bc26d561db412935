#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Checks the help of `nbar` and `nbar-lab`: every subcommand has a help text that fits a screen, and a manual page.
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

# help_and_usage PROGRAM SUBCOMMAND...: its help is the text of `PROGRAM help SUBCOMMAND`, and contains its name.
help_and_usage() {
	fits "$BUILD/$@" --help && grep -qE "^usage: (mpirun .* )?$*" "$work/help" &&
		"$BUILD/$1" help "${@:2}" | cmp - "$work/help"
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

# FOLDER: every subcommand has a page, maybe that of its first word, which begins with the question that it answers.
pages() {
	local program word rest at bad=0
	while read -r program word rest; do
		at="SS $program $word $rest"
		[ -n "$rest" ] || at="SH DESCRIPTION"
		sed -n "/^\.$at\$/{n;p}" "$1/$program-$word.1" | grep -E '^[A-Z][^.?!]*\?' ||
			{ echo "nothing asks what $program $word $rest answers: see .$at of $program-$word.1"; bad=1; }
	done < <(subcommands)
	return $bad
}

no_question() {
	cp -r "$BUILD/man" "$work" && sed -i 's/?$/./' "$work/man/nbar-doctor.1" || return 1
	! pages "$work/man" >"$work/out" && grep '^nothing asks what nbar doctor ' "$work/out"
}

# The daemon knows wire and keys of each NIC in the documents: it complains of the NIC behind it.
known_nics() {
	local nic n=0 bad=0
	while read -r nic; do
		n=$((n + 1))
		"$BUILD/nbar-nicd" --run-dir "$work/nics" --nic "$nic" --nic wire=none 2>&1 | grep -q "wire=none: there is no" ||
			{ echo "a document has --nic $nic"; bad=1; }
	done < <(testbed/files | grep -E '\.(md|[1-8])$' | xargs grep -hoE '(--nic|^ *nic) [a-z]+=[a-z][^ `|]*' | sed 's/.* //' | sort -u)
	[ $n -ge 10 ] && return $bad
}

ok "every subcommand has a manual page, which begins with a question" pages "$BUILD/man"
ok "a page without a question is found" no_question
for program in nbar nbar-lab; do
	[ ! -x "$BUILD/$program" ] || ok "$program help fits a screen" fits "$BUILD/$program" help
done
while read -r words; do
	ok "$words: help fits a screen" help_and_usage $words
done < <(subcommands)
ok "each NIC of the documents has known keys" known_nics
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
