/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - a group of members in a simulated world: hosts that arrive at random times, timers, and
 * a network that loses, repeats and reorders frames.
 *
 * For tests only. All randomness comes from one seed, so a run can be repeated. After each engine
 * step the world checks the invariants and that no barrier completes early.
 */
#ifndef TESTBED_WORLD_H
#define TESTBED_WORLD_H

#include "engine.h"
#include "group_plans.h"
#include "value.h"

#define WORLD_TIMEOUT 100u /* less than the 2 * 60 that an answer to a PULL may take */

struct world_event {
	uint64_t at, order; /* order: events of the same time happen in the order of pushing */
	enum { WORLD_HOST, WORLD_TIMER, WORLD_FRAME, WORLD_LEAVE } type;
	uint32_t to;
	uint32_t stamp;          /* TIMER: number of its arming */
	uint8_t cause;           /* LEAVE */
	struct nbfw_token token; /* FRAME; its value is freed with the event */
};

struct world_member {
	struct nbfw_state *s;
	struct nbfw_values *values;    /* NULL: the group has none */
	uint32_t nstart, ndone, nfail; /* barriers started and completed; failures reported */
	uint32_t stamp;                /* number of the last arming; an older TIMER is ignored */
	bool armed;
	bool dead; /* its NIC neither sends nor receives */
	bool held; /* its host does not arrive until world_release */
};

struct world {
	uint64_t seed;
	struct rng rng;
	struct group_plans set;
	uint32_t size, base;          /* base: epoch that all members have completed at first */
	uint32_t goal;                /* barriers that each host wants */
	uint32_t drop, repeat, stray; /* percent of frames; a stray frame comes very late */
	uint32_t slow;                /* percent of barriers at which a host is late */
	uint32_t delay;               /* greatest delay of a frame that is not stray */
	bool outage;                  /* all frames are lost */
	uint64_t now, order;
	uint64_t nframe, npull; /* sent */
	/* Of groups with values: makes that of a barrier (false: it has none), and sees a result.
	 */
	bool (*value)(struct world *w, uint32_t rank, uint32_t barrier, struct nbfw_value *out);
	void (*result)(struct world *w, uint32_t rank, uint32_t barrier,
		       const struct nbfw_value *v);
	void *arg;
	struct world_member *member;
	struct world_event *heap;
	uint32_t nheap, cap;
};

#define world_require(w, cond)                                                                     \
	require(cond, "size %u, at %llu, NBAR_SEED=%llu", (w)->size, (unsigned long long)(w)->now, \
		(unsigned long long)(w)->seed)

static inline bool world_before(const struct world_event *a, const struct world_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static inline void world_push(struct world *w, struct world_event ev)
{
	uint32_t i = w->nheap++;

	if (w->nheap > w->cap) {
		w->cap = 2 * w->nheap + 64;
		w->heap = realloc(w->heap, w->cap * sizeof(w->heap[0]));
	}
	ev.order = w->order++;
	for (; i && world_before(&ev, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = ev;
}

static inline struct world_event world_pop(struct world *w)
{
	struct world_event top = w->heap[0], last = w->heap[--w->nheap];
	uint32_t i = 0;

	for (uint32_t child = 1; child < w->nheap; i = child, child = 2 * i + 1) {
		if (child + 1 < w->nheap && world_before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!world_before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = last;
	return top;
}

/* Schedules the arrival of a member's host at its next barrier. */
static inline void world_host_comes(struct world *w, uint32_t rank, uint32_t within)
{
	world_push(w, (struct world_event){ .at = w->now + rng_below(&w->rng, within + 1),
					    .type = WORLD_HOST,
					    .to = rank });
}

static inline void world_leave(struct world *w, uint32_t rank, uint8_t cause, uint32_t within)
{
	world_push(w, (struct world_event){ .at = w->now + rng_below(&w->rng, within + 1),
					    .type = WORLD_LEAVE,
					    .to = rank,
					    .cause = cause });
}

static inline void world_release(struct world *w, uint32_t rank)
{
	w->member[rank].held = false;
	world_host_comes(w, rank, 0);
}

static inline void world_transmit(struct world *w, uint32_t to, const struct nbfw_token *t)
{
	w->nframe++;
	if (w->outage)
		return;
	for (uint32_t copies = rng_percent(&w->rng, w->repeat) ? 2 : 1; copies > 0; copies--) {
		uint32_t most = rng_percent(&w->rng, w->stray) ? 5000 : w->delay;

		if (!rng_percent(&w->rng, w->drop)) {
			struct world_event ev = { .at = w->now + 1 + rng_below(&w->rng, most),
						  .type = WORLD_FRAME,
						  .to = to,
						  .token = *t };

			if (t->value_length)
				ev.token.value = memcpy(calloc(1, sizeof(struct nbfw_value)),
							t->value, t->value_length);
			world_push(w, ev);
		}
	}
}

/* Gives a token the value that send i carries. */
static inline void world_sent(const struct world_member *m, const struct nbar_plan *p, uint32_t i,
			      struct nbfw_token *t)
{
	const struct nbar_step *st = nbfw_plan_steps(p);
	uint32_t step = 0;

	while (i >= st[step].first_send + st[step].nsend)
		step++;
	if (m->values)
		nbfw_values_at(m->values, step, t);
}

/* Carries out the actions of the engine, in the required order. */
static inline void world_act(struct world *w, uint32_t rank, const struct nbfw_token *in,
			     const struct nbfw_action *a)
{
	struct world_member *m = &w->member[rank];
	const struct nbar_plan *p = w->set.plan[rank];
	struct nbfw_token t = { .src = rank };

	if (a->complete && m->values)
		w->result(w, rank, m->nstart,
			  m->values->length[m->s->epoch & 1]
				  ? nbfw_values_place(m->values, m->s->epoch, p->nstep)
				  : NULL);
	if (a->complete) {
		m->ndone++;
		world_require(w, m->ndone == m->nstart && !m->nfail);
		for (uint32_t r = 0; r < w->size; r++)
			world_require(w, w->member[r].nstart >= m->ndone); /* the oracle */
		if (m->ndone < w->goal)
			world_host_comes(w, rank, rng_percent(&w->rng, w->slow) ? 3000 : 50);
	}
	m->nfail += a->failed;
	t.type = a->send_type;
	t.epoch = a->send_epoch;
	t.arg = a->send_type == NBFW_ABORT ? m->s->failed_rank : NBAR_RANK_NONE;
	t.info = a->send_type == NBFW_ABORT ? m->s->cause : 0;
	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		t.slot = nbfw_plan_sends(p)[i].slot;
		if (a->send_type == NBFW_TOKEN)
			world_sent(m, p, i, &t);
		world_transmit(w, nbfw_plan_sends(p)[i].dst, &t);
	}
	t = (struct nbfw_token){ .type = NBFW_PULL, .src = rank, .epoch = m->s->epoch };
	for (t.slot = a->pull_first; t.slot < a->pull_end; t.slot++) {
		if (nbfw_missing(m->s, p, t.slot)) {
			w->npull++;
			world_transmit(w, nbfw_plan_recvs(p)[t.slot].src, &t);
		}
	}
	if (a->reply) {
		t = (struct nbfw_token){ .type = a->reply, .src = rank, .epoch = in->epoch };
		t.slot = in->slot;
		t.arg = a->reply_arg;
		t.info = a->reply_info;
		if (a->reply == NBFW_TOKEN && m->values)
			nbfw_values_answer(m->values, p, in->src, &t);
		world_transmit(w, in->src, &t);
	}
	if (a->timer != NBFW_KEEP)
		m->armed = a->timer == NBFW_ARM;
	if (a->timer == NBFW_ARM)
		world_push(w, (struct world_event){ .at = w->now + WORLD_TIMEOUT,
						    .type = WORLD_TIMER,
						    .to = rank,
						    .stamp = ++m->stamp });
}

/* What a NIC does before the engine gets an event of a group with values. */
static inline void world_values(struct world *w, uint32_t rank, struct nbfw_event *in)
{
	struct world_member *m = &w->member[rank];
	const struct nbar_plan *p = w->set.plan[rank];
	uint32_t odd = NBAR_RANK_NONE;
	struct nbfw_value own;

	if (in->type == NBFW_EV_START) {
		uint32_t length = w->value(w, rank, m->nstart, &own) ? nbfw_value_length(&own) : 0;

		memcpy(nbfw_values_place(m->values, m->s->epoch + 1, 0), &own,
		       NBFW_VALUE_HEAD + length);
		odd = nbfw_values_start(m->values, m->s, p, length);
	}
	if (in->type == NBFW_EV_TOKEN && in->token.type == NBFW_TOKEN &&
	    nbfw_values_take(m->values, m->s, p, &in->token) == NBFW_VALUE_MISMATCH)
		odd = in->token.src;
	if (odd != NBAR_RANK_NONE)
		*in = (struct nbfw_event){ .type = NBFW_EV_LEAVE,
					   .cause = NBAR_STATUS_MISMATCH,
					   .token.src = odd };
}

/* Runs one event of the world. False if no event is left. */
static inline bool world_step(struct world *w)
{
	static const enum nbfw_event_type type[] = { NBFW_EV_START, NBFW_EV_TIMEOUT, NBFW_EV_TOKEN,
						     NBFW_EV_LEAVE };
	struct nbfw_action a;

	if (w->nheap == 0)
		return false;
	struct world_event ev = world_pop(w);
	struct world_member *m = &w->member[ev.to];
	struct nbfw_event in = { .type = type[ev.type], .cause = ev.cause, .token = ev.token };

	struct nbfw_value value;

	if (ev.token.value_length) {
		memcpy(&value, ev.token.value, sizeof(value));
		free((void *)(uintptr_t)ev.token.value);
		in.token.value = ev.token.value = &value;
	}
	w->now = ev.at;
	if (m->dead || (ev.type == WORLD_TIMER && (!m->armed || ev.stamp != m->stamp)) ||
	    (ev.type == WORLD_HOST && (m->held || m->nfail)))
		return true;
	m->nstart += ev.type == WORLD_HOST;
	if (m->values)
		world_values(w, ev.to, &in);

	nbfw_step(m->s, w->set.plan[ev.to], &in, &a);
	if (m->values && a.timer != NBFW_KEEP)
		nbfw_values_advance(m->values, m->s, w->set.plan[ev.to]);
	require(nbfw_check(m->s, w->set.plan[ev.to]) == 0, "invariant %d, NBAR_SEED=%llu",
		nbfw_check(m->s, w->set.plan[ev.to]), (unsigned long long)w->seed);
	world_require(w, a.verdict != NBFW_BAD); /* all members of this world are correct */
	world_act(w, ev.to, &ev.token, &a);
	world_require(w, (m->s->cause != NBAR_STATUS_OK) == (m->nfail == 1) && m->nfail <= 1);
	return true;
}

/* Steps until done(w) holds. If done(w) never holds, the world hangs, and the test fails. */
static inline void world_run(struct world *w, bool (*done)(struct world *w))
{
	for (uint32_t budget = 3000000; !done(w); budget--) {
		world_require(w, budget > 0);
		world_require(w, world_step(w));
	}
}

/* Steps for a while. */
static inline void world_pass(struct world *w, uint64_t time)
{
	for (uint64_t end = w->now + time; w->nheap && w->heap[0].at <= end;)
		world_step(w);
}

/*
 * A group of random size, at least `least`, with a random algorithm: a row of the table, a linear
 * barrier with any root, or random stages. 10 % of the frames are lost, 10 % come twice.
 */
static inline struct world world_new(uint64_t seed, uint32_t least, uint32_t goal)
{
	struct world w = { .seed = seed, .rng = { seed }, .goal = goal };
	uint32_t kind = rng_below(&w.rng, 13);
	struct nbfw_alg alg = group_plans_any(&w.rng);
	static const uint32_t bases[] = { 0, UINT32_MAX, UINT32_MAX - 2, INT32_MAX - 1 };

	w.size = least + rng_below(&w.rng, 21 - least);
	w.base = rng_percent(&w.rng, 50) ? bases[rng_below(&w.rng, 4)] : (uint32_t)rng_next(&w.rng);
	w.drop = w.repeat = w.slow = 10;
	w.stray = 2;
	w.delay = 60;
	if (kind < 10)
		w.set = group_plans_generate(alg, w.size);
	else if (kind < 12 && w.size > 1)
		w.set = group_plans_random(w.size, &w.rng);
	else
		w.set = group_plans_linear(w.size, rng_below(&w.rng, w.size));
	world_require(&w, group_plans_is_barrier(&w.set));
	w.member = calloc(w.size, sizeof(w.member[0]));
	for (uint32_t r = 0; r < w.size; r++) {
		w.member[r].s = malloc(nbfw_state_size(w.set.plan[r]));
		nbfw_init(w.member[r].s, w.set.plan[r], w.base);
		world_host_comes(&w, r, 50);
	}
	return w;
}

static inline void world_free(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++) {
		free(w->member[r].s);
		free(w->member[r].values);
	}
	for (uint32_t i = 0; i < w->nheap; i++)
		if (w->heap[i].token.value_length)
			free((void *)(uintptr_t)w->heap[i].token.value);
	free(w->member);
	free(w->heap);
	group_plans_free(&w->set);
}

#endif
