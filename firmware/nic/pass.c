/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass.c - the scheduler: gives waiting work its share of each pass.
 *
 * Called once per pass, after frames and doorbells. Every loop is bounded by a budget; the rest
 * continues in the next pass, where it stopped. PROTOCOL.md, "The bound of a poll pass", adds them
 * up.
 */
#include "nic.h"
#include "nic_internal.h"

/* Budget of the sweep over the timers in a pass: an index costs 1, a timer that fires costs more.
 */
#define SWEEP_COST 64u
#define SWEEP_COST_FIRED 8u
#define SWEEP_COST_SLOTS 64u /* slots that cost 1 more, when a timer fires */
#define SWEEP_NS_A_GROUP 64u /* between two sweeps, for each group: a visit takes some ns */
#define LINGER_A_PASS 16u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* R5: before the TIMEOUT that ends a window. A source is alive if any group has heard its NIC
 * within the retry budget, and a unit of the clock: both times are rounded down. */
static void hear_alive(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	const struct nbar_step *step = &nbfw_plan_steps(g->plan)[g->state->step];
	uint32_t end = step->first_slot + step->nslot;

	for (uint32_t slot = g->state->want; slot < end; slot++) {
		slot = nbfw_missing_next(g->state, slot, end, false);
		if (slot == end)
			break;
		uint32_t hash = g->recv_nic[slot];
		const struct nbnic_heard *h = nbnic_heard_at(nic, hash);
		uint32_t age = (uint32_t)(now >> NBNIC_HEARD_SHIFT) - h->time;

		if (hash && h->nic == hash && age <= (nic->budget_ns >> NBNIC_HEARD_SHIFT) + 1)
			nbfw_hear(g->state, g->plan, slot);
	}
}

static void fire(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	static const struct nbfw_event timeout = { .type = NBFW_EV_TIMEOUT };

	uint32_t tries = g->state->tries % NBFW_WINDOW;

#if NBNIC_ADAPT
	if (nbnic_rtt_fire(nic, g, now))
		return;
#endif
	if (tries == NBFW_WINDOW / 2)
		nic->doubt_end = now + nic->budget_ns;
	if (tries == NBFW_WINDOW - 1)
		hear_alive(nic, g, now);
	nbnic_feed(nic, g, &timeout, now);
}

/* The time until the next sweep: half of pull_ns, or less if the last sweep found groups that ask
 * earlier. Many groups make it longer, so that sweeps take a small part of the time. */
static uint64_t sweep_interval(struct nbnic *nic)
{
#if NBNIC_ADAPT
	uint64_t ns = nic->sweep_ns, least_ns = nic->high * SWEEP_NS_A_GROUP;

	nic->sweep_ns = nic->pace_ns;
	return ns > least_ns ? ns : least_ns;
#else
	return nic->pace_ns;
#endif
}

/* A group that lingers or has failed never asks again. */
static void sweep_sooner(struct nbnic *nic, const struct nbnic_group *g)
{
#if NBNIC_ADAPT
	if (g->first < nic->interval[0] && g->state->cause == NBAR_STATUS_OK)
		nic->sweep_ns = least(nic->sweep_ns, g->first / NBNIC_RTT_SWEEPS);
#else
	(void)nic, (void)g;
#endif
}

/* Looks at some of the groups, and fires the timers that are due. A sweep begins when a timer may
 * be due, but at most once per sweep_interval. Each sweep begins one index after the start of the
 * last one: so, if the receive queue of a peer has room for one PULL only, each group has its turn.
 */
static bool sweep(struct nbnic *nic, uint64_t now)
{
	bool fired = false;

	if (!nic->sweeping) {
		if (now < nic->due || now < nic->sweep_next)
			return false;
		nic->sweeping = true;
		nic->sweep_at++;
		nic->sweep_left = nic->high;
		nic->sweep_next = now + sweep_interval(nic);
		nic->due = UINT64_MAX;
	}
	for (uint32_t cost = 0; cost < SWEEP_COST && nic->sweep_left > 0; cost++) {
		if (nic->sweep_at >= nic->high)
			nic->sweep_at = 0;
		struct nbnic_group *g = nic->group[nic->sweep_at++];

		nic->sweep_left--;
		if (!g)
			continue;
		sweep_sooner(nic, g);
		if (!g->armed)
			continue;
		if (now < g->deadline) {
			nic->due = least(nic->due, g->deadline);
			continue;
		}
		fired = true;
		fire(nic, g, now);
		cost += SWEEP_COST_FIRED + g->plan->nrecv / SWEEP_COST_SLOTS;
	}
	nic->sweeping = nic->sweep_left > 0;
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
		nbnic_link_remove(&g->user_linger);
		nbnic_link_append(&nic->user[g->user].groups, &g->user_linger);
	}
	return n > 0;
}

/* Adds up to an eighth to an interval, a different part each time, so that NICs that began to wait
 * at the same moment do not send PULLs at the same moments. */
static uint64_t jitter(const struct nbnic *nic, const struct nbnic_group *g)
{
	uint32_t mix = (uint32_t)g->cookie ^ (uint32_t)(g->cookie >> 32);
	uint32_t hash = (mix * 31 + g->timeouts) * UINT32_C(0x9e3779b1);

	return (nbnic_interval(nic, g->state) >> 11) * (hash >> 24);
}

/* When the timer of a group whose PULLs are out is due. */
static uint64_t next_deadline(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	uint64_t ns = nbnic_interval(nic, g->state) + jitter(nic, g);

#if NBNIC_ADAPT
	return nbnic_rtt_due(nic, g, ns, now);
#else
	return now + ns;
#endif
}

/* Frames that this pass may send from queues. If it has already sent frames, the queues are served
 * only in every second pass: the barrier of a bystander then waits for fewer frames. */
static uint32_t queue_quota(const struct nbnic *nic)
{
	return nic->used.frames > 0 && nic->pass - nic->queue_turn == 1 ? 0 : nic->quota;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Goes on with the jobs that ask for tokens: for at most NBNIC_PULLS_A_TICK slots every pace_ns,
 * and for at most `most` in this pass. Returns for how many it asked. */
static uint32_t serve_pulls(struct nbnic *nic, uint32_t most, uint64_t now)
{
	uint32_t left, begin;

	if (nbnic_rota_empty(&nic->pulls))
		return 0;
	if (now >= nic->pull_next) {
		nic->pull_next = now + nic->pace_ns;
		nic->pull_left = NBNIC_PULLS_A_TICK;
	}
	begin = left = smaller(smaller(most, nic->pull_left), nbnic_frames_left(nic));
	while (left > 0 && !nic->full && !nbnic_rota_empty(&nic->pulls)) {
		bool fresh = !nbnic_link_empty(&nic->pulls.fresh);
		struct nbnic_group *g = NBNIC_CONTAINER(nbnic_rota_take(&nic->pulls, fresh), pull);
		uint32_t pulled = nbnic_pull_some(nic, g, smaller(left, NBNIC_QUANTUM));

#if NBNIC_ADAPT
		if (pulled > 0)
			nbnic_rtt_asked(nic, g, now);
#endif
		left -= pulled;
		nic->pull_left -= pulled;
		if (g->pull_left > 0)
			nbnic_rota_add(&nic->pulls, g->port, &g->pull);
		else
			nbnic_arm(nic, g, next_deadline(nic, g, now));
	}
	return begin - left;
}

/* Visits a group: sends the waiting frames, then starts barriers; their frames count against the
 * share of the port. Returns the cost in frames, at least 1. */
static uint32_t visit(struct nbnic *nic, struct nbnic_group *g, uint32_t limit, uint64_t now)
{
	uint32_t before = nic->used.frames;
	uint32_t done = nbnic_send_some(nic, g, limit);
	uint32_t *share = nbnic_share_left(nic, g->port);

	/* For the frames that go out as barriers start. */
	*share = smaller(*share, limit - done);
	if (!nic->full && !nbnic_sends_wait(g))
		nbnic_start_posted(nic, g, NBNIC_QUANTUM, now);
	if (nbnic_sends_wait(g) || nbnic_may_start(g))
		nbnic_rota_add(&nic->sends, g->port, &g->send);
	if (done < nic->used.frames - before)
		done = nic->used.frames - before;
	return done > 0 ? done : 1;
}

/* Serves the fresh ports first: their hosts do not wait for the backlog of others. Ports that have
 * waited get `left` frames in this pass. */
static bool serve_sends(struct nbnic *nic, uint32_t left, uint64_t now)
{
	bool any = false;

	for (uint32_t n = 0; n < NBNIC_PASS_VISITS && !nic->full; n++) {
		/* Fresh ports leave the last `quota` frames, and as many visits, to those that have
		 * waited. */
		bool fresh = n + smaller(nic->quota, NBNIC_PASS_VISITS / 2) < NBNIC_PASS_VISITS &&
			     !nbnic_link_empty(&nic->sends.fresh) &&
			     nbnic_frames_left(nic) > nic->quota;

		if (!fresh && (left == 0 || nbnic_link_empty(&nic->sends.ports)))
			break;
		struct nbnic_group *g = NBNIC_CONTAINER(nbnic_rota_take(&nic->sends, fresh), send);
		uint32_t limit = left;

		if (fresh)
			limit = smaller(nbnic_frames_left(nic) - nic->quota, nic->quota);
		uint32_t cost = visit(nic, g, smaller(limit, NBNIC_QUANTUM), now);

		any = true;
		if (!fresh)
			left -= smaller(left, cost);
	}
	return any;
}

/* PULLs get half of the frames that the pass sends from queues; if that is one frame, every second
 * one. */
static bool serve_queues(struct nbnic *nic, uint64_t now)
{
	uint32_t quota = queue_quota(nic);
	uint32_t pulled = serve_pulls(nic, (quota + nic->pulls_round_up) / 2, now);
	bool any = serve_sends(nic, quota - pulled, now);

	if (quota > 0) {
		nic->queue_turn = nic->pass;
		nic->pulls_round_up = !nic->pulls_round_up;
	}
	return any || pulled > 0;
}

/* True if nothing waits: most passes end here. */
static bool is_idle(const struct nbnic *nic, uint64_t now)
{
	return (nic->sends.nport | nic->pulls.nport | nic->nlinger | nic->sweeping) == 0 &&
	       (now < nic->due || now < nic->sweep_next);
}

/* True if the pass has not touched its budget. */
static bool is_unused(const struct nbnic *nic)
{
	const struct nbnic_used *u = &nic->used;

	return (u->frames | u->inlined | u->starts | u->wakes | nic->full) == 0;
}

static void end_pass(struct nbnic *nic)
{
	nic->pass++;
	nic->used = (struct nbnic_used){ 0 };
	nic->full = false;
}

/* Kept out of the path of a token, which finds nothing that waits. */
__attribute__((noinline)) static bool serve(struct nbnic *nic, uint64_t now)
{
	bool any = sweep(nic, now);

	nic->full = false; /* it may have room again */
	any |= end_lingering(nic, now);
	any |= serve_queues(nic, now);
	return any;
}

bool nbnic_work(struct nbnic *nic, uint64_t now)
{
	bool any = false;

	if (!is_idle(nic, now)) {
		any = serve(nic, now);
	} else if (is_unused(nic)) {
		return false;
	}
	end_pass(nic);
	return any;
}

void nbnic_quota_set(struct nbnic *nic, uint32_t quota)
{
	nic->quota = quota;
	end_pass(nic);
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
