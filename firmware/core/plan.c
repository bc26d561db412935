/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - writes the plans of the algorithms of alg.h: pairwise, dissemination, mcs, tournament,
 * binomial, linear, tree.
 *
 * Called when a group is opened. Uses integers only: a logarithm in floating point counts one round
 * too many for sizes such as 125 = 5^3. Must never write beyond the capacity that the caller gives.
 */
#include "plan.h"

/* A plan in the making. Without a block (step is NULL) it only counts. */
struct writer {
	uint32_t nstep, nsend, nrecv;
	struct nbar_step *step;
	struct nbar_send *send;
	struct nbar_recv *recv;
};

static void add_step(struct writer *w)
{
	if (w->step)
		w->step[w->nstep] = (struct nbar_step){ w->nsend, 0, w->nrecv, 0 };
	w->nstep++;
}

static void add_send(struct writer *w, uint32_t dst, uint32_t slot)
{
	if (w->step) {
		w->send[w->nsend] = (struct nbar_send){ dst, slot };
		w->step[w->nstep - 1].nsend++;
	}
	w->nsend++;
}

static void add_recv(struct writer *w, uint32_t src)
{
	if (w->step) {
		w->recv[w->nrecv] = (struct nbar_recv){ src };
		w->step[w->nstep - 1].nslot++;
	}
	w->nrecv++;
}

/*
 * half is the largest power of two that is not above size. The ranks below half exchange in pairs.
 * Each other rank r signals rank r - half before that exchange, and rank r - half releases rank r
 * after it.
 */
static void plan_pairwise(struct writer *w, uint32_t size, uint32_t rank)
{
	uint32_t half = 1, extra, joined;

	while (half <= size / 2)
		half *= 2;
	extra = size - half;
	joined = rank < extra; /* an extra rank signals this rank, in slot 0 */
	if (rank >= half) {
		add_step(w);
		add_send(w, rank - half, 0);
		add_recv(w, rank - half);
		return;
	}
	if (joined) {
		add_step(w);
		add_recv(w, rank + half);
	}
	for (uint32_t round = 0; UINT32_C(1) << round < half; round++) {
		uint32_t peer = rank ^ UINT32_C(1) << round;

		add_step(w);
		add_send(w, peer, round + (peer < extra));
		add_recv(w, peer);
	}
	if (joined) {
		add_step(w);
		add_send(w, rank + half, 0);
	}
}

/*
 * In each step, a rank signals the ranks that are 1, 2, ... `ways` times the distance above its
 * own, modulo size. All ranks have the same steps, so the n-th signal that a rank sends fills slot
 * n of its receiver. The plan leaves out a multiple of the distance that is not below size: such a
 * signal would return to its sender, or tell its receiver nothing new.
 */
static void plan_dissemination(struct writer *w, uint32_t size, uint32_t rank, uint32_t ways)
{
	for (uint32_t distance = 1; distance < size; distance *= ways + 1) {
		add_step(w);
		for (uint32_t i = 1; i <= ways && i * distance < size; i++) {
			uint32_t up = i * distance, down = size - up;

			add_send(w, rank < down ? rank + up : rank - down, w->nrecv);
			add_recv(w, rank < up ? rank + down : rank - up);
		}
	}
}

/* The number of children of a rank in a tree of `ways` ways. The first child is rank * ways + 1. */
static uint32_t children(uint32_t size, uint32_t rank, uint32_t ways)
{
	uint32_t first = rank * ways + 1, most = first < size ? size - first : 0;

	return most < ways ? most : ways;
}

/*
 * Arrivals go up a tree of `up` ways to rank 0. The release goes down a tree of `down` ways. A rank
 * has a slot for each child in the first tree, then one slot for its parent in the second tree.
 */
static void plan_trees(struct writer *w, uint32_t size, uint32_t rank, uint32_t up, uint32_t down)
{
	uint32_t arrive = children(size, rank, up), wake = children(size, rank, down);

	if (arrive)
		add_step(w);
	for (uint32_t i = 1; i <= arrive; i++)
		add_recv(w, rank * up + i);
	if (rank) {
		add_step(w);
		add_send(w, (rank - 1) / up, (rank - 1) % up);
		add_recv(w, (rank - 1) / down);
	}
	if (wake)
		add_step(w);
	for (uint32_t i = 1; i <= wake; i++)
		add_send(w, rank * down + i, children(size, rank * down + i, up));
}

/*
 * In round k, a rank whose lowest k + 1 bits are 0 wins over rank + 2^k, if that rank exists. The
 * loser signals the winner and waits for its release. A winner releases its losers from the last
 * round to the first. In a tournament (`rounds`), a rank has a step for each round that it wins. In
 * a binomial tree, the same ranks signal each other, but one step waits for all losers.
 *
 * The winner of round k has won all earlier rounds, so the loser's signal fills slot k of the
 * winner. The release fills the slot after the rounds that the loser has won. The code counts these
 * rounds, because the loser may have had no opponent in some of them.
 */
static void plan_knockout(struct writer *w, uint32_t size, uint32_t rank, bool rounds)
{
	uint32_t bit = 1, round = 0;

	for (; bit < size && !(rank & bit); bit *= 2, round++) {
		if (rank + bit < size) {
			if (rounds || round == 0)
				add_step(w);
			add_recv(w, rank + bit);
		}
	}
	if (rank) {
		add_step(w);
		add_send(w, rank - bit, round);
		add_recv(w, rank - bit);
	}
	if (rank + 1 < size && bit > 1)
		add_step(w);
	while ((bit /= 2) > 0) {
		uint32_t won = 0;

		for (uint32_t peer = 1; peer < bit && rank + bit + peer < size; peer *= 2)
			won++;
		if (rank + bit < size)
			add_send(w, rank + bit, won);
	}
}

/* Adds the steps of one rank. alg has passed nbfw_alg_plans. */
static void plan_generate(struct writer *w, struct nbfw_alg alg, uint32_t size, uint32_t rank)
{
	const uint32_t n = alg.n;

	/* All kinds that nbfw_alg_plans accepts are rows of the table. */
	switch ((uint32_t)alg.kind) {
#define CASE(kind, name, param, low, high, usual, usual_end, limit, plan, ...) \
	case NBFW_ALG_##kind:                                                  \
		plan;                                                          \
		break;
		NBFW_ALGS(CASE)
#undef CASE
	}
}

int32_t nbfw_plan_generate(struct nbfw_alg alg, uint32_t size, uint32_t rank, void *block,
			   size_t capacity)
{
	struct nbar_plan *p = block;
	struct writer w = { 0 };

	if (!nbfw_alg_plans(alg))
		return -NBFW_EINVAL;
	if (rank >= size || size > nbfw_alg_row(alg.kind)->limit)
		return -NBFW_ERANGE;
	plan_generate(&w, alg, size, rank);

	const struct nbar_plan head = { NBAR_PLAN_MAGIC, rank, size, w.nstep, w.nsend, w.nrecv };
	int32_t length = (int32_t)nbfw_plan_length(&head);

	if (capacity < (size_t)length)
		return length;
	*p = head;
	w = (struct writer){ .step = (struct nbar_step *)(p + 1) };
	w.send = (struct nbar_send *)(w.step + head.nstep);
	w.recv = (struct nbar_recv *)(w.send + head.nsend);
	plan_generate(&w, alg, size, rank);
	return length;
}
