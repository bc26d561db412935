/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object.c - log_error() in the shared object of a wire: the program that has loaded it writes.
 */
#include <stdarg.h>
#include <stdio.h>

#include "log.h"
#include "object.h"

void (*wire_object_log)(const char *format, ...);

void log_error(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wire_object_log("%s", text);
}
