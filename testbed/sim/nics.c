/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics.c - simulates members that are whole NICs, each with one host; see nics.h and world.h.
 */
#include "nics.h"

#include <stdlib.h>
#include <string.h>

#include "tally.h"
#include "world.h"

enum { EV_COME = SIM_WORLD_USER, EV_POST };

struct run {
	const struct sim_setup *setup;
	struct sim_report *out;
	struct sim_world *world;
	struct sim_host **host; /* by rank */
	struct sim_tally tally;
	uint32_t left;
};

/* The host of a member arrives at `at`, or a random delay later. */
static void nics_come(struct run *r, uint32_t m, sim_time at)
{
	if (r->setup->arrive)
		at += sim_net_random(&r->world->net, r->setup->arrive + 1);
	sim_world_push(r->world, at, EV_COME, m, 0);
}

static void on_user(void *arg, const struct sim_event *ev)
{
	struct run *r = arg;
	struct sim_host *h = r->host[ev->to];

	if (ev->type == EV_POST) {
		sim_host_post(r->world, h, ev->arg);
		return;
	}
	sim_tally_enter(&r->tally, h->user, ev->time);
	sim_world_push(r->world, ev->time + r->setup->post, EV_POST, ev->to, h->user + 1);
}

static void nics_on_progress(void *arg, struct sim_host *h, const struct sim_event *ev)
{
	static const struct sim_path unknown = { .origin = NBAR_RANK_NONE };
	struct run *r = arg;

	if (ev->info != NBAR_STATUS_OK) {
		sim_tally_fail(&r->tally, ev->arg);
		r->left -= h->user < r->setup->barriers;
		return;
	}
	if (!sim_tally_leave(&r->tally, h->user, ev->time, &unknown)) {
		r->out->end = SIM_END_EARLY;
		r->out->member = h->rank;
		r->out->epoch = h->user;
	}
	r->out->completed++;
	if (++h->user == r->setup->barriers)
		r->left--;
	else
		nics_come(r, h->rank, ev->time);
}

struct nbar_plan *sim_plan_plain(const struct sim_plans *p, uint32_t member)
{
	const struct nbar_plan *from = sim_plan(p, member);
	struct nbar_plan *plan = malloc((size_t)nbfw_plan_length(from));

	if (!plan)
		return NULL;
	memcpy(plan, from, (size_t)nbfw_plan_length(from));
	struct nbar_send *send = (struct nbar_send *)(uintptr_t)nbfw_plan_sends(plan);
	struct nbar_recv *recv = (struct nbar_recv *)(uintptr_t)nbfw_plan_recvs(plan);

	plan->rank = member;
	plan->size = p->size;
	for (uint32_t i = 0; i < plan->nsend; i++)
		send[i].dst = sim_plans_rank(p, member, send[i].dst);
	for (uint32_t i = 0; i < plan->nrecv; i++)
		recv[i].src = sim_plans_rank(p, member, recv[i].src);
	return plan;
}

static int nics_open_all(struct run *r, const char *name)
{
	const struct sim_plans *plans = r->setup->plans;
	struct nbar_plan **plan = NULL;
	struct nbfw_alg alg;
	int e = 0;

	/* The NICs make plans that have a name; hosts upload other plans. */
	if (nbfw_alg_parse(name, &alg)) {
		plan = calloc(plans->size, sizeof(struct nbar_plan *));
		e = plan ? 0 : -NBAR_ENOMEM;
	}
	for (uint32_t m = 0; !e && m < plans->size; m++) {
		r->host[m] = sim_host_begin(r->world, m);
		if (plan)
			plan[m] = sim_plan_plain(plans, m);
		e = r->host[m] && (!plan || plan[m]) ? 0 : -NBAR_ENOMEM;
	}
	if (!e)
		e = sim_group_begin(r->world, r->host, plans->size, name,
				    (const struct nbar_plan *const *)plan, 0);
	for (uint32_t m = 0; plan && m < plans->size; m++)
		free(plan[m]);
	free(plan);
	return e;
}

static void begin_all(struct run *r)
{
	sim_time at;

	r->left = r->setup->plans->size;
	for (uint32_t m = 0; m < r->setup->plans->size; m++) {
		bool dead = false;

		at = 0;
		for (uint32_t i = 0; i < r->setup->nspecial; i++) {
			const struct sim_special *s = &r->setup->special[i];

			at = s->member == m ? s->late : at;
			dead |= s->member == m && s->dead;
		}
		if (dead) {
			sim_nic_kill(r->world, m);
			r->left--;
		} else {
			nics_come(r, m, at);
		}
	}
}

static void nics_report(struct run *r)
{
	struct sim_world *w = r->world;
	struct sim_report *out = r->out;

	sim_tally_report(&r->tally, out);
	if (out->end == SIM_END_DONE && r->left > 0)
		out->end = w->full || w->queue.full ? SIM_END_MEMORY : SIM_END_HUNG;
	out->tokens = sim_world_counted(w, NBAR_COUNTER_tokens_sent);
	out->pulls = sim_world_counted(w, NBAR_COUNTER_pulls_sent);
	out->laters = sim_world_counted(w, NBAR_COUNTER_laters_sent);
	out->aborts = sim_world_counted(w, NBAR_COUNTER_aborts_sent);
	for (uint32_t i = 0; i < w->nnic; i++)
		out->dropped += w->nic[i]->dropped;
	out->lost = w->net.lost;
	out->repeated = w->net.repeated;
	out->reordered = w->net.reordered;
	out->link_waits = w->net.link_waits;
	out->events = w->queue.popped;
	out->moves = w->queue.moves;
	out->digest = w->digest;
	out->bytes = w->queue.bytes + w->nnic * (sizeof(struct sim_nic) + sizeof(struct nbar_page) +
						 sizeof(struct nbnic_port));
}

static struct sim_world *make_world(struct run *r, sim_time pass)
{
	const struct sim_setup *setup = r->setup;
	struct sim_world *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->arg = r;
	w->user = on_user;
	w->progress = nics_on_progress;
	w->notice = setup->notice;
	w->turn_cost = pass;
	w->queue_limit = setup->queue ? setup->queue : UINT32_MAX;
	w->pull_ns = setup->pull_ns;
	w->budget_ns = setup->budget_ns;
	r->world = w;
	return sim_world_begin(w, &setup->net) ? NULL : w;
}

void sim_nics_run(const struct sim_setup *setup, const char *alg, sim_time pass,
		  struct sim_report *out)
{
	struct run r = { .setup = setup, .out = out };
	uint32_t size = setup->plans->size;

	*out = (struct sim_report){ .failed_rank = NBAR_RANK_NONE };
	r.host = calloc(size, sizeof(struct sim_host *));
	if (!r.host || sim_tally_begin(&r.tally, size, setup->barriers) || !make_world(&r, pass) ||
	    nics_open_all(&r, alg)) {
		out->end = SIM_END_MEMORY;
	} else {
		begin_all(&r);
		while (r.left > 0 && out->end == SIM_END_DONE &&
		       sim_world_step(r.world, setup->limit))
			;
		nics_report(&r);
	}
	if (r.world)
		sim_world_end(r.world);
	free(r.world);
	sim_tally_end(&r.tally);
	free(r.host);
}
