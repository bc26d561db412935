/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - writes all messages to stderr. Each line is one write, so lines of two threads do not
 * mix.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "log.h"

void log_error(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}
