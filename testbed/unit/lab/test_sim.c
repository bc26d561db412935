/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sim.c - the simulator of `nbar-lab simulate`: the queue, the shared plans, and the counts.
 */
#include "unit/unit.h"

#include "goal.h"
#include "net.h"
#include "nbar_abi.h"
#include "sim/nics.h"
#include "unit/core/group_plans.h"

static struct sim_setup setup_of(const struct sim_plans *plans)
{
	return (struct sim_setup){
		.net = {
			.members = plans->size,
			.latency = 1000 * SIM_NS,
			.overhead = 200 * SIM_NS,
			.bytes = 1,
			.hop = 150 * SIM_NS,
			.link_byte = 80,
			.seed = unit_seed(),
		},
		.plans = plans,
		.barriers = 1,
		.pull_ns = 1000000,
		.budget_ns = 4000000000,
		.limit = 3600 * SIM_SECOND,
	};
}

static struct sim_report run(const struct sim_setup *setup)
{
	struct sim_report out;

	sim_engines_run(setup, &out);
	return out;
}

/* Events come out in order of time; events of the same time in the order of insertion. */
static void test_queue(void **state)
{
	struct sim_queue q;
	struct sim_event ev = { 0 }, last = { 0 };
	struct rng rng = { unit_seed() };
	uint32_t in = 0, out = 0;

	sim_queue_begin(&q);
	while (out < 200000) {
		if (in < 200000 && (q.size == 0 || rng_percent(&rng, 55))) {
			ev.time = last.time +
				  (rng_percent(&rng, 30)
					   ? 0
					   : rng_next(&rng) >> (20 + rng_below(&rng, 40)));
			ev.arg = in++;
			sim_queue_push(&q, &ev);
			continue;
		}
		struct sim_event next;

		require(sim_queue_pop(&q, &next), "event %u", out);
		require(next.time > last.time || (next.time == last.time && next.arg > last.arg) ||
				out == 0,
			"event %u", out);
		last = next;
		out++;
	}
	assert_false(sim_queue_pop(&q, &ev));
	assert_true(q.moves <= 63 * q.popped);
	sim_queue_end(&q);
}

/* A shared plan becomes the plan of the generator when its ranks get their own numbers again. */
static void check_plans(struct nbfw_alg alg, uint32_t size)
{
	struct group_plans set = group_plans_generate(alg, size);
	struct sim_plans plans;
	uint64_t tokens = 0;

	assert_int_equal(sim_plans_generate(&plans, alg, size), 0);
	for (uint32_t m = 0; m < size; m++) {
		const struct nbar_plan *a = set.plan[m], *b = sim_plan(&plans, m);

		require(a->nstep == b->nstep && a->nsend == b->nsend && a->nrecv == b->nrecv &&
				sim_plans_rank(&plans, m, b->rank) == m,
			"%s of %u, rank %u", group_plans_text(alg), size, m);
		assert_memory_equal(nbfw_plan_steps(a), nbfw_plan_steps(b),
				    a->nstep * sizeof(struct nbar_step));
		for (uint32_t i = 0; i < a->nsend; i++) {
			const struct nbar_send *x = &nbfw_plan_sends(a)[i];
			const struct nbar_send *y = &nbfw_plan_sends(b)[i];

			require(x->slot == y->slot && x->dst == sim_plans_rank(&plans, m, y->dst) &&
					y->dst == sim_plans_name(&plans, m, x->dst) &&
					y->dst < b->size,
				"%s of %u, rank %u, send %u", group_plans_text(alg), size, m, i);
		}
		for (uint32_t i = 0; i < a->nrecv; i++)
			require(nbfw_plan_recvs(a)[i].src ==
					sim_plans_rank(&plans, m, nbfw_plan_recvs(b)[i].src),
				"%s of %u, rank %u, slot %u", group_plans_text(alg), size, m, i);
		struct nbar_plan *plain = sim_plan_plain(&plans, m);

		assert_memory_equal(plain, a, (size_t)nbfw_plan_length(a));
		free(plain);
		tokens += a->nsend;
	}
	assert_int_equal(plans.tokens, tokens);
	sim_plans_free(&plans);
	group_plans_free(&set);
}

static void test_plans(void **state)
{
	static const uint32_t size[] = { 1, 2, 3, 7, 8, 100, 4097 };

	for (uint32_t i = 0; i < 7; i++)
		group_plans_each (alg)
			check_plans(alg, size[i]);
	/* More shapes than allowed, and a size that is no power of two. */
	check_plans((struct nbfw_alg){ NBFW_ALG_PAIRWISE, 0 }, 10000);
	check_plans((struct nbfw_alg){ NBFW_ALG_TREE, 3 }, 10000);
}

/* Without faults, only the tokens of the plans are sent, each once. */
static void test_counts(void **state)
{
	for (uint32_t size = 1; size <= 70; size += size < 20 ? 1 : 25) {
		group_plans_each (alg) {
			struct sim_plans plans;

			assert_int_equal(sim_plans_generate(&plans, alg, size), 0);
			struct sim_setup setup = setup_of(&plans);

			setup.barriers = 3;
			setup.check = true;
			setup.arrive = 5 * SIM_US;
			struct sim_report out = run(&setup);

			require(out.end == SIM_END_DONE && out.completed == 3 * size &&
					out.tokens <= 3 * plans.tokens && out.pulls == 0 &&
					out.failed == 0,
				"%s of %u", group_plans_text(alg), size);
			/* Sends after the completion may still be on their way. */
			require(out.tokens == 3 * plans.tokens, "%s of %u: %llu of %llu",
				group_plans_text(alg), size, (unsigned long long)out.tokens,
				(unsigned long long)plans.tokens * 3);
			sim_plans_free(&plans);
		}
	}
}

/* LogGP gives the time without a simulation: each round takes o + L + o. */
static void test_times(void **state)
{
	for (uint32_t size = 2; size <= 1024; size *= 2) {
		struct sim_plans plans;
		uint32_t rounds = 0;

		while (1u << rounds < size)
			rounds++;
		assert_int_equal(sim_plans_generate(&plans,
						    (struct nbfw_alg){ NBFW_ALG_DISSEMINATION, 1 },
						    size),
				 0);
		struct sim_setup setup = setup_of(&plans);
		struct sim_report out = run(&setup);

		assert_int_equal((uint64_t)out.mean_ns, 1400 * rounds);
		assert_int_equal(out.path.hops, rounds);
		assert_int_equal(out.skew_ns, 0);
		sim_plans_free(&plans);
	}
}

/* With a profile, a message takes O + L, and each further message L more. On a shared core, half of
 * the work of a message is at each end. test_predict.c has the same times, by hand. */
static void test_profile_costs(void **state)
{
	static const struct {
		const char *alg;
		uint32_t cores;
		uint64_t ns;
	} want[] = {
		{ "linear", 0, 28000 },          { "linear", 1, 26000 },
		{ "dissemination:1", 0, 24000 }, { "dissemination:2", 0, 14000 },
		{ "dissemination:2", 1, 17000 },
	};
	double o[9], l[9];

	for (uint32_t i = 0; i < 9; i++) {
		o[i] = 10e-6;
		l[i] = 2e-6;
	}
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		static const uint32_t core[3] = { 0, 0, 0 };
		struct nbfw_alg alg;
		struct sim_plans plans;

		assert_int_equal(nbfw_alg_parse(want[i].alg, &alg), 0);
		assert_int_equal(sim_plans_generate(&plans, alg, 3), 0);
		struct sim_setup setup = setup_of(&plans);

		setup.net.o = o;
		setup.net.l = l;
		setup.net.cores = want[i].cores;
		setup.net.core = want[i].cores ? core : NULL;
		struct sim_report out = run(&setup);

		require((uint64_t)out.mean_ns == want[i].ns, "%s, %u cores: %f ns", want[i].alg,
			want[i].cores, out.mean_ns);
		sim_plans_free(&plans);
	}
}

/* Events, and moves of the queue, grow no faster than P log P. */
static void test_growth(void **state)
{
	double first = 0;

	for (uint32_t size = 1000; size <= 100000; size *= 10) {
		struct sim_plans plans;
		double per = size;

		assert_int_equal(sim_plans_generate(&plans,
						    (struct nbfw_alg){ NBFW_ALG_DISSEMINATION, 1 },
						    size),
				 0);
		struct sim_setup setup = setup_of(&plans);
		struct sim_report out = run(&setup);
		uint32_t rounds = 0;

		while (1u << rounds < size)
			rounds++;
		per *= rounds;
		assert_int_equal(out.tokens, per);
		assert_int_equal(out.events, per + size); /* and one start per rank */
		double cost = (double)(out.events + out.moves) / per;

		first = first > 0 ? first : cost;
		require(cost <= first * 1.01, "size %u: %f events and moves, %f before", size, cost,
			first);
		assert_true(out.bytes < 400 * (size_t)size + 400000);
		sim_plans_free(&plans);
	}
}

/* With every fault all members complete, none early. The fault has an effect, and the same seed
 * gives the same run. */
static void test_faults(void **state)
{
	uint64_t lost = 0, repeated = 0, reordered = 0, dropped = 0, pulls = 0;
	struct rng rng = { unit_seed() };

	for (uint32_t i = 0; i < 300; i++) {
		struct nbfw_alg alg = group_plans_any(&rng);
		uint32_t size = 2 + rng_below(&rng, 60);
		struct sim_plans plans;

		assert_int_equal(sim_plans_generate(&plans, alg, size), 0);
		struct sim_setup setup = setup_of(&plans);

		setup.net.seed = rng_next(&rng);
		setup.net.loss = setup.net.repeat = setup.net.reorder = 100000;
		setup.net.reorder_by = 20 * SIM_US;
		setup.net.noise_period = 50 * SIM_US;
		setup.net.noise = 5 * SIM_US;
		setup.queue = 3;
		setup.barriers = 5;
		setup.arrive = 30 * SIM_US;
		setup.check = true;
		struct sim_report out = run(&setup), again = run(&setup);

		require(out.end == SIM_END_DONE && out.completed == 5 * size && !out.failed,
			"%s of %u, NBAR_SEED=%llu, case %u: end %d", group_plans_text(alg), size,
			(unsigned long long)unit_seed(), i, out.end);
		assert_int_equal(out.digest, again.digest);
		assert_memory_equal(&out, &again, sizeof(out));
		lost += out.lost;
		repeated += out.repeated;
		reordered += out.reordered;
		dropped += out.dropped;
		pulls += out.pulls;
		sim_plans_free(&plans);
	}
	assert_true(lost && repeated && reordered && dropped && pulls >= lost / 2);
}

/* One host is a second late: all members see that second. One NIC is dead: all other members name
 * it. */
static void test_special(void **state)
{
	group_plans_each (alg) {
		struct sim_plans plans;
		uint32_t who = 5;

		assert_int_equal(sim_plans_generate(&plans, alg, 13), 0);
		struct sim_setup setup = setup_of(&plans);

		setup.nspecial = 1;
		setup.special[0] = (struct sim_special){ .member = who, .late = SIM_SECOND };
		struct sim_report out = run(&setup);

		require(out.end == SIM_END_DONE && out.mean_ns >= 1e9 && out.mean_ns < 1.1e9 &&
				out.skew_ns < 1e8 && out.laters > 0 && !out.failed,
			"%s", group_plans_text(alg));
		setup.special[0] = (struct sim_special){ .member = who, .dead = true };
		out = run(&setup);
		require(out.end == SIM_END_DONE && out.failed == 12 && out.failed_rank == who &&
				out.completed == 0,
			"%s: %llu failed, %u named", group_plans_text(alg),
			(unsigned long long)out.failed, out.failed_rank);
		sim_plans_free(&plans);
	}
}

/* A group of engines and the same group of whole NICs send the same tokens at the same times. */
static void test_levels(void **state)
{
	group_plans_each (alg) {
		struct sim_plans plans;

		assert_int_equal(sim_plans_generate(&plans, alg, 11), 0);
		struct sim_setup setup = setup_of(&plans);
		struct sim_report engines = run(&setup), nics, uploaded;

		sim_nics_run(&setup, group_plans_text(alg), 0, &nics);
		require(nics.end == SIM_END_DONE && nics.tokens == engines.tokens &&
				nics.mean_ns == engines.mean_ns,
			"%s: %f and %f ns", group_plans_text(alg), nics.mean_ns, engines.mean_ns);
		sim_nics_run(&setup, "a name that no NIC knows", 0, &uploaded);
		assert_int_equal(uploaded.digest, nics.digest);
		sim_plans_free(&plans);
	}
}

/* Begins a network of this topology. A frame takes 1 us on a link, and 0.1 us more to the next. */
static struct sim_net net_of(enum sim_topology topology, uint32_t members)
{
	struct sim_net_options opt = setup_of(&(struct sim_plans){ .size = members }).net;
	struct sim_net net;

	opt.topology = topology;
	opt.link_byte = SIM_US;
	opt.hop = SIM_US / 10;
	assert_int_equal(sim_net_begin(&net, &opt), 0);
	return net;
}

/* Sends a message. Returns the number of its links, from the time on its way. */
static uint32_t carry(struct sim_net *net, uint32_t from, uint32_t to, sim_time at,
		      sim_time *waited)
{
	const struct sim_cost cost = { 0 };
	sim_time way = sim_net_carry(net, &cost, from, to, at, waited) - at - *waited - SIM_US;

	assert_int_equal(way % (SIM_US / 10), 0);
	return (uint32_t)(way / (SIM_US / 10));
}

/* The destination alone picks the way: the routes of two hosts have the same last n links. */
static void share_the_end(const struct sim_net *net, uint32_t a, uint32_t b, uint32_t to,
			  uint32_t n)
{
	uint64_t link[2][SIM_LINKS_MAX];
	uint32_t na = sim_topology_route(net, a, to, link[0]);
	uint32_t nb = sim_topology_route(net, b, to, link[1]);

	assert_true(na >= n && nb >= n);
	assert_memory_equal(link[0] + na - n, link[1] + nb - n, n * sizeof(uint64_t));
}

/* Each message is lost, or doubled and late. */
static void test_fate(void **state)
{
	struct sim_net net = net_of(SIM_FLAT, 2);
	sim_time late[2];

	assert_int_equal(sim_net_fate(&net, late), 1);
	assert_true(late[0] == 0 && late[1] == 0);
	net.opt.repeat = net.opt.reorder = SIM_MILLION;
	net.opt.reorder_by = 1;
	assert_int_equal(sim_net_fate(&net, late), 2);
	assert_true(late[0] == 1 && late[1] == 1 && net.repeated == 1 && net.reordered == 2);
	net.opt.loss = SIM_MILLION;
	assert_int_equal(sim_net_fate(&net, late), 0);
	assert_true(net.lost == 1 && net.sent == 3);
	sim_net_end(&net);
}

/* In a fat tree of switches with 4 ports, 2 hosts share a switch and 4 a pod. All hosts can send by
 * the same distance at the same time, and nobody waits. Two messages of a host, or to a host,
 * share a link. */
static void test_fat_tree(void **state)
{
	struct sim_net net = net_of(SIM_FAT_TREE, 16);
	sim_time waited, now = 0;
	uint32_t n;

	assert_int_equal(net.hosts, 16);
	for (uint32_t by = 1; by < 16; by++, now += 100 * SIM_US) {
		for (uint32_t from = 0; from < 16; from++) {
			uint32_t to = (from + by) % 16;

			n = carry(&net, from, to, now, &waited);
			assert_int_equal(waited, 0);
			assert_int_equal(n, from / 2 == to / 2 ? 2 : from / 4 == to / 4 ? 4 : 6);
			if (n >= 4)
				share_the_end(&net, from, from ^ 1, to, n - 1);
			if (n == 6)
				share_the_end(&net, from, from ^ 2, to, 4);
			if (n == 6 && (from ^ 4) / 4 != to / 4)
				share_the_end(&net, from, from ^ 4, to, 3);
		}
	}
	assert_int_equal(net.link_waits, 0);
	for (uint32_t i = 0; i < 2; i++, now += 100 * SIM_US) {
		carry(&net, i ? 3 : 9, i ? 9 : 3, now, &waited);
		carry(&net, i ? 15 : 9, i ? 9 : 15, now, &waited);
		assert_int_equal(waited, SIM_US);
	}
	assert_int_equal(net.link_waits, 2);
	sim_net_end(&net);
}

/* In a dragonfly of 9 groups with 4 routers of 2 hosts each, each two groups have a link of their
 * own for each direction. */
static void test_dragonfly(void **state)
{
	struct sim_net net = net_of(SIM_DRAGONFLY, 72);
	uint64_t link[SIM_LINKS_MAX], first = 2 * 72 + 9 * 4 * 4;
	uint32_t pairs[9 * 8] = { 0 }, n, alone = 0;
	sim_time waited, now = 0;

	assert_int_equal(net.hosts, 72);
	assert_int_equal(net.nlink, first + 9 * 8);
	for (uint32_t from = 0; from < 72; from++) {
		for (uint32_t to = 0; to < 72; to++, now += 100 * SIM_US) {
			uint32_t wide = 0, local = 0;

			if (from == to)
				continue;
			n = sim_topology_route(&net, from, to, link);
			for (uint32_t i = 0; i < n; i++) {
				assert_true(link[i] < net.nlink);
				local += link[i] >= 2 * 72 && link[i] < first;
				if (link[i] < first)
					continue;
				uint32_t *pair = &pairs[link[i] - first];

				wide++;
				assert_true(!*pair || *pair == from / 8 * 9 + to / 8);
				*pair = from / 8 * 9 + to / 8;
			}
			assert_int_equal(wide, from / 8 != to / 8);
			assert_true(wide ? local <= 2 : local == (from / 2 != to / 2));
			alone += wide && local == 0;
			if (wide)
				share_the_end(&net, from, from / 8 * 8, to, n - 1 - (n > 3));
			assert_int_equal(n, 2 + wide + local);
			assert_int_equal(carry(&net, from, to, now, &waited), n);
			assert_int_equal(waited, 0);
		}
	}
	for (uint32_t i = 0; i < 9 * 8; i++)
		assert_true(pairs[i]);
	assert_int_equal(alone, 9 * 8 * 2 * 2); /* hosts at both ends of the link of two groups */
	sim_net_end(&net);
}

/* The schedule of pairwise exchange among three ranks, in the format that LogGOPSim reads. */
static void test_goal(void **state)
{
	const struct nbfw_alg alg = { NBFW_ALG_PAIRWISE, 0 };
	char wanted[1024], *text;
	struct sim_plans plans;
	size_t size;
	int n;

	n = sprintf(wanted, "num_ranks 3\n\nrank 0 {\n"
			    "l1: recv 1b from 2 tag 0\nl2: calc 0\nl2 requires l1\n"
			    "l3: send 1b to 1 tag 0\nl3 requires l2\n"
			    "l4: recv 1b from 1 tag 1\nl5: calc 0\nl5 requires l4\nl5 requires l2\n"
			    "l6: send 1b to 2 tag 0\nl6 requires l5\n"
			    "l7: calc 0\nl7 requires l5\n}\n");
	for (uint32_t r = 1; r < 3; r++)
		n += sprintf(wanted + n,
			     "\nrank %u {\nl1: send 1b to 0 tag %u\nl2: recv 1b from 0 tag 0\n"
			     "l3: calc 0\nl3 requires l2\n}\n",
			     r, 2 - r);
	assert_int_equal(sim_plans_generate(&plans, alg, 3), 0);
	FILE *f = open_memstream(&text, &size);

	goal_write(&plans, f);
	fclose(f);
	assert_string_equal(text, wanted);
	free(text);
	sim_plans_free(&plans);
}

UNIT_MAIN(NULL, NULL, UNIT(test_queue), UNIT(test_plans), UNIT(test_counts), UNIT(test_times),
	  UNIT(test_profile_costs), UNIT(test_growth), UNIT(test_faults), UNIT(test_special),
	  UNIT(test_levels), UNIT(test_fate), UNIT(test_fat_tree), UNIT(test_dragonfly),
	  UNIT(test_goal))
