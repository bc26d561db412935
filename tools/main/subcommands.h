/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subcommands.h - the subcommands of `nbar`: to add one, add a row.
 */
#ifndef NBAR_TOOLS_SUBCOMMANDS_H
#define NBAR_TOOLS_SUBCOMMANDS_H

/* clang-format off */
#define SUBCOMMANDS(ROW)                                                                     \
	ROW("bench", tool_bench, "latency of barriers, run by NICs and by hosts")            \
	ROW("mpi-bench", tool_mpi_bench, "barriers of MPI programs, by nbar and by the MPI") \
	ROW("stat", tool_stat, "counters and groups of NICs")                                \
	ROW("trace", tool_trace, "a timeline of barriers, as NICs have noted them")          \
	ROW("doctor", tool_doctor, "what this machine lacks for fast barriers")
/* clang-format on */

#define ROW(name, run, help) int run(int argc, char **argv);
SUBCOMMANDS(ROW)
#undef ROW

#endif
