/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lend.c - groups that a wire steps by itself, as the programs of the wire "kernel" do.
 *
 * The wire has the state of a lent group, and handles its posts and tokens. All else is rare:
 * before it, the NIC takes the group back, and then the group is like any other. When nothing is
 * left to do, the NIC lends the group again. Called by the pass.
 */
#include "device.h"
#include "nic_internal.h"

#if NBNIC_LEND
#define LOOKS_A_PASS 16u

/* The state is lost, but the host's page has the last complete barrier. If the host has posted the
 * next one, peers may have all tokens of it, and wait for those of the barrier after it. */
static void lend_lose(struct nbnic_device *d, struct nbnic_group *g, uint64_t now)
{
	static const struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbnic_port *p = d->port[g->port];
	struct nbfw_action sends; /* peers ask for them */
	uint32_t posted;

	nbfw_init(g->state, g->plan, nbnic_page_completed_epoch(p, g->cell));
	if (nbnic_page_is_waiting(p, g->cell, &posted))
		nbfw_step(g->state, g->plan, &start, &sends);
	g->posted = p->cell[g->cell].posted = g->state->epoch;
	if (nbnic_values(g)) /* none is repeated that may be of another barrier */
		nbfw_values_forget(g->values);
	nbnic_group_fail(&d->nic, g, NBAR_STATUS_NIC_DOWN, now);
}

void nbnic_lend_take(struct nbnic_device *d, struct nbnic_group *g, uint64_t now)
{
	struct nbnic_cell *cell = &d->port[g->port]->cell[g->cell];
	struct nbfw_state *s = g->state;
	const uint32_t epoch = s->epoch, step = s->step;
	struct wire_counts n = { 0 };

	g->lent = cell->lent = false;
	d->nlent--;
	if (!d->wire->ops->take(d->wire, g, &n)) {
		lend_lose(d, g, now);
		return;
	}
	d->nic.counter[NBAR_COUNTER_barriers_completed] += n.completed;
	d->nic.counter[NBAR_COUNTER_tokens_sent] += n.sent;
	d->nic.counter[NBAR_COUNTER_tokens_received] += n.received;
	d->nic.counter[NBAR_COUNTER_tokens_duplicate] += n.duplicate;
	d->nic.counter[NBAR_COUNTER_tokens_stale] += n.stale;
	d->nic.counter[NBAR_COUNTER_frames_bad] += n.bad;
	/* The wire starts one barrier at a time: each as it is posted. */
	g->posted = cell->posted = s->epoch;
	if (n.completed) {
		g->nstragglers = 0;
		nbnic_page_completed(d->port[g->port], &d->nic, g->cell);
	}
	if (s->epoch != epoch) {
		g->timeouts = 0;
#if NBNIC_LATENCY
		g->started = now;
#endif
	}
	if (s->running)
		nbnic_arm(&d->nic, g,
			  s->epoch == epoch && s->step == step ? g->deadline
							       : now + nbnic_first(&d->nic, g));
}

void nbnic_lend_wanted(struct nbnic *nic, uint32_t index, enum nbnic_want what, uint64_t now)
{
	const struct nbnic_device *d = nic->ctx;
	struct nbnic_group *g = nic->group[index];

	if (!g || !g->lent)
		return;
	if (what == NBNIC_WANT_WAKE) {
		nbnic_page_wake(d->port[g->port], nic, g->cell);
		return;
	}
	nbnic_take(nic, g, now);
	if (what == NBNIC_WANT_TIMEOUT && g->state->running)
		nbnic_arm(nic, g, now);
}

/* True if the group was taken back at once. */
static bool lend_group(struct nbnic_device *d, struct nbnic_group *g, uint64_t now)
{
	struct nbnic_port *p = d->port[g->port];
	struct nbnic_cell *cell = &p->cell[g->cell];
	const struct nbfw_state *s = g->state;
	const struct wire_lend how = {
		.first_ns = nbnic_first(&d->nic, g),
		.left_ns = s->running && g->deadline > now ? g->deadline - now : 0,
		.sleeper = cell->wake_pending,
		.values = cell->values,
	};

	if (s->cause != NBAR_STATUS_OK || (s->running && how.left_ns == 0) ||
	    g->posted != s->epoch || nbnic_sends_wait(g) || g->pull.next /* PULLs wait */ ||
	    s->running != g->armed || !nbnic_page_is_seen(p, g->cell) ||
	    !d->wire->ops->lend(d->wire, g, &how))
		return false;
	g->lent = cell->lent = true;
	g->armed = false;
	if (++d->nlent == d->nic.nopen && d->nic.nlinger == 0)
		d->nic.due = UINT64_MAX; /* no timer is armed */
	/* What the host has posted before the wire had the group, the wire does not know. */
	if (nbnic_page_is_seen(p, g->cell))
		return false;
	nbnic_lend_take(d, g, now);
	return true;
}

bool nbnic_lend_some(struct nbnic_device *d, uint64_t now)
{
	bool any = false;

	/* A wire notes no events. */
	if (d->nic.tracing)
		return false;
	for (uint32_t i = 0; i < LOOKS_A_PASS && i < d->nic.high; i++) {
		if (d->lend_at >= d->nic.high)
			d->lend_at = 0;
		struct nbnic_group *g = d->nic.group[d->lend_at++];

		if (g && !g->is_signal && !g->lent && g->life == NBAR_LIFE_CONNECTED)
			any |= lend_group(d, g, now);
	}
	return any;
}

bool nbnic_lend_look(struct nbnic_device *d, struct nbnic_port *p, bool kicked, uint64_t now)
{
	bool any = false;

	for (uint32_t i = 0; i < p->nlive && i < NBNIC_SCAN_CELLS; i++) {
		uint32_t at = p->live[p->look_at++ % p->nlive];
		struct nbnic_cell *cell = &p->cell[at];
		uint32_t posted, looked = cell->looked;
		bool waits = nbnic_page_is_waiting(p, at, &posted);

		if (!cell->lent || nbnic_page_is_seen(p, at))
			continue;
		/* The wire may have completed the barrier since the host fell asleep. */
		if (!waits && !(kicked && nbnic_page_has_asked(p, at)))
			continue;
		cell->looked = posted;
		/* The wire has heard of most posts. */
		if (!kicked && posted != looked)
			continue;
		nbnic_lend_take(d, cell->group, now);
		any = true;
	}
	return any;
}
#endif
