/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * why.c - which ranks a group waits for, and why: late, or its NIC silent. PROTOCOL.md, R5.
 *
 * Called by nic.c after timeouts, for each LATER, and for the answer to each PULL; never on the
 * path from token to completion. All of it is advice: no decision of the barrier may depend on it.
 */
#include "nic.h"
#include "nic_internal.h"

/* Timeouts without a LATER after which a rank is no longer called a straggler. */
#define STRAGGLER_FRESH 3u
/* Timeouts without a word from a source after which its NIC is called silent. In a large step a
 * source gets only one PULL in NBFW_ROUND timeouts, so the number is larger there; and the NIC
 * looks only at the first NBFW_PULLS_MIN slots. */
#define SILENT_AFTER 7u
#define SILENT_AFTER_LARGE (3 * NBFW_ROUND)

/* Small rather than fast. */
#define RARE __attribute__((noinline))

static uint32_t clock_of(uint64_t now)
{
	return (uint32_t)(now >> NBAR_WHY_SHIFT);
}

RARE static uint16_t why_pack(uint32_t kind, uint32_t age)
{
	uint32_t exponent = 0;

	for (; age > 0x1ff && exponent < 15; exponent++)
		age >>= 1;
	return (uint16_t)(kind << 13 | exponent << 9 | (age > 0x1ff ? 0x1ff : age));
}

/* The age in `why`, in the unit of clock_of. */
static uint32_t why_age(uint32_t why)
{
	return (why & 0x1ff) << (why >> 9 & 0xf);
}

/* Returns the index of a rank in the list of stragglers, or the length of the list. */
RARE static uint32_t find(const struct nbnic_group *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->nstragglers && g->straggler[i].rank != rank)
		i++;
	return i;
}

/* Remembers a straggler. When the list is full, the new rank replaces the last rank. `age` comes
 * from the LATER. The age of a NIC that stays silent counts from the first time it was called
 * silent. */
RARE static void note(struct nbnic_group *g, uint32_t rank, uint32_t kind, uint32_t now,
		      uint32_t age)
{
	uint32_t i = find(g, rank);
	struct nbnic_straggler *s = &g->straggler[i < NBAR_STRAGGLERS_MAX ? i : i - 1];

	if (i < g->nstragglers && kind == NBAR_WHY_NIC_SILENT &&
	    NBAR_WHY_KIND(s->why) == NBAR_WHY_NIC_SILENT)
		age = now - s->since;
	else if (i == g->nstragglers && i < NBAR_STRAGGLERS_MAX)
		g->nstragglers++;
	*s = (struct nbnic_straggler){ rank, g->timeouts, now - age, why_pack(kind, age) };
}

/* Traces a rank that is about to enter the list, or to get another reason there. */
static void trace_new(struct nbnic *nic, const struct nbnic_group *g, uint32_t rank, uint32_t kind)
{
	uint32_t i;

	if (!NBNIC_TRACE || !nic->tracing || kind == NBAR_WHY_UNKNOWN || kind >= NBAR_WHY_END ||
	    rank == g->rank)
		return;
	i = find(g, rank);
	if (i == NBAR_STRAGGLERS_MAX)
		return; /* the list is full: do not trace this rank for each answer */
	if (i == g->nstragglers || NBAR_WHY_KIND(g->straggler[i].why) != kind)
		nbnic_trace_group(nic, g,
				  kind == NBAR_WHY_NIC_SILENT ? NBAR_TRACE_SILENT : NBAR_TRACE_LATE,
				  g->state->epoch, rank);
}

/* Returns the straggler that a LATER names: that of the engine if it is in the list, or else the
 * first of the list. NULL: the list is empty. */
static const struct nbnic_straggler *choose(const struct nbnic_group *g)
{
	uint32_t i = find(g, g->state->straggler);

	if (i == g->nstragglers)
		i = 0;
	return i < g->nstragglers ? &g->straggler[i] : NULL;
}

/* What this member says of its own host, which has not arrived. */
static uint16_t host_why(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	uint32_t kind = NBAR_WHY_HOST_LATE;

	if (g->asked_epoch != g->state->epoch + 1) {
		g->asked_epoch = g->state->epoch + 1;
		g->asked_since = clock_of(now);
	}
	if (g->posted != g->state->epoch) /* the host has arrived; sends wait for the wire */
		kind = NBAR_WHY_UNKNOWN;
	else if (nic->ops->host)
		kind = nic->ops->host(nic->ctx, g->port, now);
	g->host_why = why_pack(kind, clock_of(now) - g->asked_since);
	return g->host_why;
}

/* Sends a LATER of a member whose barrier runs to the member that asked last. */
static void tell_asker(struct nbnic *nic, struct nbnic_group *g, struct nbfw_action *a,
		       const struct nbnic_straggler *s, uint64_t now)
{
	struct nbnic_asker *asker = &g->asker;

	asker->rank = NBAR_RANK_NONE;
	a->reply_info = g->state->step;
	if (s) {
		asker->rank = a->reply_arg = s->rank;
		asker->kind = NBAR_WHY_KIND(s->why);
		a->reply_info |= (uint32_t)why_pack(asker->kind, clock_of(now) - s->since) << 16;
	}
	nbnic_send_reply(nic, g, g->rank, a, &asker->pull, &asker->from);
}

void nbnic_why_answer(struct nbnic *nic, struct nbnic_group *g, struct nbfw_action *a,
		      const struct nbfw_token *pull, const struct nbnic_addr *from, uint64_t now)
{
	if (a->reply == NBFW_LATER && g->state->running) {
		g->asker.pull = *pull;
		g->asker.from = *from;
		g->asker.step = g->state->step;
		tell_asker(nic, g, a, choose(g), now);
		return;
	}
	if (a->reply == NBFW_LATER)
		a->reply_info = (uint32_t)host_why(nic, g, now) << 16;
	else if (a->reply == NBFW_TOKEN)
		/* A token that still waits in the queue was not lost: its copy is no answer. */
		a->reply_info =
			pull->epoch == g->state->epoch && nbnic_sends_wait(g) ? 0 : pull->info;
	nbnic_send_reply(nic, g, g->rank, a, pull, from);
}

/* Tells the host which ranks are missing. With each timeout, the name of a straggler travels only
 * one member further, and the intervals between timeouts grow. So, if this member now knows another
 * name or reason, it sends one more LATER to the asker. */
static void why_tell(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	struct nbnic_asker *asker = &g->asker;
	const struct nbnic_straggler *s = choose(g);
	struct nbfw_action a; /* only the fields of a reply are set */

	nic->ops->stragglers(nic->ctx, g->port, g->cell, g->straggler, g->nstragglers);
	if (asker->step != g->state->step || asker->pull.epoch != g->state->epoch || !s ||
	    (s->rank == asker->rank && NBAR_WHY_KIND(s->why) == asker->kind))
		return;
	asker->step = NBNIC_ASKER_TOLD;
	a.reply = NBFW_LATER;
	tell_asker(nic, g, &a, s, now);
}

void nbnic_why_learn(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *later,
		     uint64_t now)
{
	uint32_t why = later->info >> 16, kind = NBAR_WHY_KIND(why), at = find(g, later->src);

	trace_new(nic, g, later->arg, kind);
	/* A member that names another member has arrived, and its NIC is not silent. */
	if (at < g->nstragglers)
		g->straggler[at] = g->straggler[--g->nstragglers];
	/* Our own host has arrived: an answer that names our rank is out of date. */
	if (kind != NBAR_WHY_UNKNOWN && kind < NBAR_WHY_END && later->arg != g->rank)
		note(g, later->arg, kind, clock_of(now), why_age(why));
	why_tell(nic, g, now);
}

/* True if the NIC of a slot has been silent for this number of intervals. */
static bool is_silent(const struct nbnic *nic, const struct nbnic_group *g, uint32_t slot,
		      uint32_t intervals, uint64_t now)
{
	const struct nbnic_heard *h = nbnic_heard_at(nic, g->recv_nic[slot]);
	uint32_t age = clock_of(now) - h->time;

	/* If another NIC has taken the entry, only this window shows whether the NIC was heard. */
	if (h->nic != g->recv_nic[slot])
		return g->state->tries % NBFW_WINDOW >= intervals &&
		       nbfw_missing_next(g->state, slot, slot + 1, false) == slot;
	return age > intervals * (uint32_t)(nbnic_interval(nic, g->state) >> NBNIC_HEARD_SHIFT) + 1;
}

/* Looks for silent NICs among the sources of the step. */
static void review_silent(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a,
			  uint64_t now)
{
	uint32_t end = a->pull_end, intervals = SILENT_AFTER;

	if (end - a->pull_first > NBFW_PULLS_MIN) {
		end = a->pull_first + NBFW_PULLS_MIN;
		intervals = SILENT_AFTER_LARGE;
	}
	if (g->state->tries < intervals)
		return;
	for (uint32_t slot = a->pull_first; slot < end; slot++)
		if (nbfw_missing(g->state, g->plan, slot) &&
		    is_silent(nic, g, slot, intervals, now)) {
			uint32_t src = nbfw_plan_recvs(g->plan)[slot].src;

			trace_new(nic, g, src, NBAR_WHY_NIC_SILENT);
			note(g, src, NBAR_WHY_NIC_SILENT, clock_of(now), 0);
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
	review_silent(nic, g, a, now);
	why_tell(nic, g, now);
}
