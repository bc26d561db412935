#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests the scripts that run the tests. Each case plants a fault, such as a program that ends early
# with status 0, and checks that the fault counts as a failure. Run by make check.
set -u
cd "$(dirname "$0")/.." || exit 1
. testbed/e2e/lib.sh
unset SKIPS
mkdir -p "$work/build"

# planted LINES...: a test program that consists of these lines of shell.
planted() {
	printf '%s\n' '#!/usr/bin/env bash' "$@" >"$work/planted"
	chmod +x "$work/planted"
}

# caught TEXT: the planted program fails, and the output has this text.
caught() {
	BUILD=$work/build testbed/run "$work/planted" >"$work/ran"
	local rc=$?
	cat "$work/ran"
	[ $rc = 1 ] && grep -q -- "$1" "$work/ran" && tail -n 1 "$work/ran" | grep -q ' [1-9][0-9]* failed'
}

passes() {
	BUILD=$work/build testbed/run "$work/planted"
}

ends_early() {
	planted 'echo 1..3; echo "ok 1 - a"; echo "ok 2 - b"; exit 0' && caught 'ran 2 tests of 3'
}

no_plan() {
	planted 'echo "ok 1 - a"' && caught 'ran 1 tests of 0'
}

several_plans() {
	planted 'echo 1..1; echo "ok 1 - a"; echo 1..2; echo "ok 1 - b"; echo "not ok 2 - # SKIP c"' &&
		passes
}

bad_status() {
	planted 'echo "ok 1 - a"; echo 1..1; exit 3' && caught 'ended with status 3'
}

# The reason is printed, even if much output follows, and if the test ran a test that failed.
early_reason() {
	planted 'seq 100; echo "# the reason"; echo "not ok 1 - a"; seq 300; echo 1..1' &&
		caught '| # the reason' &&
		planted 'seq 100; echo "#     | # the inner reason"; echo "#     | not ok 1 - a"; seq 300' \
			'echo "not ok 1 - b"; echo 1..1' && caught '| # the inner reason' &&
		planted 'seq 100; echo "# a report"; seq 40; exit 3' && caught '| # a report'
}

# What a failed command prints may lack a newline at its end, and may have bytes that are no text.
any_output() {
	planted '. testbed/lib.sh' make_work 'ok a printf "\\0said"; ok b sh -c "printf \"the reason\\\\0\"; exit 1"' finish &&
		caught '| # the reason$' && grep -q '| not ok 2 - b$' "$work/ran"
}

# Several at once: each result counts, in order, however soon a test ends.
at_once() {
	local i all=()
	for i in $(seq 40); do
		planted "[ $((i % 5)) != 0 ] || sleep 0.1" 'echo "ok 1 - a"; echo 1..1' "exit $((i == 20))"
		mv "$work/planted" "$work/at-once.$i" && all+=("$work/at-once.$i")
	done
	! BUILD=$work/build JOBS=3 testbed/run "${all[@]}" >"$work/ran" &&
		sed -n 's/^at-once.\([0-9]*\) .*/\1/p' "$work/ran" | cmp - <(seq 40) &&
		grep -q '^at-once.20: not ok' "$work/ran" && [ "$(tail -n 1 "$work/ran")" = "40 passed, 1 failed, 0 skipped" ]
}

skips() {
	planted 'echo "ok 1 - a # SKIP no device here"; echo 1..1'
	passes && echo '# comment' >"$work/skips" && SKIPS=$work/skips caught 'may not skip this here: a' &&
		echo 'planted: a # SKIP no device' >>"$work/skips" && SKIPS=$work/skips passes
}

# daemon_that CODE: a daemon that runs this code of Python when it gets the signal to end.
daemon_that() {
	cat >"$work/build/nbar-nicd" <<-END
		#!/usr/bin/env python3
		import signal, socket, sys
		def end(*_):
		    $1
		signal.signal(signal.SIGTERM, end)
		socket.socket(socket.AF_UNIX).bind(sys.argv[2] + "/n0.sock")
		print("nbar-nicd: n0 ready", flush=True)
		while True:
		    signal.pause()
	END
	chmod +x "$work/build/nbar-nicd"
	planted '. testbed/e2e/lib.sh' 'ok "a daemon starts" daemon "$work/d"' finish
}

daemon_ends_badly() {
	daemon_that 'sys.exit(1)' && caught 'the daemons end well'
}

daemon_reports() {
	daemon_that 'sys.exit(print("x.c:1:2: runtime error: index 3", file=sys.stderr))' &&
		caught 'the daemons end well'
}

daemon_ends() {
	daemon_that 'sys.exit(0)' && passes
}

# A program that the makefile compiles for UBSan ends at undefined behaviour.
undefined_ends() {
	echo 'int main(int n, char **v) { volatile int k = 2147483647; (void)v; k += n; return 0; }' >"$work/planted.c"
	make -s SAN=undefined DEBUG=1 BUILD="$work/san" "$work/san/test/$work/planted.o" &&
		${CC:-gcc} -fsanitize=undefined "$work/san/test/$work/planted.o" -o "$work/undefined" || return 1
	"$work/undefined"
	[ $? != 0 ]
}

# ci STEP: what the functions of CI do with it.
ci() {
	sed -n '/^skip_set() {/,/^}/p; /^run_set() {/,/^}/p' .ci/run >"$work/set"
	cat >"$work/ci" <<-'END'
		set -u -o pipefail
		passed=0 failed=0 skipped=0 failures= why= times= begin_s=100
		. "$1"
		eval "$2"
	END
	grep -q '^set -u -o pipefail$' .ci/run && bash "$work/ci" "$work/set" "$1"
}

# CI counts the exit status of a set, even if its last line says that nothing has failed.
set_with_status() {
	ci 'run_set planted sh -c "echo 1 passed, 0 failed, 0 skipped; exit 2"; [ $? = 0 -a $failed = 1 ]'
}

# CI says and counts that it does not begin a set so late.
late_set() {
	ci 'SECONDS=101; run_set planted echo "1 passed, 0 failed, 0 skipped"; [ $? = 1 -a $passed,$skipped = 0,1 ]' \
		>"$work/said" && grep -q '^== planted is skipped: ' "$work/said"
}

# Each mutation still finds the text that it changes. This does not run the tests on a mutation:
# make check-mutations and make check-thread-mutations do.
mutations_apply() {
	local name file expression path stale=0
	while read -r name file expression; do
		[[ $name =~ ^[a-z] ]] || continue
		path=$(ls firmware/core/"$file" firmware/nic/"$file" hostlib/src/"$file" 2>/dev/null)
		sed "$expression" "$path" | cmp -s - "$path" || continue
		echo "mutation $name changes nothing in $file"
		stale=1
	done < <(sed 's/ [^ ]*//' testbed/mutate/bugs.list; cat testbed/mutate/threads.list)
	return $stale
}

# `make demo` builds without some parts. `make check` installs what they need, and builds in the same folder.
parts() {
	local object=$work/parts/nicd/firmware/wire/auth_key.o
	make -s BUILD="$work/parts" SODIUM= "$object" && ! nm "$object" | grep crypto_ &&
		make -s BUILD="$work/parts" SODIUM=yes "$object" && nm "$object" | grep crypto_
}

ok "a test that ends early with status 0 fails" ends_early
ok "a test without a plan fails" no_plan
ok "a test of several plans passes" several_plans
ok "a test that ends with another status fails" bad_status
ok "the reason of an early failure is printed" early_reason
ok "a failure is counted and shown, whatever its command prints" any_output
ok "tests that run at once are counted in order" at_once
ok "with a list of skips, any other skip fails" skips
ok "a daemon that ends with another status fails its test" daemon_ends_badly
ok "a report of a sanitizer on a daemon's stderr fails its test" daemon_reports
ok "a daemon that ends well passes" daemon_ends
if echo 'int main(void) { return 0; }' | ${CC:-gcc} -fsanitize=undefined -x c -o "$work/there" - 2>/dev/null; then
	ok "an undefined step ends a program" undefined_ends
else
	skip "an undefined step ends a program" "no UBSan here"
fi
ok "a set of CI that ends with another status fails" set_with_status
ok "a set of CI that is late is skipped, aloud" late_set
ok "each mutation changes its file" mutations_apply
ok "what is installed later is compiled in" parts
finish
