/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * goal_run.c - runs a GOAL schedule by the rules of LogGOPSim: a message costs its sender o, and a
 * gap g + (s - 1) G until the next message. It arrives after o + L, and costs its receiver
 * o + (s - 1) G, even if no receive waits for it. Events with the same time run in the order in
 * which their operations became ready; an event that must wait keeps its place in this order.
 */
#include <stdlib.h>
#include <string.h>

#include "goal.h"
#include "tally.h"

enum { EV_OP, EV_MESSAGE };

/* An operation has one event at a time. */
struct event {
	sim_time time;
	uint64_t place; /* among events with the same time */
	uint32_t op;
	uint8_t type;
};

/* A receive that waits, or a message without a receive so far. */
struct waiting {
	uint32_t op, peer, tag, next;
	bool is_message;
};

struct host {
	sim_time work, send, receive; /* when the host may next work, send, receive */
	uint32_t waiting;             /* list; 0: none */
};

struct run {
	const struct goal *g;
	const struct sim_net_options *net;
	struct sim_report *out;
	struct event *heap; /* room for one event per operation; heap[0] comes next */
	uint32_t nheap, nready;
	uint32_t *ready; /* operations that the current event has released */
	uint64_t places;
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

static bool is_before(const struct event *a, const struct event *b)
{
	return a->time < b->time || (a->time == b->time && a->place < b->place);
}

static void push(struct run *r, struct event ev)
{
	uint32_t at = r->nheap++;

	while (at > 0 && is_before(&ev, &r->heap[(at - 1) / 2])) {
		r->heap[at] = r->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	r->heap[at] = ev;
}

static struct event pop(struct run *r)
{
	struct event first = r->heap[0], last = r->heap[--r->nheap];
	uint32_t at = 0;

	for (uint32_t below = 1; below < r->nheap; below = 2 * at + 1) {
		if (below + 1 < r->nheap && is_before(&r->heap[below + 1], &r->heap[below]))
			below++;
		if (!is_before(&r->heap[below], &last))
			break;
		r->heap[at] = r->heap[below];
		at = below;
	}
	r->heap[at] = last;
	return first;
}

/* Operations that became ready at the same time begin in this order: sends, receives, calcs. */
static void begin_ready(struct run *r)
{
	for (uint8_t type = GOAL_SEND; type <= GOAL_CALC; type++) {
		for (uint32_t i = 0; i < r->nready; i++) {
			const struct goal_op *o = &r->g->op[r->ready[i]];
			const struct host *h = &r->host[o->rank];
			sim_time at = type == GOAL_SEND ? later(h->work, h->send) : h->work;

			if (o->type == type)
				push(r, (struct event){ at, r->places++, r->ready[i], EV_OP });
		}
	}
	r->nready = 0;
}

/* Releases the operations that depend on the start of an operation, or on its end. */
static void satisfy(struct run *r, uint32_t op, bool at_start)
{
	for (uint32_t d = r->g->op[op].next_dep; d; d = r->g->dep[d].next)
		if (r->g->dep[d].at_start == at_start && --r->waits[r->g->dep[d].op] == 0)
			r->ready[r->nready++] = r->g->dep[d].op;
	r->done += !at_start;
}

/* Takes the first matching receive or message out of the list of a host. False: none matches. */
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
		index = ++r->nwaiting; /* an operation waits at most once */
	r->waiting[index] = *w;
	r->waiting[index].next = 0;
	while (*at)
		at = &r->waiting[*at].next;
	*at = index;
}

static void on_op(struct run *r, struct event ev)
{
	const struct goal_op *o = &r->g->op[ev.op];
	struct host *h = &r->host[o->rank];
	sim_time may = o->type == GOAL_SEND ? later(h->work, h->send) : h->work;
	uint32_t other;

	if (o->type != GOAL_RECV && may > ev.time) {
		ev.time = may;
		push(r, ev);
		return;
	}
	satisfy(r, ev.op, true);
	if (o->type == GOAL_CALC) {
		h->work = ev.time + o->size * SIM_NS;
		satisfy(r, ev.op, false);
	} else if (o->type == GOAL_SEND) {
		h->work = ev.time + r->net->overhead;
		h->send = ev.time + r->net->gap + (o->size - 1) * r->net->byte;
		r->out->tokens++;
		push(r,
		     (struct event){ h->work + r->net->latency, r->places++, ev.op, EV_MESSAGE });
		satisfy(r, ev.op, false);
	} else if (match(r, o->rank, true, o->peer, o->tag, &other)) {
		satisfy(r, ev.op, false);
	} else {
		wait_for(r, o->rank, &(struct waiting){ ev.op, o->peer, o->tag, 0, false });
	}
}

static void on_message(struct run *r, struct event ev)
{
	const struct goal_op *o = &r->g->op[ev.op];
	struct host *h = &r->host[o->peer];
	sim_time may = later(h->work, h->receive), rest = (o->size - 1) * r->net->byte;
	uint32_t op;

	if (may > ev.time) {
		ev.time = may;
		push(r, ev);
		return;
	}
	h->work = ev.time + r->net->overhead + rest;
	h->receive = ev.time + r->net->gap + rest;
	if (match(r, o->peer, false, o->rank, o->tag, &op))
		satisfy(r, op, false);
	else
		wait_for(r, o->peer, &(struct waiting){ ev.op, o->rank, o->tag, 0, true });
}

static void run_events(struct run *r)
{
	while (r->nheap) {
		struct event ev = pop(r);
		const struct goal_op *o = &r->g->op[ev.op];
		const struct sim_event seen = { .time = ev.time,
						.to = ev.type == EV_OP ? o->rank : o->peer,
						.arg = ev.op,
						.type = ev.type };

		r->out->digest = sim_digest(r->out->digest, &seen);
		r->out->events++;
		if (ev.type == EV_OP)
			on_op(r, ev);
		else
			on_message(r, ev);
		begin_ready(r);
	}
}

static void report(struct run *r)
{
	struct sim_report *out = r->out;
	sim_time end = 0;

	for (uint32_t i = 0; i < r->g->ranks; i++)
		end = later(end, r->host[i].work);
	out->mean_ns = out->worst_ns = (double)end / (double)SIM_NS;
	if (r->done < r->g->nop)
		out->end = SIM_END_HUNG;
}

void goal_run(const struct goal *g, const struct sim_net_options *net, struct sim_report *out)
{
	struct run r = { .g = g, .net = net, .out = out };
	size_t ops = (size_t)g->nop + 1;

	*out = (struct sim_report){ .failed_rank = NBAR_RANK_NONE };
	r.host = calloc(g->ranks, sizeof(*r.host));
	r.waits = calloc(ops, sizeof(*r.waits));
	r.waiting = calloc(ops, sizeof(*r.waiting));
	r.heap = calloc(ops, sizeof(*r.heap));
	r.ready = calloc(ops, sizeof(*r.ready));
	if (r.host && r.waits && r.waiting && r.heap && r.ready) {
		for (uint32_t i = 0; i < g->nop; i++) {
			r.waits[i] = g->op[i].waits;
			if (i > 0 && g->op[i].rank != g->op[i - 1].rank)
				begin_ready(&r);
			if (r.waits[i] == 0)
				r.ready[r.nready++] = i;
		}
		begin_ready(&r);
		run_events(&r);
		report(&r);
	} else {
		out->end = SIM_END_MEMORY;
	}
	out->bytes = ops * (sizeof(*g->op) + sizeof(*r.waits) + sizeof(*r.waiting) +
			    sizeof(*r.heap) + sizeof(*r.ready)) +
		     g->ndep * sizeof(*g->dep) + g->ranks * sizeof(*r.host);
	free(r.host);
	free(r.waits);
	free(r.waiting);
	free(r.heap);
	free(r.ready);
}
