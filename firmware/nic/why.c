/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * why.c - which ranks a group waits for, and why: PROTOCOL.md, R5.
 *
 * Called by nic.c after timeouts, for each LATER, and for the answer to each PULL; never on the
 * path from token to completion. All of it is advice: no decision of the barrier may depend on it.
 */
#include "nic.h"
#include "nic_internal.h"

/* Timeouts without a LATER after which a rank is no longer called a straggler. */
#define STRAGGLER_FRESH 3u
/* Timeouts of a window without a word from a source, after which its NIC is called silent. In a
 * step with more slots than a timeout asks for, each slot is asked for once in NBFW_ROUND. */
#define SILENT_AFTER 7u
#define SILENT_AFTER_LARGE (3 * NBFW_ROUND)

static uint32_t clock_of(uint64_t now)
{
	return (uint32_t)(now >> NBAR_WHY_SHIFT);
}

static uint16_t why_pack(uint32_t kind, uint32_t age)
{
	uint32_t exponent = 0;

	for (; age > 0x1ff && exponent < 15; exponent++)
		age >>= 1;
	return (uint16_t)(kind << 13 | exponent << 9 | (age > 0x1ff ? 0x1ff : age));
}

/* In the unit of clock_of. */
static uint32_t why_age(uint32_t why)
{
	return (why & 0x1ff) << (why >> 9 & 0xf);
}

/* Remembers a straggler. When the list is full, the newest rank replaces the last. */
static void note(struct nbnic_group *g, uint32_t rank, uint16_t why, uint32_t since)
{
	uint32_t i = 0;

	while (i < g->nstragglers && g->straggler[i].rank != rank)
		i++;
	if (i == NBAR_STRAGGLERS_MAX)
		i--;
	else if (i == g->nstragglers)
		g->nstragglers++;
	g->straggler[i] = (struct nbnic_straggler){ rank, g->timeouts, since, why };
}

static struct nbnic_straggler *find(struct nbnic_group *g, uint32_t rank)
{
	for (uint32_t i = 0; i < g->nstragglers; i++)
		if (g->straggler[i].rank == rank)
			return &g->straggler[i];
	return NULL;
}

static void forget(struct nbnic_group *g, uint32_t rank)
{
	struct nbnic_straggler *s = find(g, rank);

	if (s)
		*s = g->straggler[--g->nstragglers];
}

/* The straggler to name in a LATER: the one that the engine knows, else that of the last answer.
 * NULL: none is known. */
static const struct nbnic_straggler *choose(const struct nbnic_group *g)
{
	const struct nbnic_straggler *best = NULL;

	for (uint32_t i = 0; i < g->nstragglers; i++) {
		const struct nbnic_straggler *s = &g->straggler[i];

		if (s->rank == g->state->straggler)
			return s;
		if (!best || (int32_t)(s->tick - best->tick) > 0)
			best = s;
	}
	return best;
}

/* What this member says of its own host, which has not arrived. */
static uint16_t host_why(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	uint32_t kind = NBAR_WHY_HOST_LATE;

	if (g->asked_epoch != g->state->epoch + 1) {
		g->asked_epoch = g->state->epoch + 1;
		g->asked_since = clock_of(now);
	}
	if (g->posted != g->state->epoch) /* it has arrived; its sends wait for the wire */
		kind = NBAR_WHY_UNKNOWN;
	else if (nic->ops->host)
		kind = nic->ops->host(nic->ctx, g->port, now);
	g->host_why = why_pack(kind, clock_of(now) - g->asked_since);
	return g->host_why;
}

/* Completes a LATER of a member whose barrier runs. */
static void explain(struct nbnic_group *g, struct nbfw_action *a, uint64_t now)
{
	struct nbnic_asker *asker = &g->asker;
	const struct nbnic_straggler *s = choose(g);

	asker->rank = NBAR_RANK_NONE;
	asker->kind = NBAR_WHY_UNKNOWN;
	a->reply_info = g->state->step;
	if (!s)
		return;
	asker->rank = a->reply_arg = s->rank;
	asker->kind = (uint8_t)NBAR_WHY_KIND(s->why);
	a->reply_info |= (uint32_t)why_pack(asker->kind, clock_of(now) - s->since) << 16;
}

void nbnic_why_answer(struct nbnic *nic, struct nbnic_group *g, struct nbfw_action *a,
		      const struct nbfw_token *pull, const struct nbnic_addr *from, uint64_t now)
{
	if (a->reply == NBFW_LATER && !g->state->running) {
		a->reply_info = (uint32_t)host_why(nic, g, now) << 16;
	} else if (a->reply == NBFW_LATER) {
		g->asker.pull = *pull;
		g->asker.from = *from;
		g->asker.step = g->state->step;
		g->asker.waits = true;
		explain(g, a, now);
	}
	nbnic_send_reply(nic, g->rank, a, pull, from);
}

/* A name travels one member further with each timeout, and timeouts become rare. So the member
 * that asked last gets one more LATER, if another name or reason is known by now. */
static void tell_asker(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	struct nbnic_asker *asker = &g->asker;
	const struct nbfw_state *state = g->state;
	struct nbfw_action a = { .reply = NBFW_LATER };
	const struct nbnic_straggler *s;

	if (!asker->waits || !state->running || asker->step != state->step ||
	    asker->pull.epoch != state->epoch)
		return;
	s = choose(g);
	if (!s || (s->rank == asker->rank && NBAR_WHY_KIND(s->why) == asker->kind))
		return;
	asker->waits = false;
	explain(g, &a, now);
	nbnic_send_reply(nic, g->rank, &a, &asker->pull, &asker->from);
}

void nbnic_why_learn(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *later,
		     uint64_t now)
{
	uint16_t why = (uint16_t)(later->info >> 16);
	uint32_t kind = NBAR_WHY_KIND(why);

	/* A member that names another one has arrived, and its NIC is not silent. */
	forget(g, later->src);
	/* Our own host has arrived: an answer that names it is out of date. */
	if (kind != NBAR_WHY_UNKNOWN && kind < NBAR_WHY_END && later->arg != g->rank)
		note(g, later->arg, why, clock_of(now) - why_age(why));
	nic->ops->stragglers(nic->ctx, g->port, g->cell, g->straggler, g->nstragglers);
	tell_asker(nic, g, now);
}

/* The first sources of the step that are silent, if its timeouts have asked each often enough. */
static void note_silent(struct nbnic_group *g, const struct nbfw_action *a, uint64_t now)
{
	bool large = a->pull_end - a->pull_first > NBFW_PULLS_MIN;
	uint32_t slot = a->pull_first;

	if (g->state->tries % NBFW_WINDOW < (large ? SILENT_AFTER_LARGE : SILENT_AFTER))
		return;
	for (uint32_t i = 0; i < NBAR_STRAGGLERS_MAX; i++, slot++) {
		slot = nbfw_missing_next(g->state, slot, a->pull_end, false);
		if (slot >= a->pull_end)
			return;
		uint32_t rank = nbfw_plan_recvs(g->plan)[slot].src, since = clock_of(now);
		const struct nbnic_straggler *s = find(g, rank);

		if (s && NBAR_WHY_KIND(s->why) == NBAR_WHY_NIC_SILENT)
			since = s->since;
		note(g, rank, why_pack(NBAR_WHY_NIC_SILENT, clock_of(now) - since), since);
	}
}

void nbnic_why_review(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a,
		      uint64_t now)
{
	uint32_t kept = 0;

	g->timeouts++;
	for (uint32_t i = 0; i < g->nstragglers; i++)
		if (g->timeouts - g->straggler[i].tick <= STRAGGLER_FRESH)
			g->straggler[kept++] = g->straggler[i];
	g->nstragglers = kept;
	note_silent(g, a, now);
	nic->ops->stragglers(nic->ctx, g->port, g->cell, g->straggler, g->nstragglers);
	tell_asker(nic, g, now);
}
