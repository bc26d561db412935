/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_bench.c - `nbar mpi-bench`: detects the MPI that has launched it, and executes the program
 * that is built with this MPI. This file uses no MPI, so --help needs no MPI.
 */
#include "tool.h"

#include <stdio.h>

#include "launcher.h"
#include "options.h"
#include "subcommands.h"

int tool_mpi_bench(int argc, char **argv)
{
	const char *launcher = launcher_mpi();
	struct mpib_options opt;
	bool help = false;
	int r;

	/* Leave errors of usage to the program: if a rank ends before MPI_Init, the launcher kills
	 * the other ranks, before rank 0 can print the message. */
	tool_quiet(launcher);
	r = mpib_options_parse(argc, argv, &opt, &help);
	tool_quiet(false);
	if (help && launcher_is_first())
		mpib_usage(stdout);
	if (help || (r && !launcher))
		return r;
	if (!launcher && !opt.mpi)
		return tool_usage("no MPI has started nbar: run it by mpirun or mpiexec, as\n"
				  "  mpirun --mca coll_nbar_enable 1 -np 4 nbar mpi-bench\n"
				  "or name the MPI by --mpi");
	return launcher_become("nbar-mpi-bench", opt.mpi ? opt.mpi : launcher, argv);
}
