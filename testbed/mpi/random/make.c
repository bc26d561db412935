/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * make.c - makes a legal MPI program from a seed.
 *
 * Every rank calls program_make with the same seed, and draws the same numbers. Never calls MPI.
 * Rules: collectives of a communicator start in the same order at all of its members; a blocking
 * call has the same place at all ranks that it needs; a completion comes after all starts.
 */
#include <stdlib.h>
#include <string.h>

#include "draft.h"

#define ENDS 120u /* most events of the last draw and of the end of the program */

uint32_t draw(uint64_t *state, uint32_t n)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u; /* SplitMix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}

uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* --- places ---------------------------------------------------------------------------------- */

void draft_put(struct draft *d, uint32_t rank, uint32_t time, uint32_t event, enum phase phase)
{
	struct program *p = d->p;
	uint32_t delay = draw(&d->state, 8) == 0 ? draw(&d->state, 400) : 0;

	if (rank != p->me)
		return;
	if (p->naction == ACTIONS)
		abort();
	p->action[p->naction++] = (struct action){ time, event, phase, delay };
}

struct event *draft_add(struct draft *d, enum event_kind kind, uint32_t comm)
{
	struct event *e = &d->p->event[d->p->nevent++];

	*e = (struct event){ .kind = kind, .comm = comm };
	return e;
}

uint32_t draft_number(const struct draft *d, const struct event *e)
{
	return (uint32_t)(e - d->p->event);
}

uint32_t draft_all_at_once(struct draft *d, struct event *e, const uint32_t *busy)
{
	const struct comm *c = &d->p->comm[e->comm];
	uint32_t time = d->now;

	for (uint32_t i = 0; i < c->n; i++) {
		time = later(time, d->last[e->comm][c->member[i]]);
		time = later(time, busy ? busy[c->member[i]] : 0);
	}
	for (uint32_t i = 0; i < c->n; i++) {
		d->last[e->comm][c->member[i]] = time;
		draft_put(d, c->member[i], time, draft_number(d, e), PHASE_START);
	}
	return time;
}

/* A nonblocking event has started at these places: selects places for its tests and its
 * completion. */
static void complete(struct draft *d, struct event *e, const uint32_t *rank, const uint32_t *start,
		     uint32_t n, uint32_t *done)
{
	uint32_t ready = 0;

	for (uint32_t i = 0; i < n; i++)
		ready = later(ready, start[i]);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t tests = draw(&d->state, 3);

		done[i] = ready + (draw(&d->state, 3) ? draw(&d->state, WINDOW) : 0);
		draft_put(d, rank[i], start[i], draft_number(d, e), PHASE_START);
		if (e->blocks & 1u << rank[i]) {
			done[i] = start[i];
			continue;
		}
		for (uint32_t k = 0; k < tests; k++)
			draft_put(d, rank[i], start[i] + draw(&d->state, done[i] - start[i] + 1),
				  draft_number(d, e), PHASE_TEST);
		draft_put(d, rank[i], done[i], draft_number(d, e), PHASE_WAIT);
	}
}

/* A nonblocking collective; pending: it may outlive the communicator. */
static void spread(struct draft *d, struct event *e, bool pending)
{
	const struct comm *c = &d->p->comm[e->comm];
	uint32_t width = draw(&d->state, 3) ? draw(&d->state, WINDOW) : 0;
	uint32_t start[MEMBERS], done[MEMBERS];

	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t *last = &d->last[e->comm][c->member[i]];

		*last = later(*last, d->now + draw(&d->state, width + 1));
		start[i] = *last;
	}
	complete(d, e, c->member, start, c->n, done);
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t *busy = &d->busy[e->comm][c->member[i]];

		*busy = later(*busy, pending ? start[i] : done[i]);
	}
}

/* --- barriers -------------------------------------------------------------------------------- */

static void number_steps(struct draft *d, struct event *e, uint32_t n)
{
	e->step = d->p->nstep;
	e->n = n;
	d->p->nstep += n;
}

static void barriers(struct draft *d, uint32_t comm)
{
	uint32_t n = draw(&d->state, 3) ? 1 + draw(&d->state, 3) : SETTLED;
	struct event *e;

	if (d->p->nstep + n > STEPS)
		return;
	e = draft_add(d, EVENT_BARRIERS, comm);
	number_steps(d, e, n);
	d->p->comm[comm].barriers += n;
	draft_all_at_once(d, e, NULL);
}

/* True if barriers may be pending when the communicator is freed. If the MPI runs the barriers,
 * this depends on the MPI; so it is permitted only once nbar runs them. */
static bool may_outlive(const struct comm *c)
{
	return c->barriers >= SETTLED && !c->near;
}

static void ibarrier(struct draft *d, uint32_t comm)
{
	struct event *e;

	if (d->p->nstep == STEPS)
		return;
	e = draft_add(d, EVENT_IBARRIER, comm);
	number_steps(d, e, 1);
	spread(d, e, may_outlive(&d->p->comm[comm]));
}

static void persistent_init(struct draft *d, uint32_t comm)
{
	struct event *e;
	uint32_t time;

	if (d->ninit == OPEN_INITS)
		return;
	e = draft_add(d, EVENT_INIT, comm);
	time = draft_all_at_once(d, e, NULL);
	d->init[d->ninit].event = draft_number(d, e);
	for (uint32_t r = 0; r < MEMBERS; r++)
		d->init[d->ninit].ready[r] = time;
	d->ninit++;
}

static void persistent_start(struct draft *d, uint32_t which)
{
	const struct event *init = &d->p->event[d->init[which].event];
	const struct comm *c = &d->p->comm[init->comm];
	uint32_t start[MEMBERS], done[MEMBERS], width = draw(&d->state, WINDOW);
	struct event *e;

	if (d->p->nstep == STEPS)
		return;
	e = draft_add(d, EVENT_START, init->comm);
	e->init = draft_number(d, init);
	number_steps(d, e, 1);
	for (uint32_t i = 0; i < c->n; i++)
		start[i] = later(d->now + draw(&d->state, width + 1),
				 d->init[which].ready[c->member[i]]);
	complete(d, e, c->member, start, c->n, done);
	for (uint32_t i = 0; i < c->n; i++)
		d->init[which].ready[c->member[i]] = done[i] + 1;
}

static void persistent_end(struct draft *d, uint32_t which)
{
	const struct event *init = &d->p->event[d->init[which].event];
	const struct comm *c = &d->p->comm[init->comm];
	struct event *e = draft_add(d, EVENT_UNINIT, init->comm);

	e->init = draft_number(d, init);
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t r = c->member[i], *busy = &d->busy[init->comm][r];

		draft_put(d, r, d->init[which].ready[r], draft_number(d, e), PHASE_START);
		*busy = later(*busy, d->init[which].ready[r]);
	}
	d->init[which] = d->init[--d->ninit];
}

static void persistent(struct draft *d, uint32_t comm)
{
	uint32_t what = draw(&d->state, 6);

	if (d->ninit == 0 || what < 2)
		persistent_init(d, comm);
	else if (what < 5)
		for (uint32_t n = 1 + draw(&d->state, 4); n > 0; n--)
			persistent_start(d, draw(&d->state, d->ninit));
	else
		persistent_end(d, draw(&d->state, d->ninit));
}

static void death(struct draft *d, uint32_t comm)
{
	struct event *e;

	for (uint32_t i = d->ninit; i-- > 0;)
		if (d->p->event[d->init[i].event].comm == comm)
			persistent_end(d, i);
	for (uint32_t n = draw(&d->state, 5); n > 0 && may_outlive(&d->p->comm[comm]); n--)
		ibarrier(d, comm);
	e = draft_add(d, EVENT_FREE, comm);
	draft_all_at_once(d, e, d->busy[comm]);
	d->p->comm[comm].free = true;
}

/* --- messages and other collectives ---------------------------------------------------------- */

static void message(struct draft *d, uint32_t comm)
{
	static const uint32_t size[] = { 0, 8, 1000, 5000, 20000, 100000 };
	const struct comm *c = &d->p->comm[comm];
	uint32_t from = draw(&d->state, c->n), by = 1 + draw(&d->state, c->n - 1);
	struct event *e = draft_add(d, EVENT_MESSAGE, comm);
	uint32_t rank[2], start[2], done[2], ready;

	e->from = rank[0] = c->member[from];
	e->to = rank[1] = c->member[(from + by) % c->n];
	e->size = size[draw(&d->state, 6)];
	e->turned = draw(&d->state, 2);
	for (uint32_t i = 0; i < 2; i++)
		start[i] = d->now + draw(&d->state, WINDOW);
	for (uint32_t i = 0; i < 2; i++)
		start[i] = later(start[i], d->born[comm]);
	ready = later(start[0], start[1]);
	for (uint32_t i = 0; i < 2; i++) {
		if (draw(&d->state, 2))
			continue;
		e->blocks |= 1u << rank[i];
		start[i] = ready;
	}
	complete(d, e, rank, start, 2, done);
	for (uint32_t i = 0; i < 2; i++)
		d->busy[comm][rank[i]] = later(d->busy[comm][rank[i]], done[i]);
}

static void collective(struct draft *d, uint32_t comm)
{
	const struct comm *c = &d->p->comm[comm];
	uint32_t what = draw(&d->state, 3);
	struct event *e;

	if (what == 0) {
		draft_all_at_once(d, draft_add(d, EVENT_ALLREDUCE, comm), NULL);
		return;
	}
	e = draft_add(d, what == 1 ? EVENT_IALLREDUCE : EVENT_IBCAST, comm);
	e->from = draw(&d->state, c->n);
	spread(d, e, false);
}

static void any_event(struct draft *d)
{
	uint32_t what = draw(&d->state, 100);
	/* On intercommunicators programs run only barriers. */
	uint32_t comm = draft_pick(d, what < 44, what >= 44 && what < 76 ? 2 : 1);

	d->now += draw(&d->state, 2 * PACE);
	if (what >= 88 && what < 94)
		draft_birth_of_inter(d);
	else if (comm == NONE)
		return;
	else if (what < 20)
		barriers(d, comm);
	else if (what < 44)
		ibarrier(d, comm);
	else if (what < 54)
		persistent(d, comm);
	else if (what < 66)
		message(d, comm);
	else if (what < 76)
		collective(d, comm);
	else if (what < 88)
		draft_birth(d);
	else if (comm != 0)
		death(d, comm);
}

/* --- the whole program ----------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct action *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return (x->phase > y->phase) - (x->phase < y->phase);
}

/* Selects the ranks that take part, and their order. */
static void cast(struct draft *d, uint32_t ranks, uint32_t me)
{
	struct program *p = d->p;
	uint32_t all[RANKS], most = ranks < MEMBERS ? ranks : MEMBERS;

	p->n = 2 + draw(&d->state, most - 1);
	p->on_world = p->n == ranks && draw(&d->state, 2);
	p->me = p->n;
	for (uint32_t i = 0; i < ranks; i++)
		all[i] = i;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t k = i + (p->on_world ? 0 : draw(&d->state, ranks - i));

		p->world[i] = all[k];
		all[k] = all[i];
		if (p->world[i] == me)
			p->me = i;
	}
	p->comm[draft_comm(d, 0, 0)].n = p->n;
	for (uint32_t i = 0; i < p->n; i++)
		p->comm[0].member[i] = i;
}

void program_make(struct program *p, uint64_t seed, uint32_t ranks, uint32_t me)
{
	static struct draft d;
	uint32_t events;

	memset(p, 0, sizeof(*p));
	d = (struct draft){ .p = p, .state = seed };
	p->seed = seed;
	cast(&d, ranks, me);
	events = 15 + draw(&d.state, 55);
	for (uint32_t i = 0; i < events && p->nevent + ENDS < EVENTS; i++)
		any_event(&d);
	d.now += draw(&d.state, WINDOW);
	while (d.ninit > 0)
		persistent_end(&d, d.ninit - 1);
	for (uint32_t i = p->ncomm; i-- > 0;)
		if (!p->comm[i].free && !(i == 0 && p->on_world))
			death(&d, i);
	qsort(p->action, p->naction, sizeof(p->action[0]), by_place);
}
