/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c - the barrier protocol, as one pure function. It decides what a NIC sends and asks for,
 * when a barrier completes, and when a group fails.
 *
 * Called by the NIC loop for each doorbell, frame and timeout. Must never block, allocate, read a
 * clock or read beyond the plan. PROTOCOL.md explains the rules R1 to R7.
 */
#include "engine.h"
#include "plan.h"

enum { SET_HEARD = 2 };

/* Word i of a set. */
static uint32_t *word_of(const struct nbfw_state *s, uint32_t set, uint32_t i)
{
	return (uint32_t *)&s->bits[NBFW_INDEX(set * s->words + i, NBFW_FIXED_WORDS)];
}

static bool has(const struct nbfw_state *s, uint32_t set, uint32_t slot)
{
	return *word_of(s, set, slot / 32) >> (slot % 32) & 1;
}

static void put(struct nbfw_state *s, uint32_t set, uint32_t slot)
{
	*word_of(s, set, slot / 32) |= UINT32_C(1) << (slot % 32);
}

static void clear(struct nbfw_state *s, uint32_t set)
{
	for (uint32_t i = 0; i < NBFW_AT_MOST(s->words, NBFW_FIXED_SLOTS / 32); i++)
		*word_of(s, set, i) = 0;
}

void nbfw_init(struct nbfw_state *s, const struct nbar_plan *p, uint32_t epoch)
{
	*s = (struct nbfw_state){
		.epoch = epoch,
		.failed_rank = NBAR_RANK_NONE,
		.straggler = NBAR_RANK_NONE,
		.words = (uint8_t)((p->nrecv + 31) / 32),
	};
	for (uint32_t set = 0; set < 3; set++)
		clear(s, set);
}

static uint32_t step_end(const struct nbfw_state *s, const struct nbar_plan *p)
{
	const struct nbar_step *st = nbfw_plan_step(p, s->step);

	return st->first_slot + st->nslot;
}

/* Returns how many sends of barrier `epoch` have left: the sends of all steps that were entered. */
static uint32_t sends_released(const struct nbfw_state *s, const struct nbar_plan *p,
			       uint32_t epoch)
{
	int32_t ahead = (int32_t)(epoch - s->epoch);

	if (ahead > 0)
		return 0;
	if (ahead < 0 || !s->running)
		return p->nsend;
	const struct nbar_step *st = nbfw_plan_step(p, s->step);

	return st->first_send + st->nsend;
}

bool nbfw_missing(const struct nbfw_state *s, const struct nbar_plan *p, uint32_t slot)
{
	return s->running && slot >= s->want && slot < step_end(s, p) &&
	       !has(s, s->epoch & 1, slot);
}

/* Word i of a set, with the bits of the slots in [first, end). i is at least first / 32, and 32 * i
 * is at most end, so no shift is by 32 or more. */
static uint32_t word_range(uint32_t i, uint32_t first, uint32_t end)
{
	uint32_t bits = ~UINT32_C(0);

	if (first > 32 * i)
		bits <<= first - 32 * i;
	if (end < 32 * i + 32)
		bits &= ~(~UINT32_C(0) << (end - 32 * i));
	return bits;
}

/* Word i of a set, with the bits of all slots in [first, end) that lack the token of this epoch. */
static uint32_t word_missing(const struct nbfw_state *s, uint32_t i, uint32_t first, uint32_t end)
{
	return ~*word_of(s, s->epoch & 1, i) & word_range(i, first, end);
}

static uint32_t bits_count(uint32_t v)
{
	v -= v >> 1 & 0x55555555;
	v = (v & 0x33333333) + (v >> 2 & 0x33333333);
	return ((v + (v >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

uint32_t nbfw_missing_next(const struct nbfw_state *s, uint32_t first, uint32_t end, bool heard)
{
	end = NBFW_AT_MOST(end, NBFW_FIXED_SLOTS);
	for (uint32_t i = first / 32; 32 * i < end; i++) {
		uint32_t spoke = *word_of(s, SET_HEARD, i);
		uint32_t bits = word_missing(s, i, first, end) & (heard ? spoke : ~spoke);

		if (bits)
			return 32 * i + bits_count((bits & -bits) - 1);
	}
	return end;
}

uint32_t nbfw_missing_count(const struct nbfw_state *s, const struct nbar_plan *p)
{
	uint32_t n = 0;

	if (!s->running)
		return 0;
	for (uint32_t i = s->want / 32, end = step_end(s, p); 32 * i < end; i++)
		n += bits_count(word_missing(s, i, s->want, end));
	return n;
}

void nbfw_hear(struct nbfw_state *s, const struct nbar_plan *p, uint32_t slot)
{
	if (nbfw_missing(s, p, slot))
		put(s, SET_HEARD, slot);
}

/* R3: enters steps as far as the received tokens allow. Sends lie in step order, so all released
 * sends form one range; the caller has set its begin, send_first. */
static void engine_advance(struct nbfw_state *s, const struct nbar_plan *p, struct nbfw_action *a)
{
	const struct nbar_step *steps = nbfw_plan_steps(p);
	const uint32_t *set = word_of(s, s->epoch & 1, 0);
	uint32_t want = s->want, step = s->step;

	while (step < NBFW_AT_MOST(p->nstep, NBFW_FIXED_STEPS)) {
		const struct nbar_step *st = &steps[NBFW_INDEX(step, NBFW_FIXED_STEPS)];
		uint32_t end = NBFW_AT_MOST(st->first_slot + st->nslot, NBFW_FIXED_SLOTS);

		while (want < end &&
		       set[NBFW_INDEX(want / 32, NBFW_FIXED_SLOTS / 32)] >> (want % 32) & 1)
			want++;
		NBFW_FORGET(want, s->want);
		if (want < end)
			break;
		step++;
		s->tries = 0;
		s->straggler = NBAR_RANK_NONE;
		a->timer = NBFW_ARM;
		if (step < p->nstep)
			a->send_end = steps[NBFW_INDEX(step, NBFW_FIXED_STEPS)].first_send +
				      steps[NBFW_INDEX(step, NBFW_FIXED_STEPS)].nsend;
	}
	s->want = (uint16_t)want;
	s->step = (uint16_t)step;
	if (step < p->nstep)
		return;
	/* R2: no member sends for epoch + 2 before this member has started epoch + 1, so from here
	 * on the set of this parity is free for epoch + 2. */
	clear(s, s->epoch & 1);
	s->running = 0;
	/* R1: the caller reports the completion before it sends the range. The range has the sends
	 * of a last step without slots. */
	a->complete = true;
	a->timer = NBFW_DISARM;
}

/* R6: a failure is final, is reported once, and is passed on to all members that would wait for
 * this one. */
static void engine_fail(struct nbfw_state *s, const struct nbar_plan *p, struct nbfw_action *a,
			uint8_t cause, uint32_t failed_rank)
{
	uint32_t epoch = s->running ? s->epoch : s->epoch + 1;

	a->send_type = NBFW_ABORT;
	a->send_first = sends_released(s, p, epoch);
	a->send_end = p->nsend;
	a->send_epoch = epoch;
	a->failed = true;
	a->timer = NBFW_DISARM;
	s->cause = cause;
	s->failed_rank = failed_rank;
}

static void on_start(struct nbfw_state *s, const struct nbar_plan *p, struct nbfw_action *a)
{
	if (s->running || s->cause != NBAR_STATUS_OK) {
		a->verdict = s->cause != NBAR_STATUS_OK ? NBFW_STALE : NBFW_BAD;
		return;
	}
	s->epoch++;
	s->running = 1;
	s->step = 0;
	s->want = 0;
	clear(s, SET_HEARD);
	a->timer = NBFW_ARM;
	a->send_epoch = s->epoch;
	a->send_end = p->nstep ? nbfw_plan_step(p, 0)->nsend : 0;
	engine_advance(s, p, a);
}

/* True if the sender of t is the source of slot t->slot. */
static bool from_source(const struct nbar_plan *p, const struct nbfw_token *t)
{
	return t->slot < p->nrecv && nbfw_plan_recv(p, t->slot)->src == t->src;
}

static void on_token(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t,
		     struct nbfw_action *a)
{
	uint32_t ahead = t->epoch - s->epoch;

	if (!from_source(p, t)) {
		a->verdict = NBFW_BAD;
		return;
	}
	/* R2: accepts only tokens of the running and the next epoch. */
	if (ahead > 1 || (ahead == 0 && !s->running) || s->cause != NBAR_STATUS_OK) {
		a->verdict = (int32_t)ahead > 1 ? NBFW_BAD : NBFW_STALE;
		return;
	}
	uint32_t *word = word_of(s, t->epoch & 1, t->slot / 32);
	uint32_t bit = UINT32_C(1) << (t->slot % 32);

	if (*word & bit) {
		a->verdict = NBFW_DUPLICATE;
		return;
	}
	*word |= bit;
	if (ahead == 0 && t->slot == s->want) {
		const struct nbar_step *st = nbfw_plan_step(p, s->step);

		a->send_first = a->send_end = st->first_send + st->nsend;
		a->send_epoch = s->epoch;
		s->want++;
		engine_advance(s, p, a);
	}
}

bool nbfw_has_token(const struct nbfw_state *s, uint32_t epoch, uint32_t slot)
{
	return has(s, epoch & 1, slot);
}

bool nbfw_takes(const struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t)
{
	uint32_t ahead = t->epoch - s->epoch;

	return from_source(p, t) && ahead <= 1 && (ahead == 1 || s->running) &&
	       s->cause == NBAR_STATUS_OK && !has(s, t->epoch & 1, t->slot);
}

/* The send that fills slot t->slot of rank t->src, or nsend. Rare path: a linear search. */
static uint32_t send_to(const struct nbar_plan *p, const struct nbfw_token *t)
{
	uint32_t i = 0;

	while (i < NBFW_AT_MOST(p->nsend, NBFW_FIXED_SENDS) &&
	       (nbfw_plan_send(p, i)->dst != t->src || nbfw_plan_send(p, i)->slot != t->slot))
		i++;
	return i;
}

/* R4: repeats a send that has left. Otherwise answers ABORT if the send can never leave, LATER if
 * it will. */
static void on_pull(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t,
		    struct nbfw_action *a)
{
	int32_t ahead = (int32_t)(t->epoch - s->epoch);
	uint32_t i = send_to(p, t);

	if (i == p->nsend || ahead > 1) {
		a->verdict = NBFW_BAD;
	} else if (ahead < -1) {
		a->verdict = NBFW_STALE;
	} else if (i < sends_released(s, p, t->epoch)) {
		a->reply = NBFW_TOKEN;
		a->reply_arg = NBAR_RANK_NONE;
	} else if (s->cause != NBAR_STATUS_OK) {
		a->reply = NBFW_ABORT;
		a->reply_arg = s->failed_rank;
		a->reply_info = s->cause;
	} else {
		/* R5: names this member if its host is late, otherwise the known straggler. */
		a->reply = NBFW_LATER;
		if (!s->running)
			a->reply_arg = p->rank;
		else if (s->straggler != NBAR_RANK_NONE)
			a->reply_arg = s->straggler;
		else
			a->reply_arg = nbfw_plan_recv(p, s->want)->src;
	}
}

static void on_later(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t,
		     struct nbfw_action *a)
{
	if (!from_source(p, t) || t->arg >= p->size) {
		a->verdict = NBFW_BAD;
	} else if (s->cause != NBAR_STATUS_OK || t->epoch != s->epoch ||
		   !nbfw_missing(s, p, t->slot)) {
		a->verdict = NBFW_STALE;
	} else {
		put(s, SET_HEARD, t->slot);
		/* Our own host has arrived: an answer that names us is out of date. */
		s->straggler = t->arg == p->rank ? t->src : t->arg;
	}
}

static void on_abort(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t,
		     struct nbfw_action *a)
{
	uint32_t ahead = t->epoch - s->epoch;

	if (!from_source(p, t) || t->arg >= p->size || t->info == NBAR_STATUS_OK ||
	    t->info >= NBAR_STATUS_END)
		a->verdict = NBFW_BAD;
	/* R6: an ABORT must be about the running barrier or, if none runs, the next barrier. */
	else if (s->cause != NBAR_STATUS_OK || ahead != (s->running ? 0 : 1) ||
		 has(s, t->epoch & 1, t->slot))
		a->verdict = NBFW_STALE;
	else
		engine_fail(s, p, a, (uint8_t)t->info, t->arg);
}

static void on_timeout(struct nbfw_state *s, const struct nbar_plan *p, struct nbfw_action *a)
{
	if (!s->running || s->cause != NBAR_STATUS_OK) {
		a->verdict = NBFW_STALE;
		return;
	}
	uint32_t end = step_end(s, p);

	s->tries++;
	if (s->tries % NBFW_WINDOW == 0) {
		/* R5: a source that is silent for a window ends the barrier; a LATER gives the
		 * source one more window. */
		s->tries = NBFW_WINDOW;
		uint32_t silent = nbfw_missing_next(s, s->want, end, false);

		if (silent < end) {
			engine_fail(s, p, a, NBAR_STATUS_SILENT, nbfw_plan_recv(p, silent)->src);
			return;
		}
		clear(s, SET_HEARD);
	}
	/* R4: the receiver asks for missing tokens. */
	a->pull_first = s->want;
	a->pull_end = end;
	a->timer = NBFW_ARM;
}

static void on_leave(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_event *ev,
		     struct nbfw_action *a)
{
	const uint8_t cause = ev->cause;
	uint32_t rank = cause == NBAR_STATUS_MISMATCH ? ev->token.src : p->rank;
	bool orderly = cause == NBAR_STATUS_CLOSED && !s->running;

	if (s->cause != NBAR_STATUS_OK) {
		a->verdict = NBFW_STALE;
		return;
	}
	if (cause == NBAR_STATUS_OK || cause >= NBAR_STATUS_END || rank >= p->size) {
		a->verdict = NBFW_BAD;
		return;
	}
	engine_fail(s, p, a, cause, rank);
	/* R7: no ABORT, because every member closes sooner or later. A member that still waits
	 * sends a PULL, and the answer names the cause. */
	if (orderly)
		a->send_first = a->send_end;
}

static const struct nbfw_action nothing = { .verdict = NBFW_USED, .send_type = NBFW_TOKEN };

void nbfw_step_token(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t,
		     struct nbfw_action *a)
{
	*a = nothing;
	if (__builtin_expect(t->type == NBFW_TOKEN, 1)) {
		on_token(s, p, t, a);
		return;
	}
	switch (t->type) {
	case NBFW_PULL:
		on_pull(s, p, t, a);
		return;
	case NBFW_LATER:
		on_later(s, p, t, a);
		return;
	case NBFW_ABORT:
		on_abort(s, p, t, a);
		return;
	}
	a->verdict = NBFW_BAD;
}

void nbfw_step(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_event *ev,
	       struct nbfw_action *a)
{
	*a = nothing;
	switch (ev->type) {
	case NBFW_EV_START:
		on_start(s, p, a);
		return;
	case NBFW_EV_TIMEOUT:
		on_timeout(s, p, a);
		return;
	case NBFW_EV_LEAVE:
		on_leave(s, p, ev, a);
		return;
	case NBFW_EV_TOKEN:
		nbfw_step_token(s, p, &ev->token, a);
		return;
	}
	a->verdict = NBFW_BAD;
}

int nbfw_check(const struct nbfw_state *s, const struct nbar_plan *p)
{
	uint32_t now = s->epoch & 1;
	bool is_idle = !s->running && s->cause == NBAR_STATUS_OK;

	/* I1: `running` is 0 or 1, and the sets have the length of the plan. */
	if (s->running > 1 || s->words != (uint8_t)((p->nrecv + 31) / 32))
		return 1;
	/* I2: a running member is in a step, and the token of slot `want` is missing. */
	if (s->running &&
	    (s->step >= p->nstep || s->want < nbfw_plan_step(p, s->step)->first_slot ||
	     s->want >= step_end(s, p) || has(s, now, s->want)))
		return 2;
	/* I3: a running member has the tokens of all slots before `want`. */
	for (uint32_t slot = 0; s->running && slot < s->want; slot++)
		if (!has(s, now, slot))
			return 3;
	/* I4: a completed epoch leaves no token behind. */
	for (uint32_t i = 0; !s->running && i < s->words; i++)
		if (*word_of(s, now, i))
			return 4;
	/* I5: no bit is set for a slot that the plan does not have. */
	for (uint32_t slot = p->nrecv; slot < 32u * s->words; slot++)
		if (has(s, 0, slot) || has(s, 1, slot) || has(s, SET_HEARD, slot))
			return 5;
	/* I6: a cause and a failed rank come together. */
	if (s->cause >= NBAR_STATUS_END ||
	    (s->cause == NBAR_STATUS_OK) != (s->failed_rank == NBAR_RANK_NONE) ||
	    (s->failed_rank != NBAR_RANK_NONE && s->failed_rank >= p->size))
		return 6;
	/* I7: tries stay below two windows, and are 0 between two barriers. */
	if (s->tries >= 2 * NBFW_WINDOW || (is_idle && s->tries > 0))
		return 7;
	/* I8: the straggler is another member; there is none between two barriers. */
	if (s->straggler != NBAR_RANK_NONE &&
	    (is_idle || s->straggler >= p->size || s->straggler == p->rank))
		return 8;
	return 0;
}
