/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - barriers as data: generators, and the check of a plan from elsewhere.
 *
 * Pure functions over one flat block (struct nbar_plan of nbar_abi.h). Called when a group is
 * opened; never on the path from token to completion. Errors are negative errno, as numbers,
 * because this code has no libc.
 */
#ifndef NBFW_PLAN_H
#define NBFW_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alg.h"
#include "bound.h"
#include "nbar_abi.h"

#define NBFW_EINVAL NBAR_EINVAL
#define NBFW_ENOSPC NBAR_ENOSPC
#define NBFW_ERANGE NBAR_ERANGE

/*
 * Returns the length in bytes of the plan of one rank. Writes the plan into block if it fits into
 * capacity bytes; otherwise writes nothing, so a first call with capacity 0 asks for the length.
 * -EINVAL: nbfw_alg_plans(alg) does not hold; -ERANGE: the rank is not below the size, or the size
 * is above the limit of the algorithm. block must be aligned for uint32_t.
 */
int32_t nbfw_plan_generate(struct nbfw_alg alg, uint32_t size, uint32_t rank, void *block,
			   size_t capacity);

/*
 * Checks a block of unknown origin. Returns 0 if all indices lie inside the block and the group,
 * ranges are contiguous and cover all sends and slots, no rank signals itself, no slot gets two
 * signals, and a rank that is not alone both signals and waits. Otherwise returns -EINVAL, or
 * -ENOSPC if the plan exceeds a limit of nbar_abi.h, and *why is a constant text. The plans of all
 * ranks together may still be no barrier: no NIC has all plans to check that.
 *
 * scratch has nbfw_plan_scratch(length) words, and may be NULL if that number is 0. For n sends and
 * slots in any order the time is O(n log n).
 */
int nbfw_plan_check(const void *block, size_t length, uint64_t *scratch, const char **why);

/* Words that nbfw_plan_check needs for a block of this length: one or more per send and slot. */
static inline uint32_t nbfw_plan_scratch(size_t length)
{
	const uint32_t most = NBAR_SENDS_MAX + NBAR_SLOTS_MAX;
	size_t words = length / sizeof(struct nbar_recv); /* an upper bound: a send is longer */

	return words < most ? (uint32_t)words : most;
}

/* Length in bytes that the header implies. 64 bits: a hostile header cannot overflow it. */
static inline uint64_t nbfw_plan_length(const struct nbar_plan *p)
{
	return sizeof(*p) + (uint64_t)p->nstep * sizeof(struct nbar_step) +
	       (uint64_t)p->nsend * sizeof(struct nbar_send) +
	       (uint64_t)p->nrecv * sizeof(struct nbar_recv);
}

#ifdef __bpf__
#define nbfw_plan_steps(p) (((const struct nbfw_fixed_plan *)(p))->step)
#define nbfw_plan_sends(p) (((const struct nbfw_fixed_plan *)(p))->send)
#define nbfw_plan_recvs(p) (((const struct nbfw_fixed_plan *)(p))->recv)
#else
static inline const struct nbar_step *nbfw_plan_steps(const struct nbar_plan *p)
{
	return (const struct nbar_step *)(p + 1);
}

static inline const struct nbar_send *nbfw_plan_sends(const struct nbar_plan *p)
{
	return (const struct nbar_send *)(nbfw_plan_steps(p) + p->nstep);
}

static inline const struct nbar_recv *nbfw_plan_recvs(const struct nbar_plan *p)
{
	return (const struct nbar_recv *)(nbfw_plan_sends(p) + p->nsend);
}
#endif

/* One element each; the caller has checked the index. */
static inline const struct nbar_step *nbfw_plan_step(const struct nbar_plan *p, uint32_t i)
{
	return &nbfw_plan_steps(p)[NBFW_INDEX(i, NBFW_FIXED_STEPS)];
}

static inline const struct nbar_send *nbfw_plan_send(const struct nbar_plan *p, uint32_t i)
{
	return &nbfw_plan_sends(p)[NBFW_INDEX(i, NBFW_FIXED_SENDS)];
}

static inline const struct nbar_recv *nbfw_plan_recv(const struct nbar_plan *p, uint32_t i)
{
	return &nbfw_plan_recvs(p)[NBFW_INDEX(i, NBFW_FIXED_SLOTS)];
}

#endif
