#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Compares the map in CONTRIBUTING.md with the tree: each folder has a row, and each row a folder. A file
# includes only headers that the row of its folder allows. Each source file begins with a sentence about
# itself. Each public function has a caller. Errors keep to one convention. Speaks TAP; run by make check.
# Builds nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/lib.sh
make_work

fails_with() { # WORDS COMMAND...: the check finds the planted fault.
	local words=$1
	shift
	! "$@" >"$work/found" 2>&1 && cat "$work/found" && grep -qF "$words" "$work/found"
}

# Prints a line "FOLDER ALLOWED..." for each row.
rows() {
	sed -n '/^## The map/,/^## /s/^| `\([^`]*\)` |.*|\([^|]*\)|$/\1 \2/p' CONTRIBUTING.md | tr -d '`,'
}

# Folders that need a row: the top folders, and the folders within the large ones.
folders() {
	awk -F / '$1 !~ /^(firmware|tools|testbed)$/ && NF > 1 { print $1 }
		$1 ~ /^(firmware|tools|testbed)$/ && NF > 2 { print $1 "/" $2 }' | sort -u
}

# Prints a line "FILE HEADER" for each include of the project's own headers.
includes() {
	grep '\.[ch]$' "$work/files" | xargs grep -HoE '^[[:space:]]*#[[:space:]]*include "[^"]+"' |
		sed 's/:.*"\(.*\)"/ \1/'
}

check_folders() { # ROWS FOLDERS
	awk 'NR == FNR { row[$1]; next } { there[$1] }
		END {
			for (f in there)
				if (!(f in row)) {
					print f ": no row in the map of CONTRIBUTING.md: add one"
					bad = 1
				}
			for (f in row) {
				split(f, part, "/")
				if (!(f in there) && part[1] != "hostlib") {
					print f ": a row of the map, but no folder: remove the row"
					bad = 1
				}
			}
			exit bad
		}' "$1" "$2"
}

# A file belongs to the longest row that its path begins with. It may include from its own row, from
# the rows that this one allows, and from those that they allow.
check_includes() { # ROWS FILES INCLUDES
	awk '
	function row_of(path) {
		while (sub(/\/[^\/]*$/, "", path))
			if (path in row)
				return path
		return ""
	}
	function may(from, to, depth,    k, part, m) {
		if (from == to || row[from] ~ /(^| )anything( |$)/)
			return 1
		m = depth > 9 ? 0 : split(row[from], part, " ")
		for (k = 1; k <= m; k++)
			if (part[k] in row && may(part[k], to, depth + 1))
				return 1
		return 0
	}
	FILENAME == ARGV[1] { name = $1; $1 = ""; row[name] = $0; next }
	FILENAME == ARGV[2] {
		base = $1
		sub(/.*\//, "", base)
		found[base] = found[base] " " $1
		next
	}
	{
		base = $2
		sub(/.*\//, "", base)
		m = split(found[base], candidate, " ")
		last = ""
		good = 0
		for (k = 1; k <= m && !good; k++) {
			if (substr("/" candidate[k], length(candidate[k]) - length($2) + 1) != "/" $2)
				continue
			last = candidate[k]
			good = may(row_of($1), row_of(last), 0)
		}
		if (last == "") # a header of another project
			next
		if (!good) {
			printf "%s includes %s of %s: its row in CONTRIBUTING.md does not allow that\n", $1,
				$2, row_of(last)
			bad = 1
		}
	}
	END { exit bad }' "$1" "$2" "$3"
}

# Each source file begins with a sentence about itself, for `make files`.
check_sentences() { # FILE...
	awk -f testbed/files.awk "$@" | awk '/:$/ { print $0 " begin it with a comment: NAME - what it does"; bad = 1 } END { exit bad }'
}

# Each public function has a caller in the glue, the tools or an example, maybe through a macro of a header, and a line in
# a manual page. $1: FUNCTION...
check_callers() {
	local f names bad=0
	for f in $1; do
		names=$(sed -nE "s/^#define (nbar_[a-z_]+)\\(.*\\<$f\\>.*/\\1/p" hostlib/include/*.h)
		names=$(printf '%s\n' $names "$f" | paste -sd'|')
		if ! grep -rqwE --include='*.[ch]' "$names" mpi-glue tools hostlib/examples; then
			echo "$f: nobody calls it: remove it, or add the example that does"
			bad=1
		elif ! grep -rqwE --include='*.3' "$names" hostlib; then
			echo "$f: no manual page has it"
			bad=1
		fi
	done
	return $bad
}

# Headers of an SDK are in the folder of the SDK, and in tests and examples.
check_sdks() { # FILE...
	! grep -nE '^[[:space:]]*#[[:space:]]*include <(rte_|infiniband/|sodium|jansson|mpi\.h|pmix|ck_)' "$@" |
		grep -vE '^(testbed|debian|hostlib/examples|firmware/wire/dpdk.*<rte_|firmware/wire/(verbs|rdma).*<inf|firmware/wire/auth_key.*<sod)' |
		grep -vE '^(tools/.*<(jansson|ck_)|(mpi-glue|tools/mpi|tools/lab/mpi)/.*<mpi|hostlib/include/nbar_pmix.*<pmix)'
}

# Errors are 0 or negative errno: a -1 has a comment that says what else it is. Exit codes are in files with a main(), or
# after a fork (_exit). A NIC refuses a request with a text.
check_errors() { # FILE...
	awk '
		function wrong(what) {
			print FILENAME ":" FNR ": " what ": " $0
			bad = 1
		}
		FNR == 1 { main = 0 }
		/^int main\(/ { main = 1 }
		/return -1;$/ && !main { wrong("an errno is missing, or a comment") }
		/(EXIT_[A-Z]+|[^_a-z]exit\(.*\));/ { exits[FILENAME] = FNR }
		main { delete exits[FILENAME] }
		FILENAME ~ /request[a-z_]*\.c$/ && /return -NBAR_E/ { wrong("call nbnic_request_fail, with a text") }
		END {
			for (f in exits) {
				print f ":" exits[f] ": an exit code outside of main()"
				bad = 1
			}
			exit bad
		}' "$@"
}

# An unpacked archive has no repository.
without_git() {
	GIT_DIR=$work/none make -s files >"$work/sentences" && grep '^firmware/core/engine.c: .' "$work/sentences" &&
		grep '^testbed/run: .' "$work/sentences"
}

testbed/files >"$work/files"
rows >"$work/rows"
folders <"$work/files" >"$work/folders"
includes >"$work/includes"
ok "each folder has a row in CONTRIBUTING.md, each row a folder" check_folders "$work/rows" "$work/folders"
ok "files include what their row allows" check_includes "$work/rows" "$work/files" "$work/includes"
mapfile -t sources < <(testbed/files --sources)
ok "the folder of an SDK alone includes it" check_sdks "${sources[@]}"
ok "each source file says what it does" check_sentences "${sources[@]}"

mapfile -t layers < <(grep -E '^(firmware|hostlib/(src|python)|mpi-glue|tools/lab/compose)/.*\.[ch]$' "$work/files")
ok "errors are negative errno, exit codes are of main(), refusals have a text" check_errors "${layers[@]}"
ok "make files needs no git" without_git
functions=$(sed -nE 's/^ (nbar_[a-z0-9_]+)@NBAR_0\..*/\1/p' debian/libnbar0.symbols) # those of libnbar itself
ok "each public function has a caller and a manual page" check_callers "$functions"

# The checks find faults.
ok "a function without a caller is found" fails_with "nbar_unheard: nobody calls it" check_callers nbar_unheard
ok "a function without a manual page is found" fails_with "nbar_now_ns: no manual page" check_callers nbar_now_ns
(cat "$work/folders" && echo tools/unheard) >"$work/more"
ok "a folder without a row is found" fails_with "tools/unheard: no row" check_folders "$work/rows" "$work/more"
grep -v '^mpi-glue$' "$work/folders" >"$work/fewer"
ok "a row without a folder is found" fails_with "mpi-glue: a row" check_folders "$work/rows" "$work/fewer"
echo "firmware/core/engine.c nbar.h" >"$work/wrong"
ok "an include from the wrong folder is found" fails_with "engine.c includes nbar.h" \
	check_includes "$work/rows" "$work/files" "$work/wrong"
echo '#include <rte_eal.h>' >"$work/sdk.c"
ok "an include of an SDK elsewhere is found" fails_with "sdk.c:1:#include <rte_eal.h>" check_sdks "$work/sdk.c" /dev/null
printf 'int f(void)\n{\n\treturn -1;\n}\n' >"$work/minus.c"
ok "an error that is no errno is found" fails_with "minus.c:3: an errno is missing" check_errors "$work/minus.c"
printf 'void f(void)\n{\n\texit(2);\n}\n' >"$work/exits.c"
ok "an exit code outside of main() is found" fails_with "exits.c:3: an exit code" check_errors "$work/exits.c"
printf 'int f(void)\n{\n\treturn -NBAR_ENOENT;\n}\n' >"$work/request_mute.c"
ok "a refusal without a text is found" fails_with "request_mute.c:3: call" check_errors "$work/request_mute.c"
printf '/* SPDX */\n\nint x;\n' >"$work/silent.c"
ok "a file that does not say what it does is found" fails_with "silent.c: begin it" check_sentences "$work/silent.c"
finish
