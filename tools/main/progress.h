/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h - a line on a terminal's stderr: how much is done and how long the rest takes.
 */
#ifndef NBAR_TOOLS_PROGRESS_H
#define NBAR_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool on;
	double all, done; /* in any unit that is roughly proportional to time */
	uint64_t started; /* time of progress_begin */
};

/* all: the amount of work, in any unit that is roughly proportional to time. */
void progress_begin(struct progress *p, double all);

/* Shows what is measured next. */
__attribute__((format(printf, 2, 3))) void progress_show(struct progress *p, const char *format,
							 ...);

/* Adds a part that is done. */
void progress_add(struct progress *p, double part);

/* Removes the line from the terminal. */
void progress_end(struct progress *p);

/* Time in words: "47 s", "3 m 20 s", "2 h 5 m". */
void progress_time(double seconds, char *out, unsigned size);

#endif
