/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * goal.c - writes plans as a schedule; see goal.h.
 */
#include "goal.h"

/* The sends of a step wait for all slots of earlier steps: a calc of length 0 joins these slots. */
static void write_rank(const struct sim_plans *plans, uint32_t m, FILE *to)
{
	const struct nbar_plan *p = sim_plan(plans, m);
	const struct nbar_step *step = nbfw_plan_steps(p);
	uint32_t label = 0, joined = 0;

	fprintf(to, "\nrank %u {\n", m);
	for (uint32_t k = 0; k < p->nstep; k++) {
		for (uint32_t i = step[k].first_send; i < step[k].first_send + step[k].nsend; i++) {
			const struct nbar_send *s = &nbfw_plan_sends(p)[i];

			fprintf(to, "l%u: send 1b to %u tag %u\n", ++label,
				sim_plans_rank(plans, m, s->dst), s->slot);
			if (joined)
				fprintf(to, "l%u requires l%u\n", label, joined);
		}
		uint32_t first = label + 1;

		for (uint32_t i = step[k].first_slot; i < step[k].first_slot + step[k].nslot; i++)
			fprintf(to, "l%u: recv 1b from %u tag %u\n", ++label,
				sim_plans_rank(plans, m, nbfw_plan_recvs(p)[i].src), i);
		uint32_t last = label, before = joined;

		joined = ++label;
		fprintf(to, "l%u: calc 0\n", joined);
		for (uint32_t i = first; i <= last; i++)
			fprintf(to, "l%u requires l%u\n", joined, i);
		if (before)
			fprintf(to, "l%u requires l%u\n", joined, before);
	}
	fputs("}\n", to);
}

void goal_write(const struct sim_plans *plans, FILE *to)
{
	fprintf(to, "num_ranks %u\n", plans->size);
	for (uint32_t m = 0; m < plans->size; m++)
		write_rank(plans, m, to);
}
