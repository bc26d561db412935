/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher.h - which MPI has started this process, and the program that is built with this MPI. For
 * subcommands of `nbar` that become MPI programs; uses no MPI itself.
 */
#ifndef NBAR_TOOLS_LAUNCHER_H
#define NBAR_TOOLS_LAUNCHER_H

#include <stdbool.h>

/* The name of the MPI whose launcher has started this process; NULL: none has. */
const char *launcher_mpi(void);

/* True for rank 0, and for a process that no launcher has started. */
bool launcher_is_first(void);

/* Executes nbar-mpi-bench of this MPI: the one beside this program, or the installed one; argv[0]
 * tells it what to do. Returns only if there is none: TOOL_FAILED, after a message. */
int launcher_become(const char *mpi, char **argv);

#endif
