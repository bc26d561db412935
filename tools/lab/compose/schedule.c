/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schedule.c - makes the steps of all members from the signals of a barrier, proves that the steps
 * are a barrier, and makes the plans. See schedule.h.
 *
 * Memory grows with members and signals, never with the square of the members.
 */
#include "schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Steps of the pattern, with one numbering for all ranks. merge_steps makes the steps of the
 * schedule from them. */
struct raw {
	uint32_t nstep;
	uint32_t *base;          /* by rank */
	uint32_t *sends, *slots; /* by step: first send, first slot */
};

static bool raw_init(struct raw *w, const struct pattern *p)
{
	*w = (struct raw){ .base = calloc(p->size + 1, sizeof(uint32_t)) };
	if (!w->base)
		return false;
	for (uint32_t r = 0; r < p->size; r++)
		w->base[r + 1] = w->base[r] + p->next[r];
	w->nstep = w->base[p->size];
	w->sends = calloc(w->nstep + 2, sizeof(uint32_t));
	w->slots = calloc(w->nstep + 2, sizeof(uint32_t));
	if (!w->sends || !w->slots)
		return false;
	for (uint32_t i = 0; i < p->n; i++) {
		w->sends[w->base[p->signal[i].src] + p->signal[i].src_step + 1]++;
		w->slots[w->base[p->signal[i].dst] + p->signal[i].dst_step + 1]++;
	}
	for (uint32_t i = 0; i < w->nstep; i++) {
		w->sends[i + 1] += w->sends[i];
		w->slots[i + 1] += w->slots[i];
	}
	return true;
}

static void raw_free(struct raw *w)
{
	free(w->base);
	free(w->sends);
	free(w->slots);
}

static bool schedule_alloc(struct schedule *s, uint32_t steps)
{
	uint32_t **of_step[] = { &s->first_send, &s->first_slot, &s->rank_of, &s->order };
	uint32_t **of_signal[] = { &s->send_dst, &s->send_slot, &s->slot_src, &s->slot_send,
				   &s->slot_step };
	bool good = true;

	s->first_step = calloc(s->size + 1, sizeof(uint32_t));
	for (size_t i = 0; i < sizeof(of_step) / sizeof(of_step[0]); i++)
		good &= (*of_step[i] = calloc(steps + 2, sizeof(uint32_t))) != NULL;
	for (size_t i = 0; i < sizeof(of_signal) / sizeof(of_signal[0]); i++)
		good &= (*of_signal[i] = calloc(s->nsignal + 1, sizeof(uint32_t))) != NULL;
	return good && s->first_step;
}

/* Merges steps so that each send is as early as possible: only a send after a wait begins a
 * step. */
static void merge_steps(struct schedule *s, const struct raw *w)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < s->size; r++) {
		bool waited = true; /* a rank begins with a new step */

		s->first_step[r] = n;
		for (uint32_t i = w->base[r]; i < w->base[r + 1]; i++) {
			bool sends = w->sends[i + 1] > w->sends[i];
			bool slots = w->slots[i + 1] > w->slots[i];

			if ((sends && waited) || (slots && n == s->first_step[r])) {
				s->first_send[n] = w->sends[i];
				s->first_slot[n] = w->slots[i];
				s->rank_of[n++] = r;
				waited = false;
			}
			waited |= slots;
		}
	}
	s->first_step[s->size] = s->nstep = n;
	s->first_send[n] = s->first_slot[n] = s->nsignal;
}

/* Puts the signals into their steps. Uses w->sends and w->slots as cursors, so both are invalid
 * afterwards. */
static void place_signals(struct schedule *s, const struct pattern *p, struct raw *w)
{
	for (uint32_t i = 0; i < p->n; i++) {
		const struct signal *g = &p->signal[i];
		uint32_t send = w->sends[w->base[g->src] + g->src_step]++;
		uint32_t slot = w->slots[w->base[g->dst] + g->dst_step]++;

		s->send_dst[send] = g->dst;
		s->send_slot[send] = slot;
		s->slot_src[slot] = g->src;
		s->slot_send[slot] = send;
	}
	for (uint32_t i = 0; i < s->nstep; i++)
		for (uint32_t k = s->first_slot[i]; k < s->first_slot[i + 1]; k++)
			s->slot_step[k] = i;
}

/* A step waits for one event less. After the last event, the rank enters its next step. */
static void step_hears(struct schedule *s, uint32_t *pending, uint32_t step)
{
	if (--pending[step] == 0 && step + 1 < s->first_step[s->rank_of[step] + 1])
		s->order[s->norder++] = step + 1;
}

/* Enters steps until no more step can be entered. `order` is also the queue. */
static bool put_in_order(struct schedule *s)
{
	uint32_t *pending = malloc((s->nstep + 1) * sizeof(*pending));

	if (!pending)
		return false;
	for (uint32_t i = 0; i < s->nstep; i++)
		pending[i] = s->first_slot[i + 1] - s->first_slot[i] + 1;
	for (uint32_t r = 0; r < s->size; r++)
		if (s->first_step[r] < s->first_step[r + 1])
			s->order[s->norder++] = s->first_step[r];
	for (uint32_t at = 0; at < s->norder; at++) {
		uint32_t step = s->order[at];

		for (uint32_t i = s->first_send[step]; i < s->first_send[step + 1]; i++)
			step_hears(s, pending, s->slot_step[s->send_slot[i]]);
		step_hears(s, pending, step);
	}
	for (uint32_t i = 0; i < s->nstep; i++)
		if (pending[i])
			s->norder = 0; /* a rank never reaches its end */
	free(pending);
	return true;
}

struct schedule *schedule_new(const struct pattern *p)
{
	struct schedule *s = calloc(1, sizeof(*s));
	struct raw w = { 0 };
	bool good = s && raw_init(&w, p);

	if (good) {
		s->size = p->size;
		s->nsignal = p->n;
		good = schedule_alloc(s, w.nstep);
	}
	if (good) {
		merge_steps(s, &w);
		place_signals(s, p, &w);
		good = put_in_order(s);
	}
	raw_free(&w);
	if (good)
		return s;
	schedule_free(s);
	return NULL;
}

void schedule_free(struct schedule *s)
{
	if (!s)
		return;
	free(s->first_step);
	free(s->first_send);
	free(s->first_slot);
	free(s->rank_of);
	free(s->send_dst);
	free(s->send_slot);
	free(s->slot_src);
	free(s->slot_send);
	free(s->slot_step);
	free(s->order);
	free(s);
}

/* Columns of K in one pass. With one pass per block of columns, K does not need P^2 memory. */
#define WORDS 4u
struct row {
	uint64_t word[WORDS];
};

/* Computes which columns of this block each rank knows when it enters each step, and at its end. */
static void schedule_spread(const struct schedule *s, uint32_t first, struct row *entered,
			    struct row *carried)
{
	for (uint32_t i = 0; i < s->norder; i++) {
		uint32_t step = s->order[i], rank = s->rank_of[step];
		struct row k = { { 0 } };

		if (step == s->first_step[rank]) {
			if (rank >= first && rank - first < 64 * WORDS)
				k.word[(rank - first) / 64] = UINT64_C(1) << (rank - first) % 64;
		} else {
			k = entered[step - 1];
			for (uint32_t g = s->first_slot[step - 1]; g < s->first_slot[step]; g++) {
				uint32_t from = s->slot_send[g];

				for (uint32_t w = 0; w < WORDS; w++)
					k.word[w] |= carried[from].word[w];
			}
		}
		entered[step] = k;
		for (uint32_t g = s->first_send[step]; g < s->first_send[step + 1]; g++)
			carried[g] = k; /* the knowledge that the signal carries */
	}
}

/* True if rank r, after its last step, knows all columns of this block. */
static bool schedule_knows(const struct schedule *s, uint32_t r, uint32_t first,
			   const struct row *entered, const struct row *carried)
{
	uint32_t last = s->first_step[r + 1] - 1, columns = s->size - first;
	struct row k = entered[last];

	for (uint32_t g = s->first_slot[last]; g < s->first_slot[last + 1]; g++)
		for (uint32_t w = 0; w < WORDS; w++)
			k.word[w] |= carried[s->slot_send[g]].word[w];
	for (uint32_t w = 0; w < WORDS && w * 64 < columns; w++) {
		uint32_t left = columns - w * 64;
		uint64_t all = left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;

		if (k.word[w] != all)
			return false;
	}
	return true;
}

#define BLOCKS_SPREAD 8u /* passes among more than SCHEDULE_EXACT_MAX members */

int schedule_is_barrier(const struct schedule *s)
{
	uint32_t stride = s->size > SCHEDULE_EXACT_MAX ? s->size / BLOCKS_SPREAD : 64 * WORDS;
	struct row *entered, *carried;
	int barrier = 1;

	if (s->size == 1)
		return s->nsignal == 0;
	if (s->norder != s->nstep)
		return 0;
	for (uint32_t r = 0; r < s->size; r++)
		if (s->first_step[r] == s->first_step[r + 1])
			return 0;
	entered = malloc(((size_t)s->nstep + 1) * sizeof(*entered));
	carried = malloc(((size_t)s->nsignal + 1) * sizeof(*carried));
	if (!entered || !carried)
		barrier = -ENOMEM;
	for (uint32_t first = 0; first < s->size && barrier == 1; first += stride) {
		schedule_spread(s, first, entered, carried);
		for (uint32_t r = 0; r < s->size && barrier; r++)
			barrier = schedule_knows(s, r, first, entered, carried);
	}
	free(entered);
	free(carried);
	return barrier;
}

int64_t schedule_plan(const struct schedule *s, uint32_t rank, void *block, size_t capacity)
{
	uint32_t begin = s->first_step[rank], end = s->first_step[rank + 1];
	uint32_t send0 = s->first_send[begin], slot0 = s->first_slot[begin];
	struct nbar_plan *p = block, head = { .magic = NBAR_PLAN_MAGIC,
					      .rank = rank,
					      .size = s->size,
					      .nstep = end - begin,
					      .nsend = s->first_send[end] - send0,
					      .nrecv = s->first_slot[end] - slot0 };
	uint64_t length = nbfw_plan_length(&head);

	if (head.size > NBAR_SIZE_MAX || head.nstep > NBAR_STEPS_MAX ||
	    head.nsend > NBAR_SENDS_MAX || head.nrecv > NBAR_SLOTS_MAX)
		return -ENOSPC;
	if (length > capacity)
		return (int64_t)length;
	*p = head;
	struct nbar_step *step = (void *)(p + 1);
	struct nbar_send *send = (void *)(step + head.nstep);
	struct nbar_recv *recv = (void *)(send + head.nsend);

	for (uint32_t i = begin; i < end; i++)
		step[i - begin] = (struct nbar_step){ s->first_send[i] - send0,
						      s->first_send[i + 1] - s->first_send[i],
						      s->first_slot[i] - slot0,
						      s->first_slot[i + 1] - s->first_slot[i] };
	for (uint32_t i = 0; i < head.nsend; i++) {
		uint32_t dst = s->send_dst[send0 + i];

		send[i] = (struct nbar_send){ dst, s->send_slot[send0 + i] -
							   s->first_slot[s->first_step[dst]] };
	}
	for (uint32_t i = 0; i < head.nrecv; i++)
		recv[i].src = s->slot_src[slot0 + i];
	return (int64_t)length;
}

static int schedule_check_plan(const struct schedule *s, uint32_t rank, const char **why)
{
	int64_t length = schedule_plan(s, rank, NULL, 0);
	struct nbar_plan *plan;
	uint64_t *scratch;
	int rc = -ENOMEM;

	if (length < 0) {
		*why = "a plan has more steps, sends or slots than a NIC takes";
		return (int)length;
	}
	plan = malloc((size_t)length);
	scratch = malloc((nbfw_plan_scratch((size_t)length) + 1) * sizeof(*scratch));
	if (plan && scratch) {
		schedule_plan(s, rank, plan, (size_t)length);
		rc = nbfw_plan_check(plan, (size_t)length, scratch, why);
	}
	free(scratch);
	free(plan);
	return rc;
}

int schedule_check(const struct schedule *s, const char **why)
{
	int barrier;

	*why = "no memory to check the barrier";
	for (uint32_t r = 0; r < s->size; r++) {
		int rc = schedule_check_plan(s, r, why);

		if (rc)
			return rc;
	}
	barrier = schedule_is_barrier(s);
	if (barrier == 0)
		*why = "some member would not wait for all others";
	return barrier == 1 ? 0 : barrier == 0 ? -EINVAL : barrier;
}
