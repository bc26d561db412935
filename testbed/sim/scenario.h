/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario.h - the groups and the faults of simulated NICs in the run of one seed.
 *
 * Groups and faults are drawn from the seed before the run begins, so a seed repeats its run
 * exactly.
 */
#ifndef TESTBED_SIM_SCENARIO_H
#define TESTBED_SIM_SCENARIO_H

#include "plans.h"
#include "unit/unit.h"
#include "world.h"

#define SCENARIO_NICS_MAX 10u
#define SCENARIO_GROUPS_MAX 3u
#define SCENARIO_SIZE_MAX 14u
#define SCENARIO_BLOWS_MAX 8u

/* X(NAME, text): the faults; each has a counter of its effects. */
#define FAULTS(X)                                                                \
	X(LOSS, "frames lost")                                                   \
	X(REPEAT, "frames that came twice")                                      \
	X(REORDER, "frames that came later than those behind them")              \
	X(OVERFLOW, "frames that a full receive queue dropped")                  \
	X(REFUSE, "frames that the wire had no room for")                        \
	X(SLOW, "hosts that came later than the retry budget")                   \
	X(NOISE, "microseconds that NICs stood still")                           \
	X(CUT, "frames that a partition stopped")                                \
	X(LONG_CUT, "members that failed in a partition longer than the budget") \
	X(JUMP, "jumps of a clock")                                              \
	X(RESTART, "NICs that were restarted")                                   \
	X(DEAD, "NICs that fell silent")                                         \
	X(KILL, "hosts that were killed")                                        \
	X(LEAVE, "hosts that closed before the end")                             \
	X(KEEP, "states of groups that a fast path lost")                        \
	X(STRANGER, "frames of strangers that NICs saw through")                 \
	X(REQUEST, "requests that NICs refused")                                 \
	X(DOORBELL, "doorbells that NICs refused")                               \
	X(FAILED, "members that failed, as they had to")

enum fault {
#define FAULT_ID(name, text) FAULT_##name,
	FAULTS(FAULT_ID)
#undef FAULT_ID
		FAULT_END
};

/* A fault that happens once, at a given time. */
struct blow {
	enum fault fault;
	sim_time at, end;     /* end: of a partition */
	uint32_t nic;         /* JUMP, RESTART, DEAD, KEEP, STRANGER, REQUEST, DOORBELL */
	uint32_t group, rank; /* KILL, LEAVE */
	uint64_t amount;      /* JUMP: ns */
};

struct scenario {
	uint64_t seed;
	struct rng rng; /* for random choices during the run */
	struct sim_net_options net;
	sim_time turn_cost, notice;
	uint32_t queue_limit, refuse;
	uint64_t pull_ns, budget_ns;
	uint32_t lends, sleeps, unsent, unlent; /* fast paths: world.h */
	sim_time waits, full_for;
	uint32_t slow; /* percent of arrivals that are later than the retry budget */
	sim_time arrive;
	uint32_t ngroup;
	struct scenario_group {
		struct nbfw_alg alg;
		uint32_t size;
		uint32_t nic[SCENARIO_SIZE_MAX]; /* by rank */
		uint32_t goal;                   /* barriers */
		uint32_t ahead;                  /* most barriers that a host posts at once */
		uint32_t value_max;              /* bytes of a value; 0: no values */
	} group[SCENARIO_GROUPS_MAX];
	uint32_t nblow;
	struct blow blow[SCENARIO_BLOWS_MAX];
	bool quiet; /* no fault at all: the NICs may send no extra frame */
};

void scenario_draw(struct scenario *s, uint64_t seed);

/* True if a fault may end the group. */
bool scenario_is_fatal(const struct scenario *s, uint32_t group);

/* True if a group may report this rank as failed. */
bool scenario_may_blame(const struct scenario *s, uint32_t group, uint32_t rank);

/* Prints the scenario as text. */
void scenario_print(const struct scenario *s, FILE *to);

const char *fault_text(enum fault fault);

#endif
