/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool.h - what all subcommands of nbar share: exit codes, messages, numbers, lists.
 *
 * A subcommand returns its exit code. Only tool_alloc exits.
 */
#ifndef NBAR_TOOLS_TOOL_H
#define NBAR_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "nbar_host.h"

enum tool_exit { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* The name in front of every message: "nbar bench"; its first word is the program. */
void tool_begin(const char *name);
const char *tool_name(void);

/* Begins to record failed allocations of Jansson: without memory, it silently leaves out values. */
void tool_json_begin(void);

/* Returns rc, the exit code of a subcommand; or TOOL_FAILED, after a message, if JSON had no memory
 * or stdout did not take all output. */
int tool_end(int rc);

/* on: prints no more messages. In an MPI program, all ranks except one are quiet. */
void tool_quiet(bool on);

/* Prints a line on stderr. */
__attribute__((format(printf, 1, 2))) void tool_error(const char *format, ...);

/* As tool_error, for an invalid command line: also names --help. Returns TOOL_USAGE. */
__attribute__((format(printf, 1, 2))) int tool_usage(const char *format, ...);

/* Zeroed memory. Without memory, tool_alloc ends the program with a message: so do not call it when
 * there are child processes to end or files to remove. */
void *tool_alloc(size_t n, size_t size);

/* Adds an item to a list in text; text that does not fit is cut. */
__attribute__((format(printf, 4, 5))) void tool_join(char *text, size_t size, const char *separator,
						     const char *format, ...);

/* True, and *out set, if all of text is a decimal number in [min, max]. */
bool tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/*
 * Calls each(arg, item) for every item of a list separated by commas; an empty item counts.
 * Items longer than TOOL_ITEM_MAX - 1 bytes are cut. Returns the first result that is not 0, or 0.
 */
#define TOOL_ITEM_MAX 256
int tool_list(const char *text, int (*each)(void *arg, const char *item), void *arg);

/* Nanoseconds of the clock that all processes of a machine share. */
static inline uint64_t tool_now_ns(void)
{
	return nbar_now_ns();
}

#endif
