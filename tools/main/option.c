/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.c - see option.h.
 */
#include "option.h"

#include <stdlib.h>
#include <string.h>

#include "tool.h"

int option_each(int argc, char **argv, int first, const char *brief, const struct option *all,
		int (*read)(void *arg, int c, const char *value), void *arg, bool *help)
{
	int c, r = 0;

	*help = false;
	optind = first;
	while (!r && (c = getopt_long(argc, argv, brief, all, NULL)) != -1) {
		if (c == 'h') {
			*help = true;
			return 0;
		}
		if (c == ':')
			return tool_usage("%s needs a value", argv[optind - 1]);
		if (c == '?')
			return tool_usage("unknown option %s", argv[optind - 1]);
		r = read(arg, c, optarg);
	}
	return r;
}

int option_all(int argc, char **argv, int first, const char *brief, const struct option *all,
	       int (*read)(void *arg, int c, const char *value), void *arg, bool *help)
{
	int r = option_each(argc, argv, first, brief, all, read, arg, help);

	if (!r && !*help && optind < argc)
		return tool_usage("'%s' is not an option; all arguments must be options",
				  argv[optind]);
	return r;
}

bool option_ends(int r, bool help, void (*usage)(FILE *to))
{
	if (help)
		usage(stdout);
	return r || help;
}

int option_run_dir(const char *value)
{
	if (setenv("NBAR_RUN_DIR", value, 1) == 0)
		return 0;
	tool_error("no memory for --run-dir: free some, and try again");
	return TOOL_FAILED;
}

int option_u32(const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t value;

	if (!tool_number(text, min, max, &value))
		return tool_usage("%s: '%s' is not a number from %u to %u", option, text, min, max);
	*out = (uint32_t)value;
	return 0;
}

int option_word(const char *option, const char *text, const char *const *word, uint32_t n,
		uint32_t *out)
{
	char all[256] = "";

	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(text, word[i])) {
			*out = i;
			return 0;
		}
		tool_join(all, sizeof(all), ", ", "%s", word[i]);
	}
	return tool_usage("%s: '%s' is none of %s", option, text, all);
}

int option_common(int c, const char *value, uint64_t *seed, struct experiment_options *files)
{
	switch (c) {
	case OPTION_SEED:
		return tool_number(value, 0, UINT64_MAX, seed)
			       ? 0
			       : tool_usage("--seed: '%s' is not a number", value);
	case OPTION_JSON:
		files->json = value;
		return 0;
	case OPTION_CSV:
		files->csv = value;
		return 0;
	case OPTION_RAW:
		files->raw = value;
		return 0;
	}
	return tool_usage("it cannot be read");
}

int option_files_check(const struct experiment_options *files)
{
	const char *const file[] = { files->json, files->csv, files->raw };
	uint32_t std = 0;

	for (uint32_t i = 0; i < 3; i++)
		std += file[i] && !strcmp(file[i], "-");
	if (std > 1)
		return tool_usage("--json -, --csv - and --raw - cannot go to stdout together");
	return 0;
}
