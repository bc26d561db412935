/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lab.h - the subcommands of `nbar-lab`: to add one, add a row.
 */
#ifndef NBAR_LAB_H
#define NBAR_LAB_H

/* clang-format off */
#define SUBCOMMANDS(ROW)                                                                           \
	ROW("one-to-many", tool_one_to_many, "several messages at once; the best algorithm")       \
	ROW("sweep granularity", sweep_granularity, "time of compute + barrier, over the compute") \
	ROW("sweep efficiency", sweep_efficiency, "least compute for an efficiency")               \
	ROW("sweep arrival", sweep_arrival, "hosts that arrive at different times")                \
	ROW("sweep combined", sweep_combined, "nodes x threads: a team in front of each group")    \
	ROW("threads", sweep_threads, "barriers of threads, ours and others'")                     \
	ROW("app", tool_app, "synthetic applications, NIC- and host-based")                        \
	ROW("report", tool_report, "experiments, and a page with their tables and figures")        \
	ROW("simulate", tool_simulate, "barriers of up to a million members, simulated")           \
	ROW("profile", tool_profile, "cost of messages between every two hosts of a cluster")      \
	ROW("predict", tool_predict, "cost of barriers, by a profile")                             \
	ROW("tune", tool_tune, "the barrier that fits a cluster best, by its profile")
/* clang-format on */

#define ROW(name, run, help) int run(int argc, char **argv);
SUBCOMMANDS(ROW)
#undef ROW

#endif
