/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals.c - see signals.h.
 */
#include "signals.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

static bool interrupted;

static sigset_t ending_signals(void)
{
	struct sigaction hangup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* nohup ignores it, and a signal that is blocked is not ignored. */
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	return set;
}

void signals_begin(void)
{
	sigset_t set = ending_signals();

	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void signals_unblock(void)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_wait(void)
{
	sigset_t set = ending_signals();

	sigaddset(&set, SIGCHLD);
	int sig = sigwaitinfo(&set, NULL);

	interrupted |= sig > 0 && sig != SIGCHLD;
}

bool signals_wait_until(uint64_t time)
{
	sigset_t set = ending_signals();
	uint64_t now = nbar_now_ns();

	while (!interrupted && now < time) {
		struct timespec left = { (time_t)((time - now) / UINT64_C(1000000000)),
					 (long)((time - now) % UINT64_C(1000000000)) };

		interrupted |= sigtimedwait(&set, NULL, &left) > 0;
		now = nbar_now_ns();
	}
	return signals_interrupted();
}

bool signals_interrupted(void)
{
	sigset_t set = ending_signals();
	struct timespec zero = { 0 };

	interrupted |= sigtimedwait(&set, NULL, &zero) > 0;
	return interrupted;
}

void signals_die_with(pid_t parent, int sig)
{
	prctl(PR_SET_PDEATHSIG, sig);
	if (getppid() != parent)
		_exit(TOOL_FAILED);
}
