/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.c - the NIC loop: doorbells, frames and the clock become events; actions become frames and
 * completions.
 *
 * Called by a port's polling thread. This is the path from token to completion: no allocation, no
 * lock, no search that grows with the group.
 */
#include "nic.h"
#include "nic_internal.h"

/* Timeouts without news after which a rank is no longer called late. */
#define LATE_FRESH 3u

/* Barriers that one event may start. A group of one completes each at once: without a bound, hosts
 * that post far ahead on many such groups would keep the NIC from all others. */
#define STARTS_A_CALL 16u

static uint64_t interval_of(const struct nbnic *nic, const struct nbfw_state *s)
{
	return s->tries < NBFW_WINDOW ? nic->interval[s->tries] : nic->budget_ns / NBFW_WINDOW;
}

static void transmit(struct nbnic *nic, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	if (!nic->ops->transmit(nic->ctx, to, t))
		nbnic_count(nic, NBAR_COUNTER_wire_errors);
}

static void send_range(struct nbnic *nic, const struct nbnic_group *g, const struct nbfw_action *a)
{
	const struct nbar_send *send = nbfw_plan_sends(g->plan);
	bool abort = a->send_type == NBFW_ABORT;
	struct nbfw_token t = {
		.type = a->send_type,
		.src = g->rank,
		.epoch = a->send_epoch,
		.arg = abort ? g->state->culprit : NBAR_RANK_NONE,
		.info = abort ? g->state->cause : 0,
	};

	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		const struct nbnic_peer *peer = &g->peer[g->send_peer[i]];

		if (peer->handle == 0) /* aborted before it was connected */
			continue;
		t.handle = peer->handle;
		t.cookie = peer->cookie;
		t.slot = send[i].slot;
		transmit(nic, &peer->addr, &t);
		nbnic_count(nic, abort ? NBAR_COUNTER_aborts_sent : NBAR_COUNTER_tokens_sent);
	}
}

static void send_pulls(struct nbnic *nic, const struct nbnic_group *g, const struct nbfw_action *a)
{
	struct nbfw_token t = {
		.type = NBFW_PULL,
		.src = g->rank,
		.epoch = g->state->epoch,
		.arg = NBAR_RANK_NONE,
		.reply_handle = g->handle,
		.reply_cookie = g->cookie,
	};

	for (uint32_t slot = a->pull_first; slot < a->pull_end; slot++) {
		if (!nbfw_missing(g->state, g->plan, slot))
			continue;
		uint32_t src = nbfw_plan_recvs(g->plan)[slot].src;
		const struct nbnic_peer *peer = &g->peer[nbnic_peer_find(g, src)];

		t.handle = peer->handle;
		t.cookie = peer->cookie;
		t.slot = slot;
		transmit(nic, &peer->addr, &t);
		nbnic_count(nic, NBAR_COUNTER_pulls_sent);
	}
}

static void send_reply(struct nbnic *nic, const struct nbnic_group *g, const struct nbfw_action *a,
		       const struct nbfw_token *pull, const struct nbnic_addr *from)
{
	struct nbfw_token t = {
		.type = a->reply,
		.handle = pull->reply_handle,
		.cookie = pull->reply_cookie,
		.src = g->rank,
		.epoch = pull->epoch,
		.slot = pull->slot,
		.arg = a->reply_arg,
		.info = a->reply_info,
	};

	transmit(nic, from, &t);
	nbnic_count(nic, a->reply == NBFW_TOKEN   ? NBAR_COUNTER_tokens_sent
			 : a->reply == NBFW_LATER ? NBAR_COUNTER_laters_sent
						  : NBAR_COUNTER_aborts_sent);
}

/* R5: remembers who holds us up. When the list is full, the newest name takes the last place. */
static void note_late(struct nbnic_group *g, uint32_t rank)
{
	uint32_t i = 0;

	while (i < g->nlate && g->late[i].rank != rank)
		i++;
	if (i == NBAR_LATE_MAX)
		i--;
	else if (i == g->nlate)
		g->nlate++;
	g->late[i] = (struct nbnic_late){ .rank = rank, .tick = g->timeouts };
}

/* After a timeout: forgets names that nobody has repeated, adds sources that say nothing at all,
 * and tells the host. */
static void review_late(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a)
{
	uint32_t kept = 0;

	g->timeouts++;
	for (uint32_t i = 0; i < g->nlate; i++)
		if (g->timeouts - g->late[i].tick <= LATE_FRESH)
			g->late[kept++] = g->late[i];
	g->nlate = kept;
	if (g->state->tries % NBFW_WINDOW >= 2)
		for (uint32_t slot = a->pull_first; slot < a->pull_end; slot++)
			if (nbfw_silent(g->state, g->plan, slot))
				note_late(g, nbfw_plan_recvs(g->plan)[slot].src);
	nic->ops->late(nic->ctx, g->port, g->cell, g->late, g->nlate);
}

static void tell_completion(struct nbnic *nic, struct nbnic_group *g)
{
	if (g->nlate) {
		g->nlate = 0;
		nic->ops->late(nic->ctx, g->port, g->cell, g->late, 0);
	}
	nbnic_count(nic, NBAR_COUNTER_barriers_completed);
	nic->ops->complete(nic->ctx, g->port, g->cell, g->state->epoch, NBAR_STATUS_OK,
			   NBAR_RANK_NONE);
}

static void tell_failure(struct nbnic *nic, const struct nbnic_group *g)
{
	const struct nbfw_state *s = g->state;

	if (s->running || s->cause != NBAR_STATUS_CLOSED)
		nbnic_count(nic, NBAR_COUNTER_barriers_failed);
	if (g->life != NBAR_LIFE_LINGER)
		nic->ops->complete(nic->ctx, g->port, g->cell, s->epoch - s->running, s->cause,
				   s->culprit);
}

void nbnic_feed(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_event *ev,
		const struct nbnic_addr *from, uint64_t now)
{
	struct nbfw_action a;

	nbfw_step(g->state, g->plan, ev, &a);
	if (a.timer != NBFW_KEEP) {
		g->armed = a.timer == NBFW_ARM;
		g->deadline = now + interval_of(nic, g->state);
	}
	if (a.complete)
		tell_completion(nic, g);
	if (a.failed)
		tell_failure(nic, g);
	if (a.send_first < a.send_end)
		send_range(nic, g, &a);
	if (a.pull_first < a.pull_end) {
		review_late(nic, g, &a);
		send_pulls(nic, g, &a);
	}
	if (ev->type != NBFW_EV_TOKEN)
		return;
	if (a.reply)
		send_reply(nic, g, &a, &ev->token, from);
	switch (a.verdict) {
	case NBFW_USED:
		break;
	case NBFW_DUPLICATE:
		nbnic_count(nic, NBAR_COUNTER_tokens_duplicate);
		return;
	case NBFW_STALE:
		nbnic_count(nic, NBAR_COUNTER_tokens_stale);
		return;
	case NBFW_BAD:
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
		return;
	}
	switch ((enum nbfw_type)ev->token.type) {
	case NBFW_TOKEN:
		nbnic_count(nic, NBAR_COUNTER_tokens_received);
		return;
	case NBFW_PULL:
		nbnic_count(nic, NBAR_COUNTER_pulls_received);
		return;
	case NBFW_LATER:
		nbnic_count(nic, NBAR_COUNTER_laters_received);
		note_late(g, g->state->late);
		nic->ops->late(nic->ctx, g->port, g->cell, g->late, g->nlate);
		return;
	case NBFW_ABORT:
		nbnic_count(nic, NBAR_COUNTER_aborts_received);
		return;
	case NBFW_SIGNAL:
	case NBFW_TYPE_END:
		return;
	}
}

static bool may_start(const struct nbnic_group *g)
{
	return g->life == NBAR_LIFE_CONNECTED && !g->state->running &&
	       g->state->cause == NBAR_STATUS_OK && g->state->epoch != g->posted;
}

void nbnic_start_posted(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	static const struct nbfw_event start = { .type = NBFW_EV_START };

	for (uint32_t i = 0; i < STARTS_A_CALL && may_start(g); i++) {
		g->timeouts = 0;
		nbnic_feed(nic, g, &start, NULL, now);
	}
}

void nbnic_doorbell(struct nbnic *nic, struct nbnic_group *g, uint32_t posted, uint64_t now)
{
	if (g->is_signal || (int32_t)(posted - g->posted) < 0 ||
	    posted - (g->state->epoch - g->state->running) > NBAR_POSTED_MAX) {
		nbnic_count(nic, NBAR_COUNTER_doorbells_bad);
		return;
	}
	g->posted = posted;
	nbnic_start_posted(nic, g, now);
}

bool nbnic_signal(struct nbnic *nic, struct nbnic_group *g, uint32_t peer,
		  const uint32_t word[NBAR_SIGNAL_WORDS])
{
	if (!g->is_signal || peer >= g->nconnected) {
		nbnic_count(nic, NBAR_COUNTER_entries_bad);
		return true;
	}
	struct nbfw_token t = {
		.type = NBFW_SIGNAL,
		.handle = g->peer[peer].handle,
		.cookie = g->peer[peer].cookie,
		.src = g->rank,
	};

	for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
		t.word[i] = word[i];
	if (!nic->ops->transmit(nic->ctx, &g->peer[peer].addr, &t))
		return false;
	nbnic_count(nic, NBAR_COUNTER_signals_sent);
	return true;
}

static void receive_signal(struct nbnic *nic, const struct nbnic_group *g,
			   const struct nbfw_token *t)
{
	if (t->type != NBFW_SIGNAL || t->src >= g->size)
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
	else if (nic->ops->deliver(nic->ctx, g->port, g->cell, t->src, t->word))
		nbnic_count(nic, NBAR_COUNTER_signals_received);
	else
		nbnic_count(nic, NBAR_COUNTER_signals_dropped);
}

void nbnic_receive(struct nbnic *nic, const struct nbnic_addr *from, const struct nbfw_token *t,
		   uint64_t now)
{
	uint32_t index = nbnic_index(t->handle);
	struct nbnic_group *g = index < NBNIC_HANDLES ? nic->group[index] : NULL;

	if (!g || g->handle != t->handle || g->cookie != t->cookie) {
		nbnic_count(nic, NBAR_COUNTER_frames_stranger);
		return;
	}
	if (g->is_signal) {
		receive_signal(nic, g, t);
		return;
	}
	const struct nbfw_event ev = { .type = NBFW_EV_TOKEN, .token = *t };

	nbnic_feed(nic, g, &ev, from, now);
	nbnic_start_posted(nic, g, now);
}

void nbnic_tick(struct nbnic *nic, uint64_t now)
{
	static const struct nbfw_event timeout = { .type = NBFW_EV_TIMEOUT };

	for (uint32_t i = 0; i < nic->high; i++) {
		struct nbnic_group *g = nic->group[i];

		if (!g || now < g->deadline)
			continue;
		if (g->life == NBAR_LIFE_LINGER)
			nbnic_group_release(nic, i);
		else if (g->armed)
			nbnic_feed(nic, g, &timeout, NULL, now);
		else if (!g->is_signal)
			nbnic_start_posted(nic, g, now); /* what STARTS_A_CALL left over */
	}
}
