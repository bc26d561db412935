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
#include "subcommands.h"

enum tool_exit { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

#define ROW(name, run, help) int run(int argc, char **argv);
SUBCOMMANDS(ROW)
#undef ROW

/* The name in front of every message: "nbar bench". */
void tool_begin(const char *name);

/* From now on, records failed allocations of Jansson, which silently leaves out values then. */
void tool_json_begin(void);

/* rc, the exit code of a subcommand; or, after a message, TOOL_FAILED if JSON had no memory. */
int tool_json_end(int rc);

/* true: print no more messages; for all ranks of an MPI program but one. */
void tool_quiet(bool on);

/* A line on stderr. */
__attribute__((format(printf, 1, 2))) void tool_error(const char *format, ...);

/* The same for an invalid command line: adds a hint to the help; returns TOOL_USAGE. */
__attribute__((format(printf, 1, 2))) int tool_usage(const char *format, ...);

/* Zeroed memory. Without memory, it ends the program with a message: to be called before there are
 * child processes or files to remove. */
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
