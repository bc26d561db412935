/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * goal_run.c - runs a GOAL schedule by the rules of LogGOPSim: a message costs its sender o, and a
 * gap g + (s - 1) G until the next message. It arrives after o + L, and costs its receiver
 * o + (s - 1) G, even if no receive waits for it.
 */
#include <stdlib.h>
#include <string.h>

#include "goal.h"
#include "tally.h"

enum { EV_OP, EV_MESSAGE };

/* A receive that waits, or a message without a receive so far. */
struct waiting {
	uint32_t op, peer, tag, next;
	bool is_message;
};

struct host {
	sim_time work, send, receive; /* when it may do so next */
	uint32_t waiting;             /* list; 0: none */
};

struct run {
	const struct goal *g;
	const struct sim_net_options *net;
	struct sim_report *out;
	struct sim_queue queue;
	struct host *host;
	uint32_t *waits; /* by op */
	struct waiting *waiting;
	uint32_t nwaiting, waiting_free;
	uint32_t done;
};

static sim_time later(sim_time a, sim_time b)
{
	return a > b ? a : b;
}

static void push(struct run *r, uint8_t type, uint32_t rank, uint32_t op, sim_time at)
{
	const struct sim_event ev = { .time = at, .to = rank, .arg = op, .type = type };

	sim_queue_push(&r->queue, &ev);
}

static void begin_op(struct run *r, uint32_t op)
{
	const struct goal_op *o = &r->g->op[op];
	const struct host *h = &r->host[o->rank];

	push(r, EV_OP, o->rank, op, o->type == GOAL_SEND ? later(h->work, h->send) : h->work);
}

/* Releases the operations that depend on the start of an operation, or on its end. */
static void satisfy(struct run *r, uint32_t op, bool at_start, sim_time now)
{
	for (uint32_t d = r->g->op[op].next_dep; d; d = r->g->dep[d].next) {
		if (r->g->dep[d].at_start != at_start || --r->waits[r->g->dep[d].op] > 0)
			continue;
		struct host *h = &r->host[r->g->op[op].rank];

		h->work = later(h->work, now);
		begin_op(r, r->g->dep[d].op);
	}
	r->done += !at_start;
}

/* Takes the first match out of the list of a host. False: there is no match. */
static bool match(struct run *r, uint32_t rank, bool is_message, uint32_t peer, uint32_t tag,
		  uint32_t *op)
{
	for (uint32_t *at = &r->host[rank].waiting; *at; at = &r->waiting[*at].next) {
		struct waiting *w = &r->waiting[*at];

		if (w->is_message != is_message || w->peer != peer || w->tag != tag)
			continue;
		uint32_t index = *at;

		*op = w->op;
		*at = w->next;
		w->next = r->waiting_free;
		r->waiting_free = index;
		return true;
	}
	return false;
}

static void wait_for(struct run *r, uint32_t rank, const struct waiting *w)
{
	uint32_t index = r->waiting_free, *at = &r->host[rank].waiting;

	if (index)
		r->waiting_free = r->waiting[index].next;
	else
		index = ++r->nwaiting; /* at most one for each operation */
	r->waiting[index] = *w;
	r->waiting[index].next = 0;
	while (*at)
		at = &r->waiting[*at].next;
	*at = index;
}

static void on_op(struct run *r, const struct sim_event *ev)
{
	const struct goal_op *o = &r->g->op[ev->arg];
	struct host *h = &r->host[ev->to];
	sim_time may = o->type == GOAL_SEND ? later(h->work, h->send) : h->work;
	uint32_t other;

	if (o->type != GOAL_RECV && may > ev->time) {
		push(r, EV_OP, ev->to, ev->arg, may);
		return;
	}
	satisfy(r, ev->arg, true, ev->time);
	if (o->type == GOAL_CALC) {
		h->work = ev->time + o->size * SIM_NS;
		satisfy(r, ev->arg, false, ev->time);
	} else if (o->type == GOAL_SEND) {
		h->work = ev->time + r->net->overhead;
		h->send = ev->time + r->net->gap + (o->size - 1) * r->net->byte;
		r->out->tokens++;
		push(r, EV_MESSAGE, o->peer, ev->arg, h->work + r->net->latency);
		satisfy(r, ev->arg, false, ev->time);
	} else if (match(r, ev->to, true, o->peer, o->tag, &other)) {
		satisfy(r, ev->arg, false, ev->time);
	} else {
		wait_for(r, ev->to, &(struct waiting){ ev->arg, o->peer, o->tag, 0, false });
	}
}

static void on_message(struct run *r, const struct sim_event *ev)
{
	const struct goal_op *o = &r->g->op[ev->arg];
	struct host *h = &r->host[ev->to];
	sim_time may = later(h->work, h->receive), rest = (o->size - 1) * r->net->byte;
	uint32_t op;

	if (may > ev->time) {
		push(r, EV_MESSAGE, ev->to, ev->arg, may);
		return;
	}
	h->work = ev->time + r->net->overhead + rest;
	h->receive = ev->time + r->net->gap + rest;
	if (match(r, ev->to, false, o->rank, o->tag, &op))
		satisfy(r, op, false, ev->time);
	else
		wait_for(r, ev->to, &(struct waiting){ ev->arg, o->rank, o->tag, 0, true });
}

static void report(struct run *r)
{
	struct sim_report *out = r->out;
	sim_time end = 0;

	for (uint32_t i = 0; i < r->g->ranks; i++)
		end = later(end, r->host[i].work);
	out->mean_ns = out->worst_ns = (double)end / (double)SIM_NS;
	out->events = r->queue.popped;
	out->moves = r->queue.moves;
	if (r->queue.full)
		out->end = SIM_END_MEMORY;
	else if (r->done < r->g->nop)
		out->end = SIM_END_HUNG;
}

void goal_run(const struct goal *g, const struct sim_net_options *net, struct sim_report *out)
{
	struct run r = { .g = g, .net = net, .out = out };
	struct sim_event ev;

	*out = (struct sim_report){ .failed_rank = NBAR_RANK_NONE };
	r.host = calloc(g->ranks, sizeof(*r.host));
	r.waits = calloc((size_t)g->nop + 1, sizeof(*r.waits));
	r.waiting = calloc((size_t)g->nop + 1, sizeof(*r.waiting));
	sim_queue_begin(&r.queue);
	if (r.host && r.waits && r.waiting) {
		for (uint32_t i = 0; i < g->nop; i++)
			r.waits[i] = g->op[i].waits;
		for (uint32_t i = 0; i < g->nop; i++)
			if (g->op[i].waits == 0)
				begin_op(&r, i);
		while (sim_queue_pop(&r.queue, &ev)) {
			out->digest = sim_digest(out->digest, &ev);
			if (ev.type == EV_OP)
				on_op(&r, &ev);
			else
				on_message(&r, &ev);
		}
		report(&r);
	} else {
		out->end = SIM_END_MEMORY;
	}
	out->bytes = g->nop * (sizeof(*g->op) + sizeof(*r.waits) + sizeof(*r.waiting)) +
		     g->ndep * sizeof(*g->dep) + g->ranks * sizeof(*r.host) + r.queue.bytes;
	sim_queue_end(&r.queue);
	free(r.host);
	free(r.waits);
	free(r.waiting);
}
