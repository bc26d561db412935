/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subcommand.h - a program with subcommands: `nbar`, `nbar-lab`. Finds the subcommand in the table
 * of the program and runs it.
 */
#ifndef NBAR_TOOLS_SUBCOMMAND_H
#define NBAR_TOOLS_SUBCOMMAND_H

#include <stddef.h>

struct subcommand {
	const char *name, *help;           /* the name has one or two words */
	int (*run)(int argc, char **argv); /* an exit code; argv[0] is the first word of the name */
};

struct tool_program {
	const char *name;
	const struct subcommand *table;
	size_t n;
};

/* The body of main(). Returns the exit code. */
int subcommand_main(const struct tool_program *p, int argc, char **argv);

#endif
