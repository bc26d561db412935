/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subcommands.h - the table of subcommands: to add a subcommand, add a row. tool.h declares the
 * functions of the table; nbar.c calls them.
 */
#ifndef NBAR_TOOLS_SUBCOMMANDS_H
#define NBAR_TOOLS_SUBCOMMANDS_H

/*
 * ROW(name, run, help). A name has one or two words. int run(int argc, char **argv) returns an exit
 * code; argv[0] is the first word of the name.
 */
/* clang-format off */
#define SUBCOMMANDS(ROW)                                                                           \
	ROW("bench", tool_bench, "latency of barriers, run by NICs and by hosts")                  \
	ROW("bench one-to-many", tool_one_to_many, "several messages at once; the best algorithm") \
	ROW("sweep granularity", sweep_granularity, "time of compute + barrier, over the compute") \
	ROW("sweep efficiency", sweep_efficiency, "least compute for an efficiency")               \
	ROW("sweep arrival", sweep_arrival, "hosts that arrive at different times")                \
	ROW("sweep combined", sweep_combined, "nodes x threads: a team in front of each group")    \
	ROW("sweep threads", sweep_threads, "barriers of threads, ours and others'")               \
	ROW("app", tool_app, "synthetic applications, NIC- and host-based")                        \
	ROW("mpi-bench", tool_mpi_bench, "barriers of MPI programs, by nbar and by the MPI")       \
	ROW("report", tool_report, "experiments, and a page with their tables and figures")        \
	ROW("simulate", tool_simulate, "barriers of up to a million members, simulated")           \
	ROW("profile", tool_profile, "cost of messages between every two hosts of a cluster")      \
	ROW("predict", tool_predict, "cost of barriers, by a profile")                             \
	ROW("tune", tool_tune, "the barrier that fits a cluster best, by its profile")             \
	ROW("stat", tool_stat, "counters and groups of NICs")                                       \
	ROW("trace", tool_trace, "a timeline of barriers, as NICs have noted them")                 \
	ROW("doctor", tool_doctor, "what this machine lacks for fast barriers")
/* clang-format on */

#endif
