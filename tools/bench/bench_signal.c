/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_signal.c - the signals that end a bench.
 *
 * Signals are blocked and fetched, so there are no handlers and no races. Called by the processes
 * that start and watch others.
 */
#include "bench.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool interrupted;

static sigset_t ending_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return set;
}

void bench_signals_begin(void)
{
	sigset_t set = ending_signals();

	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void bench_signals_unblock(void)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

bool bench_interrupted(void)
{
	sigset_t set = ending_signals();
	struct timespec zero = { 0 };

	if (sigtimedwait(&set, NULL, &zero) > 0)
		interrupted = true;
	return interrupted;
}

void bench_die_with(pid_t parent, int sig)
{
	prctl(PR_SET_PDEATHSIG, sig);
	if (getppid() != parent)
		_exit(TOOL_FAILED);
}

bool bench_signals_wait(void)
{
	sigset_t set = ending_signals();
	int sig;

	sigaddset(&set, SIGCHLD);
	sig = sigwaitinfo(&set, NULL);
	if (sig > 0 && sig != SIGCHLD)
		interrupted = true;
	return sig > 0 && sig != SIGCHLD;
}
