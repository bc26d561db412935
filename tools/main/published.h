/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * published.h - values that the literature has published, each with its source. Reports show them
 * beside our results, but never compare them: their hardware was different, and often old.
 */
#ifndef NBAR_TOOLS_PUBLISHED_H
#define NBAR_TOOLS_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

struct published {
	const char *experiment; /* as in report_experiments; or several, separated by spaces */
	const char *what, *setting;
	const char *value; /* with its unit */
	const char *hardware;
	const char *source;
};

extern const struct published published[];
extern const uint32_t npublished;

/* Published values that are points in a figure: the columns of its axes, and the values there. */
struct published_point {
	const char *experiment; /* as above */
	const char *x, *y, *mark;
	double at[2];
};

extern const struct published_point published_points[];
extern const uint32_t npublished_points;

/* True if `list` names the experiment. */
bool published_of(const char *list, const char *experiment);

#endif
