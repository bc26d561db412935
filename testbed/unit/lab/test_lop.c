/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lop.c - the LoP model: a fit finds the parameters that the data was made from, and the
 * suggested n of dissemination:n is the n that a count by hand finds.
 */
#include "unit/unit.h"

#include <math.h>

#include "lop.h"
#include "plan.h"
#include "stats.h"

#define NEAR(a, b, tolerance)                                             \
	do {                                                              \
		double got = (a), wanted = (b);                           \
		if (!(fabs(got - wanted) <= (tolerance)))                 \
			fail_msg("%s is %g and not %g", #a, got, wanted); \
	} while (0)

static void make(struct lop_point *p, uint32_t n, const struct lop *m, double noise)
{
	uint64_t random = 3;

	for (uint32_t i = 0; i < n; i++) {
		double peers = i + 1;
		double off = ((double)(stats_random(&random) % 2001) / 1000 - 1) * noise;

		p[i] = (struct lop_point){ .peers = i + 1 };
		p[i].sent_us = m->o_start + m->o_each * peers + off;
		p[i].rtt_us = p[i].sent_us + 2 * (m->l_start + m->l_each * peers) - off;
	}
}

static void finds_the_parameters(void **state)
{
	const struct lop made = { 0.3, 0.05, 2.5, 0.11 };
	struct lop_point p[32];
	struct lop m;

	make(p, 32, &made, 0);
	assert_int_equal(lop_fit(p, 32, &m), 0);
	NEAR(m.o_start, 0.3, 1e-9);
	NEAR(m.o_each, 0.05, 1e-9);
	NEAR(m.l_start, 2.5, 1e-9);
	NEAR(m.l_each, 0.11, 1e-9);
	NEAR(lop_o(&m, 1), 0.35, 1e-9);
	NEAR(lop_o(&m, 10), 0.08, 1e-9);
	NEAR(lop_l(&m, 10), 3.6, 1e-9);
	NEAR(lop_round(&m, 10), 4.4, 1e-9);
	make(p, 32, &made, 0.02);
	assert_int_equal(lop_fit(p, 32, &m), 0);
	NEAR(m.o_start, 0.3, 0.02);
	NEAR(m.o_each, 0.05, 0.002);
	NEAR(m.l_start, 2.5, 0.02);
	NEAR(m.l_each, 0.11, 0.002);
	assert_int_equal(lop_fit(p, 2, &m), 0);
}

static void refuses_too_little(void **state)
{
	const struct lop_point same[] = { { 4, 1, 9 }, { 4, 1, 10 }, { 4, 2, 9 } };
	struct lop m;

	assert_true(lop_fit(same, 0, &m) < 0);
	assert_true(lop_fit(same, 1, &m) < 0);
	assert_true(lop_fit(same, 3, &m) < 0);
}

/* Data for which a fit without limits gives a negative cost. */
static void nothing_is_below_zero(void **state)
{
	const struct lop_point falls[] = { { 1, 3, 13 }, { 2, 2, 10 }, { 3, 1, 7 } };
	const struct lop_point steep[] = { { 1, 0, 0 }, { 2, 2, 6 }, { 3, 4, 12 } };
	struct lop m;

	assert_int_equal(lop_fit(falls, 3, &m), 0);
	NEAR(m.o_each, 0, 0);
	NEAR(m.o_start, 2, 1e-9);
	NEAR(m.l_each, 0, 0);
	NEAR(m.l_start, 4, 1e-9);
	assert_int_equal(lop_fit(steep, 3, &m), 0);
	NEAR(m.o_start, 0, 0);
	NEAR(m.o_each, 16.0 / 14, 1e-9);
	NEAR(m.l_start, 0, 0);
	NEAR(m.l_each, 16.0 / 14, 1e-9);
}

/* If messages are free, the fewest rounds win. If rounds are free, the fewest messages win. Between
 * these, the sum counts. */
static void suggests(void **state)
{
	const struct lop free_messages = { .l_start = 1 }, free_rounds = { .l_each = 1 };
	const struct lop between = { .o_start = 1, .l_start = 1, .l_each = 1 };

	for (uint32_t size = 2; size <= 1024; size++) {
		uint32_t n = lop_ways(&free_messages, size, 16);

		/* n has as few rounds as 16 ways, and no smaller n has as few. */
		NEAR(lop_barrier(&free_messages, size, n), lop_barrier(&free_messages, size, 16),
		     0);
		if (n > 1)
			assert_true(lop_barrier(&free_messages, size, n - 1) >
				    lop_barrier(&free_messages, size, n));
		assert_true(lop_barrier(&free_rounds, size, lop_ways(&free_rounds, size, 16)) <=
			    lop_barrier(&free_rounds, size, 1));
	}
	assert_int_equal(lop_ways(&free_messages, 1024, 16), 10); /* 11^3 >= 1024 > 10^3 */
	assert_int_equal(lop_ways(&free_messages, 256, 16), 15);
	assert_int_equal(lop_ways(&free_messages, 16, 16), 15);
	assert_int_equal(lop_ways(&free_rounds, 1024, 16), 1);
	/* 27 ranks; a round of m messages costs 2 + m. n = 1: 5 rounds of 1 message. n = 2: 3
	 * rounds of 2. n = 3: rounds of 3, 3 and 1. */
	NEAR(lop_barrier(&between, 27, 1), 15, 1e-9);
	NEAR(lop_barrier(&between, 27, 2), 12, 1e-9);
	NEAR(lop_barrier(&between, 27, 3), 13, 1e-9);
	assert_int_equal(lop_ways(&between, 27, 8), 2);
	assert_int_equal(lop_ways(&between, 2, 8), 1);
}

/* The model counts as many rounds as the plans have. */
static void rounds_are_those_of_the_plan(void **state)
{
	const struct lop rounds = { .o_start = 1 }, messages = { .o_each = 1 };
	static uint32_t block[4096];

	for (uint32_t size = 1; size <= 200; size++) {
		for (uint32_t n = 1; n <= nbfw_alg_row(NBFW_ALG_DISSEMINATION)->high; n++) {
			const struct nbfw_alg alg = { NBFW_ALG_DISSEMINATION, n };
			const struct nbar_plan *plan = (const void *)block;

			assert_true(nbfw_plan_generate(alg, size, 0, block, sizeof(block)) > 0);
			NEAR(lop_barrier(&rounds, size, n), plan->nstep, 1e-9);
			NEAR(lop_barrier(&messages, size, n), plan->nsend, 1e-9);
		}
	}
}

UNIT_MAIN(NULL, NULL, UNIT(finds_the_parameters), UNIT(refuses_too_little),
	  UNIT(nothing_is_below_zero), UNIT(suggests), UNIT(rounds_are_those_of_the_plan))
