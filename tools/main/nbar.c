/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar.c - the command: finds the subcommand and runs it.
 */
#include "tool.h"

#include <stdio.h>
#include <string.h>

static const struct subcommand {
	const char *name, *full, *text;
	int (*run)(int argc, char **argv);
} subcommands[] = {
	{ "bench", "nbar bench", "latency of barriers, run by NICs and by hosts", tool_bench },
	{ "sweep", "nbar sweep", "experiments that compare NIC- and host-based barriers",
	  tool_sweep },
	{ "app", "nbar app", "synthetic applications, NIC- and host-based", tool_app },
	{ "mpi-bench", "nbar mpi-bench", "barriers of MPI programs, by nbar and by the MPI",
	  tool_mpi_bench },
	{ "report", "nbar report", "experiments, and a page with their tables and figures",
	  tool_report },
	{ "simulate", "nbar simulate", "barriers of up to a million members, simulated",
	  tool_simulate },
	{ "profile", "nbar profile", "what messages cost between every two hosts of a cluster",
	  tool_profile },
	{ "predict", "nbar predict", "what barriers cost, by a profile", tool_predict },
	{ "tune", "nbar tune", "the barrier that fits a cluster best, by its profile", tool_tune },
	{ "stat", "nbar stat", "counters and groups of NICs", tool_stat },
};
#define NSUBCOMMAND (sizeof(subcommands) / sizeof(subcommands[0]))

static void help(FILE *to)
{
	fputs("usage: nbar SUBCOMMAND [OPTION]...\n\n", to);
	for (size_t i = 0; i < NSUBCOMMAND; i++)
		fprintf(to, "  %-9s  %s\n", subcommands[i].name, subcommands[i].text);
	fputs("  help       this text, or that of a subcommand\n"
	      "\n`nbar SUBCOMMAND --help` lists its options; `nbar --version` prints the version.\n",
	      to);
}

static const struct subcommand *find(const char *name)
{
	for (size_t i = 0; i < NSUBCOMMAND; i++)
		if (!strcmp(subcommands[i].name, name))
			return &subcommands[i];
	return NULL;
}

static int run_help(int argc, char **argv)
{
	const struct subcommand *s = argc > 1 ? find(argv[1]) : NULL;
	char option[] = "--help";
	char *args[] = { argv[0], option, NULL };

	if (argc > 1 && !s)
		return tool_usage("no subcommand is called '%s'", argv[1]);
	if (!s) {
		help(stdout);
		return TOOL_OK;
	}
	tool_begin(s->full);
	return s->run(2, args);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return TOOL_USAGE;
	}
	const char *name = argv[1];

	if (!strcmp(name, "--version")) {
		puts("nbar " NBAR_VERSION_TEXT);
		return TOOL_OK;
	}
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return run_help(argc - 1, argv + 1);
	const struct subcommand *s = find(name);

	if (!s)
		return tool_usage("no subcommand is called '%s'", name);
	tool_begin(s->full);
	return s->run(argc - 1, argv + 1);
}
