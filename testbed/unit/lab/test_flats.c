/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_flats.c - the measured barriers of `nbar-lab profile`: one lucky or unlucky run of an
 * algorithm does not decide which algorithm is the best.
 */
#include "unit/unit.h"

#include <stdarg.h>
#include <stdio.h>

#include "tool.h"
#include "tool_profile.h"

#define HOSTS 8u
#define FAST 100e-6

struct machine {
	uint32_t runs, runs_of_slow, fail_in; /* fail_in: this run fails; 0: no run fails */
	struct profile *p;
};

/* linear takes 100 us, tree:7 110 us, all others 900 us. In the first round the machine is slow for
 * linear; in another round it is fast for tree:7. */
static int run(void *arg, struct nbfw_alg alg, uint32_t round, double *s)
{
	struct machine *m = arg;
	char name[NBAR_NAME_MAX];

	nbfw_alg_name(alg, name);
	*s = 9 * FAST;
	if (!strcmp(name, "linear"))
		*s = round ? FAST : 1.4 * FAST;
	else if (!strcmp(name, "tree:7"))
		*s = round == 2 ? 0.8 * FAST : 1.1 * FAST;
	else
		m->runs_of_slow++;
	m->runs++;
	return m->runs == m->fail_in;
}

static double time_of(const struct profile *p, const char *wanted)
{
	for (uint32_t i = 0; i < p->nflat; i++) {
		char name[NBAR_NAME_MAX];

		nbfw_alg_name(p->flat[i].alg, name);
		if (!strcmp(name, wanted))
			return p->flat[i].time;
	}
	return 0;
}

static void test_luck(void **state)
{
	struct machine m = { .p = profile_new(HOSTS, HOSTS) };

	assert_int_equal(tool_profile_flats(m.p, 0.5, run, &m), 0);
	assert_true(time_of(m.p, "linear") == FAST);
	assert_true(time_of(m.p, "tree:7") == 1.1 * FAST);
	for (uint32_t i = 0; i < m.p->nflat; i++)
		assert_true(m.p->flat[i].time >= FAST);
	/* An algorithm that is far from the best is measured once. */
	assert_int_equal(m.runs_of_slow, m.p->nflat - 2);
	profile_free(m.p);
}

static uint32_t fastest; /* of the algorithms, in the order of the first round */

static int run_fastest(void *arg, struct nbfw_alg alg, uint32_t round, double *s)
{
	struct machine *m = arg;

	*s = m->runs++ == fastest || round ? FAST : 2 * FAST;
	return 0;
}

static void test_any_is_fastest(void **state)
{
	for (uint32_t n = 1; fastest < n; fastest++) {
		struct machine m = { .p = profile_new(HOSTS, HOSTS) };

		assert_int_equal(tool_profile_flats(m.p, 0.5, run_fastest, &m), 0);
		n = m.p->nflat;
		assert_int_equal(m.runs, n + 4); /* it alone is measured again */
		profile_free(m.p);
	}
}

/* A low quantile takes the fast runs, for a machine with other work. */
static void test_quantile(void **state)
{
	struct machine m = { .p = profile_new(HOSTS, HOSTS) };

	assert_int_equal(tool_profile_flats(m.p, 0.1, run, &m), 0);
	assert_true(time_of(m.p, "linear") == FAST);
	assert_true(time_of(m.p, "tree:7") == 0.8 * FAST);
	profile_free(m.p);
}

/* A run that fails ends the measurement, in the first round or in a later one. */
static void test_failure(void **state)
{
	struct machine well = { .p = profile_new(HOSTS, HOSTS) };

	assert_int_equal(tool_profile_flats(well.p, 0.5, run, &well), 0);
	profile_free(well.p);
	for (uint32_t in = 1; in <= well.runs; in++) {
		struct machine m = { .fail_in = in, .p = profile_new(HOSTS, HOSTS) };

		assert_int_equal(tool_profile_flats(m.p, 0.5, run, &m), 1);
		assert_int_equal(m.runs, in);
		profile_free(m.p);
	}
}

static char said[160];
static uint32_t fail_in; /* this allocation fails; 0: no allocation fails */

void tool_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return fail_in && --fail_in == 0 ? NULL : __real_calloc(n, size);
}

/* If any allocation fails, nothing is measured, and the user gets a message. */
static void test_no_memory(void **state)
{
	for (uint32_t i = 1; i <= 2; i++) {
		struct machine m = { .p = profile_new(HOSTS, HOSTS) };

		said[0] = 0;
		fail_in = i;
		assert_int_not_equal(tool_profile_flats(m.p, 0.5, run, &m), 0);
		assert_int_equal(fail_in, 0);
		assert_int_equal(m.runs, 0);
		assert_non_null(strstr(said, "no memory"));
		profile_free(m.p);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_luck), UNIT(test_any_is_fastest), UNIT(test_quantile),
	  UNIT(test_failure), UNIT(test_no_memory))
