/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engines.c - simulates members that are engines: nbfw_step of libnbfw.a, as it runs in a NIC.
 *
 * A member handles events one by one; while it works, events wait in the order of arrival. Messages
 * of a member go out one after the other. `nbar-lab simulate` and tests call this file.
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "nic.h"
#include "sim.h"
#include "tally.h"

enum { EV_START, EV_TIMER, EV_FRAME }; /* FRAME + type of the frame */

struct member {
	sim_time tx, rx; /* when it may send and receive the next message */
	sim_time deadline;
	struct sim_path path; /* of the last event that this member has handled */
	uint32_t done;        /* number of completed barriers */
	bool armed, timer_queued, dead, failed;
};

struct run {
	const struct sim_setup *setup;
	const struct sim_plans *plans;
	struct sim_report *out;
	struct sim_net net;
	struct sim_queue queue;
	struct sim_tally tally;
	struct member *member;
	sim_time *busy;                     /* time until which each core is busy */
	uint32_t *state;                    /* of the engines */
	size_t stride;                      /* words of a state */
	uint64_t interval[NBFW_WINDOW + 1]; /* ps, by tries; the last: of all later windows */
	uint32_t left;                      /* members that are not done */
	uint32_t base;                      /* epoch before the first barrier */
};

static struct nbfw_state *state_of(struct run *r, uint32_t m)
{
	return (struct nbfw_state *)(void *)(r->state + m * r->stride);
}

/* Does work of this length on a member's core, not before `at`. Returns the time of its end. */
static sim_time engines_work(struct run *r, uint32_t m, sim_time at, sim_time length,
			     struct sim_path *path)
{
	uint32_t core = sim_net_core(&r->net, m);
	sim_time begin = r->busy[core] > at ? r->busy[core] : at;
	sim_time noise = sim_net_noise(&r->net, core, begin, length);

	path->queue += (float)(begin - at) / (float)SIM_NS;
	path->noise += (float)noise / (float)SIM_NS;
	r->busy[core] = begin + length + noise;
	return r->busy[core];
}

static void engines_deliver(struct run *r, const struct sim_event *ev, sim_time arrive)
{
	sim_time late[2];
	uint32_t copies = sim_net_fate(&r->net, late);

	for (uint32_t i = 0; i < copies; i++) {
		struct sim_event copy = *ev;

		copy.time = arrive + late[i];
		copy.path.noise += (float)late[i] / (float)SIM_NS;
		sim_queue_push(&r->queue, &copy);
	}
}

/* Member m sends a frame at `now`, or as soon as it may. ev lacks only time, sender and path. */
static void engines_send(struct run *r, uint32_t m, struct sim_event *ev,
			 const struct sim_path *path, sim_time now)
{
	struct sim_cost cost = sim_net_cost(&r->net, m, ev->to);
	struct member *me = &r->member[m];
	sim_time at = me->tx > now ? me->tx : now, waited;

	ev->from = m;
	ev->path = *path;
	ev->path.hops++;
	ev->path.queue += (float)(at - now) / (float)SIM_NS;
	sim_time left = engines_work(r, m, at, cost.send, &ev->path);
	sim_time arrive = sim_net_carry(&r->net, &cost, m, ev->to, left, &waited);

	me->tx = left - cost.send + cost.send_gap;
	ev->path.queue += (float)waited / (float)SIM_NS;
	engines_deliver(r, ev, arrive);
}

static void engines_send_range(struct run *r, uint32_t m, const struct nbfw_action *a, sim_time now)
{
	const struct nbar_plan *p = sim_plan(r->plans, m);
	const struct nbfw_state *s = state_of(r, m);
	bool is_abort = a->send_type == NBFW_ABORT;

	if (r->net.opt.step)
		now = engines_work(r, m, now, r->net.opt.step, &r->member[m].path);
	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		const struct nbar_send *to = &nbfw_plan_sends(p)[i];
		struct sim_event ev = {
			.to = sim_plans_rank(r->plans, m, to->dst),
			.epoch = a->send_epoch,
			.arg = is_abort ? sim_plans_rank(r->plans, m, s->failed_rank)
					: NBAR_RANK_NONE,
			.slot = (uint16_t)to->slot,
			.type = (uint8_t)(EV_FRAME + a->send_type),
			.info = is_abort ? s->cause : 0,
		};

		r->out->tokens += !is_abort;
		r->out->aborts += is_abort;
		engines_send(r, m, &ev, &r->member[m].path, now);
	}
}

static void send_pulls(struct run *r, uint32_t m, const struct nbfw_action *a, sim_time now)
{
	const struct nbar_plan *p = sim_plan(r->plans, m);
	const struct nbfw_state *s = state_of(r, m);
	uint32_t left = NBFW_PULLS_LEAST(a->pull_end - a->pull_first);

	for (uint32_t slot = a->pull_first; slot < a->pull_end && left > 0; slot++) {
		if (!nbfw_missing(s, p, slot))
			continue;
		struct sim_event ev = {
			.to = sim_plans_rank(r->plans, m, nbfw_plan_recvs(p)[slot].src),
			.epoch = s->epoch,
			.arg = NBAR_RANK_NONE,
			.slot = (uint16_t)slot,
			.type = EV_FRAME + NBFW_PULL,
		};

		left--;
		r->out->pulls++;
		engines_send(r, m, &ev, &r->member[m].path, now);
	}
}

static void send_reply(struct run *r, uint32_t m, const struct sim_event *pull,
		       const struct nbfw_action *a, sim_time now)
{
	struct sim_event ev = {
		.to = pull->from,
		.epoch = pull->epoch,
		.arg = sim_plans_rank(r->plans, m, a->reply_arg),
		.slot = pull->slot,
		.type = (uint8_t)(EV_FRAME + a->reply),
		.info = (uint8_t)a->reply_info,
	};

	r->out->tokens += a->reply == NBFW_TOKEN;
	r->out->laters += a->reply == NBFW_LATER;
	r->out->aborts += a->reply == NBFW_ABORT;
	engines_send(r, m, &ev, &pull->path, now);
}

/* A timer has at most one event in the queue. An event that comes too early is queued again. */
static void engines_set_timer(struct run *r, uint32_t m, enum nbfw_timer timer, sim_time now)
{
	struct member *me = &r->member[m];
	uint32_t tries = state_of(r, m)->tries;

	if (timer == NBFW_KEEP)
		return;
	me->armed = timer == NBFW_ARM;
	if (!me->armed)
		return;
	me->deadline = now + r->interval[tries < NBFW_WINDOW ? tries : NBFW_WINDOW];
	if (me->timer_queued)
		return;
	const struct sim_event ev = { .time = me->deadline, .to = m, .type = EV_TIMER };

	me->timer_queued = true;
	sim_queue_push(&r->queue, &ev);
}

static void come(struct run *r, uint32_t m, sim_time at)
{
	const struct sim_setup *setup = r->setup;
	struct sim_event ev = { .time = at, .to = m, .type = EV_START };

	if (setup->arrive)
		ev.time += sim_net_random(&r->net, setup->arrive + 1);
	sim_queue_push(&r->queue, &ev);
}

static void engines_complete(struct run *r, uint32_t m, sim_time now)
{
	struct member *me = &r->member[m];

	if (!sim_tally_leave(&r->tally, me->done, now + r->setup->notice, &me->path)) {
		r->out->end = SIM_END_EARLY;
		r->out->member = m;
		r->out->epoch = me->done;
	}
	r->out->completed++;
	if (++me->done == r->setup->barriers)
		r->left--;
	else
		come(r, m, now + r->setup->notice);
}

static void engines_fail(struct run *r, uint32_t m)
{
	struct member *me = &r->member[m];
	bool was_done = me->done == r->setup->barriers;

	me->failed = true;
	sim_tally_fail(&r->tally, sim_plans_rank(r->plans, m, state_of(r, m)->failed_rank));
	if (!was_done)
		r->left--;
}

/* Carries out the actions of the engine, in their order. in: the event that caused them. */
static void engines_act(struct run *r, uint32_t m, const struct sim_event *in,
			const struct nbfw_action *a, sim_time now)
{
	if (a->complete)
		engines_complete(r, m, now);
	if (a->failed)
		engines_fail(r, m);
	engines_set_timer(r, m, a->timer, now);
	if (a->send_first < a->send_end)
		engines_send_range(r, m, a, now);
	if (a->pull_first < a->pull_end)
		send_pulls(r, m, a, now);
	if (a->reply)
		send_reply(r, m, in, a, now);
}

static void engines_step(struct run *r, const struct sim_event *ev, const struct nbfw_event *in,
			 sim_time now)
{
	uint32_t m = ev->to;
	struct nbfw_action a;

	nbfw_step(state_of(r, m), sim_plan(r->plans, m), in, &a);
	/* The event that ends a step is on the path of all later events of the member. */
	if (in->type == NBFW_EV_TOKEN &&
	    (a.complete || a.send_first < a.send_end || a.timer == NBFW_ARM))
		r->member[m].path = ev->path;
	engines_act(r, m, ev, &a, now);
	if (r->setup->check && nbfw_check(state_of(r, m), sim_plan(r->plans, m))) {
		r->out->end = SIM_END_INVALID;
		r->out->member = m;
	}
}

static void engines_on_start(struct run *r, struct sim_event *ev)
{
	static const struct nbfw_event start = { .type = NBFW_EV_START };
	struct member *me = &r->member[ev->to];

	if (me->failed)
		return;
	me->path = (struct sim_path){ .origin = ev->to };
	sim_time now = engines_work(r, ev->to, ev->time, r->setup->post, &me->path);

	sim_tally_enter(&r->tally, me->done, ev->time);
	engines_step(r, ev, &start, now);
}

static void on_timer(struct run *r, struct sim_event *ev)
{
	static const struct nbfw_event timeout = { .type = NBFW_EV_TIMEOUT };
	struct member *me = &r->member[ev->to];
	uint32_t tries = state_of(r, ev->to)->tries;

	me->timer_queued = false;
	if (!me->armed)
		return;
	if (ev->time < me->deadline) {
		ev->time = me->deadline;
		me->timer_queued = true;
		sim_queue_push(&r->queue, ev);
		return;
	}
	me->armed = false;
	me->path.repair +=
		(float)r->interval[tries < NBFW_WINDOW ? tries : NBFW_WINDOW] / (float)SIM_NS;
	engines_step(r, ev, &timeout, ev->time);
}

static void on_frame(struct run *r, struct sim_event *ev)
{
	struct member *me = &r->member[ev->to];
	struct sim_cost cost = sim_net_cost(&r->net, ev->from, ev->to);
	sim_time busy = r->busy[sim_net_core(&r->net, ev->to)];
	sim_time at = me->rx > ev->time ? me->rx : ev->time;
	struct nbfw_event in = { .type = NBFW_EV_TOKEN };

	if (r->setup->queue && busy > ev->time && cost.recv &&
	    (busy - ev->time) / cost.recv > r->setup->queue) {
		r->out->dropped++;
		return;
	}
	ev->path.queue += (float)(at - ev->time) / (float)SIM_NS;
	sim_time now = engines_work(r, ev->to, at, cost.recv, &ev->path);

	me->rx = now - cost.recv + cost.recv_gap;
	in.token = (struct nbfw_token){
		.type = (uint8_t)(ev->type - EV_FRAME),
		.src = sim_plans_name(r->plans, ev->to, ev->from),
		.epoch = ev->epoch,
		.slot = ev->slot,
		.arg = sim_plans_name(r->plans, ev->to, ev->arg),
		.info = ev->info,
	};
	engines_step(r, ev, &in, now);
}

static void engines_on_event(struct run *r, struct sim_event *ev)
{
	r->out->digest = sim_digest(r->out->digest, ev);
	if (r->member[ev->to].dead)
		return;
	if (ev->type == EV_START)
		engines_on_start(r, ev);
	else if (ev->type == EV_TIMER)
		on_timer(r, ev);
	else
		on_frame(r, ev);
}

static int make_members(struct run *r)
{
	const struct sim_setup *setup = r->setup;
	uint32_t size = r->plans->size, cores = setup->net.cores ? setup->net.cores : size;

	r->stride = (r->plans->state + 7) / 8 * 2;
	r->member = calloc(size, sizeof(*r->member));
	r->busy = calloc(cores, sizeof(*r->busy));
	r->state = calloc(size, r->stride * 4);
	if (!r->member || !r->busy || !r->state)
		return -NBAR_ENOMEM;
	r->left = size;
	r->out->bytes = size * (sizeof(*r->member) + r->stride * 4 + sizeof(*r->plans->at)) +
			cores * sizeof(*r->busy) + r->plans->cap * 4 +
			r->net.nlink * sizeof(*r->net.link);
	for (uint32_t m = 0; m < size; m++)
		nbfw_init(state_of(r, m), sim_plan(r->plans, m), r->base);
	for (uint32_t i = 0; i < setup->nspecial; i++) {
		const struct sim_special *s = &setup->special[i];

		r->left -= s->dead && !r->member[s->member].dead;
		r->member[s->member].dead |= s->dead;
	}
	return sim_tally_begin(&r->tally, size, setup->barriers);
}

static void come_all(struct run *r)
{
	for (uint32_t m = 0; m < r->plans->size; m++) {
		sim_time at = 0;

		for (uint32_t i = 0; i < r->setup->nspecial; i++)
			if (r->setup->special[i].member == m)
				at = r->setup->special[i].late;
		if (!r->member[m].dead)
			come(r, m, at);
	}
}

/* Gets the timer intervals of a real NIC from a NIC that serves only for this. */
static int make_intervals(struct run *r)
{
	const struct nbnic_config config = { .pull_ns = r->setup->pull_ns,
					     .budget_ns = r->setup->budget_ns };
	const struct nbnic_addr nowhere = { { 0 } };
	struct nbnic *nic = malloc(sizeof(*nic));
	int e = nic ? nbnic_init(nic, NULL, NULL, 0, &nowhere, &config) : -NBAR_ENOMEM;

	for (uint32_t i = 0; !e && i < NBFW_WINDOW; i++)
		r->interval[i] = nic->interval[i] * SIM_NS;
	r->interval[NBFW_WINDOW] = r->setup->budget_ns / NBFW_WINDOW * SIM_NS;
	free(nic);
	return e;
}

static void engines_report(struct run *r)
{
	struct sim_report *out = r->out;

	sim_tally_report(&r->tally, out);
	if (out->end == SIM_END_DONE && r->left > 0)
		out->end = r->queue.full ? SIM_END_MEMORY : SIM_END_HUNG;
	out->lost = r->net.lost;
	out->repeated = r->net.repeated;
	out->reordered = r->net.reordered;
	out->link_waits = r->net.link_waits;
	out->events = r->queue.popped;
	out->moves = r->queue.moves;
	out->bytes += r->queue.bytes;
}

void sim_engines_run(const struct sim_setup *setup, struct sim_report *out)
{
	struct run r = { .setup = setup, .plans = setup->plans, .out = out };
	struct sim_event ev;

	*out = (struct sim_report){ .failed_rank = NBAR_RANK_NONE };
	sim_queue_begin(&r.queue);
	if (sim_net_begin(&r.net, &setup->net) || make_members(&r) || make_intervals(&r)) {
		out->end = SIM_END_MEMORY;
	} else {
		come_all(&r);
		while (r.left > 0 && out->end == SIM_END_DONE && sim_queue_pop(&r.queue, &ev) &&
		       ev.time <= setup->limit)
			engines_on_event(&r, &ev);
		engines_report(&r);
	}
	sim_tally_end(&r.tally);
	sim_net_end(&r.net);
	sim_queue_end(&r.queue);
	free(r.member);
	free(r.busy);
	free(r.state);
}
