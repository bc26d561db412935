/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.c - see progress.h. It prints nothing if stderr is no terminal.
 */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tool.h"

void progress_begin(struct progress *p, double all)
{
	*p = (struct progress){ .on = isatty(STDERR_FILENO), .all = all };
	p->started = tool_now_ns();
}

void progress_time(double seconds, char *out, unsigned size)
{
	unsigned s = seconds < 1e9 ? (unsigned)(seconds + 0.5) : 1000000000u;

	if (s < 60)
		snprintf(out, size, "%u s", s);
	else if (s < 3600)
		snprintf(out, size, "%u m %u s", s / 60, s % 60);
	else
		snprintf(out, size, "%u h %u m", s / 3600, s / 60 % 60);
}

void progress_show(struct progress *p, const char *format, ...)
{
	enum { WIDTH = 24 };
	double part = p->done < p->all ? p->done / p->all : 1;
	int full = (int)(part * WIDTH);
	char what[96], left[32] = "";
	va_list args;

	if (!p->on)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (p->done > 0 && p->done < p->all) {
		double seconds = (double)(tool_now_ns() - p->started) / 1e9;

		progress_time(seconds / p->done * (p->all - p->done), left, sizeof(left));
	}
	fprintf(stderr, "\r\033[K[%.*s%*s] %.0f %%%s%s%s  %s", full, "########################",
		WIDTH - full, "", 100 * part, *left ? ", " : "", left, *left ? " left" : "", what);
	fflush(stderr);
}

void progress_add(struct progress *p, double part)
{
	p->done += part;
}

void progress_end(struct progress *p)
{
	if (p->on)
		fputs("\r\033[K", stderr);
	p->on = false;
}
