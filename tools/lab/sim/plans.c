/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plans.c - see plans.h. A simulation makes its plans before it begins.
 */
#include "plans.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define SHAPES_MAX 4096u /* different plans; if there are more, the next way to rename is tried */
#define TABLE (4 * SHAPES_MAX)
/* Words of the longest plan. */
#define PLAN_WORDS                                                                                 \
	((sizeof(struct nbar_plan) + NBAR_STEPS_MAX * sizeof(struct nbar_step) +                   \
	  NBAR_SENDS_MAX * sizeof(struct nbar_send) + NBAR_SLOTS_MAX * sizeof(struct nbar_recv)) / \
	 4)

/* The source of the plans, and the state while they are made. */
struct maker {
	struct nbfw_alg alg;
	const struct nbar_plan *const *plan; /* NULL: the plans of `alg` */
	uint32_t room[PLAN_WORDS];
	uint32_t table[TABLE]; /* 1 + where a shape begins; 0: none */
};

static uint32_t size_of_names(const struct sim_plans *p)
{
	uint32_t size = 1;

	if (p->rename != SIM_RENAME_XOR)
		return p->size;
	while (size < p->size)
		size *= 2;
	return size;
}

/* Writes the plan of a member, with renamed ranks. Returns its number of words, or an error. */
static int64_t plans_make_one(const struct sim_plans *p, struct maker *m, uint32_t member)
{
	struct nbar_plan *plan = (void *)m->room;

	if (m->plan) {
		memcpy(plan, m->plan[member], (size_t)nbfw_plan_length(m->plan[member]));
	} else {
		int32_t length = nbfw_plan_generate(m->alg, p->size, member, plan, sizeof(m->room));

		if (length < 0)
			return length;
	}
	struct nbar_send *send = (struct nbar_send *)(uintptr_t)nbfw_plan_sends(plan);
	struct nbar_recv *recv = (struct nbar_recv *)(uintptr_t)nbfw_plan_recvs(plan);

	plan->rank = sim_plans_name(p, member, member);
	plan->size = size_of_names(p);
	for (uint32_t i = 0; i < plan->nsend; i++)
		send[i].dst = sim_plans_name(p, member, send[i].dst);
	for (uint32_t i = 0; i < plan->nrecv; i++)
		recv[i].src = sim_plans_name(p, member, recv[i].src);
	return (int64_t)(nbfw_plan_length(plan) / 4);
}

/* Appends n words to the block. */
static int plans_append(struct sim_plans *p, const uint32_t *word, size_t n)
{
	if (p->nword + n > p->cap) {
		size_t cap = p->nword + n + p->cap / 4 + 1024;
		uint32_t *block = realloc(p->block, cap * 4);

		if (!block || cap >= UINT32_MAX) {
			p->block = block ? block : p->block;
			return -NBAR_ENOMEM;
		}
		p->block = block;
		p->cap = cap;
	}
	memcpy(p->block + p->nword, word, n * 4);
	p->nword += n;
	return 0;
}

static uint32_t hash(const uint32_t *word, size_t n)
{
	uint32_t h = UINT32_C(2166136261);

	for (size_t i = 0; i < n; i++) {
		h = (h ^ word[i]) * UINT32_C(0x9e3779b1);
		h ^= h >> 15;
	}
	return h;
}

/* Finds the member's plan among the shapes, or adds it. */
static int plans_keep(struct sim_plans *p, struct maker *m, uint32_t member, size_t n)
{
	const struct nbar_plan *plan = (const void *)m->room;
	uint32_t i = hash(m->room, n) % TABLE;

	if (p->rename != SIM_RENAME_NONE) {
		for (; m->table[i]; i = (i + 1) % TABLE) {
			const uint32_t *there = p->block + m->table[i] - 1;

			if (p->nword - (m->table[i] - 1) >= n && !memcmp(there, m->room, n * 4)) {
				p->at[member] = m->table[i] - 1;
				return 0;
			}
		}
		m->table[i] = (uint32_t)p->nword + 1;
	}
	p->at[member] = (uint32_t)p->nword;
	p->nshape++;
	if (plan->nstep > p->steps)
		p->steps = plan->nstep;
	if (nbfw_state_size(plan) > p->state)
		p->state = nbfw_state_size(plan);
	return plans_append(p, m->room, n);
}

/* Makes the plans of all members with one way to rename. 1: this gives too many shapes. */
static int plans_try(struct sim_plans *p, struct maker *m)
{
	memset(m->table, 0, sizeof(m->table));
	p->nword = 0;
	p->nshape = p->steps = 0;
	p->tokens = 0;
	p->state = 0;
	for (uint32_t member = 0; member < p->size; member++) {
		int64_t n = plans_make_one(p, m, member);
		int r = n < 0 ? (int)n : plans_keep(p, m, member, (size_t)n);

		if (r)
			return r;
		p->tokens += ((const struct nbar_plan *)(const void *)m->room)->nsend;
		if (p->rename != SIM_RENAME_NONE && p->nshape >= SHAPES_MAX)
			return 1;
	}
	return 0;
}

static int plans_make_all(struct sim_plans *p, uint32_t size, struct nbfw_alg alg,
			  const struct nbar_plan *const *plan)
{
	struct maker *m = malloc(sizeof(*m));
	int r = -NBAR_ENOMEM;

	*p = (struct sim_plans){ .size = size, .at = malloc(((size_t)size + 1) * 4) };
	if (m && p->at) {
		m->alg = alg;
		m->plan = plan;
		r = 1;
		for (uint32_t way = SIM_RENAME_ADD; r > 0 && way <= SIM_RENAME_NONE; way++) {
			p->rename = (enum sim_rename)way;
			r = plans_try(p, m);
		}
	}
	free(m);
	if (r)
		sim_plans_free(p);
	return r;
}

int sim_plans_generate(struct sim_plans *p, struct nbfw_alg alg, uint32_t size)
{
	return plans_make_all(p, size, alg, NULL);
}

int sim_plans_take(struct sim_plans *p, const struct nbar_plan *const *plan, uint32_t size)
{
	return plans_make_all(p, size, (struct nbfw_alg){ NBFW_ALG_CUSTOM, 0 }, plan);
}

void sim_plans_free(struct sim_plans *p)
{
	free(p->at);
	free(p->block);
	*p = (struct sim_plans){ 0 };
}
