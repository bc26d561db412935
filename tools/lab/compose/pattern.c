/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.c - collects the signals of a barrier, from algorithms of the table among any members.
 * See schedule.h.
 *
 * The plan generators of the firmware make the signals: only they know the algorithms.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

/* The plans of all k ranks of an algorithm, in one block. */
struct plans {
	struct nbfw_alg alg;
	uint32_t k, nsend;
	bool trees; /* the algorithm has an arrival and a release */
	const struct nbar_plan **plan;
	void *block;
};

/* Plans of small clusters are cached, because many clusters use the same ones. */
#define CACHE_SIZE 64u
#define CACHED_MAX 128u /* members */

int pattern_init(struct pattern *p, uint32_t size)
{
	*p = (struct pattern){ .size = size, .next = calloc(size, sizeof(*p->next)) };
	return p->next ? 0 : -ENOMEM;
}

void pattern_clear(struct pattern *p)
{
	memset(p->next, 0, p->size * sizeof(*p->next));
	p->n = 0;
}

static void plans_free(struct plans *s)
{
	free(s->plan);
	free(s->block);
	*s = (struct plans){ 0 };
}

void pattern_free(struct pattern *p)
{
	for (uint32_t i = 0; p->cache && i < CACHE_SIZE; i++)
		plans_free(&p->cache[i]);
	free(p->cache);
	free(p->next);
	free(p->signal);
	*p = (struct pattern){ 0 };
}

static int make_room(struct pattern *p, uint32_t more)
{
	uint32_t room = p->room ? p->room : 64;
	struct signal *signal;

	if (more > UINT32_MAX / 2 - p->n)
		return -ENOSPC;
	while (room < p->n + more)
		room *= 2;
	if (room == p->room)
		return 0;
	signal = realloc(p->signal, room * sizeof(*signal));
	if (!signal)
		return -ENOMEM;
	p->signal = signal;
	p->room = room;
	return 0;
}

static int plans_make(struct plans *s, struct nbfw_alg alg, uint32_t k)
{
	size_t room = 0, used = 0;
	int32_t length;

	*s = (struct plans){ .alg = alg, .k = k };
	for (uint32_t r = 0; r < k; r++) {
		length = nbfw_plan_generate(alg, k, r, NULL, 0);
		if (length < 0)
			return length;
		room += (size_t)length;
	}
	s->plan = calloc(k, sizeof(*s->plan));
	s->block = malloc(room + 1);
	if (!s->plan || !s->block) {
		plans_free(s);
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < k; r++) {
		struct nbar_plan *plan = (void *)((char *)s->block + used);

		used += (size_t)nbfw_plan_generate(alg, k, r, plan, room - used);
		s->plan[r] = plan;
		s->nsend += plan->nsend;
	}
	return 0;
}

/* Returns the step of a plan that waits for a slot. */
static uint32_t step_of_slot(const struct nbar_plan *p, uint32_t slot)
{
	const struct nbar_step *step = nbfw_plan_steps(p);
	uint32_t s = 0;

	while (s + 1 < p->nstep && step[s + 1].first_slot <= slot)
		s++;
	return s;
}

/*
 * True if this member sends exactly one signal to a lower rank, after all its waits for higher
 * ranks, and waits for exactly one lower rank; rank 0 does neither. If all members pass, the
 * signals to lower ranks are an arrival at rank 0, and the signals to higher ranks are a release.
 */
static bool is_tree(const struct nbar_plan *p)
{
	const struct nbar_send *send = nbfw_plan_sends(p);
	const struct nbar_recv *recv = nbfw_plan_recvs(p);
	uint32_t down = 0, from_below = 0, sent_in = UINT32_MAX, last = 0;

	for (uint32_t s = 0; s < p->nstep; s++) {
		const struct nbar_step *step = &nbfw_plan_steps(p)[s];

		for (uint32_t i = step->first_send; i < step->first_send + step->nsend; i++) {
			if (send[i].dst < p->rank) {
				down++;
				sent_in = s;
			} else if (p->rank && !from_below) {
				return false; /* it releases others before its own release */
			}
		}
		for (uint32_t i = step->first_slot; i < step->first_slot + step->nslot; i++) {
			from_below += recv[i].src < p->rank;
			if (recv[i].src > p->rank)
				last = s + 1;
		}
	}
	return p->rank == 0 ? down == 0 : down == 1 && from_below == 1 && sent_in >= last;
}

static bool all_are_trees(const struct plans *s)
{
	for (uint32_t r = 0; r < s->k; r++)
		if (!is_tree(s->plan[r]))
			return false;
	return true;
}

/* Finds the plans in the cache, or makes new ones in *own, which belong to the caller. */
static int plans_find(struct pattern *p, struct nbfw_alg alg, uint32_t k, struct plans *own,
		      struct plans **out)
{
	struct plans *s = own;
	int rc = 0;

	if (!p->cache)
		p->cache = calloc(CACHE_SIZE, sizeof(*p->cache));
	if (p->cache && k <= CACHED_MAX)
		s = &p->cache[(k * 5 + (uint32_t)alg.kind * 17 + alg.n) % CACHE_SIZE];
	if (s == own || s->k != k || s->alg.kind != alg.kind || s->alg.n != alg.n) {
		if (s != own)
			plans_free(s);
		rc = plans_make(s, alg, k);
		if (!rc)
			s->trees = all_are_trees(s);
		else
			*s = (struct plans){ 0 };
	}
	*out = s;
	return rc;
}

static void add_sends(struct pattern *p, const struct plans *s, const uint32_t *member, uint32_t r,
		      enum pattern_part part)
{
	const struct nbar_plan *plan = s->plan[r];

	for (uint32_t i = 0; i < plan->nstep; i++) {
		const struct nbar_step *step = &nbfw_plan_steps(plan)[i];
		const struct nbar_send *send = nbfw_plan_sends(plan) + step->first_send;

		for (uint32_t k = 0; k < step->nsend; k++) {
			uint32_t src = member ? member[r] : r;
			uint32_t dst = member ? member[send[k].dst] : send[k].dst;

			if (part != PATTERN_ALL && (part == PATTERN_ARRIVE) != (send[k].dst < r))
				continue;
			p->signal[p->n++] =
				(struct signal){ src, p->next[src] + i, dst,
						 p->next[dst] + step_of_slot(s->plan[send[k].dst],
									     send[k].slot) };
		}
	}
}

int pattern_add(struct pattern *p, struct nbfw_alg alg, const uint32_t *member, uint32_t k,
		enum pattern_part part)
{
	struct plans own = { 0 }, *s;
	int rc = plans_find(p, alg, k, &own, &s);

	if (!rc && part != PATTERN_ALL && !s->trees)
		rc = -EINVAL;
	if (!rc)
		rc = make_room(p, s->nsend);
	for (uint32_t r = 0; r < k && !rc; r++)
		add_sends(p, s, member, r, part);
	for (uint32_t r = 0; r < k && !rc; r++)
		p->next[member ? member[r] : r] += s->plan[r]->nstep;
	plans_free(&own);
	return rc;
}
