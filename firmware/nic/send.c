/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.c - sends every frame of the NIC, within the budgets of a pass.
 *
 * Called by nic.c for an event, by why.c for an answer, and by the scheduler in pass.c. Must never
 * send more than the budgets of a pass allow. Other sends of a plan wait in the group, and the
 * group waits in nic.sends; other answers are dropped and counted.
 */
#include "nic.h"
#include "nic_internal.h"

bool nbnic_transmit(struct nbnic *nic, const struct nbnic_addr *to, const struct nbfw_token *t,
		    enum nbar_counter counter)
{
	if (!nic->ops->transmit(nic->ctx, to, t)) {
		nic->full = true;
		return false;
	}
	nic->used.frames++;
	nbnic_count(nic, counter);
	return true;
}

/* Sends the frames of sends [*at, end) of the plan, at most `limit`, and moves *at behind them.
 * values: NULL, or of tokens. Always inline, as send_some is: each caller is on the path of a
 * token. Returns how many. */
NBNIC_INLINE uint32_t send_range(struct nbnic *nic, const struct nbnic_group *g,
				 struct nbfw_values *values, struct nbfw_token *t, uint16_t *at,
				 uint32_t end, uint32_t limit)
{
	const struct nbar_step *st = values ? nbfw_plan_steps(g->plan) : NULL;
	const struct nbar_send *send = nbfw_plan_sends(g->plan);
	enum nbar_counter counter =
		t->type == NBFW_ABORT ? NBAR_COUNTER_aborts_sent : NBAR_COUNTER_tokens_sent;
	uint32_t first = *at, i = first;

	if (end - first > limit)
		end = first + limit;
	for (; i < end; i++) {
		const struct nbnic_peer *peer = &g->peer[g->send_peer[i]];

		if (peer->handle == 0) /* aborted before it was connected */
			continue;
		t->handle = peer->handle;
		t->cookie = peer->cookie;
		t->slot = send[i].slot;
		if (values) { /* the one at the entry of the send's step */
			while (i >= st[values->send_step].first_send + st[values->send_step].nsend)
				values->send_step++;
			nbfw_values_at(values, values->send_step, t);
		}
		if (!nbnic_transmit(nic, &peer->addr, t, counter))
			break;
		nbnic_trace_send(nic, g, &send[i], t);
	}
	*at = (uint16_t)i;
	return i - first;
}

static uint32_t send_aborts(struct nbnic *nic, struct nbnic_group *g, uint32_t limit)
{
	const struct nbfw_state *s = g->state;
	struct nbfw_token t = {
		.type = NBFW_ABORT,
		.src = g->rank,
		.epoch = s->running ? s->epoch : s->epoch + 1, /* the barrier that failed */
		.arg = s->failed_rank,
		.info = s->cause,
		.sender = g->handle,
	};

	return send_range(nic, g, NULL, &t, &g->abort_at, g->abort_end, limit);
}

__attribute__((noinline)) static uint32_t send_values(struct nbnic *nic, struct nbnic_group *g,
						      struct nbfw_token *t, uint32_t limit)
{
	return send_range(nic, g, g->values, t, &g->token_at, g->token_end, limit);
}

/* The caller has already bounded `limit` by the frames that the pass has left. */
NBNIC_INLINE uint32_t send_some(struct nbnic *nic, struct nbnic_group *g, uint32_t limit)
{
	uint32_t done = 0;

	if (g->token_at != g->token_end) {
		struct nbfw_token t = {
			.type = NBFW_TOKEN,
			.src = g->rank,
			.epoch = g->state->epoch, /* the next epoch starts after these sends */
			.arg = NBAR_RANK_NONE,
			.sender = g->handle,
		};

		if (__builtin_expect(nbnic_values(g) != NULL, 0))
			done = send_values(nic, g, &t, limit);
		else
			done = send_range(nic, g, NULL, &t, &g->token_at, g->token_end, limit);
	}
	/* If tokens still wait, the wire is full, or limit - done is 0: then no ABORT is sent. */
	if (g->abort_at != g->abort_end && !nic->full)
		done += send_aborts(nic, g, limit - done);
	return done;
}

uint32_t nbnic_send_some(struct nbnic *nic, struct nbnic_group *g, uint32_t limit)
{
	uint32_t frames = nbnic_frames_left(nic);

	return send_some(nic, g, limit < frames ? limit : frames);
}

uint32_t *nbnic_share_left(struct nbnic *nic, uint32_t port)
{
	struct nbnic_share *share = &nic->share[port];

	if (share->pass != nic->pass)
		*share = (struct nbnic_share){ nic->pass, nic->quota };
	return &share->left;
}

void nbnic_send(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a)
{
	if (a->send_type == NBFW_ABORT) {
		g->abort_at = (uint16_t)a->send_first;
		g->abort_end = (uint16_t)a->send_end;
	} else {
		/* The ranges of one epoch are contiguous: this range begins where the last
		 * ended. */
		if (g->token_at == g->token_end)
			g->token_at = (uint16_t)a->send_first;
		g->token_end = (uint16_t)a->send_end;
	}
	if (!g->send.next && !nic->full) {
		uint32_t *left = nbnic_share_left(nic, g->port);
		uint32_t limit = NBNIC_PASS_INLINE(nic->quota) - nic->used.inlined;
		uint32_t frames = nbnic_frames_left(nic);
		uint32_t room = frames > nic->quota ? frames - nic->quota : 0;

		/* Events, like answers, leave the last `quota` frames of the pass to the queues. */
		if (limit > room)
			limit = room;
		uint32_t done = send_some(nic, g, *left < limit ? *left : limit);

		*left -= done;
		nic->used.inlined += done;
	}
	if (nbnic_sends_wait(g))
		nbnic_rota_add(&nic->sends, g->port, &g->send);
}

void nbnic_send_reply(struct nbnic *nic, const struct nbnic_group *g, uint32_t rank,
		      const struct nbfw_action *a, const struct nbfw_token *pull,
		      const struct nbnic_addr *from)
{
	struct nbfw_token t = {
		.type = a->reply,
		.handle = pull->sender,
		.cookie = pull->reply_cookie,
		.src = rank,
		.epoch = pull->epoch,
		.slot = pull->slot,
		.arg = a->reply_arg,
		.info = a->reply_info,
		.sender = pull->handle,
	};
	static const uint8_t counter[NBFW_TYPE_END] = {
		[NBFW_TOKEN] = NBAR_COUNTER_tokens_sent,
		[NBFW_LATER] = NBAR_COUNTER_laters_sent,
		[NBFW_ABORT] = NBAR_COUNTER_aborts_sent,
		[NBFW_ECHO] = NBAR_COUNTER_echoes_sent,
	};

	if (a->reply == NBFW_TOKEN && g && nbnic_values(g))
		nbfw_values_answer(g->values, g->plan, pull->src, &t);
	if (nic->full || nbnic_frames_left(nic) <= nic->quota ||
	    !nbnic_transmit(nic, from, &t, (enum nbar_counter)counter[a->reply]))
		nbnic_count(nic, NBAR_COUNTER_replies_dropped);
	else
		nbnic_trace_frame(nic, pull->handle, rank, pull->src, &t, NBAR_TRACE_OUT);
}

/* Sends a PULL for one slot. False: the wire has no room. */
static bool send_pull(struct nbnic *nic, const struct nbnic_group *g, uint32_t slot, uint64_t now)
{
	const struct nbnic_peer *peer = &g->peer[g->recv_peer[slot]];
	const struct nbfw_token t = {
		.type = NBFW_PULL,
		.handle = peer->handle,
		.cookie = peer->cookie,
		.src = g->rank,
		.epoch = g->state->epoch,
		.slot = slot,
		.arg = peer->rank,
		.info = nbnic_stamp(now),
		.sender = g->handle,
		.reply_cookie = g->cookie,
	};

	if (!nbnic_transmit(nic, &peer->addr, &t, NBAR_COUNTER_pulls_sent))
		return false;
	nbnic_trace_frame(nic, g->handle, g->rank, peer->rank, &t, NBAR_TRACE_OUT);
	return true;
}

void nbnic_pull_begin(struct nbnic *nic, struct nbnic_group *g, uint32_t first, uint32_t end)
{
	g->pull_first = (uint16_t)first;
	g->pull_end = (uint16_t)end;
	g->pull_left = (uint16_t)NBFW_PULLS_LEAST(end - first);
	g->pull_span = (uint16_t)(end - first);
	g->pull_heard = false;
	for (uint32_t i = 0; i < 2; i++)
		if (g->pull_at[i] < first || g->pull_at[i] >= end)
			g->pull_at[i] = g->pull_first;
	nbnic_rota_add(&nic->pulls, g->port, &g->pull);
}

/*
 * Makes two rounds over all slots: the first asks for silent slots, the second for slots that were
 * heard. Each round begins where the last round of its kind ended. Each iteration of the loop asks
 * for one slot, or reaches the end of the slots or of a round.
 */
uint32_t nbnic_pull_some(struct nbnic *nic, struct nbnic_group *g, uint32_t limit, uint64_t now)
{
	uint32_t pulled = 0;

	while (pulled < limit && g->pull_left > 0) {
		uint16_t *at = &g->pull_at[g->pull_heard];
		uint32_t end = (uint32_t)*at + g->pull_span;

		if (end > g->pull_end)
			end = g->pull_end;
		uint32_t next = nbfw_missing_next(g->state, *at, end, g->pull_heard);

		if (next < end) {
			if (!send_pull(nic, g, next, now))
				break;
			pulled++;
			g->pull_left--;
			next++;
		}
		g->pull_span = (uint16_t)(g->pull_span - (next - *at));
		*at = next == g->pull_end ? g->pull_first : (uint16_t)next;
		if (g->pull_span == 0 && g->pull_heard)
			g->pull_left = 0;
		if (g->pull_span == 0) {
			g->pull_heard = true;
			g->pull_span = (uint16_t)(g->pull_end - g->pull_first);
		}
	}
	return pulled;
}
