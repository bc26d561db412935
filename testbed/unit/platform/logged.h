/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * logged.h - the messages of the daemon, kept for a test in place of stderr.
 */
#ifndef NBAR_TEST_LOGGED_H
#define NBAR_TEST_LOGGED_H

#include "log.h"
#include "unit/unit.h"

static char logged[4096]; /* a line each */

void log_error(const char *format, ...)
{
	size_t used = strlen(logged);
	va_list args;

	va_start(args, format);
	vsnprintf(logged + used, sizeof(logged) - used, format, args);
	va_end(args);
	used = strlen(logged);
	snprintf(logged + used, sizeof(logged) - used, "\n");
}

/* Compares the messages since the last call. */
static inline void logged_is(const char *want)
{
	assert_string_equal(logged, want);
	logged[0] = '\0';
}

#endif
