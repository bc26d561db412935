#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# count.sh - prints how large the house is: lines of code of product and tests, without blanks and comments, and words of
# documents, manual pages included. Started by make count.
set -u
cd "$(dirname "$0")/.." || exit 1

# FILE...: the lines of code of each, on standard output.
code() {
	local f
	for f in "$@"; do
		case $f in
		*.[ch] | *.hpp) gcc -fpreprocessed -dD -E -P -x c "$f" 2>/dev/null ;;
		*) sed '/^[[:space:]]*\(#.*\)\{0,1\}$/d' "$f" ;;
		esac
	done
}

lines() { # FILE...
	code "$@" | wc -l
}

mapfile -t product < <(testbed/files | grep -E '^(firmware|hostlib|mpi-glue|tools)/' | grep -E '\.([ch]|hpp|py|S|ld)$')
mapfile -t tests < <(testbed/files --sources | grep '^testbed/')
mapfile -t documents < <(testbed/files | grep -E '\.(md|[1-8])$')
printf '%-32s %7d lines\n' "product" "$(lines "${product[@]}")" "tests" "$(lines "${tests[@]}")"
printf '%-32s %7d words\n' "documents and manual pages" "$(cat "${documents[@]}" | wc -w)"
