/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtt.c - early PULLs (a PULL asks for a missing token): after a loss, a group sends them after
 * some round trips, and not only at the TIMEOUTs of the engine.
 *
 * Called when timers are due, for each LATER and ABORT, and for TOKENs that come soon after a PULL;
 * never for other tokens. Must send nothing before a token was lost, and must not move a TIMEOUT:
 * the intervals of the TIMEOUTs add up to the retry budget. PROTOCOL.md, "Early PULLs".
 */
#include "nic.h"
#include "nic_internal.h"

#if NBNIC_ADAPT

/* An interval is at least this part of the time that the step has waited. So a token lost after a
 * long wait lengthens the wait by about an eighth, and a late host causes few PULLs. */
#define WAIT_PART 8u
/* How much the interval grows after a needless PULL: by 1/16 if a loss elsewhere may be the cause;
 * by 1/2 if the peer reports that another member is late, because that report may be old. */
#define SLOWLY 16u
#define HEARSAY 2u
/* In units of pull_ns. After a PULL, the NIC looks for answers for this time. A round trip never
 * counts as longer. */
#define DOUBT 4u

static uint64_t rtt_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The upper limit of the interval. At this limit a group sends no early PULLs. */
static uint64_t longest(const struct nbnic *nic)
{
	return nic->budget_ns / NBFW_WINDOW;
}

/* Sets the interval of early PULLs. */
static void set_every(const struct nbnic *nic, struct nbnic_group *g, uint64_t ns)
{
	g->rtt.every = rtt_least(ns, longest(nic));
	g->first = rtt_least(ns, nic->interval[0]);
}

void nbnic_rtt_begin(const struct nbnic *nic, struct nbnic_group *g)
{
	set_every(nic, g, longest(nic));
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
	set_every(nic, g, ns < NBNIC_PULL_NS_LEAST ? NBNIC_PULL_NS_LEAST : ns);
	if (g->first == nic->interval[0])
		return;
	nic->sweep_ns = rtt_least(nic->sweep_ns, g->first / NBNIC_RTT_SWEEPS);
	nic->sweep_next = rtt_least(nic->sweep_next, now + nic->sweep_ns);
}

/* A PULL was answered, and the answer repeats the time of this PULL. A pause of the peer must not
 * count as a long round trip, so a sample is at most twice the interval. */
static void learn_answer(struct nbnic *nic, struct nbnic_group *g, uint32_t sent, uint64_t now)
{
	uint64_t ns = (uint64_t)(nbnic_stamp(now) - sent) << NBNIC_STAMP_SHIFT;
	uint64_t most = rtt_least(2 * g->rtt.every, DOUBT * nic->interval[0]);

	take_sample(&g->rtt, rtt_least(ns | 1, most));
	follow(nic, g, now);
}

/* A PULL was not needed: the group waits longer before the next one. */
static void wait_longer(const struct nbnic *nic, struct nbnic_group *g, bool *once, uint64_t by)
{
	if (!*once)
		set_every(nic, g, g->rtt.every + by);
	*once = true;
}

/* The peer has answered LATER. It is waiting too: for its host, for a late member, or for a token
 * that may be lost. */
static void learn_later(const struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *t)
{
	struct nbnic_rtt *r = &g->rtt;
	uint32_t kind = NBAR_WHY_KIND(t->info >> 16);

	/* A LATER that names this member is out of date: our token to the peer is lost. */
	if (kind == NBAR_WHY_UNKNOWN || kind >= NBAR_WHY_END || t->arg == g->rank)
		wait_longer(nic, g, &r->slowed, r->every / SLOWLY);
	else
		wait_longer(nic, g, &r->late, t->arg == t->src ? r->every : r->every / HEARSAY);
}

void nbnic_rtt_learn(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *t,
		     uint64_t now)
{
	const struct nbfw_state *s = g->state;
	struct nbnic_rtt *r = &g->rtt;
	bool asked = r->asked;

	if (r->epoch != s->epoch || r->step != s->step || t->epoch != s->epoch ||
	    !nbfw_missing(s, g->plan, t->slot) || nbfw_plan_recvs(g->plan)[t->slot].src != t->src)
		return;
	r->asked = false;
	if (t->type == NBFW_LATER) {
		learn_later(nic, g, t);
	} else if (t->type == NBFW_TOKEN && t->info == 0) {
		/* This token is no answer to a PULL: the peer has sent it of its own accord. */
		if (asked)
			wait_longer(nic, g, &r->slowed, g->rtt.every / SLOWLY);
	} else if (t->type == NBFW_TOKEN) {
		learn_answer(nic, g, t->info, now);
	}
}

/* The timer of a step is due for the first time. */
static void begin_step(const struct nbnic *nic, struct nbnic_group *g)
{
	g->rtt.epoch = g->state->epoch;
	g->rtt.step = g->state->step;
	g->rtt.begun = g->deadline - g->first;
	g->rtt.timeout = g->rtt.begun + nic->interval[0];
	g->rtt.asked = g->rtt.slowed = g->rtt.late = false;
}

/* When the next early PULLs are due, or the TIMEOUT. */
static uint64_t next_due(const struct nbnic *nic, const struct nbnic_rtt *r, uint64_t now)
{
	uint64_t part = (now - r->begun) / WAIT_PART, ns = part > r->every ? part : r->every;

	return ns < longest(nic) ? rtt_least(r->timeout, now + ns) : r->timeout;
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
		/* The next sweep tries again, or the first one at which the pace permits PULLs. */
		nbnic_arm(nic, g,
			  nic->pull_left > 0 ? now + 1 : rtt_least(r->timeout, nic->pull_next));
		return true;
	}
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
	uint64_t end = now + DOUBT * nic->interval[0];

	g->rtt.asked = true;
	if (nic->doubt_end < end)
		nic->doubt_end = end;
}

uint64_t nbnic_rtt_due(const struct nbnic *nic, struct nbnic_group *g, uint64_t ns, uint64_t now)
{
	struct nbnic_rtt *r = &g->rtt;

	/* If a TIMEOUT has caused the PULLs, the next TIMEOUT is due after ns. */
	if (r->is_timeout)
		r->timeout = now + ns;
	return next_due(nic, r, now);
}

#endif
