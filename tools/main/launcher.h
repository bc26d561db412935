/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher.h - finds which MPI has started this process, and the program that is built with this
 * MPI. For subcommands that become MPI programs. This file uses no MPI.
 */
#ifndef NBAR_TOOLS_LAUNCHER_H
#define NBAR_TOOLS_LAUNCHER_H

#include <stdbool.h>

/* The name of the MPI whose launcher has started this process; NULL: no launcher has. */
const char *launcher_mpi(void);

/* True for rank 0, and for a process that no launcher has started. */
bool launcher_is_first(void);

/* Executes the program "NAME-MPI": the one beside this program, or the installed one. Returns only
 * on failure: TOOL_FAILED, after a message. */
int launcher_become(const char *name, const char *mpi, char **argv);

#endif
