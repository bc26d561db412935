/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error.c - the text of the last error of a thread.
 *
 * Called after a failure, never on the path of a successful barrier.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

static _Thread_local char text[512] = "no error";

int nblib_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err;
}

int nblib_errno(int32_t status)
{
	switch (-status) {
#define ERROR_CASE(name, number) \
	case number:             \
		return -name;
		NBAR_ERRORS(ERROR_CASE)
#undef ERROR_CASE
	}
	return -EPROTO;
}

const char *nbar_error(void)
{
	return text;
}
