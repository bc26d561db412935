/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit.h - what the unit tests share: cmocka with the headers that it needs, and random numbers
 * from a seed that a failing test prints.
 */
#ifndef TESTBED_UNIT_H
#define TESTBED_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An assert for loops of millions: cheaper than those of cmocka, which are slow calls. Its message
 * shows the state of the loop. */
#define require(cond, ...)                                                     \
	do {                                                                   \
		if (!(cond)) {                                                 \
			print_error("%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			print_error(__VA_ARGS__);                              \
			print_error("\n");                                     \
			fail();                                                \
		}                                                              \
	} while (0)

/* A program of tests; before and after: NULL, or what its first test needs and its last one leaves.
 */
#define UNIT_MAIN(before, after, ...)                                \
	int main(void)                                               \
	{                                                            \
		const struct CMUnitTest tests[] = { __VA_ARGS__ };   \
		return cmocka_run_group_tests(tests, before, after); \
	}
#define UNIT cmocka_unit_test
#define UNIT_IN cmocka_unit_test_setup_teardown /* (name, before, after) */

/* SplitMix64, a generator of random numbers for which any seed is good. */
struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0..n-1; n is not 0. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

static inline bool rng_percent(struct rng *r, uint32_t percent)
{
	return rng_below(r, 100) < percent;
}

/*
 * Seed of this run: NBAR_SEED, or 1, so that two runs are alike. A test of many random cases takes
 * seed, seed + 1, ... and prints the seed that failed: NBAR_SEED=N runs the case with seed N first.
 */
static inline uint64_t unit_seed(void)
{
	const char *text = getenv("NBAR_SEED");

	return text && *text ? strtoull(text, NULL, 0) : 1;
}

/* Number of rounds of long tests: NBAR_ROUNDS; 0: not set. If it is set, long tests run all these
 * rounds, without a limit of time. */
static inline uint64_t unit_rounds(void)
{
	const char *text = getenv("NBAR_ROUNDS");

	return text && *text ? strtoull(text, NULL, 0) : 0;
}

/* True under a sanitizer (`make SAN=`): everything is much slower, and the run checks memory, not
 * logic. */
static inline bool unit_sanitized(void)
{
	const char *text = getenv("SAN");

	return text && *text;
}

/* True if the run only counts which lines are executed: make coverage, make check-mutants. */
static inline bool unit_counted(void)
{
	const char *text = getenv("SAN");

	return text && strcmp(text, "gcov") == 0;
}

/* A test of a long series of sizes runs every unit_stride()th size. */
static inline uint32_t unit_stride(void)
{
	return unit_counted() ? 127 : unit_sanitized() ? 7 : 1;
}

#endif
