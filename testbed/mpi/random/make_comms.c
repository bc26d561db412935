/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * make_comms.c - communicators of a program under construction. Called by make.c.
 */
#include <string.h>

#include "draft.h"

static void born_at(struct draft *d, uint32_t comm, uint32_t time)
{
	d->born[comm] = time;
	for (uint32_t r = 0; r < MEMBERS; r++)
		d->last[comm][r] = d->busy[comm][r] = time;
}

uint32_t draft_comm(struct draft *d, uint32_t parent, uint32_t time)
{
	uint32_t i = d->p->ncomm++;

	d->p->comm[i] = (struct comm){ .parent = parent };
	born_at(d, i, time);
	return i;
}

/* Makes a communicator of the parent's members whose bit is set; turned: in reverse order. */
static uint32_t comm_of(struct draft *d, uint32_t parent, uint32_t bits, bool turned, uint32_t time)
{
	const struct comm *from = &d->p->comm[parent];
	uint32_t made = draft_comm(d, parent, time);
	struct comm *to = &d->p->comm[made];

	for (uint32_t k = 0; k < from->n; k++) {
		uint32_t i = turned ? from->n - 1 - k : k;

		if (bits & 1u << i)
			to->member[to->n++] = from->member[i];
	}
	return made;
}

uint32_t draft_pick(struct draft *d, bool inter, uint32_t least)
{
	const struct program *p = d->p;
	uint32_t first = draw(&d->state, p->ncomm);

	for (uint32_t k = 0; k < p->ncomm; k++) {
		uint32_t i = (first + k) % p->ncomm;

		if (!p->comm[i].free && p->comm[i].n >= least && (inter || !p->comm[i].near))
			return i;
	}
	return NONE;
}

static void birth_by_split(struct draft *d, uint32_t parent, uint32_t all)
{
	struct event *e = draft_add(d, EVENT_SPLIT, parent);
	uint32_t time;

	e->color_of = draw(&d->state, all + 1);
	e->turned = draw(&d->state, 2);
	time = draft_all_at_once(d, e, NULL);
	e->made[0] = e->made[1] = NONE;
	if (e->color_of != all)
		e->made[0] = comm_of(d, parent, all & ~e->color_of, e->turned, time);
	if (e->color_of != 0)
		e->made[1] = comm_of(d, parent, e->color_of, e->turned, time);
}

/* MPI_Comm_create_group: only members of the new communicator call it. */
static void birth_by_group(struct draft *d, uint32_t parent, uint32_t bits)
{
	struct event *e = draft_add(d, EVENT_CREATE_GROUP, parent);
	const struct comm *made;

	e->color_of = bits;
	e->made[0] = comm_of(d, parent, bits, false, d->now);
	made = &d->p->comm[e->made[0]];
	for (uint32_t i = 0; i < made->n; i++)
		d->now = later(d->now, d->last[parent][made->member[i]]);
	for (uint32_t i = 0; i < made->n; i++) {
		uint32_t r = made->member[i];

		d->last[parent][r] = d->now;
		draft_put(d, r, d->now, draft_number(d, e), PHASE_START);
	}
	born_at(d, e->made[0], d->now);
}

void draft_birth(struct draft *d)
{
	uint32_t parent = draft_pick(d, false, 1), all, bits;
	struct event *e;

	if (parent == NONE || d->p->ncomm + 2 > COMMS)
		return;
	all = (1u << d->p->comm[parent].n) - 1;
	bits = 1 + draw(&d->state, all);
	switch (draw(&d->state, 4)) {
	case 0:
		e = draft_add(d, EVENT_DUP, parent);
		e->made[0] = comm_of(d, parent, all, false, draft_all_at_once(d, e, NULL));
		return;
	case 1:
		birth_by_split(d, parent, all);
		return;
	case 2:
		e = draft_add(d, EVENT_CREATE, parent);
		e->color_of = bits;
		e->made[0] = comm_of(d, parent, bits, false, draft_all_at_once(d, e, NULL));
		return;
	default:
		birth_by_group(d, parent, bits);
	}
}

/* Selects a split whose halves and origin still exist. NONE: there is none. */
static uint32_t pick_split(const struct program *p)
{
	for (uint32_t i = p->nevent; i-- > 0;) {
		const struct event *e = &p->event[i];

		if (e->kind == EVENT_SPLIT && e->made[0] != NONE && e->made[1] != NONE &&
		    !p->comm[e->comm].free && !p->comm[e->made[0]].free &&
		    !p->comm[e->made[1]].free)
			return i;
	}
	return NONE;
}

/* All ranks of both halves call it at one place. */
static void join_halves(struct draft *d, struct event *e, uint32_t peer)
{
	struct comm *c = &d->p->comm[e->comm];
	uint32_t time = d->now;

	for (uint32_t k = 0; k < 2; k++) {
		const struct comm *half = &d->p->comm[e->made[k]];

		for (uint32_t i = 0; i < half->n; i++) {
			c->member[c->n++] = half->member[i];
			time = later(time, d->last[e->made[k]][half->member[i]]);
		}
		c->near = k == 0 ? half->n : c->near;
	}
	born_at(d, e->comm, time);
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t r = c->member[i];

		d->last[e->made[i >= c->near]][r] = time;
		d->busy[peer][r] = later(d->busy[peer][r], time);
		draft_put(d, r, time, draft_number(d, e), PHASE_START);
	}
}

/* Makes an intercommunicator of both halves of a split, and sometimes merges it. */
void draft_birth_of_inter(struct draft *d)
{
	struct program *p = d->p;
	uint32_t split = pick_split(p);
	struct event *e, *merge;

	if (split == NONE || p->ncomm + 2 > COMMS)
		return;
	e = draft_add(d, EVENT_INTERCOMM, draft_comm(d, p->event[split].comm, 0));
	memcpy(e->made, p->event[split].made, sizeof(e->made));
	join_halves(d, e, p->event[split].comm);
	if (draw(&d->state, 2))
		return;
	merge = draft_add(d, EVENT_MERGE, e->comm);
	merge->made[0] = comm_of(d, e->comm, (1u << p->comm[e->comm].n) - 1, false,
				 draft_all_at_once(d, merge, NULL));
}
