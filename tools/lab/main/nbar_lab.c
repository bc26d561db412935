/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_lab.c - `nbar-lab`.
 */
#include "lab.h"
#include "subcommand.h"

int main(int argc, char **argv)
{
	static const struct subcommand table[] = {
#define ROW(name, run, help) { name, help, run },
		SUBCOMMANDS(ROW)
#undef ROW
	};

	return subcommand_main(
		&(struct tool_program){ "nbar-lab", table, sizeof(table) / sizeof(table[0]) }, argc,
		argv);
}
