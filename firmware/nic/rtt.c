/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtt.c - early PULLs: after a loss, a group asks for missing tokens after some round trips, and
 * not only at the TIMEOUTs of the engine.
 *
 * Called when timers are due, and for frames that come soon after a PULL; never on the path from
 * token to completion. Must send nothing before a token was lost, and must not move a TIMEOUT: the
 * intervals of the TIMEOUTs add up to the retry budget. PROTOCOL.md, "Early PULLs".
 */
#include "nic.h"
#include "nic_internal.h"

#if NBNIC_ADAPT

/* After 16 rounds in a step the interval doubles. After 24 rounds without an answer, early PULLs
 * end. */
#define ROUNDS_EVEN 16u
#define UNANSWERED_MOST 24u
/* If a host is late for this time or longer, frame loss is not the cause. */
#define LATE_NS (UINT64_C(4) << NBAR_WHY_SHIFT)
/* If a loss on another path may have caused the PULL, the first interval grows by 1/16. */
#define SLOWLY 16u

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_early(const struct nbnic *nic, const struct nbnic_group *g)
{
	return g->first < nic->interval[0] && !g->rtt.stopped &&
	       g->rtt.unanswered < UNANSWERED_MOST;
}

/* The arithmetic of RFC 6298, with weights 1/8 and 1/4. */
static void take_sample(struct nbnic_rtt *r, uint64_t ns)
{
	uint64_t off = ns > r->smooth ? ns - r->smooth : r->smooth - ns;

	if (r->smooth == 0) {
		r->smooth = ns;
		r->off = ns / 2;
		return;
	}
	r->off += off / 4 - r->off / 4;
	r->smooth += ns / 8 - r->smooth / 8;
}

/* A token was lost: the group asks for the next one after two round trips, or later if they vary.
 */
static void follow(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	uint64_t ns = g->rtt.smooth;

	ns += 4 * g->rtt.off > ns ? 4 * g->rtt.off : ns;
	g->first = least(ns < NBNIC_PULL_NS_LEAST ? NBNIC_PULL_NS_LEAST : ns, nic->interval[0]);
	if (g->first == nic->interval[0])
		return;
	nic->sweep_ns = least(nic->sweep_ns, g->first / NBNIC_RTT_SWEEPS);
	nic->sweep_next = least(nic->sweep_next, now + nic->sweep_ns);
}

/* A PULL was not needed: the next step waits longer. */
static void wait_longer(const struct nbnic *nic, struct nbnic_group *g, bool *once, uint64_t by)
{
	if (!*once)
		g->first = least(g->first + by, nic->interval[0]);
	*once = true;
}

/* The peer has answered LATER: it waits itself, for its host or for a token, which may be lost,
 * too. */
static void learn_later(const struct nbnic *nic, struct nbnic_group *g, uint32_t why)
{
	if (NBAR_WHY_KIND(why) == NBAR_WHY_UNKNOWN || NBAR_WHY_KIND(why) >= NBAR_WHY_END) {
		wait_longer(nic, g, &g->rtt.slowed, g->first / SLOWLY);
		return;
	}
	wait_longer(nic, g, &g->rtt.doubled, g->first);
	g->rtt.stopped |= NBAR_WHY_NS(why) >= LATE_NS;
}

void nbnic_rtt_learn(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *t,
		     uint64_t now)
{
	const struct nbfw_state *s = g->state;
	struct nbnic_rtt *r = &g->rtt;
	uint64_t ns = now - r->asked;

	if (r->epoch != s->epoch || r->step != s->step || t->epoch != s->epoch ||
	    !nbfw_missing(s, g->plan, t->slot) || nbfw_plan_recvs(g->plan)[t->slot].src != t->src)
		return;
	bool answered = r->unanswered == 0;

	r->unanswered = 0;
	if (t->type == NBFW_LATER) {
		learn_later(nic, g, t->info >> 16);
	} else if (t->type == NBFW_TOKEN && t->info == 0) {
		/* This token is no answer to a PULL: the peer has sent it of its own accord. */
		if (!answered)
			wait_longer(nic, g, &r->slowed, g->first / SLOWLY);
	} else if (t->type == NBFW_TOKEN) {
		/* If the token answers an earlier PULL, that PULL is at least one interval
		 * older. */
		take_sample(r,
			    least(t->info == r->rounds ? ns | 1 : ns + g->first, nic->interval[0]));
		follow(nic, g, now);
	}
}

/* The timer of a step is due for the first time. */
static void begin_step(const struct nbnic *nic, struct nbnic_group *g)
{
	g->rtt.epoch = g->state->epoch;
	g->rtt.step = g->state->step;
	g->rtt.timeout = g->deadline + nic->interval[0] - g->first;
	g->rtt.interval = g->first;
	g->rtt.rounds = g->rtt.unanswered = 0;
	g->rtt.slowed = g->rtt.doubled = g->rtt.stopped = g->rtt.waits = false;
}

bool nbnic_rtt_fire(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	const struct nbfw_state *s = g->state;
	const struct nbar_step *step = &nbfw_plan_steps(g->plan)[s->step];
	struct nbnic_rtt *r = &g->rtt;

	if (r->epoch != s->epoch || r->step != s->step)
		begin_step(nic, g);
	bool early = now < r->timeout;

	/* A large step would need too many early PULLs. PULLs that wait already go first. */
	if (early && step->nslot > NBFW_PULLS_MIN) {
		nbnic_arm(nic, g, r->timeout);
		return true;
	}
	if (early && !nbnic_rota_empty(&nic->pulls)) {
		nbnic_arm(nic, g, least(r->timeout, now + r->interval));
		return true;
	}
	r->waits = true;
	r->is_timeout = !early;
	if (early) {
		/* If these PULLs still wait at the TIMEOUT, the PULLs of the TIMEOUT replace
		 * them. */
		nbnic_arm(nic, g, r->timeout);
		nbnic_pull_begin(nic, g, s->want, step->first_slot + step->nslot);
	}
	return early;
}

void nbnic_rtt_asked(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	struct nbnic_rtt *r = &g->rtt;

	if (!r->waits)
		return;
	r->waits = false;
	r->asked = now;
	r->rounds++;
	r->unanswered++;
	if (nic->doubt_end < now + nic->interval[0])
		nic->doubt_end = now + nic->interval[0];
}

uint64_t nbnic_rtt_due(const struct nbnic *nic, struct nbnic_group *g, uint64_t ns, uint64_t now)
{
	struct nbnic_rtt *r = &g->rtt;

	/* If a TIMEOUT has caused the PULLs, the next TIMEOUT is due after ns. */
	if (r->is_timeout)
		r->timeout = now + ns;
	if (!is_early(nic, g))
		return r->timeout;
	if (r->rounds > ROUNDS_EVEN)
		r->interval = least(2 * r->interval, nic->interval[0]);
	return least(r->timeout, now + r->interval);
}

#endif
