/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep.c - `nbar sweep`: finds the experiment and runs it.
 */
#include "sweep.h"

#include <stdio.h>
#include <string.h>

#include "tool.h"

static const struct sweep {
	const char *name, *full, *text;
	int (*run)(int argc, char **argv);
} sweeps[] = {
	{ "granularity", "nbar sweep granularity", "time of compute + barrier, over the compute",
	  sweep_granularity },
	{ "efficiency", "nbar sweep efficiency", "least compute for an efficiency",
	  sweep_efficiency },
	{ "arrival", "nbar sweep arrival", "hosts that arrive at different times", sweep_arrival },
	{ "combined", "nbar sweep combined", "nodes x threads: a team in front of each group",
	  sweep_combined },
	{ "threads", "nbar sweep threads", "barriers of threads, ours and others'", sweep_threads },
};
#define NSWEEP (sizeof(sweeps) / sizeof(sweeps[0]))

static void help(FILE *to)
{
	fputs("usage: nbar sweep EXPERIMENT [OPTION]...\n\n", to);
	for (size_t i = 0; i < NSWEEP; i++)
		fprintf(to, "  %-12s %s\n", sweeps[i].name, sweeps[i].text);
	fputs("\n`nbar sweep EXPERIMENT --help` lists its options.\n", to);
}

int tool_sweep(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help(stdout);
		return TOOL_OK;
	}
	for (size_t i = 0; i < NSWEEP; i++) {
		if (strcmp(sweeps[i].name, argv[1]))
			continue;
		tool_begin(sweeps[i].full);
		return sweeps[i].run(argc, argv);
	}
	return tool_usage("no sweep is called '%s'", argv[1]);
}
