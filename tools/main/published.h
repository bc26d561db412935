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
	const char *experiment; /* as in result_new; or several, separated by spaces */
	const char *what, *setting;
	const char *value; /* with its unit */
	const char *hardware;
	const char *source;
};

extern const struct published published[];
extern const uint32_t npublished;

/* True if `list` names the experiment. */
bool published_of(const char *list, const char *experiment);

#endif
