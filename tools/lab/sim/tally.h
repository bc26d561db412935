/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally.h - records the times when members enter and leave barriers: the oracle of a simulation,
 * and its statistics.
 */
#ifndef NBAR_TOOLS_SIM_TALLY_H
#define NBAR_TOOLS_SIM_TALLY_H

#include "sim.h"

struct sim_tally {
	uint32_t size, barriers;
	struct sim_barrier {
		uint32_t entered, left; /* number of members that entered, left */
		sim_time first_in, last_in, first_out, last_out;
	} * barrier;
	double *time;         /* for sim_tally_report: room for one number per barrier */
	struct sim_path path; /* of the last member that left the last barrier */
	sim_time end;
	uint64_t nfailed, nculprit;
	uint32_t failed_rank; /* the rank that most members name (Boyer, Moore) */
};

/* Begins a tally. 0 or -NBAR_ENOMEM. */
int sim_tally_begin(struct sim_tally *t, uint32_t size, uint32_t barriers);
void sim_tally_end(struct sim_tally *t);

void sim_tally_enter(struct sim_tally *t, uint32_t barrier, sim_time at);

/* Notes that a member leaves a barrier. False: not all members have entered this barrier yet. */
bool sim_tally_leave(struct sim_tally *t, uint32_t barrier, sim_time at,
		     const struct sim_path *path);

void sim_tally_fail(struct sim_tally *t, uint32_t failed_rank);

/* Adds times, failures and path to the report. */
void sim_tally_report(const struct sim_tally *t, struct sim_report *out);

/* Adds an event to the digest of a run. */
static inline uint64_t sim_digest(uint64_t digest, const struct sim_event *ev)
{
	uint64_t mix = ev->time ^ (uint64_t)ev->to << 32 ^ ev->from;

	mix ^= (uint64_t)ev->type << 56 ^ (uint64_t)ev->slot << 40 ^ ev->epoch;
	return (digest ^ mix) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

#endif
