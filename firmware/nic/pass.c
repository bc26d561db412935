/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass.c - the scheduler: what waits, gets its share of each pass.
 *
 * Called once a pass, after frames and doorbells. Every loop is bounded by a budget; what is left
 * goes on where it stopped, in the next pass. PROTOCOL.md, "The bound of a poll pass", adds them
 * up.
 */
#include "nic.h"
#include "nic_internal.h"

/* Of the sweep over the timers, per pass: an index costs 1, a timer that fires some more. */
#define SWEEP_COST 64u
#define SWEEP_COST_FIRED 8u
#define SWEEP_COST_SLOTS 64u /* slots that cost 1 more, when a timer fires */
#define LINGER_A_PASS 16u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* R5: before the TIMEOUT that ends a window. A source is alive if its NIC was heard within the
 * retry budget, by whichever group. */
static void hear_alive(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	const struct nbar_step *step = &nbfw_plan_steps(g->plan)[g->state->step];
	uint32_t end = step->first_slot + step->nslot;

	for (uint32_t slot = g->state->want; slot < end; slot++) {
		slot = nbfw_missing_next(g->state, slot, end, false);
		if (slot == end)
			break;
		uint32_t hash = g->recv_nic[slot];
		const struct nbnic_heard *h = &nic->heard[hash / 2 % NBNIC_HEARD_MAX];
		uint32_t age = (uint32_t)(now >> NBNIC_HEARD_SHIFT) - h->time;

		if (hash && h->nic == hash && age <= nic->budget_ns >> NBNIC_HEARD_SHIFT)
			nbfw_hear(g->state, g->plan, slot);
	}
}

static void fire(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	static const struct nbfw_event timeout = { .type = NBFW_EV_TIMEOUT };

	uint32_t tries = g->state->tries % NBFW_WINDOW;

	if (tries == NBFW_WINDOW / 2)
		nic->doubt_end = now + nic->budget_ns;
	if (tries == NBFW_WINDOW - 1)
		hear_alive(nic, g, now);
	nbnic_feed(nic, g, &timeout, now);
}

/* Looks at some of the groups, and fires the timers that are due. A sweep begins when one may be,
 * but not more often than every pace_ns. */
static bool sweep(struct nbnic *nic, uint64_t now)
{
	bool fired = false;

	if (!nic->sweeping) {
		if (now < nic->due || now < nic->sweep_next)
			return false;
		nic->sweeping = true;
		nic->sweep_at = 0;
		nic->sweep_next = now + nic->pace_ns;
		nic->due = UINT64_MAX;
	}
	for (uint32_t cost = 0; cost < SWEEP_COST && nic->sweep_at < nic->high; cost++) {
		struct nbnic_group *g = nic->group[nic->sweep_at++];

		if (!g || !g->armed)
			continue;
		if (now < g->deadline) {
			nic->due = least(nic->due, g->deadline);
			continue;
		}
		fired = true;
		fire(nic, g, now);
		cost += SWEEP_COST_FIRED + g->plan->nrecv / SWEEP_COST_SLOTS;
	}
	nic->sweeping = nic->sweep_at < nic->high;
	return fired;
}

/* Sends that wait. */
static uint32_t unsent(const struct nbnic_group *g)
{
	return (uint32_t)(g->token_end - g->token_at) + (uint32_t)(g->abort_end - g->abort_at);
}

/* Ends the lingering of groups, the oldest first. A group lingers longer while its sends go out. */
static bool end_lingering(struct nbnic *nic, uint64_t now)
{
	uint32_t n = 0;

	for (; n < LINGER_A_PASS && !nbnic_link_empty(&nic->linger); n++) {
		struct nbnic_group *g = NBNIC_CONTAINER(nic->linger.next, linger);
		uint32_t left = unsent(g);

		if (now < g->deadline)
			break;
		if (left == 0 || left == g->linger_unsent) {
			nbnic_group_release(nic, nbnic_index(g->handle));
			continue;
		}
		g->linger_unsent = left;
		g->deadline = now + nic->budget_ns;
		nbnic_link_remove(&g->linger);
		nbnic_link_append(&nic->linger, &g->linger);
	}
	return n > 0;
}

/* Adds up to an eighth to an interval, another time each time: NICs that began to wait at the same
 * moment do not go on asking at the same moments. */
static uint64_t jitter(const struct nbnic *nic, const struct nbnic_group *g)
{
	uint32_t mix = (uint32_t)g->cookie ^ (uint32_t)(g->cookie >> 32);
	uint32_t hash = (mix * 31 + g->timeouts) * UINT32_C(0x9e3779b1);

	return (nbnic_interval(nic, g->state) >> 11) * (hash >> 24);
}

/* Goes on with the jobs that ask for tokens: NBNIC_PULLS_A_TICK slots every pace_ns, and half of
 * what the pass has left. */
static bool serve_pulls(struct nbnic *nic, uint64_t now)
{
	uint32_t left = (nic->pass_left + 1) / 2;
	bool any = false;

	if (nbnic_rota_empty(&nic->pulls))
		return false;
	if (now >= nic->pull_next) {
		nic->pull_next = now + nic->pace_ns;
		nic->pull_left = NBNIC_PULLS_A_TICK;
	}
	left = left < nic->pull_left ? left : nic->pull_left;
	while (left > 0 && !nic->full && !nbnic_rota_empty(&nic->pulls)) {
		struct nbnic_group *g = NBNIC_CONTAINER(nbnic_rota_take(&nic->pulls), pull);
		uint32_t pulled =
			nbnic_pull_some(nic, g, left < NBNIC_QUANTUM ? left : NBNIC_QUANTUM);

		any = true;
		left -= pulled;
		nic->pull_left -= pulled;
		if (g->pull_left > 0)
			nbnic_rota_add(&nic->pulls, g->port, &g->pull);
		else
			nbnic_arm(nic, g, jitter(nic, g), now);
	}
	return any;
}

/* A visit to a group: sends that wait, and then starts. Returns what it cost, at least 1. */
static uint32_t visit(struct nbnic *nic, struct nbnic_group *g, uint32_t limit, uint64_t now)
{
	uint32_t cost = nbnic_send_some(nic, g, limit);

	if (!nic->full && !nbnic_sends_wait(g) && cost < limit)
		cost += nbnic_start_posted(nic, g, limit - cost, now);
	if (nbnic_sends_wait(g) || nbnic_may_start(g))
		nbnic_rota_add(&nic->sends, g->port, &g->send);
	return cost > 0 ? cost : 1;
}

static bool serve_sends(struct nbnic *nic, uint64_t now)
{
	uint32_t left = NBNIC_PASS_FRAMES;
	bool any = false;

	while (left > 0 && nic->pass_left > 0 && !nic->full && !nbnic_rota_empty(&nic->sends)) {
		struct nbnic_group *g = NBNIC_CONTAINER(nbnic_rota_take(&nic->sends), send);
		uint32_t cost = visit(nic, g, left < NBNIC_QUANTUM ? left : NBNIC_QUANTUM, now);

		any = true;
		left -= cost;
	}
	return any;
}

/* True if nothing waits: most passes end here. */
static bool is_idle(const struct nbnic *nic, uint64_t now)
{
	return nbnic_rota_empty(&nic->sends) && nbnic_rota_empty(&nic->pulls) && !nic->sweeping &&
	       (now < nic->due || now < nic->sweep_next) && nbnic_link_empty(&nic->linger);
}

/* True if the pass has not touched its budget. */
static bool is_unused(const struct nbnic *nic)
{
	const uint32_t used = (nic->pass_left ^ NBNIC_PASS_FRAMES) |
			      (nic->strangers_left ^ NBNIC_STRANGERS) |
			      (nic->starts_left ^ NBNIC_PASS_STARTS) |
			      (nic->wakes_left ^ NBNIC_PASS_WAKES) | nic->full;

	return used == 0;
}

bool nbnic_work(struct nbnic *nic, uint64_t now)
{
	bool any = false;

	if (!is_idle(nic, now)) {
		any = sweep(nic, now);
		nic->full = false; /* it may have room again */
		any |= end_lingering(nic, now);
		any |= serve_pulls(nic, now);
		any |= serve_sends(nic, now);
	} else if (is_unused(nic)) {
		return false;
	}
	nic->pass++;
	nic->pass_left = NBNIC_PASS_FRAMES;
	nic->inline_left = NBNIC_PASS_INLINE;
	nic->strangers_left = NBNIC_STRANGERS;
	nic->starts_left = NBNIC_PASS_STARTS;
	nic->wakes_left = NBNIC_PASS_WAKES;
	nic->full = false;
	return any;
}

uint64_t nbnic_next(const struct nbnic *nic)
{
	uint64_t next = nic->due;

	if (nic->sweeping || !nbnic_rota_empty(&nic->sends))
		return 0;
	if (next < nic->sweep_next)
		next = nic->sweep_next;
	if (!nbnic_rota_empty(&nic->pulls))
		next = least(next, nic->pull_left > 0 ? 0 : nic->pull_next);
	if (!nbnic_link_empty(&nic->linger))
		next = least(next, NBNIC_CONTAINER(nic->linger.next, linger)->deadline);
	return next;
}
