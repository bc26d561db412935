/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.c - the NIC loop: doorbells, frames and the clock become events; actions become frames and
 * completions.
 *
 * Called by the pass. This is the path from token to completion: no allocation, no lock, no search
 * that grows with the group.
 */
#include "nic.h"
#include "nic_internal.h"

/* last: see nbnic_latency_note. */
static void tell_completion(struct nbnic *nic, struct nbnic_group *g, size_t last, uint64_t now)
{
	nbnic_latency_note(nic, g, last, now);
	if (g->nstragglers) {
		g->nstragglers = 0;
		nic->ops->stragglers(nic->ctx, g->port, g->cell, g->straggler, 0);
	}
	nbnic_count(nic, NBAR_COUNTER_barriers_completed);
	nbnic_trace_group(nic, g, NBAR_TRACE_COMPLETE, g->state->epoch, NBAR_RANK_NONE);
	nic->ops->complete(nic->ctx, g->port, g->cell, g->state->epoch, NBAR_STATUS_OK,
			   NBAR_RANK_NONE);
}

__attribute__((cold, noinline)) static void tell_failure(struct nbnic *nic,
							 const struct nbnic_group *g)
{
	const struct nbfw_state *s = g->state;

	nbnic_trace_group(nic, g, NBAR_TRACE_FAIL, s->epoch, s->failed_rank);
	if (s->running || s->cause != NBAR_STATUS_CLOSED)
		nbnic_count(nic, NBAR_COUNTER_barriers_failed);
	if (g->life != NBAR_LIFE_LINGER)
		nic->ops->complete(nic->ctx, g->port, g->cell, s->epoch - s->running, s->cause,
				   s->failed_rank);
}

/* Rare, and kept out of the path of a token. */
__attribute__((cold, noinline)) static void begin_pulls(struct nbnic *nic, struct nbnic_group *g,
							const struct nbfw_action *a, uint64_t now)
{
	nbnic_why_review(nic, g, a, now);
	nbnic_pull_begin(nic, g, a->pull_first, a->pull_end);
}

/* Sets the timer for an action. A step begins with the first interval. After a TIMEOUT, pass.c arms
 * the timer when all PULLs are out. */
static inline void set_timer(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a,
			     uint64_t now)
{
	nbnic_rota_remove(&nic->pulls, g->port, &g->pull);
	g->armed = false;
	if (a->pull_first < a->pull_end) {
		begin_pulls(nic, g, a, now);
	} else if (a->timer == NBFW_ARM) {
		nbnic_arm(nic, g, now + nbnic_first(nic, g));
	}
}

/* Carries out the actions of the engine, the report to the host first. Not called if a->timer is
 * NBFW_KEEP: then there are no actions. */
__attribute__((noinline)) static void act(struct nbnic *nic, struct nbnic_group *g,
					  const struct nbfw_action *a, size_t last, uint64_t now)
{
	if (a->complete)
		tell_completion(nic, g, last, now);
	if (a->failed)
		tell_failure(nic, g);
	set_timer(nic, g, a, now);
	if (a->send_first < a->send_end)
		nbnic_send(nic, g, a);
}

void nbnic_feed(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_event *ev, uint64_t now)
{
	struct nbfw_action a;

	nbfw_step(g->state, g->plan, ev, &a);
	if (a.timer != NBFW_KEEP)
		act(nic, g, &a, 0, now);
}

/* A member has posted another value than this one, or this host no correct one. */
static void fail_mismatch(struct nbnic *nic, struct nbnic_group *g, uint32_t rank, uint64_t now)
{
	const struct nbfw_event ev = { .type = NBFW_EV_LEAVE,
				       .cause = NBAR_STATUS_MISMATCH,
				       .token.src = rank };

	nbnic_feed(nic, g, &ev, now);
}

/* After the engine has got START or a frame, and before the actions: folds values, and gives the
 * host the result. */
NBNIC_INLINE void fold_values(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a)
{
	const struct nbfw_state *s = g->state;
	const uint32_t length = g->values->length[s->epoch & 1];

	nbfw_values_advance(g->values, s, g->plan);
	if (a->complete && length)
		nic->ops->result(nic->ctx, g->port, g->cell, s->epoch,
				 nbfw_values_place(g->values, s->epoch, s->step), length);
}

/* Starts a barrier of a group with values. */
__attribute__((noinline)) static void start_values(struct nbnic *nic, struct nbnic_group *g,
						   const struct nbfw_event *start, uint64_t now)
{
	struct nbfw_action a;
	int length = nic->ops->operand(nic->ctx, g->port, g->cell, g->state->epoch + 1,
				       nbfw_values_place(g->values, g->state->epoch + 1, 0),
				       g->values->size - NBFW_VALUE_HEAD);
	uint32_t odd = g->rank;

	if (length >= 0)
		odd = nbfw_values_start(g->values, g->state, g->plan, (uint32_t)length);
	if (odd != NBAR_RANK_NONE) {
		fail_mismatch(nic, g, odd, now);
		return;
	}
	nbfw_step(g->state, g->plan, start, &a);
	fold_values(nic, g, &a);
	act(nic, g, &a, 0, now);
}

uint32_t nbnic_start_posted(struct nbnic *nic, struct nbnic_group *g, uint32_t limit, uint64_t now)
{
	static const struct nbfw_event start = { .type = NBFW_EV_START };
	uint32_t n = 0;

	for (; nbnic_may_start(g); n++) {
		if (n == limit) {
			nbnic_rota_add(&nic->sends, g->port, &g->send);
			break;
		}
		g->timeouts = 0;
#if NBNIC_LATENCY
		g->started = now;
#endif
		nbnic_trace_group(nic, g, NBAR_TRACE_START, g->state->epoch + 1, NBAR_RANK_NONE);
		if (__builtin_expect(nbnic_values(g) != NULL, 0))
			start_values(nic, g, &start, now);
		else
			nbnic_feed(nic, g, &start, now);
	}
	return n;
}

/* Starts barriers within an event, as far as the budget of the pass allows. Kept out of the path of
 * a token. */
__attribute__((noinline)) static void start_some(struct nbnic *nic, struct nbnic_group *g,
						 uint64_t now)
{
	uint32_t most = NBNIC_STARTS_A_CALL;

	if (most > NBNIC_PASS_STARTS - nic->used.starts)
		most = NBNIC_PASS_STARTS - nic->used.starts;
	nic->used.starts += nbnic_start_posted(nic, g, most, now);
}

__attribute__((noinline)) void nbnic_doorbell(struct nbnic *nic, struct nbnic_group *g,
					      uint32_t posted, uint64_t now)
{
	if (g->is_signal || (int32_t)(posted - g->posted) < 0 ||
	    posted - (g->state->epoch - g->state->running) > NBAR_POSTED_MAX) {
		nbnic_count(nic, NBAR_COUNTER_doorbells_bad);
		return;
	}
	g->posted = posted;
	nbnic_trace_group(nic, g, NBAR_TRACE_DOORBELL, posted, NBAR_RANK_NONE);
	start_some(nic, g, now);
}

bool nbnic_signal(struct nbnic *nic, struct nbnic_group *g, uint32_t peer,
		  const uint32_t word[NBAR_SIGNAL_WORDS])
{
	uint32_t *left = nbnic_share_left(nic, g->port);

	if (!g->is_signal || peer >= g->nconnected) {
		nbnic_count(nic, NBAR_COUNTER_entries_bad);
		return true;
	}
	struct nbfw_token t = {
		.type = NBFW_SIGNAL,
		.handle = g->peer[peer].handle,
		.cookie = g->peer[peer].cookie,
		.src = g->rank,
		.reply_cookie = g->handle,
	};

	for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
		t.word[i] = word[i];
	if (nic->full || *left == 0 || nic->used.signals >= nic->quota ||
	    nbnic_frames_left(nic) <= nic->quota ||
	    !nbnic_transmit(nic, &g->peer[peer].addr, &t, NBAR_COUNTER_signals_sent))
		return false;
	nic->used.signals++;
	--*left;
	return true;
}

const struct nbnic_addr nbnic_addr_nobody = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };

/* The order of a peer and of (rank, handle, addr): below 0, 0, above 0. */
static int peer_order(const struct nbnic_peer *p, uint32_t rank, uint64_t handle,
		      const struct nbnic_addr *addr)
{
	if (p->rank != rank)
		return p->rank < rank ? -1 : 1;
	if (p->handle != handle)
		return p->handle < handle ? -1 : 1;
	return __builtin_memcmp(p->addr.byte, addr->byte, NBNIC_ADDR_NAME);
}

uint32_t nbnic_signal_find(const struct nbnic_group *g, uint32_t rank, uint64_t handle,
			   const struct nbnic_addr *addr)
{
	uint32_t first = 0, end = g->nconnected;

	while (first < end) {
		uint32_t middle = (first + end) / 2;

		if (peer_order(&g->peer[g->recv_peer[middle]], rank, handle, addr) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* True if a SIGNAL comes from the peer of a "signal" group that it names. */
static bool is_signal_peer(const struct nbnic_group *g, const struct nbnic_addr *from,
			   const struct nbfw_token *t)
{
	uint32_t at = nbnic_signal_find(g, t->src, t->reply_cookie, from);

	return at < g->nconnected &&
	       peer_order(&g->peer[g->recv_peer[at]], t->src, t->reply_cookie, from) == 0;
}

__attribute__((noinline)) static void receive_signal(struct nbnic *nic, const struct nbnic_group *g,
						     const struct nbnic_addr *from,
						     const struct nbfw_token *t)
{
	if (t->type != NBFW_SIGNAL || !is_signal_peer(g, from, t))
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
	else if (nic->ops->deliver(nic->ctx, g->port, g->cell, t->src, t->word))
		nbnic_count(nic, NBAR_COUNTER_signals_received);
	else
		nbnic_count(nic, NBAR_COUNTER_signals_dropped);
}

/*
 * Answers a PULL for a group that this NIC does not have. Without an answer the peer would ask for
 * ever, because this NIC is alive. Either the group is closed and no longer lingers, or the NIC was
 * restarted.
 */
__attribute__((cold, noinline)) static void
answer_stranger(struct nbnic *nic, const struct nbnic_addr *from, const struct nbfw_token *pull)
{
	uint32_t index = nbnic_index(pull->handle), generation = pull->handle >> 16;
	bool given_out = index < NBNIC_HANDLES && generation <= nic->generation[index] &&
			 !(nic->group[index] && nic->group[index]->handle == pull->handle);
	const struct nbfw_action a = {
		.reply = NBFW_ABORT,
		.reply_arg = pull->arg,
		.reply_info = given_out ? NBAR_STATUS_CLOSED : NBAR_STATUS_NIC_DOWN,
	};

	nbnic_count(nic, NBAR_COUNTER_frames_stranger);
	if (pull->type != NBFW_PULL || pull->arg == NBAR_RANK_NONE ||
	    nic->used.strangers >= nic->quota)
		return;
	nic->used.strangers++;
	nbnic_send_reply(nic, NULL, pull->arg, &a, pull, from);
}

/* A token of a member that is not connected yet, so that its NIC is not known. The first such token
 * names NIC and handle, and nbnic_group_connect checks them. */
__attribute__((cold, noinline)) static bool
take_early(struct nbnic_peer *p, const struct nbnic_addr *from, uint32_t sender)
{
	if (p->handle != 0)
		return false;
	if (nbnic_addr_same(&p->addr, &nbnic_addr_nobody)) {
		p->addr = *from;
		p->cookie = sender;
	}
	return p->cookie == sender && nbnic_addr_same(&p->addr, from);
}

/* True if a TOKEN comes from the member that should fill its slot: from its NIC, which says for
 * which of its members it speaks. */
static inline bool is_from_source(const struct nbnic_group *g, const struct nbnic_addr *from,
				  const struct nbfw_token *t)
{
	struct nbnic_peer *p;

	if (t->slot >= g->plan->nrecv)
		return false;
	p = &g->peer[g->recv_peer[t->slot]];
	return __builtin_expect(nbnic_is_of(p, from, t), 1) || take_early(p, from, t->sender);
}

/* True if a PULL comes from the member that it names. If this member is not connected
 * yet, any NIC may ask: the answer goes there, and nowhere else. */
static bool is_from_asker(const struct nbnic_group *g, const struct nbnic_addr *from,
			  const struct nbfw_token *pull)
{
	uint32_t i = nbnic_peer_find(g, pull->src);

	return i < g->npeer && (g->peer[i].handle == 0 || nbnic_is_of(&g->peer[i], from, pull));
}

/* Notes that the NIC of the sender is alive, and learns from answers to PULLs (rtt.c). The address
 * identifies the NIC of a PULL. Other frames name a slot, and the group knows the NIC of its
 * source. */
__attribute__((noinline)) static void note_alive(struct nbnic *nic, struct nbnic_group *g,
						 const struct nbnic_addr *from,
						 const struct nbfw_token *t, uint64_t now)
{
	if (t->type == NBFW_PULL)
		nbnic_note_heard(nic, nbnic_addr_hash(from), now);
	else
		nbnic_note_heard(nic, g->recv_nic[t->slot], now);
#if NBNIC_ADAPT
	if (t->type != NBFW_PULL)
		nbnic_rtt_learn(nic, g, t, now);
#endif
}

/* Feeds a frame to the engine and carries out the actions, except the reply. */
NBNIC_INLINE void feed_frame(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *t,
			     struct nbfw_action *a, bool has_values, uint64_t now)
{
	nbnic_trace_frame(nic, g->handle, g->rank, t->src, t, NBAR_TRACE_IN);
	nbfw_step_token(g->state, g->plan, t, a);
	if (a->timer == NBFW_KEEP)
		return;
	if (has_values)
		fold_values(nic, g, a);
	act(nic, g, a, 1 + (size_t)t->slot, now);
	/* The next barrier can start here only after a completion. If it must wait for sends of the
	 * completed barrier, the group is in a queue, and pass.c starts the barrier. */
	if (a->complete && nbnic_may_start(g))
		start_some(nic, g, now);
}

/* Counters of the frames that the engine has not used, by verdict. */
static const uint8_t refused[] = {
	[NBFW_DUPLICATE] = NBAR_COUNTER_tokens_duplicate,
	[NBFW_STALE] = NBAR_COUNTER_tokens_stale,
	[NBFW_BAD] = NBAR_COUNTER_frames_bad,
};

/* Takes the value of a TOKEN. False: the token is not for the engine. */
NBNIC_INLINE bool take_value(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *t,
			     uint64_t now)
{
	switch (nbfw_values_take(g->values, g->state, g->plan, t)) {
	case NBFW_VALUE_FITS:
		return true;
	case NBFW_VALUE_BAD:
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
		return false;
	case NBFW_VALUE_MISMATCH:
		fail_mismatch(nic, g, t->src, now);
	}
	return false;
}

/* Receives any frame of a group with a plan but a TOKEN, or a TOKEN before nic->doubt_end or of a
 * group with values. `from` is the sender's address, for the answer. */
__attribute__((cold, noinline)) static void receive_rare(struct nbnic *nic, struct nbnic_group *g,
							 const struct nbnic_addr *from,
							 const struct nbfw_token *t, uint64_t now)
{
	static const uint8_t used[NBFW_TYPE_END] = {
		[NBFW_TOKEN] = NBAR_COUNTER_tokens_received,
		[NBFW_PULL] = NBAR_COUNTER_pulls_received,
		[NBFW_LATER] = NBAR_COUNTER_laters_received,
		[NBFW_ABORT] = NBAR_COUNTER_aborts_received,
	};
	struct nbfw_action a;

	if (t->type == NBFW_PROBE || t->type == NBFW_ECHO) {
		nbnic_probe_receive(nic, g, from, t);
		return;
	}
	/* A LATER or ABORT of a member that is not connected yet comes again, after a PULL. */
	if ((t->type == NBFW_LATER || t->type == NBFW_ABORT) && t->slot < g->plan->nrecv &&
	    g->peer[g->recv_peer[t->slot]].handle == 0) {
		nbnic_count(nic, NBAR_COUNTER_tokens_stale);
		return;
	}
	if (!(t->type == NBFW_PULL ? is_from_asker(g, from, t) : is_from_source(g, from, t))) {
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
		return;
	}
	if (t->type != NBFW_TOKEN || now < nic->doubt_end)
		note_alive(nic, g, from, t, now);
	if (nbnic_values(g) && t->type == NBFW_TOKEN && !take_value(nic, g, t, now))
		return;
	feed_frame(nic, g, t, &a, nbnic_values(g) != NULL, now);
	if (a.verdict != NBFW_USED) {
		nbnic_count(nic, (enum nbar_counter)refused[a.verdict]);
		return;
	}
	nbnic_count(nic, (enum nbar_counter)used[t->type]);
	if (a.reply)
		nbnic_why_answer(nic, g, &a, t, from, now);
	if (t->type == NBFW_LATER)
		nbnic_why_learn(nic, g, t, now);
}

/* Receives a frame of a "signal" group, or of one with values. */
__attribute__((noinline)) static void receive_special(struct nbnic *nic, struct nbnic_group *g,
						      const struct nbnic_addr *from,
						      const struct nbfw_token *t, uint64_t now)
{
	struct nbfw_action a;

	if (!nbnic_values(g)) {
		receive_signal(nic, g, from, t);
		return;
	}
	nbnic_take(nic, g, now);
	if (t->type != NBFW_TOKEN || now < nic->doubt_end) {
		receive_rare(nic, g, from, t, now);
		return;
	}
	if (!is_from_source(g, from, t)) {
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
		return;
	}
	if (!take_value(nic, g, t, now))
		return;
	feed_frame(nic, g, t, &a, true, now);
	nbnic_count(nic, a.verdict == NBFW_USED ? NBAR_COUNTER_tokens_received
						: (enum nbar_counter)refused[a.verdict]);
}

void nbnic_receive(struct nbnic *nic, const struct nbnic_addr *from, const struct nbfw_token *t,
		   uint64_t now)
{
	uint32_t index = nbnic_index(t->handle);
	struct nbnic_group *g = index < NBNIC_HANDLES ? nic->group[index] : NULL;
	struct nbfw_action a;

	if (!g || g->handle != t->handle || g->cookie != t->cookie) {
		answer_stranger(nic, from, t);
		return;
	}
	if (g->is_special) {
		receive_special(nic, g, from, t, now);
		return;
	}
	nbnic_take(nic, g, now);
	/* Tokens are many, so the NIC notes their senders only until doubt_end: for a while after a
	 * PULL, and when some group has waited for half of its window. The other half of the window
	 * is long enough to hear a token. */
	if (t->type != NBFW_TOKEN || now < nic->doubt_end) {
		receive_rare(nic, g, from, t, now);
		return;
	}
	if (!is_from_source(g, from, t)) {
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
		return;
	}
	feed_frame(nic, g, t, &a, false, now);
	nbnic_count(nic, a.verdict == NBFW_USED ? NBAR_COUNTER_tokens_received
						: (enum nbar_counter)refused[a.verdict]);
}
