/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plans.h - the plans of all members of a simulated group, in little memory.
 *
 * In most algorithms, the plan of rank r is the plan of rank 0 with all ranks renamed, by an
 * addition mod size or by an exclusive or. Members with equal renamed plans share one plan, and
 * their engines work with the new names: the name of a member's own rank is 0. A member shares a
 * plan only after its own plan was generated and compared word by word.
 */
#ifndef NBAR_TOOLS_SIM_PLANS_H
#define NBAR_TOOLS_SIM_PLANS_H

#include <stddef.h>
#include <stdint.h>

#include "alg.h"
#include "plan.h"

enum sim_rename { SIM_RENAME_ADD, SIM_RENAME_XOR, SIM_RENAME_NONE };

struct sim_plans {
	uint32_t size;
	enum sim_rename rename;
	uint32_t nshape;   /* plans in block */
	uint32_t *at;      /* of each member: where its plan begins in block, in words */
	uint32_t *block;   /* the plans */
	size_t nword, cap; /* of block, in words */
	uint64_t tokens;   /* of all members in one barrier */
	uint32_t steps;    /* of the longest plan */
	size_t state;      /* bytes of the largest state of an engine */
};

/* Generates the plans. 0, -NBFW_EINVAL or -NBFW_ERANGE as nbfw_plan_generate, or -NBAR_ENOMEM. */
int sim_plans_generate(struct sim_plans *p, struct nbfw_alg alg, uint32_t size);

/* Takes the plans of the caller, which have passed nbfw_plan_check. Returns as
 * sim_plans_generate. */
int sim_plans_take(struct sim_plans *p, const struct nbar_plan *const *plan, uint32_t size);

void sim_plans_free(struct sim_plans *p);

static inline const struct nbar_plan *sim_plan(const struct sim_plans *p, uint32_t member)
{
	return (const struct nbar_plan *)(const void *)(p->block + p->at[member]);
}

/* Converts a rank into its new name at the engine of `member`, and back. Other values stay
 * unchanged.
 */
static inline uint32_t sim_plans_name(const struct sim_plans *p, uint32_t member, uint32_t rank)
{
	if (rank == NBAR_RANK_NONE || p->rename == SIM_RENAME_NONE)
		return rank;
	if (p->rename == SIM_RENAME_XOR)
		return rank ^ member;
	return rank >= member ? rank - member : rank + p->size - member;
}

static inline uint32_t sim_plans_rank(const struct sim_plans *p, uint32_t member, uint32_t name)
{
	if (name == NBAR_RANK_NONE || p->rename == SIM_RENAME_NONE)
		return name;
	if (p->rename == SIM_RENAME_XOR)
		return name ^ member;
	return name < p->size - member ? name + member : name - (p->size - member);
}

#endif
