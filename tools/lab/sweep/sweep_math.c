/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_math.c - see sweep.h. Pure: the unit tests give it times of known shape.
 */
#include "sweep.h"

#include <math.h>
#include <string.h>

#include "stats.h"

/* Sum of the distances of the points from max(level, base + compute). */
static double misses(const double *compute, const double *time, uint32_t n, double level,
		     double base)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += fabs(time[i] - fmax(level, base + compute[i]));
	return sum;
}

/* Uses medians, so that a disturbed point does not bend the line. */
static double math_level_of(const double *time, uint32_t n)
{
	double value[SWEEP_LIST_MAX];

	memcpy(value, time, n * sizeof(*value));
	return stats_median(value, n);
}

static double base_of(const double *compute, const double *time, uint32_t first, uint32_t n)
{
	double value[SWEEP_LIST_MAX];

	for (uint32_t i = first; i < n; i++)
		value[i - first] = time[i] - compute[i];
	return stats_median(value, n - first);
}

struct sweep_flat sweep_flat_find(const double *compute, const double *time, uint32_t n,
				  double noise)
{
	struct sweep_flat best = { 0 };
	double line, least;

	if (n < 3)
		return best;
	best.base = base_of(compute, time, 0, n);
	line = least = misses(compute, time, n, -INFINITY, best.base);
	for (uint32_t flat = 2; flat < n; flat++) {
		double level = math_level_of(time, flat), base = base_of(compute, time, flat, n);
		double off = misses(compute, time, n, level, base);

		if (off >= least || level - base <= compute[1])
			continue;
		least = off;
		best = (struct sweep_flat){ .until = level - base, .level = level, .base = base };
		best.found = level - (base + compute[0]) > noise && line - off > 3 * noise;
	}
	return best;
}

void sweep_bisect_begin(struct sweep_bisect *b, double guess, double target, double tolerance)
{
	*b = (struct sweep_bisect){ .target = target, .tolerance = tolerance, .next = guess };
}

/* First moves with growing steps, then bisects, then moves outward with growing steps. */
static void choose_next(struct sweep_bisect *b)
{
	double step = 1 + 0.1 * (double)(1u << (b->steps < 8 ? b->steps : 8)) / 2;
	double far = 1 + b->tolerance * (double)(1u << b->outward);

	if (sweep_bisect_converged(b))
		b->next = b->sure_high > 0 ? b->low / far : b->high * far;
	else if (b->have_low && b->have_high)
		b->next = sqrt(b->low * b->high);
	else
		b->next = b->have_low ? b->low * step : b->high / step;
}

void sweep_bisect_answer(struct sweep_bisect *b, double median, double low, double high)
{
	double x = b->next;

	b->steps++;
	if (sweep_bisect_converged(b)) {
		b->outward++;
	} else if (median >= b->target) {
		b->high = x;
		b->have_high = true;
	} else {
		b->low = x;
		b->have_low = true;
	}
	if (low >= b->target && (b->sure_high <= 0 || x < b->sure_high))
		b->sure_high = x;
	if (high < b->target && x > b->sure_low)
		b->sure_low = x;
	/* Noise may make an interval contradict a median: then the interval does not count. */
	if (b->sure_high > 0 && b->sure_high < b->low)
		b->sure_high = 0;
	if (b->have_high && b->sure_low > b->high)
		b->sure_low = 0;
	choose_next(b);
}

bool sweep_bisect_converged(const struct sweep_bisect *b)
{
	return b->have_low && b->have_high && b->high <= b->low * (1 + b->tolerance);
}

bool sweep_bisect_done(const struct sweep_bisect *b)
{
	return sweep_bisect_converged(b) &&
	       (b->outward >= SWEEP_OUTWARD_MAX || (b->sure_low > 0 && b->sure_high > 0));
}
