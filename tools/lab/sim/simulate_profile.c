/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate_profile.c - `nbar-lab simulate --profile`: measured costs, and the barrier composed from
 * them.
 */
#include <stdlib.h>

#include "compose.h"
#include "profile.h"
#include "simulate.h"
#include "tool.h"

int simulate_profile_read(const char *path, struct profile **out)
{
	char why[256];

	*out = NULL;
	if (!path || !profile_read(path, out, why, sizeof(why)))
		return 0;
	tool_error("--profile: %s", why);
	return TOOL_FAILED;
}

int simulate_costs_begin(struct simulate_costs *c, struct profile *p, uint32_t members)
{
	size_t n = (size_t)members * members;

	*c = (struct simulate_costs){ .profile = p };
	if (!p)
		return 0;
	if (members > p->hosts)
		return tool_usage("--profile has %u hosts: a group of %u does not fit", p->hosts,
				  members);
	c->o = calloc(n, sizeof(double));
	c->l = calloc(n, sizeof(double));
	if (!c->o || !c->l) {
		simulate_costs_end(c);
		tool_error("no memory for the costs of %u hosts: free some, and try again",
			   members);
		return TOOL_FAILED;
	}
	for (uint32_t i = 0; i < members; i++) {
		for (uint32_t j = 0; j < members; j++) {
			if (i == j)
				continue;
			c->o[(size_t)i * members + j] = profile_o(p, i, j);
			c->l[(size_t)i * members + j] = profile_l(p, i, j);
		}
	}
	c->call = 0;
	for (uint32_t i = 0; i < members; i++) {
		sim_time self = (sim_time)(profile_self(p, i) * (double)SIM_SECOND);

		c->call = self > c->call ? self : c->call;
	}
	return 0;
}

void simulate_costs_end(struct simulate_costs *c)
{
	free(c->o);
	free(c->l);
	c->o = c->l = NULL;
}

/* Makes the plan of each rank, each in its own block. */
static int profile_make_plans(const struct schedule *s, struct nbar_plan **plan)
{
	for (uint32_t rank = 0; rank < s->size; rank++) {
		int64_t length = schedule_plan(s, rank, NULL, 0);

		if (length < 0)
			return (int)length;
		plan[rank] = malloc((size_t)length);
		if (!plan[rank])
			return -NBAR_ENOMEM;
		length = schedule_plan(s, rank, plan[rank], (size_t)length);
		if (length < 0)
			return (int)length;
	}
	return 0;
}

int simulate_compose(const struct profile *p, uint32_t members, struct sim_plans *out)
{
	struct nbar_plan **plan = calloc(members, sizeof(struct nbar_plan *));
	uint32_t *host = calloc(members, sizeof(*host));
	struct compose composed;
	const char *why = "no memory";
	int r = -NBAR_ENOMEM;

	for (uint32_t i = 0; host && i < members; i++)
		host[i] = i;
	if (plan && host)
		r = compose(p, host, members, &composed, &why);
	if (!r && !composed.scheme) {
		r = sim_plans_generate(out, composed.alg, members);
		compose_free(&composed);
	} else if (!r) {
		r = profile_make_plans(composed.schedule, plan);
		if (!r)
			r = sim_plans_take(out, (const struct nbar_plan *const *)plan, members);
		compose_free(&composed);
	}
	for (uint32_t i = 0; plan && i < members; i++)
		free(plan[i]);
	free(plan);
	free(host);
	if (r)
		tool_error("no barrier of %u can be composed: %s", members, why);
	return r ? TOOL_FAILED : 0;
}
