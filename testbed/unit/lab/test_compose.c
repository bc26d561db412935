/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_compose.c - composed barriers. Each is a barrier by a knowledge-matrix test that shares no
 * code with the composer. Each ends although the network loses messages. All ranks get the same
 * barrier. The search tries each kind of change. The tests find plans that are no barrier.
 * test_fit.c: profiles with measured barriers.
 */
#include <math.h>

#include "compose.h"
#include "compose_search.c"
#include "sim.h"
#include "simulate.h"
#include "unit/core/group_plans.h"

#define LOSS 50000 /* per million messages */

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
	case ADVERSARIAL: /* a line: many centres are equally near, diameters shrink slowly */
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

	if (seed & 8) /* half of the seeds: some hosts share a processor */
		p->processor = calloc(hosts, sizeof(*p->processor));
	for (uint32_t i = 0; i < hosts; i++) {
		p->name[i] = malloc(16);
		snprintf(p->name[i], 16, "h%u", i);
		p->self[i] = shape == RANDOM ? rng_below(&rng, 1000) / 1e8 : 1e-6;
		if (p->processor)
			p->processor[i] = rng_below(&rng, 1 + hosts / 4);
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

/* Writes the costs between the ranks in the form for the simulator. Returns the largest cost, in
 * seconds. */
static double rank_costs(const struct profile *p, const uint32_t *host, uint32_t size, double *o,
			 double *l)
{
	double largest = 0;

	for (uint32_t i = 0; i < size; i++) {
		for (uint32_t j = 0; j < size; j++) {
			bool same = host[i] == host[j];
			size_t at = (size_t)i * size + j;

			o[at] = same ? profile_self(p, host[i]) : profile_o(p, host[i], host[j]);
			l[at] = same ? 0 : profile_l(p, host[i], host[j]);
			largest = fmax(largest, o[at]);
		}
	}
	return largest;
}

/* Engines run the plans over a network that loses messages, with the costs of the profile. The
 * retry budget is long enough for the slowest link. Returns the number of lost messages. */
static uint64_t require_end(const struct schedule *s, const struct profile *p, const uint32_t *host,
			    uint64_t seed)
{
	struct group_plans set = to_planset(s);
	double *cost = calloc(2 * (size_t)s->size * s->size, sizeof(*cost));
	double *l = cost + (size_t)s->size * s->size;
	double largest = rank_costs(p, host, s->size, cost, l);
	struct sim_plans plans;
	struct sim_report out;

	assert_int_equal(sim_plans_take(&plans, (const struct nbar_plan *const *)set.plan, s->size),
			 0);
	const struct sim_setup setup = {
		.net = { .members = s->size, .o = cost, .l = l, .loss = LOSS, .seed = seed },
		.plans = &plans,
		.barriers = 3,
		.pull_ns = 1000000,
		.budget_ns = 60000000000 + (uint64_t)(largest * 1e12),
		.limit = 10000000 * SIM_SECOND,
		.check = true,
	};

	sim_engines_run(&setup, &out);
	require(out.end == SIM_END_DONE && out.completed == 3 * s->size && !out.failed,
		"NBAR_SEED=%llu: end %d, %llu completed, %llu failed", (unsigned long long)seed,
		out.end, (unsigned long long)out.completed, (unsigned long long)out.failed);
	require(out.tokens >= 3 * (uint64_t)s->nsignal, "NBAR_SEED=%llu: %llu tokens",
		(unsigned long long)seed, (unsigned long long)out.tokens);
	sim_plans_free(&plans);
	free(cost);
	group_plans_free(&set);
	return out.lost;
}

static void test_random_profiles(void **state)
{
	uint64_t rounds = unit_rounds() ? unit_rounds() : unit_sanitized() ? 30 : 140;
	uint64_t lost = 0;
	uint32_t composed = 0;

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
		lost += require_end(c.schedule, p, host, seed);
		composed += c.scheme != NULL;
		compose_free(&c);
		free(host);
		profile_free(p);
	}
	print_message("%u of %llu are composed, the others flat; %llu messages were lost\n",
		      composed, (unsigned long long)rounds, (unsigned long long)lost);
	assert_true(composed > rounds / 10 && composed < rounds && lost > rounds);
}

/* Every rank gets the same plans. */
static void test_same_everywhere(void **state)
{
	for (uint32_t k = 0; k < 2 * SHAPES; k++) {
		struct profile *p = make_profile((enum shape)(k % SHAPES), 40, k < SHAPES ? 7 : 8);
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

/* 3 racks of 4, 300 us apart: the barrier crosses the delay once. In the best flat barrier with
 * this property, every rank signals every other rank. */
static void test_racks(void **state)
{
	struct profile *p = profile_new(12, 12);
	struct compose c;
	uint32_t host[12];
	const char *why;

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

/* Clusters 1 and 2 below the top, with members 0 to 5 and 6 to 11. */
static struct scheme *two_clusters(void)
{
	struct scheme *c = scheme_new(12);

	assert_int_equal(scheme_add_group(c, 0), 1);
	assert_int_equal(scheme_add_group(c, 0), 2);
	for (uint32_t i = 0; i < 12; i++)
		c->owner[i] = 1 + i / 6;
	for (uint32_t g = 0; g < 3; g++)
		c->group[g].up = c->group[g].down = (struct nbfw_alg){ NBFW_ALG_LINEAR, 0 };
	scheme_regroup(c);
	return c;
}

/* Each change of the search: how many candidates it looks at, and what the last of them is. No
 * candidate is better than the barrier that the search has, so none is taken. */
static void test_changes(void **state)
{
	static const struct {
		int (*change)(struct climb *x);
		uint32_t group, tried, n[4]; /* n: children of each cluster of the last candidate */
	} row[] = {
		{ try_split, 1, 1, { 2, 4, 6, 3 } }, { try_split, 0, 0, { 0 } },
		{ try_merge, 1, 1, { 7, 0, 6 } },    { try_merge, 0, 0, { 0 } },
		{ try_leaders, 1, 5, { 2, 6, 6 } },  { try_leaders, 0, 1, { 2, 6, 6 } },
		{ try_moves, 1, 6, { 2, 5, 7 } },    { try_moves, 2, 6, { 2, 7, 5 } },
		{ try_moves, 0, 0, { 0 } },          { try_algs, 1, 18, { 2, 6, 6 } },
		{ try_algs, 0, 21, { 2, 6, 6 } },
	};
	uint32_t host[12];
	struct profile *p = make_profile(FLAT, 12, 0);
	struct search s = { .p = p, .host = host, .best_s = 0 };
	struct climb x = { .s = &s, .at = two_clusters(), .next = scheme_new(12) };

	for (uint32_t i = 0; i < 12; i++)
		host[i] = i;
	assert_int_equal(pattern_init(&x.pattern, 12), 0);
	assert_int_equal(scheme_signals(x.at, &x.pattern), 0);
	s.best = schedule_new(&x.pattern);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		x.group = row[i].group;
		s.budget = s.tried = 0;
		assert_int_equal(row[i].change(&x), 0);
		assert_int_equal(s.tried, 0); /* nothing is left of the budget */
		s.budget = COMPOSE_BUDGET;
		assert_int_equal(row[i].change(&x), 0);
		require(s.tried == row[i].tried, "row %zu: %u", i, s.tried);
		assert_false(x.better);
		for (uint32_t g = 0; s.tried && g < x.next->ngroup; g++)
			require(x.next->group[g].n == row[i].n[g], "row %zu: %u children of %u", i,
				x.next->group[g].n, g);
		if (row[i].change == try_leaders)
			assert_int_equal(scheme_leader(x.next, 12), row[i].group ? 5 : 6);
		if (row[i].change == try_algs) { /* the last: a release, or an exchange */
			assert_int_equal(x.next->exchange, !row[i].group);
			assert_int_equal(x.next->group[1].up.kind, NBFW_ALG_LINEAR);
			assert_true((x.next->group[1].down.kind != NBFW_ALG_LINEAR) ==
				    row[i].group);
		}
		if (row[i].change == try_moves && s.tried)
			assert_int_equal(x.next->owner[row[i].group * 6 - 1], 3 - row[i].group);
	}
	schedule_free(s.best);
	pattern_free(&x.pattern);
	scheme_free(x.at);
	scheme_free(x.next);
	profile_free(p);
}

/* Hosts on a line, two members on each end. The member at 3 is near enough to the centre at 0; but
 * that at 5 is nearer, which is found later. */
static void test_clusters(void **state)
{
	static const double place[] = { 0, 3, 5, 10 };
	static const uint32_t host[] = { 0, 1, 2, 3, 0, 3 };
	struct profile *p = profile_new(4, 4);
	struct scheme *c = scheme_new(6);

	for (uint32_t i = 0; i < 16; i++)
		p->o[i] = i % 5 ? fabs(place[i / 4] - place[i % 4]) * 1e-6 : 1;
	assert_int_equal(scheme_cluster(c, p, host), 0);
	assert_int_equal(c->ngroup, 4);
	assert_true(c->owner[0] == c->owner[4] && c->owner[1] == c->owner[2] &&
		    c->owner[3] == c->owner[5]);
	assert_true(c->owner[0] && c->owner[1] && c->owner[3]);
	assert_true(c->owner[0] != c->owner[1] && c->owner[1] != c->owner[3] &&
		    c->owner[3] != c->owner[0]);
	scheme_free(c);
	profile_free(p);
}

/* A message to a host at a switch crosses 2 links, in a pod or a group 4 and 3, else 6 and up to 5.
 * It costs o at either end, its bytes on one link, and a hop for each link. Each further message
 * costs o. */
static void test_costs_of_topologies(void **state)
{
	static const uint32_t hosts[] = { 2, 4, 16, 2, 8, 72 };
	static const double least[] = { 2, 4, 6, 2, 3, 3 }, most[] = { 2, 4, 6, 2, 3, 5 };
	struct sim_net_options opt = {
		.overhead = 200 * SIM_NS, .bytes = 100, .link_byte = SIM_NS, .hop = 150 * SIM_NS
	};

	for (uint32_t n = 0; n < 6; n++) {
		struct profile *p;

		opt.topology = n < 3 ? SIM_FAT_TREE : SIM_DRAGONFLY;
		assert_int_equal(simulate_topology_profile(&opt, n < 3 ? 16 : 72, &p), 0);
		double l = p->level[n % 3].l * 1e9,
		       links = (p->level[n % 3].o * 1e9 + l - 500) / 150;

		assert_int_equal(p->level[n % 3].hosts, hosts[n]);
		require(fabs(l - 200) < 1e-6, "%g", l);
		require(links > least[n] - 1e-6 && links < most[n] + 1e-6, "level %u: %g", n,
			links);
		profile_free(p);
	}
}

/* Messages that cost nothing. */
static void test_no_costs(void **state)
{
	struct profile *p = profile_new(5, 5);
	const uint32_t host[] = { 0, 1, 2, 3, 4 };
	struct compose c;
	const char *why;

	p->flat = calloc(p->nflat = 1, sizeof(*p->flat));
	p->flat[0] = (struct profile_flat){ { NBFW_ALG_LINEAR, 0 }, 5e-6 }; /* measured */
	assert_int_equal(compose(p, host, 5, &c, &why), 0);
	assert_true(c.predicted_s == 0 && c.flat_s == 0 && c.scale == 1 && c.error == 0);
	assert_null(c.scheme);
	require_barrier(c.schedule, 0);
	compose_free(&c);
	profile_free(p);
}

/* Without one of its signals a barrier is no barrier, unless the signal is redundant. Both tests
 * must agree. */
static void test_one_signal_less(void **state)
{
	uint32_t none = 0, all = 0;

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

/* Two ranks that both wait before they signal each other have no order. */
static void test_circle(void **state)
{
	struct signal signal[] = { { 0, 1, 1, 0 }, { 1, 1, 0, 0 } };
	uint32_t next[] = { 2, 2 };
	const struct pattern p = { 2, next, signal, 2, 2, NULL };
	struct schedule *s = schedule_new(&p);
	const char *why;

	assert_int_equal(schedule_is_barrier(s), 0);
	assert_true(schedule_check(s, &why) < 0);
	schedule_free(s);
}

/* A plan beyond the NIC's limits is refused with a reason, and is not cut. */
static void test_limits(void **state)
{
	const uint32_t size = NBAR_SLOTS_MAX + 2;
	struct signal *signal = calloc(2 * size, sizeof(*signal));
	uint32_t *next = calloc(size, sizeof(*next));
	struct pattern p = { size, next, signal, 0, 0, NULL };
	struct schedule *s;
	const char *why = NULL;

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

UNIT_MAIN(NULL, NULL, UNIT(test_one_signal_less), UNIT(test_circle), UNIT(test_limits),
	  UNIT(test_racks), UNIT(test_changes), UNIT(test_clusters), UNIT(test_costs_of_topologies),
	  UNIT(test_no_costs), UNIT(test_same_everywhere), UNIT(test_random_profiles))
