/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fit.c - profiles with measured barriers: the composer trusts its predictions only as far as
 * these agree with the measured barriers, and `nbar-lab profile` fits the work of a step to the
 * measured barriers.
 */
#include "unit/unit.h"

#include <math.h>

#include "compose.h"
#include "compose_search.h"
#include "tool.h"
#include "tool_profile.h"

/* Hosts in racks of `rack`: O = 1, L = 5 in a rack, else O = 300, L = 30. */
static struct profile *in_racks(uint32_t hosts, uint32_t rack, bool one_processor)
{
	struct profile *p = profile_new(hosts, hosts);

	p->processor = one_processor ? calloc(hosts, sizeof(*p->processor)) : NULL;
	p->flat = calloc(PROFILE_FLAT_MAX, sizeof(*p->flat));
	for (uint32_t i = 0; i < hosts; i++) {
		p->self[i] = 2e-6;
		for (uint32_t j = 0; j < hosts; j++) {
			p->o[i * hosts + j] = i / rack == j / rack ? 1e-6 : 300e-6;
			p->l[i * hosts + j] = i / rack == j / rack ? 5e-6 : 30e-6;
		}
	}
	return p;
}

struct flats {
	struct profile *p;
	const uint32_t *host;
	double factor; /* every second algorithm takes this factor times its predicted time */
};

static int add_flat(void *arg, struct nbfw_alg alg)
{
	struct flats *f = arg;
	struct profile *p = f->p;
	struct predict out;

	assert_int_equal(compose_flat(alg, p, f->host, p->hosts, PREDICT_FIRST, &out), 0);
	p->flat[p->nflat] =
		(struct profile_flat){ alg, out.all_s * (p->nflat % 2 ? f->factor : 1) };
	p->nflat++;
	return 0;
}

/* The fastest measured barrier is the best flat barrier. A composed barrier must beat it by more
 * than the error of the predictions. */
static void test_measured(void **state)
{
	struct profile *p = in_racks(15, 5, false);
	uint32_t host[15];
	struct flats f = { p, host, 1 };
	struct compose c;
	const char *why;

	for (uint32_t r = 0; r < 15; r++)
		host[r] = r;
	assert_int_equal(compose_each(15, add_flat, &f), 0);
	assert_int_equal(compose(p, host, 15, &c, &why), 0);
	assert_true(c.scheme && c.error < 1e-9 && fabs(c.scale - 1) < 1e-9);
	compose_free(&c);
	/* Predictions that are wrong by a factor of 20: no reason to trust the composed barrier. */
	p->nflat = 0;
	f.factor = 0.05;
	assert_int_equal(compose_each(15, add_flat, &f), 0);
	p->flat[4].time = 1e-9;
	assert_int_equal(compose(p, host, 15, &c, &why), 0);
	assert_true(!c.scheme && c.predicted_s == c.flat_s && c.flat_s == p->flat[4].time);
	assert_true(c.alg.kind == p->flat[4].alg.kind && c.alg.n == p->flat[4].alg.n);
	compose_free(&c);
	/* The members are not all hosts in order, so the profile has no measured barriers for them.
	 */
	host[0] = 1;
	host[1] = 0;
	assert_int_equal(compose(p, host, 15, &c, &why), 0);
	assert_true(c.scheme && c.error < 1e-9 && fabs(c.scale - 1) < 1e-9);
	compose_free(&c);
	profile_free(p);
}

/* The fit finds the work of a step if that work explains the measured barriers. If barriers are
 * slow for another reason, the work is at most O in a rack. O between racks would permit 300 us,
 * and barriers of many short messages would then look worse than they are. */
static void test_fit_step(void **state)
{
	uint32_t host[12];
	struct compose c;
	const char *why;

	for (uint32_t r = 0; r < 12; r++)
		host[r] = r;
	for (uint32_t rack = 4; rack <= 12; rack += 8) {
		struct profile *p = in_racks(12, rack, true);
		struct flats f = { p, host, 1 };

		p->step = 0.4e-6;
		assert_int_equal(compose_each(12, add_flat, &f), 0);
		assert_int_equal(tool_profile_fit(p), 0);
		require(fabs(p->step - 0.4e-6) < 1e-12, "racks of %u: %g", rack, p->step);
		p->nflat = 0;
		f.factor = 1.4;
		assert_int_equal(compose_each(12, add_flat, &f), 0);
		assert_int_equal(tool_profile_fit(p), 0);
		require(p->step < 1e-6 + 1e-12, "racks of %u: %g", rack, p->step);
		assert_int_equal(compose(p, host, 12, &c, &why), 0);
		require((c.scheme != NULL) == (rack == 4), "racks of %u", rack);
		compose_free(&c);
		profile_free(p);
	}
}

static int compare_times(const void *a, const void *b)
{
	double x = ((const struct profile_flat *)a)->time,
	       y = ((const struct profile_flat *)b)->time;

	return (x > y) - (x < y);
}

/* All barriers but the best take twice as long as predicted, because their messages share a link.
 * That is no reason to expect it of the composed barrier, too, which is as good as the best
 * barrier. */
static void test_slow_others(void **state)
{
	struct profile *p = in_racks(12, 4, true);
	uint32_t host[12];
	struct flats f = { p, host, 1 };
	struct compose c;
	const char *why;

	for (uint32_t r = 0; r < 12; r++)
		host[r] = r;
	assert_int_equal(compose_each(12, add_flat, &f), 0);
	qsort(p->flat, p->nflat, sizeof(*p->flat), compare_times);
	for (uint32_t i = 1; i < p->nflat; i++)
		p->flat[i].time *= 2;
	assert_int_equal(compose(p, host, 12, &c, &why), 0);
	assert_true(c.scheme && fabs(c.scale - 1) < 1e-9 && c.error < 1e-9);
	assert_true(fabs(c.flat_s - p->flat[0].time) < 1e-12 && c.predicted_s < c.flat_s);
	compose_free(&c);
	profile_free(p);
}

/* --- no memory ------------------------------------------------------------------------------- */

static uint32_t allocations = UINT32_MAX; /* that succeed before one fails */
static char said[256];

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return allocations-- ? __real_malloc(size) : NULL;
}

void tool_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

/* If any allocation fails, the profile is refused with a message. */
static void test_no_memory(void **state)
{
	struct profile *p = in_racks(12, 4, true);
	int r;

	for (uint32_t n = 0; n < 3; n++) {
		*said = '\0';
		allocations = n;
		r = tool_profile_fit(p);
		allocations = UINT32_MAX;
		assert_int_equal(r, TOOL_FAILED);
		assert_non_null(strstr(said, "no memory to fit the profile"));
	}
	profile_free(p);
}

UNIT_MAIN(NULL, NULL, UNIT(test_measured), UNIT(test_fit_step), UNIT(test_slow_others),
	  UNIT(test_no_memory))
