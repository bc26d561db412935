/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - one simulation: its setup, its report, and the function that runs it.
 *
 * Each member is an engine (libnbfw.a); the network times its messages. It lacks the rest of a NIC:
 * no poll passes, no pages, and no limit except that of the receive queue. Equal setups give equal
 * events.
 */
#ifndef NBAR_TOOLS_SIM_SIM_H
#define NBAR_TOOLS_SIM_SIM_H

#include "net.h"
#include "plans.h"
#include "queue.h"

#define SIM_SPECIAL_MAX 64u

/* A member that differs from the others. */
struct sim_special {
	uint32_t member;
	sim_time late; /* extra time before its host arrives at the first barrier */
	bool dead;     /* its NIC never sends */
};

struct sim_setup {
	struct sim_net_options net;
	const struct sim_plans *plans;
	uint32_t barriers; /* one after the other */
	sim_time arrive;   /* greatest random delay of a host before each barrier */
	sim_time post;     /* from a host's call until its NIC knows */
	sim_time notice;   /* from a NIC's completion until its host knows */
	uint32_t queue;    /* messages that may wait at a member; 0: no limit */
	uint64_t pull_ns, budget_ns;
	sim_time limit; /* simulated time after which a run ends as hung */
	struct sim_special special[SIM_SPECIAL_MAX];
	uint32_t nspecial;
	bool check; /* the engine's invariants after each event */
};

enum sim_end {
	SIM_END_DONE,    /* all members completed all barriers, or failed */
	SIM_END_EARLY,   /* a member completed a barrier before another member had started it */
	SIM_END_HUNG,    /* the time limit was reached, or no events were left */
	SIM_END_INVALID, /* an invariant of the engine does not hold */
	SIM_END_MEMORY
};

struct sim_report {
	enum sim_end end;
	uint32_t member, epoch;   /* EARLY, INVALID: of the error */
	uint64_t completed;       /* barriers, summed over the members */
	uint64_t failed;          /* members that failed */
	uint32_t failed_rank;     /* the failed rank that most of these members name */
	double mean_ns;           /* time of all barriers / number of barriers */
	double worst_ns;          /* longest time from the last arrival to the last completion */
	double median_ns, p99_ns; /* of the times from last arrival to last completion */
	double skew_ns;           /* mean time from the first completion to the last */
	uint64_t tokens, pulls, laters, aborts; /* sent */
	uint64_t lost, repeated, reordered, dropped, link_waits;
	uint64_t events, moves; /* of the queue */
	uint64_t digest;        /* of all events in their order */
	size_t bytes;           /* of members, plans, links and queue */
	struct sim_path path;   /* the critical path of the last barrier */
	double path_ns;
};

void sim_engines_run(const struct sim_setup *setup, struct sim_report *out);

#endif
