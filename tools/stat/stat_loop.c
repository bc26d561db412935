/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_loop.c - the loop of `nbar stat --watch`: asks the NICs again and again, until a signal or
 * the last display.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"
#include "stat_watch.h"
#include "tool.h"

/* Asks the NICs once, and shows the replies. */
static int loop_look(struct stat_watch *w, struct stat_targets *t, const struct stat_options *opt)
{
	struct winsize size;
	char text[32] = "";
	time_t now = time(NULL);
	int r = stat_take(t);

	if (r)
		return r;
	if (stat_watch_look(w, t)) {
		tool_error("no memory: free some, and try again");
		return TOOL_FAILED;
	}
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", localtime(&now));
	if (opt->json)
		stat_print(t, opt);
	else if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
		 size.ws_row)
		stat_watch_screen(w, t, text, size.ws_row, size.ws_col, stdout);
	else
		stat_watch_lines(w, t, text, stdout);
	for (uint32_t i = 0; i < t->n; i++) {
		t->before[i].nic = t->now[i].nic;
		t->before[i].at = t->now[i].at;
	}
	return stat_flush();
}

int stat_watch_run(struct stat_targets *t, const struct stat_options *opt)
{
	struct stat_watch *w = stat_watch_new();
	uint64_t next = nbar_now_ns();
	int r = 0;

	signals_begin();
	signal(SIGPIPE, SIG_DFL);
	for (uint32_t n = 0; !r && (!opt->count || n < opt->count); n++) {
		if (n && signals_wait_until(next))
			break;
		r = loop_look(w, t, opt);
		next += opt->watch * UINT64_C(1000000000);
	}
	stat_watch_free(w);
	return r;
}
