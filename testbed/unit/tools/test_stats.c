/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stats.c - the statistics of results.
 */
#include "unit/unit.h"

#include <math.h>

#include "stats.h"

static void percentiles(void **state)
{
	double v[] = { 9, 1, 5, 3, 7 };

	assert_true(stats_percentile(v, 5, 0) == 1);
	assert_true(stats_percentile(v, 5, 0.2) == 1);
	assert_true(stats_percentile(v, 5, 0.21) == 3);
	assert_true(stats_percentile(v, 5, 0.5) == 5);
	assert_true(stats_percentile(v, 5, 1) == 9);
}

/* Known pairs: Hahn and Meeker, table A.15a; and small n computed by hand. */
static void interval_of_the_median(void **state)
{
	static const struct {
		size_t n, k;
		double covered;
	} known[] = {
		{ 1, 1, 0 },         { 2, 1, 0.5 },       { 5, 1, 0.9375 },
		{ 6, 1, 0.96875 },   { 8, 1, 0.992188 },  { 9, 2, 0.960938 },
		{ 10, 2, 0.978516 }, { 20, 6, 0.958611 }, { 100, 40, 0.9648 },
	};
	double v[100], low, high;

	for (size_t c = 0; c < sizeof(known) / sizeof(known[0]); c++) {
		size_t n = known[c].n;

		for (size_t i = 0; i < n; i++)
			v[i] = (double)(n - i);
		double covered = stats_median_interval(v, n, 0.95, &low, &high);

		require(fabs(covered - known[c].covered) < 1e-4, "n %zu: %g", n, covered);
		require(low == (double)known[c].k, "n %zu: low %g", n, low);
		require(high == (double)(n + 1 - known[c].k), "n %zu: high %g", n, high);
	}
}

/* The interval covers the median as often as it promises. */
static void interval_covers(void **state)
{
	struct rng rng = { unit_seed() };
	uint32_t hit = 0, all = 4000;

	for (uint32_t i = 0; i < all; i++) {
		double v[15], low, high;

		for (uint32_t k = 0; k < 15; k++) {
			double x = (double)(rng_next(&rng) >> 11) / 9007199254740992.0;

			v[k] = 1 / (1 - x); /* median 2, no mean */
		}
		stats_median_interval(v, 15, 0.95, &low, &high);
		hit += low <= 2 && high >= 2;
	}
	/* 0.9648 expected; 0.95 is five standard deviations off. */
	require(hit > all * 0.95 && hit < all * 0.98, "%u of %u", hit, all);
}

/* Points of a line give this line, and an outlier far above counts little. */
static void line(void **state)
{
	double x[] = { 1, 2, 4, 8 }, y[] = { 5, 7, 11, 19 }, a, b;

	assert_true(stats_line(x, y, 4, &a, &b));
	assert_true(fabs(a - 3) < 1e-9 && fabs(b - 2) < 1e-9);
	y[3] = 1900;
	assert_true(stats_line(x, y, 4, &a, &b));
	assert_true(fabs(a - 3) < 1 && fabs(b - 2) < 1);
	x[0] = x[1] = x[2] = x[3];
	assert_false(stats_line(x, y, 4, &a, &b));
}

UNIT_MAIN(NULL, NULL, UNIT(percentiles), UNIT(line), UNIT(interval_of_the_median),
	  UNIT(interval_covers))
