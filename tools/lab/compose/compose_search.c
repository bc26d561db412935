/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose_search.c - the local search. A step tries another algorithm or fan-out for a cluster, or
 * another leader, or merges or splits a cluster, or moves a member. See compose_search.h.
 */
#include "compose_search.h"

#include <errno.h>
#include <stdlib.h>

#define LEADERS_MAX 16u /* try this many children of a cluster as its leader */
#define MOVES_MAX 8u    /* try this many children in another cluster */
#define GAIN 1e-4       /* smallest gain that counts, relative to the whole time */

#define ALL_PARAMS_MAX 16u   /* up to this many members, try every value of a parameter ... */
#define SOME_PARAMS_MAX 512u /* ... and up to this many, more than the usual values */

/* True if the parameter n is worth a prediction among k members. If n or n + 1 is a power of two,
 * an algorithm has fewer rounds, or its tree is full. */
static bool is_worth(const struct nbfw_alg_row *row, uint32_t n, uint32_t k)
{
	if (n <= 1)
		return true;
	if (k <= ALL_PARAMS_MAX)
		return n < k;
	if (k <= SOME_PARAMS_MAX)
		return (n & (n - 1)) == 0 || (n & (n + 1)) == 0;
	return n == row->usual || n == row->usual_end;
}

int compose_each(uint32_t k, int (*each)(void *arg, struct nbfw_alg alg), void *arg)
{
	int rc = 0;

	for (uint32_t kind = NBFW_ALG_FIRST; kind < NBFW_ALG_END; kind++) {
		const struct nbfw_alg_row *row = nbfw_alg_row((enum nbfw_alg_kind)kind);

		if (k > row->limit)
			continue;
		for (uint32_t n = row->low; n <= row->high && !rc; n++)
			if (is_worth(row, n, k))
				rc = each(arg, (struct nbfw_alg){ (enum nbfw_alg_kind)kind, n });
	}
	return rc;
}

struct climb {
	struct search *s;
	struct scheme *at, *next; /* the best scheme so far, and the candidate */
	struct pattern pattern;
	uint32_t group;
	enum { UP, DOWN, EXCHANGE } what;
	bool better; /* true: this round has found a better scheme */
};

/* Predicts x->next, and makes it x->at if it is better. */
static int search_look(struct climb *x)
{
	struct search *s = x->s;
	struct predict predict;
	struct schedule *schedule;
	int rc = scheme_signals(x->next, &x->pattern);

	if (rc == -EINVAL || rc == -ERANGE)
		return 0; /* an algorithm does not allow this size, or does not have this part */
	if (rc)
		return rc;
	schedule = schedule_new(&x->pattern);
	if (!schedule)
		return -ENOMEM;
	rc = predict_run(schedule, s->p, s->host, PREDICT_FIRST, &predict);
	s->tried++;
	s->budget -= s->budget < x->pattern.n + 8u ? s->budget : x->pattern.n + 8u;
	if (!rc && (!s->best || predict.all_s < s->best_s * (1 - GAIN))) {
		struct scheme *was = x->at;

		schedule_free(s->best);
		s->best = schedule;
		s->best_s = predict.all_s;
		x->at = x->next;
		x->next = was;
		x->better = true;
	} else {
		schedule_free(schedule);
	}
	return rc;
}

/* Prepares x->next for a change and a look. False: the budget is used up. */
static bool search_begin(struct climb *x)
{
	scheme_copy(x->next, x->at);
	return x->s->budget > 0;
}

static int try_alg(void *arg, struct nbfw_alg alg)
{
	struct climb *x = arg;
	struct scheme_group *g = &x->next->group[x->group];

	if (!search_begin(x))
		return 0;
	if (x->what == DOWN)
		g->down = alg;
	else
		g->up = alg;
	if (x->group == 0 && x->what != DOWN)
		x->next->exchange = x->what == EXCHANGE;
	return search_look(x);
}

static int try_algs(struct climb *x)
{
	int rc = 0;

	for (uint32_t what = UP; what <= EXCHANGE && !rc; what++) {
		x->what = what;
		if (what == EXCHANGE ? x->group == 0 : x->group || !x->at->exchange || what == UP)
			rc = compose_each(x->at->group[x->group].n, try_alg, x);
	}
	return rc;
}

static int try_leaders(struct climb *x)
{
	int rc = 0;

	for (uint32_t i = 1; i < x->at->group[x->group].n && i < LEADERS_MAX && !rc; i++) {
		if (!search_begin(x))
			break;
		scheme_lead(x->next, x->group, i);
		rc = search_look(x);
	}
	return rc;
}

static int try_merge(struct climb *x)
{
	if (x->group == 0 || !search_begin(x))
		return 0;
	scheme_merge(x->next, x->group);
	return search_look(x);
}

/* The second half of a cluster becomes a new cluster below it. */
static int try_split(struct climb *x)
{
	uint32_t n = x->at->group[x->group].n, below;

	if (n < 4 || !search_begin(x))
		return 0;
	below = scheme_add_group(x->next, x->group);
	if (below == SCHEME_NONE)
		return 0;
	for (uint32_t i = n / 2; i < n; i++)
		x->next->owner[x->next->child[x->next->group[x->group].first + i]] = below;
	/* The order of children puts a cluster behind the members that stay. */
	scheme_regroup(x->next);
	return search_look(x);
}

/* A child moves to the next cluster with the same parent. */
static int try_moves(struct climb *x)
{
	uint32_t mine = x->group;
	int rc = 0;

	for (uint32_t to = 1; to < x->at->ngroup && !rc; to++) {
		if (to == mine || !x->at->group[to].n || mine == 0 ||
		    x->at->owner[x->at->size + to] != x->at->owner[x->at->size + mine])
			continue;
		for (uint32_t i = 0; i < x->at->group[mine].n && i < MOVES_MAX && !rc; i++) {
			if (x->at->group[mine].n < 2 || !search_begin(x))
				return 0;
			x->next->owner[x->next->child[x->next->group[mine].first + i]] = to;
			scheme_regroup(x->next);
			rc = search_look(x);
		}
	}
	return rc;
}

static int try_group(struct climb *x, uint32_t group)
{
	static int (*const change[])(struct climb *) = { try_algs, try_leaders, try_merge,
							 try_split, try_moves };
	int rc = 0;

	x->group = group;
	for (size_t i = 0; i < sizeof(change) / sizeof(change[0]) && !rc; i++)
		if (group < x->at->ngroup && x->at->group[group].n)
			rc = change[i](x);
	return rc;
}

int search_run(struct search *s, struct scheme *c)
{
	struct climb x = { .s = s, .at = c, .next = scheme_new(c->size) };
	struct scheme *spare = x.next;
	int rc = pattern_init(&x.pattern, c->size);

	if (!x.next)
		rc = -ENOMEM;
	if (!rc) {
		scheme_copy(x.next, c);
		rc = search_look(&x);
	}
	do {
		x.better = false;
		for (uint32_t g = 0; !rc && g < x.at->ngroup && s->budget; g++)
			rc = try_group(&x, g);
	} while (!rc && x.better && s->budget);
	if (!rc && !s->best)
		rc = -EINVAL;
	if (x.at != c)
		scheme_copy(c, x.at);
	pattern_free(&x.pattern);
	scheme_free(spare);
	return rc;
}
