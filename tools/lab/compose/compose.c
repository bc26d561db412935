/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose.c - composes the best barrier for a cluster: makes the greedy choice of Meyer and Elster,
 * and compares it with all flat barriers. See compose.h; compose_search.c has the search that
 * follows.
 */
#include "compose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compose_search.h"

int compose_flat(struct nbfw_alg alg, const struct profile *p, const uint32_t *host, uint32_t size,
		 enum predict_formula formula, struct predict *out)
{
	struct schedule *s = NULL;
	struct pattern flat;
	int rc = pattern_init(&flat, size);

	if (!rc)
		rc = pattern_add(&flat, alg, NULL, size, PATTERN_ALL);
	if (!rc && !(s = schedule_new(&flat)))
		rc = -ENOMEM;
	if (!rc)
		rc = predict_run(s, p, host, formula, out);
	schedule_free(s);
	pattern_free(&flat);
	return rc;
}

/* The flat barriers: algorithms of the table among all members. */
struct flats {
	const struct profile *p;
	const uint32_t *host;
	uint32_t size, n;
	struct nbfw_alg alg[PROFILE_FLAT_MAX];
	double predicted[PROFILE_FLAT_MAX], measured[PROFILE_FLAT_MAX]; /* measured: 0 is unknown */
	double scale, error;
};

/* Returns the measured time of an algorithm, if the members are all hosts of the profile, in
 * order. */
static double find_measured(const struct flats *f, struct nbfw_alg alg)
{
	if (f->size != f->p->hosts)
		return 0;
	for (uint32_t r = 0; r < f->size; r++)
		if (f->host[r] != r)
			return 0;
	for (uint32_t i = 0; i < f->p->nflat; i++)
		if (f->p->flat[i].alg.kind == alg.kind && f->p->flat[i].alg.n == alg.n)
			return f->p->flat[i].time;
	return 0;
}

static int try_flat(void *arg, struct nbfw_alg alg)
{
	struct flats *f = arg;
	struct predict predict;
	int rc;

	if (f->n == PROFILE_FLAT_MAX)
		return 0;
	rc = compose_flat(alg, f->p, f->host, f->size, PREDICT_FIRST, &predict);
	f->alg[f->n] = alg;
	f->predicted[f->n] = predict.all_s;
	f->measured[f->n] = find_measured(f, alg);
	f->n += !rc;
	return rc;
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Finds how far predictions are from measured barriers: the median ratio of measured to predicted
 * time, and the median deviation from it. */
static void compose_calibrate(struct flats *f)
{
	double ratio[PROFILE_FLAT_MAX];
	uint32_t n = 0;

	f->scale = 1;
	f->error = 0;
	for (uint32_t i = 0; i < f->n; i++)
		if (f->measured[i] > 0 && f->predicted[i] > 0)
			ratio[n++] = f->measured[i] / f->predicted[i];
	if (!n)
		return;
	qsort(ratio, n, sizeof(*ratio), compare_numbers);
	f->scale = ratio[n / 2];
	for (uint32_t i = 0; i < n; i++)
		ratio[i] = fabs(ratio[i] / f->scale - 1);
	qsort(ratio, n, sizeof(*ratio), compare_numbers);
	f->error = ratio[n / 2];
}

int compose_deviation(const struct profile *p, double *out)
{
	struct flats f = { .p = p, .size = p->hosts };
	uint32_t *host = malloc(p->hosts * sizeof(*host)), n = 0;
	int rc = host ? 0 : -ENOMEM;

	for (uint32_t i = 0; host && i < p->hosts; i++)
		host[i] = i;
	f.host = host;
	if (!rc && p->nflat)
		rc = compose_each(f.size, try_flat, &f);
	*out = 0;
	for (uint32_t i = 0; i < f.n; i++) {
		if (f.measured[i] > 0) {
			*out += fabs(f.predicted[i] / f.measured[i] - 1);
			n++;
		}
	}
	*out = n ? *out / n : 0;
	free(host);
	return rc;
}

/* Finds the best flat barrier: by measurement, or else by prediction. The composed barrier is
 * compared with this barrier, so the ratio of this barrier scales predictions. */
static int compose_flats(const struct profile *p, const uint32_t *host, uint32_t size,
			 struct compose *out)
{
	struct flats f = { .p = p, .host = host, .size = size };
	int rc = compose_each(size, try_flat, &f);

	if (rc)
		return rc;
	compose_calibrate(&f);
	for (uint32_t i = 0; i < f.n; i++) {
		double s = f.measured[i] > 0 ? f.measured[i] : f.predicted[i] * f.scale;

		if (i == 0 || s < out->flat_s) {
			out->alg = f.alg[i];
			out->flat_s = s;
			out->scale = f.predicted[i] > 0 ? s / f.predicted[i] : f.scale;
		}
	}
	out->predicted_s = out->flat_s;
	out->error = f.error;
	return 0;
}

/* The costs of algorithms in one cluster: of arrival, of release, and of the whole. */
struct part {
	const struct profile *p;
	uint32_t k;
	const uint32_t *host; /* hosts of the leaders of its children */
	double *done;
	struct pattern *pattern;
	struct nbfw_alg up, down, all;
	double up_s, down_s, all_s; /* the least costs so far; negative: none */
};

/* Computes the time when a part is done: at member 0 after an arrival, else at the last member. */
static int part_cost(struct part *x, struct nbfw_alg alg, enum pattern_part part, double *out)
{
	struct schedule *s;
	int rc;

	pattern_clear(x->pattern);
	rc = pattern_add(x->pattern, alg, NULL, x->k, part);
	if (rc)
		return rc;
	s = schedule_new(x->pattern);
	if (!s)
		return -ENOMEM;
	rc = predict_ranks(s, x->p, x->host, PREDICT_FIRST, x->done);
	schedule_free(s);
	*out = x->done[0];
	for (uint32_t r = 1; r < x->k && part != PATTERN_ARRIVE; r++)
		*out = x->done[r] > *out ? x->done[r] : *out;
	return rc;
}

static int take_if_less(struct part *x, struct nbfw_alg alg, enum pattern_part part,
			struct nbfw_alg *best, double *best_s)
{
	double cost;
	int rc = part_cost(x, alg, part, &cost);

	if (rc == -EINVAL)
		return 0; /* the algorithm has no such part */
	if (!rc && (*best_s < 0 || cost < *best_s)) {
		*best = alg;
		*best_s = cost;
	}
	return rc;
}

static int try_part(void *arg, struct nbfw_alg alg)
{
	struct part *x = arg;
	int rc = take_if_less(x, alg, PATTERN_ARRIVE, &x->up, &x->up_s);

	if (!rc)
		rc = take_if_less(x, alg, PATTERN_LEAVE, &x->down, &x->down_s);
	if (!rc && x->all_s > -2)
		rc = take_if_less(x, alg, PATTERN_ALL, &x->all, &x->all_s);
	return rc;
}

/* Selects the algorithms of one cluster, as if there were no other cluster. */
static int compose_choose(struct scheme *c, uint32_t group, const struct profile *p,
			  const uint32_t *host, struct pattern *pattern)
{
	struct scheme_group *g = &c->group[group];
	uint32_t *of = malloc((g->n + 1) * sizeof(*of));
	struct part x = { .p = p, .k = g->n, .host = of, .up_s = -1, .down_s = -1 };
	int rc = 0;

	x.pattern = pattern;
	pattern->size = g->n;

	/* Only the top cluster can do without a release. -2: do not try it. */
	x.all_s = group ? -2 : -1;
	x.done = malloc((g->n + 1) * sizeof(*x.done));
	if (!of || !x.done)
		rc = -ENOMEM;
	for (uint32_t i = 0; i < g->n && !rc; i++)
		of[i] = host[scheme_leader(c, c->child[g->first + i])];
	if (!rc)
		rc = compose_each(g->n, try_part, &x);
	if (!rc && x.up_s < 0)
		rc = -ENOSPC;
	g->up = x.up;
	g->down = x.down;
	if (!rc && group == 0 && x.all_s >= 0 && x.all_s <= x.up_s + x.down_s) {
		g->up = x.all;
		c->exchange = true;
	}
	free(x.done);
	free(of);
	return rc;
}

static int choose_all(struct scheme *c, const struct profile *p, const uint32_t *host)
{
	struct pattern pattern;
	int rc = pattern_init(&pattern, c->size);

	for (uint32_t g = 0; g < c->ngroup && !rc; g++)
		rc = compose_choose(c, g, p, host, &pattern);
	pattern_free(&pattern);
	return rc;
}

static struct schedule *flat_schedule(struct nbfw_alg alg, uint32_t size)
{
	struct schedule *s = NULL;
	struct pattern flat;

	if (pattern_init(&flat, size))
		return NULL;
	if (!pattern_add(&flat, alg, NULL, size, PATTERN_ALL))
		s = schedule_new(&flat);
	pattern_free(&flat);
	return s;
}

/* Makes clusters, selects algorithms and searches. out->scheme stays NULL if the result is not
 * better than the best flat barrier by the margin. */
static int compose_scheme(const struct profile *p, const uint32_t *host, uint32_t size,
			  struct compose *out)
{
	struct scheme *c = scheme_new(size);
	struct search search = { .p = p, .host = host, .budget = COMPOSE_BUDGET };
	int rc = c ? scheme_cluster(c, p, host) : -ENOMEM;

	/* With so many members, only a search among clusters is worth its time. */
	if (!rc && c->ngroup == 1 && size > SCHEDULE_EXACT_MAX) {
		scheme_free(c);
		return 0;
	}
	if (!rc)
		rc = choose_all(c, p, host);
	if (!rc)
		rc = search_run(&search, c);
	double margin = out->error > COMPOSE_MARGIN ? out->error : COMPOSE_MARGIN;

	out->tried = search.tried;
	if (!rc && search.best_s * out->scale < out->flat_s * (1 - margin)) {
		out->scheme = c;
		out->schedule = search.best;
		out->predicted_s = search.best_s * out->scale;
		return 0;
	}
	schedule_free(search.best);
	scheme_free(c);
	return rc;
}

int compose(const struct profile *p, const uint32_t *host, uint32_t size, struct compose *out,
	    const char **why)
{
	int rc;

	*out = (struct compose){ .scheme = NULL };
	*why = "no memory to compose a barrier";
	rc = compose_flats(p, host, size, out);
	if (!rc && size > 2)
		rc = compose_scheme(p, host, size, out);
	if (!rc && !out->schedule)
		out->schedule = flat_schedule(out->alg, size);
	if (!rc && !out->schedule)
		rc = -ENOMEM;
	if (!rc)
		rc = schedule_check(out->schedule, why);
	if (rc)
		compose_free(out);
	return rc;
}

void compose_free(struct compose *c)
{
	schedule_free(c->schedule);
	scheme_free(c->scheme);
	*c = (struct compose){ 0 };
}
