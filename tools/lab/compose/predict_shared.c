/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predict_shared.c - the times of a barrier whose NICs share processors. See predict.h.
 *
 * Called by predict.c. Each message is work for the processor of its sender and for the processor
 * of its receiver. A processor works on one message at a time, in the order of their times. Events
 * with the same time keep the order in which they were made, so that every rank gets the same
 * result.
 */
#include "predict_shared.h"

#include <errno.h>
#include <stdlib.h>

#define ENTER UINT32_MAX /* takes the place of a slot: a rank enters its first step */

struct event {
	double time;
	uint32_t number; /* of all events, in the order in which they were made */
	uint32_t rank, slot;
};

struct shared {
	const struct schedule *s;
	const struct profile *p;
	const uint32_t *host;
	enum predict_formula formula;
	double *done;      /* by rank */
	double *busy;      /* by processor: the time when it is free */
	uint32_t *step;    /* by rank: its current step */
	uint32_t *pending; /* by step: number of empty slots */
	struct event *heap;
	uint32_t n, made;
};

bool predict_is_shared(const struct schedule *s, const struct profile *p, const uint32_t *host)
{
	bool *seen, shared = false;

	if (!p->processor)
		return false;
	seen = calloc(p->hosts, sizeof(*seen));
	for (uint32_t r = 0; seen && r < s->size && !shared; r++) {
		shared = seen[p->processor[host[r]]];
		seen[p->processor[host[r]]] = true;
	}
	free(seen);
	return shared;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->time < b->time || (a->time <= b->time && a->number < b->number);
}

static void push(struct shared *x, double time, uint32_t rank, uint32_t slot)
{
	const struct event e = { time, x->made++, rank, slot };
	uint32_t i = x->n++;

	for (; i > 0 && is_before(&e, &x->heap[(i - 1) / 2]); i = (i - 1) / 2)
		x->heap[i] = x->heap[(i - 1) / 2];
	x->heap[i] = e;
}

static struct event shared_pop(struct shared *x)
{
	struct event first = x->heap[0], e = x->heap[--x->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < x->n && is_before(&x->heap[child + 1], &x->heap[child]))
			child++;
		if (child >= x->n || !is_before(&x->heap[child], &e))
			break;
		x->heap[i] = x->heap[child];
		i = child;
	}
	x->heap[i] = e;
	return first;
}

/* The parts of the cost of a message. Their sum is O + L, less the sender's step, which O
 * includes. */
struct parts {
	double send, wire, recv;
};

static struct parts parts_of(const struct shared *x, uint32_t i, uint32_t j, bool waiting)
{
	struct parts c = { 0, 0, 0 };
	double o, l, step = x->p->step;

	if (i == j) {
		c.wire = profile_self(x->p, i);
		return c;
	}
	o = waiting ? profile_self(x->p, i) : profile_o(x->p, i, j);
	l = profile_l(x->p, i, j);
	/* On one processor, both ends together cost as much as a further message. On two
	 * processors, each end costs that much, while the other end works on the next message. */
	c.send = x->p->processor[i] == x->p->processor[j] ? l / 2 : l;
	c.recv = c.send < o + l - c.send ? c.send : o + l - c.send;
	c.wire = o + l - c.send - c.recv;
	c.wire = c.wire > step ? c.wire - step : 0; /* O includes the sender's step */
	return c;
}

static bool is_waiting(const struct shared *x, uint32_t slot)
{
	uint32_t step = x->s->slot_step[slot];

	return x->formula == PREDICT_WAITING && x->step[x->s->rank_of[step]] == step;
}

/* A rank enters steps until a step must wait, or until the rank is done. */
static void shared_enter(struct shared *x, uint32_t rank, double now)
{
	const struct schedule *s = x->s;
	double *busy = &x->busy[x->p->processor[x->host[rank]]];

	for (; x->step[rank] < s->first_step[rank + 1]; x->step[rank]++) {
		uint32_t step = x->step[rank];

		now = (*busy > now ? *busy : now) + x->p->step;
		*busy = now;
		for (uint32_t g = s->first_send[step]; g < s->first_send[step + 1]; g++) {
			uint32_t to = s->send_dst[g], slot = s->send_slot[g];
			struct parts c =
				parts_of(x, x->host[rank], x->host[to], is_waiting(x, slot));

			now = (*busy > now ? *busy : now) + c.send;
			*busy = now;
			push(x, now + c.wire, to, slot);
		}
		if (x->pending[step])
			return;
	}
	x->done[rank] = now;
}

/* A message has arrived at its receiver. */
static void shared_receive(struct shared *x, const struct event *e)
{
	const struct schedule *s = x->s;
	uint32_t step = s->slot_step[e->slot], i = x->host[s->slot_src[e->slot]];
	uint32_t j = x->host[e->rank];
	double *busy = &x->busy[x->p->processor[j]];

	*busy = (*busy > e->time ? *busy : e->time) +
		parts_of(x, i, j, is_waiting(x, e->slot)).recv;
	if (--x->pending[step] > 0 || x->step[e->rank] != step)
		return;
	x->step[e->rank]++;
	shared_enter(x, e->rank, *busy);
}

static void shared_run(struct shared *x)
{
	const struct schedule *s = x->s;

	for (uint32_t i = 0; i < s->nstep; i++)
		x->pending[i] = s->first_slot[i + 1] - s->first_slot[i];
	for (uint32_t r = 0; r < s->size; r++) {
		x->step[r] = s->first_step[r];
		push(x, 0, r, ENTER);
	}
	while (x->n > 0) {
		struct event e = shared_pop(x);

		if (e.slot == ENTER)
			shared_enter(x, e.rank, 0);
		else
			shared_receive(x, &e);
	}
}

int predict_shared(const struct schedule *s, const struct profile *p, const uint32_t *host,
		   enum predict_formula formula, double *done)
{
	struct shared x = { .s = s, .p = p, .host = host, .formula = formula, .done = done };
	int rc = -ENOMEM;

	x.busy = calloc(p->hosts, sizeof(*x.busy));
	x.step = malloc(s->size * sizeof(*x.step));
	x.pending = malloc(((size_t)s->nstep + 1) * sizeof(*x.pending));
	x.heap = malloc(((size_t)s->nsignal + s->size) * sizeof(*x.heap));
	if (x.busy && x.step && x.pending && x.heap) {
		shared_run(&x);
		rc = 0;
	}
	free(x.busy);
	free(x.step);
	free(x.pending);
	free(x.heap);
	return rc;
}
