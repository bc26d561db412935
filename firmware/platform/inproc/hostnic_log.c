/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostnic_log.c - log_error() of an in-process NIC: the caller that opens a NIC gets the text.
 *
 * A library does not write to the program's stderr. Later errors show in the counters, and in the
 * errors of groups.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hostnic.h"
#include "log.h"

static _Thread_local char *to;
static _Thread_local size_t room;

void hostnic_log_begin(char *text, size_t size)
{
	to = text;
	room = size;
	text[0] = '\0';
}

void hostnic_log_end(int rc)
{
	if (rc < 0 && !to[0])
		snprintf(to, room, "%s", strerror(-rc));
	to = NULL;
}

void log_error(const char *format, ...)
{
	va_list args;

	if (!to)
		return;
	va_start(args, format);
	vsnprintf(to, room, format, args);
	va_end(args);
}
