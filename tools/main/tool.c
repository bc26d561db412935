/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool.c - see tool.h. All subcommands call it; only tool_alloc may exit.
 */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const char *who = "nbar";
static bool quiet, json_lacks_memory;

void tool_begin(const char *name)
{
	who = name;
}

const char *tool_name(void)
{
	return who;
}

static void *json_alloc(size_t size)
{
	void *block = malloc(size);

	if (!block)
		json_lacks_memory = true;
	return block;
}

void tool_json_begin(void)
{
	json_set_alloc_funcs(json_alloc, free);
}

int tool_end(int rc)
{
	int failed = fflush(stdout) ? errno : 0;

	if (rc != TOOL_OK)
		return rc;
	if (json_lacks_memory) {
		tool_error("no memory for all results: some are missing; run nbar again with more "
			   "memory");
		return TOOL_FAILED;
	}
	if (!failed && !ferror(stdout))
		return TOOL_OK;
	tool_error("cannot write to stdout: %s; some output is missing: make room there, and run "
		   "nbar again",
		   failed ? strerror(failed) : "an earlier write failed");
	return TOOL_FAILED;
}

void tool_quiet(bool on)
{
	quiet = on;
}

static void say(const char *format, va_list args, const char *end)
{
	char line[1024];

	if (quiet)
		return;
	vsnprintf(line, sizeof(line), format, args);
	fprintf(stderr, "%s: %s\n%s", who, line, end);
}

void tool_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args, "");
	va_end(args);
}

void *tool_alloc(size_t n, size_t size)
{
	void *block = calloc(n ? n : 1, size);

	if (!block) {
		tool_error("no memory for %zu bytes: free some, and try again", n * size);
		exit(TOOL_FAILED);
	}
	return block;
}

void tool_join(char *text, size_t size, const char *separator, const char *format, ...)
{
	size_t at = strlen(text);
	va_list args;

	if (at)
		at += (size_t)snprintf(text + at, size - at, "%s", separator);
	va_start(args, format);
	if (at < size)
		vsnprintf(text + at, size - at, format, args);
	va_end(args);
}

int tool_usage(const char *format, ...)
{
	char hint[80];
	va_list args;

	snprintf(hint, sizeof(hint), "try `%s --help`\n", who);
	va_start(args, format);
	say(format, args, hint);
	va_end(args);
	return TOOL_USAGE;
}

bool tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	if (errno || *end || value < min || value > max)
		return false;
	*out = value;
	return true;
}

int tool_list(const char *text, int (*each)(void *arg, const char *item), void *arg)
{
	for (;;) {
		size_t n = strcspn(text, ",");
		char item[TOOL_ITEM_MAX];
		int r;

		snprintf(item, sizeof(item), "%.*s", n < sizeof(item) ? (int)n : TOOL_ITEM_MAX - 1,
			 text);
		r = each(arg, item);
		if (r || !text[n])
			return r;
		text += n + 1;
	}
}
