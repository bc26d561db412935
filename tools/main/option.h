/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.h - options that several subcommands share. Each function that returns an int returns 0,
 * or an exit code after a message.
 */
#ifndef NBAR_TOOLS_OPTION_H
#define NBAR_TOOLS_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "experiment.h"

/* Long options that subcommands share. A subcommand's own options begin at OPTION_SUBCOMMAND. */
enum { OPTION_SEED = 256, OPTION_JSON, OPTION_CSV, OPTION_RAW, OPTION_SUBCOMMAND };

/* clang-format off */
#define OPTION_OF_ALL                                     \
	{ "iterations", required_argument, NULL, 'i' },   \
	{ "warmup", required_argument, NULL, 'x' },       \
	{ "help", no_argument, NULL, 'h' },               \
	{ "seed", required_argument, NULL, OPTION_SEED }, \
	{ "json", required_argument, NULL, OPTION_JSON }, \
	{ "csv", required_argument, NULL, OPTION_CSV },   \
	{ "raw", required_argument, NULL, OPTION_RAW }
/* clang-format on */

/*
 * A table of long options: one row for each option, with its name, and an expression that reads the
 * value of the option. The expression is 0 or an exit code:
 *
 *	#define OPTIONS(VALUE, FLAG)                                    \
 *		VALUE(HOSTS, "hosts", option_text(&o->hosts, value))    \
 *		FLAG(CHECK, "check", option_flag(&o->check))
 *	enum { OPT_BEFORE = OPTION_SUBCOMMAND - 1, OPTIONS(OPTION_ID, OPTION_ID) };
 *	static const struct option long_options[] = { OPTIONS(OPTION_VALUE, OPTION_FLAG){ 0 } };
 *	switch (c) { OPTIONS(OPTION_CASE, OPTION_CASE) }
 */
#define OPTION_ID(id, name, read) OPT_##id,
#define OPTION_VALUE(id, name, read) { name, required_argument, NULL, OPT_##id },
#define OPTION_FLAG(id, name, read) { name, no_argument, NULL, OPT_##id },
#define OPTION_CASE(id, name, read) \
	case OPT_##id:              \
		return read;

static inline int option_text(const char **out, const char *value)
{
	*out = value;
	return 0;
}

static inline int option_flag(bool *out)
{
	*out = true;
	return 0;
}

/* Calls read(arg, c, value) for each option after argv[first - 1]; -h sets *help and stops. brief
 * begins with a colon: then getopt itself says nothing.
 * Arguments that are not options begin at argv[optind]. */
int option_each(int argc, char **argv, int first, const char *brief, const struct option *all,
		int (*read)(void *arg, int c, const char *value), void *arg, bool *help);

/* As option_each, for a subcommand whose arguments are all options. */
int option_all(int argc, char **argv, int first, const char *brief, const struct option *all,
	       int (*read)(void *arg, int c, const char *value), void *arg, bool *help);

/* After the options were read: prints the help if the user asked for it. True: the subcommand ends
 * now, and returns r. */
bool option_ends(int r, bool help, void (*usage)(FILE *to));

/* --run-dir DIR: all later look-ups of NICs use this run directory of the daemon. */
int option_run_dir(const char *value);

int option_u32(const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *out);

/* Finds the text among n words; *out is its position. */
int option_word(const char *option, const char *text, const char *const *word, uint32_t n,
		uint32_t *out);

/* Reads the options from OPTION_SEED to OPTION_RAW. */
int option_common(int c, const char *value, uint64_t *seed, struct experiment_options *files);

/* Checks that at most one file is stdout. */
int option_files_check(const struct experiment_options *files);

#endif
