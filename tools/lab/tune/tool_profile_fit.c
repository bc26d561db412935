/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile_fit.c - fits the work of a step to the measured barriers of a profile; `nbar-lab
 * profile` calls it. It must never make a step longer than measured messages permit: a barrier can
 * be slow for other reasons too, for example because its messages share a link.
 */
#include <math.h>
#include <stdlib.h>

#include "compose.h"
#include "stats.h"
#include "tool.h"
#include "tool_profile.h"

#define STEPS_TRIED 100u
#define NEAR 2.0 /* a host is near if its messages cost at most NEAR times the cheapest message */

/* The cost of a message in row i, column j; 0 if there is no such message. */
static double message(const struct profile *p, uint32_t i, uint32_t j)
{
	size_t at = (size_t)i * p->classes + j;

	return i == j && !p->class_of ? 0 : p->o[at] + p->l[at];
}

/* Appends to o[] the O of each message of row i to a near host. Returns the new length of o[]. */
static uint32_t add_near(const struct profile *p, uint32_t i, double *o, uint32_t n)
{
	double nearest = INFINITY;

	for (uint32_t j = 0; j < p->classes; j++)
		if (message(p, i, j) > 0 && message(p, i, j) < nearest)
			nearest = message(p, i, j);
	for (uint32_t j = 0; j < p->classes; j++)
		if (message(p, i, j) > 0 && message(p, i, j) <= NEAR * nearest)
			o[n++] = p->o[(size_t)i * p->classes + j];
	return n;
}

static int fit_no_memory(void)
{
	tool_error("no memory to fit the profile: free some, and measure again");
	return TOOL_FAILED;
}

/* O is the time of the sender's step and of the network. Between near hosts the network takes the
 * least time, so the median O between near hosts is the upper bound of a step. */
int tool_profile_fit(struct profile *p)
{
	double bound, best = 0, best_deviation = INFINITY;
	uint32_t n = 0;
	double *o;

	if (!p->processor)
		return 0;
	o = malloc((size_t)p->classes * p->classes * sizeof(*o));
	if (!o)
		return fit_no_memory();
	for (uint32_t i = 0; i < p->classes; i++)
		n = add_near(p, i, o, n);
	bound = n ? stats_median(o, n) : 0;
	free(o);
	for (uint32_t i = 0; i <= STEPS_TRIED; i++) {
		double deviation;

		p->step = bound * i / STEPS_TRIED;
		if (compose_deviation(p, &deviation))
			return fit_no_memory();
		if (deviation < best_deviation) {
			best_deviation = deviation;
			best = p->step;
		}
	}
	p->step = best;
	return 0;
}
