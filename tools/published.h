/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * published.h - values that the literature has published, each with its source. They are shown
 * beside ours, never compared with them: they were measured on other hardware, twenty years ago.
 */
#ifndef NBAR_TOOLS_PUBLISHED_H
#define NBAR_TOOLS_PUBLISHED_H

#include <stdint.h>

struct published {
	const char *experiment; /* as in report_experiments */
	const char *what, *setting;
	const char *value; /* with its unit */
	const char *hardware;
	const char *source;
};

extern const struct published published[];
extern const uint32_t npublished;

#endif
