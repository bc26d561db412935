/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool.h - what all subcommands of nbar share: exit codes, messages, numbers, lists.
 *
 * A subcommand returns its exit code. Nothing here exits.
 */
#ifndef NBAR_TOOLS_TOOL_H
#define NBAR_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum tool_exit { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

int tool_bench(int argc, char **argv);
int tool_one_to_many(int argc, char **argv); /* of bench: argv[1] is its name */
int tool_sweep(int argc, char **argv);
int tool_app(int argc, char **argv);
int tool_mpi_bench(int argc, char **argv);
int tool_report(int argc, char **argv);
int tool_stat(int argc, char **argv);
int tool_simulate(int argc, char **argv);
int tool_profile(int argc, char **argv);
int tool_predict(int argc, char **argv);
int tool_tune(int argc, char **argv);

/* The name in front of every message: "nbar bench". */
void tool_begin(const char *name);

/* true: nothing is said from here on, as by all ranks of an MPI program but one. */
void tool_quiet(bool on);

/* A line on stderr. */
__attribute__((format(printf, 1, 2))) void tool_error(const char *format, ...);

/* The same for a command line that cannot be: adds where to look; returns TOOL_USAGE. */
__attribute__((format(printf, 1, 2))) int tool_usage(const char *format, ...);

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
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
