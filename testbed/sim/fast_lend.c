/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast_lend.c - a NIC lends groups to its fast path, and takes them back. The comments name the
 * functions of groups.c of wire "kernel".
 */
#include <stdlib.h>
#include <string.h>

#include "fast_map.h"

/* values_fit */
static bool values_fit(const struct nbnic_group *g)
{
	const struct nbar_plan *p = g->plan;

	if (p->nstep + 1u + p->nrecv > NBFW_FIXED_PLACES)
		return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		if (nbfw_plan_step(p, i)->nslot > NBFW_FIXED_STEP_SLOTS)
			return false;
	for (uint32_t epoch = 0; epoch < 2; epoch++)
		if (g->values->length[epoch] > NBFW_FIXED_PLACE ||
		    (g->values->length[epoch] &&
		     NBAR_IS_PAIR(nbfw_values_place(g->values, epoch, 0)->type)))
			return false;
	return true;
}

static size_t values_size(const struct nbfw_values *x)
{
	return sizeof(*x) + x->first + 2 * (size_t)x->half;
}

/* group_describe. False: the programs cannot send its frames. */
static bool describe(struct sim_nic *n, const struct nbnic_group *g, uint32_t index)
{
	const struct nbar_plan *p = g->plan;
	struct sim_fast *f = n->fast;
	struct fast_group *e = f->group[index];
	uint32_t step = 0;

	for (uint32_t i = 0; i < p->nsend; i++)
		if (sim_nic_of(&g->peer[g->send_peer[i]].addr) == n->index)
			return false;
	if (!e)
		e = f->group[index] = calloc(1, sizeof(*e));
	struct nbfw_values *x = g->values ? malloc(values_size(g->values)) : NULL;

	if (!e || (g->values && !x)) {
		free(x);
		return false;
	}
	for (uint32_t i = 0; i < FAST_GROUPS; i++)
		if (f->group[i] && f->group[i] != e && f->group[i]->port == g->port &&
		    f->group[i]->cell == g->cell)
			f->group[i]->named = false;
	free(e->x);
	*e = (struct fast_group){ .named = true,
				  .handle = g->handle,
				  .port = g->port,
				  .cell = g->cell,
				  .cookie = g->cookie,
				  .x = x };
	memcpy(e->plan, p, (size_t)nbfw_plan_length(p));
	for (uint32_t i = 0; i < p->nrecv; i++) {
		e->source[i] = sim_nic_of(&g->peer[g->recv_peer[i]].addr);
		e->sender[i] = g->peer[g->recv_peer[i]].handle;
	}
	for (uint32_t i = 0; i < p->nsend; i++) {
		const struct nbnic_peer *to = &g->peer[g->send_peer[i]];

		e->to[i] = to->addr;
		e->send[i] = (struct nbfw_token){ .type = NBFW_TOKEN,
						  .handle = to->handle,
						  .cookie = to->cookie,
						  .src = g->rank,
						  .slot = nbfw_plan_send(p, i)->slot,
						  .arg = NBAR_RANK_NONE,
						  .sender = g->handle };
		while (i >= nbfw_plan_step(p, step)->first_send + nbfw_plan_step(p, step)->nsend)
			step++;
		e->step[i] = (uint8_t)step;
	}
	return true;
}

/* kernel_lend, and kernel_hand with `lend` */
bool sim_fast_lend(struct wire_base *base, const struct nbnic_group *g, const struct wire_lend *how)
{
	struct sim_nic *n = (struct sim_nic *)base;
	const struct nbar_plan *p = g->plan;
	uint32_t index = g->handle & 0xffff;
	struct fast_group *e;

	if (index >= FAST_GROUPS || p->nstep > NBFW_FIXED_STEPS || p->nsend > NBFW_FIXED_SENDS ||
	    p->nrecv > NBFW_FIXED_SLOTS || p->nrecv == 0 || (g->values && !values_fit(g)) ||
	    n->fast->refuses || fast_chance(n, n->world->unlent))
		return false;
	e = n->fast->group[index];
	if ((!e || e->handle != g->handle) && !describe(n, g, index))
		return false;
	e = n->fast->group[index];
	sim_fast_some(n, 1);
	memcpy(e->state, g->state, nbfw_state_size(p));
	memcpy(e->before, g->state, nbfw_state_size(p));
	if (e->x)
		memcpy(e->x, g->values, values_size(g->values));
	e->lent = true;
	e->first_ns = how->first_ns;
	e->sleeper = how->sleeper;
	e->posted = g->state->epoch;
	e->ticking = g->state->running;
	e->tick_epoch = g->state->epoch;
	e->tick_step = g->state->step;
	if (g->state->running)
		fast_timer_start(n, index, how->left_ns);
	sim_fast_some(n, 2);
	return true;
}

/* kernel_take */
bool sim_fast_take(struct wire_base *base, struct nbnic_group *g, struct wire_counts *out)
{
	struct sim_nic *n = (struct sim_nic *)base;
	struct fast_group *e = n->fast->group[g->handle & 0xffff];

	sim_fast_some(n, 1);
	/* One of the two owns the state. */
	if (!e->lent || memcmp(e->before, g->state, nbfw_state_size(g->plan)) != 0)
		n->world->wrong = "a NIC has changed the state of a group that its wire had";
	if (n->loses) {
		n->loses = e->lent = false;
		n->lost++;
		e->handle = 0;
		return false;
	}
	memcpy(g->state, e->state, nbfw_state_size(g->plan));
	if (e->x) {
		memcpy(g->values, e->x, values_size(g->values));
		g->values->send_step = 0; /* nbfw_values_heads */
	}
	*out = e->n;
	e->n = (struct wire_counts){ 0 };
	e->lent = false;
	sim_fast_some(n, 1);
	return true;
}
