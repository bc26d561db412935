/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_compose.c - composed barriers: each is a barrier, by a knowledge-matrix test that shares no
 * code with the composer; all ranks get the same one; it never costs more than a flat barrier; and
 * plans that are no barrier are found.
 */
#include <math.h>

#include "compose.h"
#include "unit/core/group_plans.h"

enum shape { FLAT, NOISE, RACKS, NESTED, RANDOM, ASYMMETRIC, ADVERSARIAL, SHAPES };

/* A cost between two hosts, in seconds. */
static double cost(enum shape shape, struct rng *rng, uint32_t i, uint32_t j, uint32_t hosts)
{
	double noise = 1 + rng_below(rng, 1000) / 5000.0;
	uint32_t a = i < j ? i : j, b = i < j ? j : i;

	switch (shape) {
	case FLAT:
		return 1e-6;
	case NOISE:
		return 1e-6 * noise;
	case RACKS:
		return (i % 5 == j % 5 ? 1e-6 : 300e-6) * noise;
	case NESTED:
		return (i / 4 == j / 4 ? 1e-6 : i / 16 == j / 16 ? 20e-6 : 400e-6) * noise;
	case RANDOM:
		return pow(10, -8 + rng_below(rng, 6000) / 1000.0);
	case ASYMMETRIC:
		return i < j ? 1e-6 : 100e-6;
	case ADVERSARIAL: /* a line: nearest centres are ties, diameters shrink slowly */
		return (b - a) * 1e-6 + (a == hosts / 2 ? 1 : 0);
	case SHAPES:
		break;
	}
	return 0;
}

static struct profile *make_profile(enum shape shape, uint32_t hosts, uint64_t seed)
{
	struct profile *p = profile_new(hosts, hosts);
	struct rng rng = { seed };

	for (uint32_t i = 0; i < hosts; i++) {
		p->name[i] = malloc(16);
		snprintf(p->name[i], 16, "h%u", i);
		p->self[i] = shape == RANDOM ? rng_below(&rng, 1000) / 1e8 : 1e-6;
		for (uint32_t j = 0; j < hosts; j++) {
			p->o[i * hosts + j] = i == j ? p->self[i] : cost(shape, &rng, i, j, hosts);
			p->l[i * hosts + j] = i == j ? 0 : p->o[i * hosts + j] / 3;
		}
	}
	return p;
}

/* The plans for the NICs, as group_plans.h tests them. */
static struct group_plans to_planset(const struct schedule *s)
{
	size_t room = 0, used = 0;

	for (uint32_t r = 0; r < s->size; r++)
		room += (size_t)schedule_plan(s, r, NULL, 0);
	struct group_plans set = group_plans_new(s->size, room + 1);

	for (uint32_t r = 0; r < s->size; r++) {
		struct nbar_plan *plan = (void *)((char *)set.block + used);

		used += (size_t)schedule_plan(s, r, plan, room - used);
		set.plan[r] = plan;
	}
	group_plans_index(&set);
	return set;
}

static void require_barrier(const struct schedule *s, uint64_t seed)
{
	struct group_plans set = to_planset(s);

	require(group_plans_is_barrier(&set), "NBAR_SEED=%llu", (unsigned long long)seed);
	group_plans_free(&set);
}

static void test_random_profiles(void **state)
{
	uint64_t rounds = unit_rounds() ? unit_rounds() : unit_sanitized() ? 30 : 140;
	uint32_t composed = 0;

	(void)state;
	for (uint64_t seed = unit_seed(), last = seed + rounds; seed != last; seed++) {
		struct rng rng = { seed };
		enum shape shape = (enum shape)(seed % SHAPES);
		uint32_t hosts = 2 + rng_below(&rng, rounds > 1000 || seed % 10 == 0 ? 199 : 50);
		uint32_t size = rng_percent(&rng, 50) ? hosts : 2 + rng_below(&rng, hosts - 1);
		uint32_t *host = calloc(size, sizeof(*host));
		struct profile *p = make_profile(shape, hosts, seed);
		struct compose c = { 0 };
		const char *why = "";

		for (uint32_t r = 0; r < size; r++)
			host[r] = size == hosts ? r : rng_below(&rng, hosts);
		require(compose(p, host, size, &c, &why) == 0, "NBAR_SEED=%llu: %s",
			(unsigned long long)seed, why);
		require(c.predicted_s <= c.flat_s, "NBAR_SEED=%llu", (unsigned long long)seed);
		require_barrier(c.schedule, seed);
		composed += c.scheme != NULL;
		compose_free(&c);
		free(host);
		profile_free(p);
	}
	print_message("%u of %llu are composed, the others flat\n", composed,
		      (unsigned long long)rounds);
	assert_true(composed > rounds / 10 && composed < rounds);
}

/* Every rank gets the same plans. */
static void test_same_everywhere(void **state)
{
	(void)state;
	for (uint32_t shape = 0; shape < SHAPES; shape++) {
		struct profile *p = make_profile((enum shape)shape, 40, 7);
		struct compose c[2] = { { 0 } };
		uint32_t host[40], length[2];
		const char *why;

		for (uint32_t r = 0; r < 40; r++)
			host[r] = r;
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(compose(p, host, 40, &c[i], &why), 0);
		for (uint32_t r = 0; r < 40; r++) {
			uint32_t block[2][4096];

			for (uint32_t i = 0; i < 2; i++)
				length[i] = (uint32_t)schedule_plan(c[i].schedule, r, block[i],
								    sizeof(block[i]));
			assert_int_equal(length[0], length[1]);
			assert_memory_equal(block[0], block[1], length[0]);
		}
		compose_free(&c[0]);
		compose_free(&c[1]);
		profile_free(p);
	}
}

/* 3 racks of 4, 300 us apart: the barrier crosses the delay once. The best flat barrier that does
 * so lets every rank signal every other rank. */
static void test_racks(void **state)
{
	struct profile *p = profile_new(12, 12);
	struct compose c;
	uint32_t host[12];
	const char *why;

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		host[i] = i;
		for (uint32_t j = 0; j < 12; j++) {
			p->o[i * 12 + j] = i / 4 == j / 4 ? 5e-6 : 305e-6;
			p->l[i * 12 + j] = 20e-6;
		}
	}
	assert_int_equal(compose(p, host, 12, &c, &why), 0);
	assert_non_null(c.scheme);
	assert_true(c.predicted_s > 305e-6 && c.predicted_s < 0.9 * c.flat_s);
	require_barrier(c.schedule, 0);
	compose_free(&c);
	profile_free(p);
}

/* Without one of its signals a barrier is no barrier, unless the signal is redundant. Both tests
 * must agree. */
static void test_one_signal_less(void **state)
{
	uint32_t none = 0, all = 0;

	(void)state;
	group_plans_each (alg) {
		if (alg.n > 3)
			continue;
		for (uint32_t size = 2; size <= 20; size += 3) {
			struct pattern p;

			assert_int_equal(pattern_init(&p, size), 0);
			assert_int_equal(pattern_add(&p, alg, NULL, size, PATTERN_ALL), 0);
			for (uint32_t i = 0; i < p.n; i++) {
				struct pattern q = p;
				struct schedule *s;

				q.signal = malloc(p.n * sizeof(*q.signal));
				memcpy(q.signal, p.signal, p.n * sizeof(*q.signal));
				q.signal[i] = q.signal[--q.n];
				s = schedule_new(&q);
				struct group_plans set = to_planset(s);
				int is = schedule_is_barrier(s);

				require(is == group_plans_is_barrier(&set), "%s size %u signal %u",
					group_plans_text(alg), size, i);
				none += !is;
				all++;
				group_plans_free(&set);
				schedule_free(s);
				free(q.signal);
			}
			pattern_free(&p);
		}
	}
	assert_true(none > all / 2);
}

/* Two ranks that wait for each other first cannot be ordered. */
static void test_circle(void **state)
{
	struct signal signal[] = { { 0, 1, 1, 0 }, { 1, 1, 0, 0 } };
	uint32_t next[] = { 2, 2 };
	const struct pattern p = { 2, next, signal, 2, 2, NULL };
	struct schedule *s = schedule_new(&p);
	const char *why;

	(void)state;
	assert_int_equal(schedule_is_barrier(s), 0);
	assert_true(schedule_check(s, &why) < 0);
	schedule_free(s);
}

/* A plan beyond the NIC's limits is refused with a reason, and not cut. */
static void test_limits(void **state)
{
	const uint32_t size = NBAR_SLOTS_MAX + 2;
	struct signal *signal = calloc(2 * size, sizeof(*signal));
	uint32_t *next = calloc(size, sizeof(*next));
	struct pattern p = { size, next, signal, 0, 0, NULL };
	struct schedule *s;
	const char *why = NULL;

	(void)state;
	for (uint32_t r = 0; r < size; r++)
		next[r] = 3;
	for (uint32_t r = 1; r < size; r++) {
		signal[p.n++] = (struct signal){ r, 0, 0, 0 };
		signal[p.n++] = (struct signal){ 0, 1, r, 1 };
	}
	s = schedule_new(&p);
	assert_int_equal(schedule_is_barrier(s), 1);
	assert_int_equal(schedule_check(s, &why), -NBFW_ENOSPC);
	assert_non_null(why);
	schedule_free(s);
	free(signal);
	free(next);
}

/* Section by section, by hand: 3 members, all alike, O = 10, L = 1, a call 2. */
static void test_predicted_by_hand(void **state)
{
	static const struct {
		const char *alg;
		double us;
	} want[] = {
		/* two arrive at 11, the second costs 1 more; two leave: 12 + 2 + 10, and a call */
		{ "linear", 26 },
		/* two rounds of one message */
		{ "dissemination:1", 24 },
		/* one round: the second message leaves 1 later, and is received when it comes */
		{ "dissemination:2", 14 },
	};
	struct profile *p = profile_new(3, 3);
	uint32_t host[] = { 0, 1, 2 };

	(void)state;
	for (uint32_t i = 0; i < 9; i++) {
		p->o[i] = 10e-6;
		p->l[i] = 1e-6;
	}
	for (uint32_t i = 0; i < 3; i++)
		p->self[i] = 2e-6;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct nbfw_alg alg;
		struct predict out;

		assert_int_equal(nbfw_alg_parse(want[i].alg, &alg), 0);
		assert_int_equal(compose_flat(alg, p, host, 3, PREDICT_FIRST, &out), 0);
		require(fabs(out.all_s * 1e6 - want[i].us) < 1e-6, "%s: %f", want[i].alg,
			out.all_s * 1e6);
		assert_int_equal(compose_flat(alg, p, host, 3, PREDICT_WAITING, &out), 0);
		assert_true(out.all_s * 1e6 < want[i].us + 1e-6);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predicted_by_hand),
		cmocka_unit_test(test_one_signal_less),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_racks),
		cmocka_unit_test(test_same_everywhere),
		cmocka_unit_test(test_random_profiles),
	};

	return cmocka_run_group_tests_name("compose", tests, NULL, NULL);
}
