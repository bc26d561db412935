/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile_flat.c - measures barriers of all hosts for a profile, with each algorithm that
 * `nbar-lab tune` would try; `nbar-lab profile` calls it. The fastest algorithm may become the
 * barrier of a cluster. A machine is not equally fast in all runs, so several runs must decide.
 */
#include <stdlib.h>

#include "compose_search.h"
#include "stats.h"
#include "tool.h"
#include "tool_profile.h"

#define ROUNDS 5u
#define CLOSE 1.5 /* later rounds: algorithms that take at most CLOSE times as long as the best */

struct flats {
	struct profile *p;
	double quantile;
	tool_profile_run *run;
	void *arg;
	uint32_t n[PROFILE_FLAT_MAX];
	double sample[PROFILE_FLAT_MAX][ROUNDS];
};

static double typical(double *sample, uint32_t n, double quantile)
{
	return quantile == 0.5 ? stats_median(sample, n) : stats_percentile(sample, n, quantile);
}

/* Runs an algorithm of the profile once more, and updates its time. */
static int flat_measure(struct flats *f, uint32_t i, uint32_t round)
{
	struct profile_flat *flat = &f->p->flat[i];
	double s = 0;
	int r = f->run(f->arg, flat->alg, round, &s);

	if (r || !(s > 0))
		return r;
	f->sample[i][f->n[i]++] = s;
	flat->time = typical(f->sample[i], f->n[i], f->quantile);
	return 0;
}

/* In the first round: adds the algorithm to the profile if its run gives a time. */
static int flat_add(void *arg, struct nbfw_alg alg)
{
	struct flats *f = arg;
	struct profile *p = f->p;
	int r;

	if (p->nflat == PROFILE_FLAT_MAX)
		return 0;
	p->flat[p->nflat] = (struct profile_flat){ alg, 0 };
	r = flat_measure(f, p->nflat, 0);
	p->nflat += p->flat[p->nflat].time > 0;
	return r;
}

static double best_time(const struct profile *p)
{
	double best = p->nflat ? p->flat[0].time : 0;

	for (uint32_t i = 1; i < p->nflat; i++)
		best = p->flat[i].time < best ? p->flat[i].time : best;
	return best;
}

int tool_profile_flats(struct profile *p, double quantile, tool_profile_run *run, void *arg)
{
	struct flats *f = calloc(1, sizeof(*f));
	int r = TOOL_FAILED;

	p->flat = calloc(PROFILE_FLAT_MAX, sizeof(*p->flat));
	if (f && p->flat) {
		*f = (struct flats){ .p = p, .quantile = quantile, .run = run, .arg = arg };
		r = compose_each(p->hosts, flat_add, f);
	} else {
		tool_error("no memory for the measured barriers: free some, and try again");
	}
	for (uint32_t round = 1; round < ROUNDS && !r; round++) {
		double limit = CLOSE * best_time(p);

		for (uint32_t i = 0; i < p->nflat && !r; i++)
			if (p->flat[i].time <= limit)
				r = flat_measure(f, i, round);
	}
	free(f);
	return r;
}
