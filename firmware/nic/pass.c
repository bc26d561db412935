/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass.c - the scheduler: fires timers, and gives queued sends and PULLs their share of each pass.
 *
 * Called once per pass, after frames and doorbells. Every loop has a budget; the next pass does the
 * work that is left. PROTOCOL.md, "The bound of a poll pass", adds up the budgets.
 */
#include "nic.h"
#include "nic_internal.h"

/* What the sweep over the timers may cost in a pass. An index costs 1. A timer that fires costs
 * SWEEP_COST_FIRED more, and 1 more for each SWEEP_COST_SLOTS slots of the plan. */
#define SWEEP_COST 64u
#define SWEEP_COST_FIRED 8u
#define SWEEP_COST_SLOTS 64u
#define SWEEP_NS_A_GROUP 64u /* the least time between two sweeps is this for each group */
#define LINGER_A_PASS 16u    /* lingering groups that a pass looks at */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Rule R5: before the TIMEOUT that ends a window, tells the engine which sources are alive. A
 * source is alive if this NIC has heard the NIC of the source, in any group, within the retry
 * budget. One clock unit is added to the budget, because both times are rounded down. */
static void hear_alive(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	const struct nbar_step *step = &nbfw_plan_steps(g->plan)[g->state->step];
	uint32_t end = step->first_slot + step->nslot;
	uint32_t slot = nbfw_missing_next(g->state, g->state->want, end, false);

	for (; slot < end; slot = nbfw_missing_next(g->state, slot + 1, end, false)) {
		uint32_t hash = g->recv_nic[slot];
		const struct nbnic_heard *h = nbnic_heard_at(nic, hash);
		uint32_t age = (uint32_t)(now >> NBNIC_HEARD_SHIFT) - h->time;

		if (h->nic == hash && age <= (nic->budget_ns >> NBNIC_HEARD_SHIFT) + 1)
			nbfw_hear(g->state, g->plan, slot);
	}
}

static void pass_fire(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
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

/* Returns the time until the next sweep: half of pull_ns, or less if the last sweep found groups
 * that send PULLs earlier. Many groups make this time longer, so that sweeps take a small part of
 * all time. */
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

/* Makes the next sweep come sooner if this group sends early PULLs. Groups that linger or have
 * failed send no PULLs. */
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
 * be due, but at most once per sweep_interval. Each sweep begins one index later than the last
 * sweep. So each group is sometimes the first to send PULLs, even if the receive queue of a peer
 * has room for only one. */
static bool pass_sweep(struct nbnic *nic, uint64_t now)
{
	bool fired = false;

	if (!nic->sweeping) {
		if (now < nic->due || now < nic->sweep_next)
			return false;
		nic->sweeping = true;
		/* The last sweep may have ended at `high`, which stands for index 0. */
		nic->sweep_at = nic->sweep_at < nic->high ? nic->sweep_at + 1 : 1;
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
		pass_fire(nic, g, now);
		cost += SWEEP_COST_FIRED + g->plan->nrecv / SWEEP_COST_SLOTS;
	}
	nic->sweeping = nic->sweep_left > 0;
	return fired;
}

/* Returns how many sends of a group wait. */
static uint32_t unsent(const struct nbnic_group *g)
{
	return (uint32_t)(g->token_end - g->token_at) + (uint32_t)(g->abort_end - g->abort_at);
}

/* Ends the lingering of groups whose time is over, the oldest first. If sends of a group still
 * wait, the group lingers for one more retry budget, and for another one as long as sends go
 * out. */
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

/* Returns up to an eighth of the interval, another part each time. So NICs that began to wait at
 * the same moment do not send PULLs at the same moments. */
static uint64_t jitter(const struct nbnic *nic, const struct nbnic_group *g)
{
	uint32_t mix = (uint32_t)g->cookie ^ (uint32_t)(g->cookie >> 32);
	uint32_t hash = (mix * 31 + g->timeouts) * UINT32_C(0x9e3779b1);

	return (nbnic_interval(nic, g->state) >> 11) * (hash >> 24);
}

/* All PULLs of a group are out. Returns when its timer is due. */
static uint64_t next_deadline(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	uint64_t ns = nbnic_interval(nic, g->state) + jitter(nic, g);

#if NBNIC_ADAPT
	return nbnic_rtt_due(nic, g, ns, now);
#else
	return now + ns;
#endif
}

/* Returns how many frames this pass may send from queues. A pass that has already sent frames
 * serves the queues only if the last pass did not. So barriers without a backlog wait for fewer
 * frames. */
static uint32_t queue_quota(const struct nbnic *nic)
{
	return nic->used.frames > 0 && nic->pass - nic->queue_turn == 1 ? 0 : nic->quota;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns how many of `most` PULLs and PROBEs may go out now: at most NBNIC_PULLS_A_TICK in each
 * pace_ns. */
static uint32_t paced(struct nbnic *nic, uint32_t most, uint64_t now)
{
	if (now >= nic->pull_next) {
		nic->pull_next = now + nic->pace_ns;
		nic->pull_left = NBNIC_PULLS_A_TICK;
	}
	return smaller(smaller(most, nic->pull_left), nbnic_frames_left(nic));
}

/* Continues the PULL jobs: sends at most `most` PULLs now. Returns the number of PULLs sent. */
static uint32_t serve_pulls(struct nbnic *nic, uint32_t most, uint64_t now)
{
	uint32_t left, begin;

	if (nbnic_rota_empty(&nic->pulls))
		return 0;
	begin = left = paced(nic, most, now);
	while (left > 0 && !nic->full && !nbnic_rota_empty(&nic->pulls)) {
		bool fresh = !nbnic_link_empty(&nic->pulls.fresh);
		struct nbnic_group *g = NBNIC_CONTAINER(nbnic_rota_take(&nic->pulls, fresh), pull);
		uint32_t pulled = nbnic_pull_some(nic, g, smaller(left, NBNIC_QUANTUM), now);

#if NBNIC_ADAPT
		if (pulled)
			nbnic_rtt_asked(nic, g, now);
#endif
		left -= pulled;
		nic->pull_left -= pulled;
		if (g->pull_left)
			nbnic_rota_add(&nic->pulls, g->port, &g->pull);
		else
			nbnic_arm(nic, g, next_deadline(nic, g, now));
	}
	return begin - left;
}

/* Sends PULLs, and PROBEs if hosts have asked for some: the two have turns. */
static uint32_t serve_asks(struct nbnic *nic, uint32_t most, uint64_t now)
{
	uint32_t probed = 0;

	if (__builtin_expect(nic->probing, 0) && most > 0) {
		nic->probes_first = !nic->probes_first;
		if (nic->probes_first || nbnic_rota_empty(&nic->pulls))
			probed = nbnic_probe_serve(nic, paced(nic, most, now));
		nic->pull_left -= probed;
	}
	return probed + serve_pulls(nic, most - probed, now);
}

/* Visits a group: sends its waiting frames, then starts its posted barriers, with at most `limit`
 * frames in all. Returns the number of frames sent, or 1 if there were none. */
static uint32_t pass_visit(struct nbnic *nic, struct nbnic_group *g, uint32_t limit, uint64_t now)
{
	uint32_t before = nic->used.frames;
	uint32_t done = nbnic_send_some(nic, g, limit);
	uint32_t *share = nbnic_share_left(nic, g->port);

	/* The frames of barriers that start now count against this share. */
	*share = smaller(*share, limit - done);
	nbnic_start_posted(nic, g, NBNIC_QUANTUM, now);
	if (nbnic_sends_wait(g) || nbnic_may_start(g))
		nbnic_rota_add(&nic->sends, g->port, &g->send);
	if (done < nic->used.frames - before)
		done = nic->used.frames - before;
	return done ? done : 1;
}

/* Serves fresh ports (rota.h) first, so that their hosts do not wait for the backlog of other
 * ports. The other ports get at most `left` frames in this pass. */
static bool serve_sends(struct nbnic *nic, uint32_t left, uint64_t now)
{
	bool any = false;

	for (uint32_t n = 0; n < NBNIC_PASS_VISITS && !nic->full; n++) {
		/* Fresh ports leave the last `quota` frames and visits (at most half of the visits)
		 * to the other ports. */
		bool fresh = n + smaller(nic->quota, NBNIC_PASS_VISITS / 2) < NBNIC_PASS_VISITS &&
			     !nbnic_link_empty(&nic->sends.fresh) &&
			     nbnic_frames_left(nic) > nic->quota;

		if (!fresh && (left == 0 || nbnic_link_empty(&nic->sends.ports)))
			break;
		struct nbnic_group *g = NBNIC_CONTAINER(nbnic_rota_take(&nic->sends, fresh), send);
		uint32_t limit = left;

		if (fresh)
			limit = smaller(nbnic_frames_left(nic) - nic->quota, nic->quota);
		uint32_t cost = pass_visit(nic, g, smaller(limit, NBNIC_QUANTUM), now);

		any = true;
		if (!fresh)
			left -= smaller(left, cost);
	}
	return any;
}

/* PULLs and PROBEs get half of the frames that the pass sends from queues. If this number is odd,
 * they get the larger half and the smaller half in turn. */
static bool serve_queues(struct nbnic *nic, uint64_t now)
{
	uint32_t quota = queue_quota(nic);
	uint32_t pulled = serve_asks(nic, (quota + nic->pulls_round_up) / 2, now);
	bool any = serve_sends(nic, quota - pulled, now);

	if (quota) {
		nic->queue_turn = nic->pass;
		nic->pulls_round_up = !nic->pulls_round_up;
	}
	return any || pulled > 0;
}

/* True if no work waits, as in most passes. */
static bool is_idle(const struct nbnic *nic, uint64_t now)
{
	return (nic->sends.nport | nic->pulls.nport | nic->nlinger | nic->sweeping |
		nic->probing) == 0 &&
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

/* Not inline: on the path of a token no work waits, so this code would only lengthen the path. */
__attribute__((noinline)) static bool serve(struct nbnic *nic, uint64_t now)
{
	bool any = pass_sweep(nic, now);

	nic->full = false; /* the wire may have room again */
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
	if (!nbnic_rota_empty(&nic->pulls) || nic->probing)
		next = least(next, nic->pull_left > 0 ? 0 : nic->pull_next);
	if (!nbnic_link_empty(&nic->linger))
		next = least(next, NBNIC_CONTAINER(nic->linger.next, linger)->deadline);
	return next;
}
