/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * play.h - runs one scenario on whole NICs, and checks these rules; none of them asserts a time:
 *
 *   no member completes a barrier that another member has not started;
 *   each member's result is the fold of all contributions to that barrier, the same bit by bit;
 *   in a group without a fatal fault, all members complete all barriers;
 *   after a fatal fault, every member completes or fails, and names a rank that had the fault;
 *   a status is final, the engine's invariants hold, a pass sends no more frames than its budget;
 *   without faults the NICs send no extra frame; at the end they hold no group, port or memory.
 */
#ifndef TESTBED_SIM_PLAY_H
#define TESTBED_SIM_PLAY_H

#include "scenario.h"

struct tallies {
	uint64_t fault[FAULT_END];
	uint64_t completed; /* completed barriers, summed over the members */
	uint64_t results;   /* of them, those with values */
	uint64_t fast;      /* of them, those that fast paths completed */
	uint64_t events, quiet;
};

/* True if all rules hold; if not, `why` gets the reason. Adds to the tallies. */
bool play(uint64_t seed, struct tallies *t, char *why, size_t room);

#endif
