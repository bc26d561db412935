/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_watch.h - `nbar stat --watch` as text: rates, and the groups that have waited longest.
 *
 * stat_loop.c asks the NICs, and calls stat_watch.c after each round, which sends no request.
 */
#ifndef NBAR_TOOLS_STAT_WATCH_H
#define NBAR_TOOLS_STAT_WATCH_H

#include <stdio.h>

#include "stat.h"

/* stat_loop.c: runs until a signal or the last display; returns the exit status. */
int stat_watch_run(struct stat_targets *t, const struct stat_options *opt);

struct stat_watch;

/* Makes the state of --watch. */
struct stat_watch *stat_watch_new(void);
void stat_watch_free(struct stat_watch *w);

/* Takes the replies in t->now. 0 or -ENOMEM. */
int stat_watch_look(struct stat_watch *w, const struct stat_targets *t);

/* Prints a line per NIC. Each line begins with `time`. */
void stat_watch_lines(const struct stat_watch *w, const struct stat_targets *t, const char *time,
		      FILE *to);

/* Prints a screen of this size, which replaces the screen before. */
void stat_watch_screen(const struct stat_watch *w, const struct stat_targets *t, const char *time,
		       uint32_t rows, uint32_t columns, FILE *to);

#endif
