/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sweep.c - flat spots and bisection on times of known shape, with and without noise; lists
 * and ranges of the sweeps; the random times of hosts.
 */
#include "unit/unit.h"

#include <math.h>

#include "sweep.h"
#include "unit/said.h"

#define N 16u

static struct sweep_list compute;

/* Times max(level, base + compute), each with an error of at most `noise`. */
static void shape(double level, double base, double noise, uint64_t seed, double *time)
{
	struct rng rng = { seed };

	sweep_list_spread(&compute, 1.5, 130, N);
	for (uint32_t i = 0; i < N; i++) {
		double unit = (double)rng_below(&rng, 2001) / 1000 - 1;

		time[i] = fmax(level, base + compute.value[i]) + noise * unit;
	}
}

static void spread(void **state)
{
	sweep_list_spread(&compute, 1.5, 130, N);
	assert_int_equal(compute.n, N);
	assert_true(compute.value[0] == 1.5);
	assert_true(fabs(compute.value[N - 1] - 130) < 1e-9);
	assert_true(fabs(compute.value[2] / compute.value[1] -
			 compute.value[9] / compute.value[8]) < 1e-9);
}

static void flat_spot_is_found(void **state)
{
	double time[N];

	/* The time is flat up to 17 us (as in the literature for the slower NICs) or up to 8 us. */
	for (uint64_t seed = unit_seed(); seed < unit_seed() + 200; seed++) {
		for (double until = 8; until < 20; until += 9) {
			shape(100, 100 - until, 0.5, seed, time);
			struct sweep_flat flat = sweep_flat_find(compute.value, time, N, 0.5);

			require(flat.found, "seed %lu until %g", (unsigned long)seed, until);
			require(fabs(flat.until - until) < 1, "seed %lu: %g, not %g",
				(unsigned long)seed, flat.until, until);
			require(fabs(flat.level - 100) < 0.6, "level %g", flat.level);
		}
	}
}

static void no_flat_spot_where_there_is_none(void **state)
{
	double time[N];

	for (uint64_t seed = unit_seed(); seed < unit_seed() + 500; seed++) {
		shape(0, 46, 0.5, seed, time);
		struct sweep_flat flat = sweep_flat_find(compute.value, time, N, 1);

		require(!flat.found, "seed %lu: until %g", (unsigned long)seed, flat.until);
	}
	shape(0, 46, 0, 1, time);
	assert_false(sweep_flat_find(compute.value, time, N, 0).found);
	assert_false(sweep_flat_find(compute.value, time, 2, 0).found);
	assert_false(sweep_flat_find(compute.value, time, 0, 0).found);
}

/* One reading in ten is far off: a flat spot stays where it was. */
static void flat_spot_survives_a_bad_reading(void **state)
{
	double time[N];

	for (uint32_t bad = 0; bad < N; bad++) {
		shape(100, 83, 0.2, unit_seed(), time);
		time[bad] += 80;
		struct sweep_flat flat = sweep_flat_find(compute.value, time, N, 0.5);

		require(flat.found && fabs(flat.until - 17) < 1.5, "bad %u: %d until %g", bad,
			flat.found, flat.until);
	}
}

/* Efficiency of a loop with a barrier of b us. Each reading has a relative error of at most
 * `noise`. */
static double reading(double x, double b, double noise, struct rng *rng)
{
	double unit = (double)rng_below(rng, 2001) / 1000 - 1;

	return x / (x + b) * (1 + noise * unit);
}

static void bisection_finds(void **state)
{
	for (double e = 0.25; e < 0.95; e += 0.05) {
		/* The search begins with a right guess, or with a guess ten times too small or too
		 * great. */
		for (double guess = 0.1; guess < 20; guess *= 10) {
			struct sweep_bisect b;
			double want = e / (1 - e) * 50;
			uint32_t steps = 0;

			sweep_bisect_begin(&b, want * guess, e, 0.02);
			while (!sweep_bisect_done(&b)) {
				double v = reading(b.next, 50, 0, &(struct rng){ 1 });

				require(steps++ < 24, "e %g guess %g", e, guess);
				sweep_bisect_answer(&b, v, v, v);
			}
			double got = sweep_bisect_found(&b);

			require(got >= want * 0.999 && got <= want * 1.021, "e %g: %g, not %g", e,
				got, want);
			require(b.sure_low == b.low && b.low < want * 1.001, "%g", b.sure_low);
			require(b.sure_high == got && b.outward == 0, "%g", b.sure_high);
		}
	}
}

/* With noise the interval covers the true value or is open. */
static void bisection_with_noise(void **state)
{
	for (uint64_t seed = unit_seed(); seed < unit_seed() + 500; seed++) {
		struct rng rng = { seed };
		struct sweep_bisect b;
		double want = 450;
		uint32_t steps = 0;

		sweep_bisect_begin(&b, 400, 0.9, 0.02);
		while (!sweep_bisect_done(&b)) {
			double v = reading(b.next, 50, 0.004, &rng);

			require(steps++ < 24, "seed %lu", (unsigned long)seed);
			sweep_bisect_answer(&b, v, v * 0.9955, v * 1.0045);
		}
		require(b.sure_low > 0 && b.sure_low <= want, "seed %lu: low %g",
			(unsigned long)seed, b.sure_low);
		require(b.sure_high >= want, "seed %lu: high %g", (unsigned long)seed, b.sure_high);
		require(fabs(sweep_bisect_found(&b) - want) < want * 0.07, "seed %lu: %g",
			(unsigned long)seed, sweep_bisect_found(&b));
	}
}

/* The search ends if the target is never reached, and if it is always reached. */
static void bisection_without_an_end(void **state)
{
	struct sweep_bisect b;

	for (int v = 0; v < 2; v++) {
		double last = 10, part = 0.1; /* 10 % first, then twice the part, up to 1280 % */

		sweep_bisect_begin(&b, 10, 0.9, 0.02);
		for (uint32_t i = 0; i < 24; i++) {
			sweep_bisect_answer(&b, v, v, v);
			double ratio = v ? last / b.next : b.next / last;

			require(fabs(ratio - 1 - part) < 1e-9, "step %u: %g", i, ratio);
			last = b.next;
			part = i < 7 ? 2 * part : part;
		}
		assert_false(sweep_bisect_done(&b));
		assert_true(v ? b.next < 1 : b.next > 1e6);
	}
}

/* If the intervals never decide, the search ends, and reports that. */
static void bisection_without_intervals(void **state)
{
	struct sweep_bisect b;
	uint32_t steps = 0;

	sweep_bisect_begin(&b, 300, 0.9, 0.02);
	while (!sweep_bisect_done(&b)) {
		assert_true(steps++ < 32);
		sweep_bisect_answer(&b, reading(b.next, 50, 0, &(struct rng){ 1 }), -INFINITY,
				    INFINITY);
	}
	assert_true(fabs(sweep_bisect_found(&b) - 450) < 10);
	assert_true(b.sure_low <= 0 && b.sure_high <= 0);
}

/* The times of hosts: within the limits, up to the limits, uniform, and all different. */
static void work_is_random_and_repeatable(void **state)
{
	const uint32_t step[] = { 1000000, 2000000 };
	const struct bench_work steady = { step, 2, 0, 7 }, varied = { step, 2, 0.1, 7 },
				other = { step, 2, 0.1, 8 };
	uint32_t same_rank = 0, same_seed = 0;
	double sum = 0, least = 1, most = -1;

	for (uint32_t rank = 0; rank < 16; rank++) {
		for (uint32_t i = 0; i < 1000; i++) {
			uint64_t t = bench_work_ns(&varied, rank, i);
			double off = (double)t / step[i % 2] - 1;

			assert_int_equal(bench_work_ns(&steady, rank, i), step[i % 2]);
			assert_int_equal(bench_work_ns(&varied, rank, i), t);
			same_rank += bench_work_ns(&varied, rank + 1, i) == t;
			same_seed += bench_work_ns(&other, rank, i) == t;
			sum += off;
			least = fmin(least, off);
			most = fmax(most, off);
		}
	}
	require(least > -0.1000001 && most < 0.1000001, "%g to %g", least, most);
	require(least < -0.0999 && most > 0.0999, "%g to %g", least, most);
	/* The mean of 16,000 uniform times has a standard deviation of 0.00046. */
	require(fabs(sum / 16000) < 0.002, "mean %g", sum / 16000);
	require(same_rank < 10 && same_seed < 10, "%u, %u alike", same_rank, same_seed);
}

static void lists_and_ranges(void **state)
{
	struct sweep_list list;
	double range[2] = { 0 };

	said_begin();
	assert_int_equal(sweep_range_read("-", "1.5,2,10", 0.1, 100, &list, range), 0);
	assert_int_equal(list.n, 3);
	assert_true(list.value[0] == 1.5 && list.value[2] == 10);
	assert_int_equal(sweep_range_read("-", "0.5-99", 0.1, 100, &list, range), 0);
	assert_int_equal(list.n, 0);
	assert_true(range[0] == 0.5 && range[1] == 99);
	static const char *const wrong[] = { "",      "x",     "0",     "101", "1,,2", "1,",
					     "1e",    "nan",   "9-1",   "1-1", "1-",   "-1",
					     "1-2-3", "1-2,3", "1,2-3", "inf", "1 2" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		require(sweep_range_read("-", wrong[i], 0.1, 100, &list, range) == TOOL_USAGE,
			"accepted: '%s'", wrong[i]);
	said_end();
}

UNIT_MAIN(NULL, NULL, UNIT(spread), UNIT(flat_spot_is_found),
	  UNIT(no_flat_spot_where_there_is_none), UNIT(flat_spot_survives_a_bad_reading),
	  UNIT(bisection_finds), UNIT(bisection_with_noise), UNIT(bisection_without_an_end),
	  UNIT(bisection_without_intervals), UNIT(work_is_random_and_repeatable),
	  UNIT(lists_and_ranges))
