/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast_map.h - what a fast path keeps: its "maps". Only fast.c and fast_lend.c include it.
 */
#ifndef TESTBED_SIM_FAST_MAP_H
#define TESTBED_SIM_FAST_MAP_H

#include "bound.h"
#include "fast.h"
#include "value.h"

#define FAST_GROUPS 64u /* handles with a larger index stay with the NIC */
#define FAST_WAIT_MAX 1024u

/* A group that the NIC has lent at least once: struct kernel_group of lent.h. */
struct fast_group {
	bool lent, sleeper, ticking;
	bool named; /* posts of its cell are for this group */
	uint32_t handle, port, cell, posted, tick_epoch, tick_step;
	uint64_t cookie, first_ns;
	sim_time tick_at;
	struct wire_counts n;
	uint32_t source[NBFW_FIXED_SLOTS], sender[NBFW_FIXED_SLOTS];
	struct nbnic_addr to[NBFW_FIXED_SENDS];
	struct nbfw_token send[NBFW_FIXED_SENDS];
	uint8_t step[NBFW_FIXED_SENDS]; /* of the plan, by send */
	_Alignas(8) uint8_t plan[sizeof(struct nbfw_fixed_plan)];
	_Alignas(8) uint8_t state[sizeof(struct nbfw_state) + 3 * sizeof(uint32_t)];
	uint8_t before[sizeof(struct nbfw_state) + 3 * sizeof(uint32_t)]; /* as it was lent */
	struct nbfw_values *x;                                            /* NULL: no values */
};

/* What waits for the fast path: a frame, or a message of a host. */
struct fast_wait {
	uint32_t frame; /* SIM_NOBODY: a message */
	uint32_t host, posted;
	bool sleeps;
};

struct sim_fast {
	struct fast_group *group[FAST_GROUPS]; /* by index of the handle */
	enum nbnic_want wanted[FAST_GROUPS];
	bool bell;
	bool refuses; /* it has no memory for a group */
	uint32_t nwait;
	struct fast_wait wait[FAST_WAIT_MAX];
};

static inline bool fast_chance(struct sim_nic *n, uint32_t per_million)
{
	return sim_net_random(&n->world->net, SIM_MILLION) < per_million;
}

static inline struct nbfw_state *fast_state(struct fast_group *e)
{
	return (void *)e->state;
}

static inline const struct nbar_plan *fast_plan(const struct fast_group *e)
{
	return (const void *)e->plan;
}

/* Starts the timer of a group, or starts it again. */
void fast_timer_start(struct sim_nic *n, uint32_t index, uint64_t ns);

#endif
