/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_plan.c - the generators make barriers of every size; the check of plans accepts no bad plan.
 */
#include "engine.h"
#include "group_plans.h"

/* Rounds by repeated multiplication: smallest k with base^k >= size. */
static uint32_t rounds(uint64_t base, uint64_t size)
{
	uint32_t k = 0;

	for (uint64_t reach = 1; reach < size; reach *= base)
		k++;
	return k;
}

static uint32_t largest_power_of_two(uint32_t size)
{
	uint32_t half = 1;

	while (half <= size / 2)
		half *= 2;
	return half;
}

/* Ranks that this rank beats in a tournament: one per round, up to the round that it loses. */
static uint32_t wins(uint32_t size, uint32_t rank)
{
	uint32_t n = 0;

	for (uint32_t bit = 1; bit < size && rank % (2 * bit) == 0; bit *= 2)
		n += rank + bit < size;
	return n;
}

/* Steps of a rank; *releases: its last step only releases other ranks and waits for no rank. */
static uint32_t steps_of(struct nbfw_alg alg, uint32_t size, uint32_t rank, bool *releases)
{
	uint32_t half = largest_power_of_two(size), won = wins(size, rank);

	uint32_t climbs = rank > 0; /* a step that signals the parent and waits for it */

	*releases = won > 0;
	switch (alg.kind) {
	case NBFW_ALG_PAIRWISE:
		*releases = rank < size - half;
		return rank >= half ? 1 : rounds(2, half) + (*releases ? 2 : 0);
	case NBFW_ALG_DISSEMINATION:
		*releases = false;
		return rounds(alg.n + 1, size);
	case NBFW_ALG_MCS:
		*releases = 2 * rank + 1 < size;
		return climbs + (4 * rank + 1 < size) + *releases;
	case NBFW_ALG_TOURNAMENT:
		return climbs + won + *releases;
	case NBFW_ALG_BINOMIAL:
		return climbs + (won > 0) + *releases;
	case NBFW_ALG_LINEAR:
		*releases = rank == 0 && size > 1;
		return rank > 0 ? 1 : *releases ? 2 : 0;
	case NBFW_ALG_TREE:
		*releases = alg.n * rank + 1 < size;
		return climbs + 2 * *releases;
	case NBFW_ALG_CUSTOM:
	case NBFW_ALG_SIGNAL:
	case NBFW_ALG_END:
		break;
	}
	return UINT32_MAX;
}

/* True if the plans gather at rank 0 and release from rank 0, with the fewest signals possible. */
static bool is_tree(struct nbfw_alg alg)
{
	return alg.kind != NBFW_ALG_PAIRWISE && alg.kind != NBFW_ALG_DISSEMINATION;
}

static bool is_limited(struct nbfw_alg alg)
{
	return nbfw_alg_row(alg.kind)->limit < NBAR_SIZE_MAX;
}

/* If the last step only sends, one action has both the completion and the sends. */
static void check_release(const struct nbar_plan *p, bool releases)
{
	const struct nbar_step *last = nbfw_plan_steps(p) + p->nstep - 1;
	struct nbfw_state *s = malloc(nbfw_state_size(p));
	struct nbfw_event ev = { .type = NBFW_EV_START };
	struct nbfw_action a;

	nbfw_init(s, p, 0);
	nbfw_step(s, p, &ev, &a);
	ev.type = NBFW_EV_TOKEN;
	for (uint32_t slot = 0; slot < p->nrecv; slot++) {
		require(!a.complete, "size %u rank %u", p->size, p->rank);
		ev.token = (struct nbfw_token){ .type = NBFW_TOKEN, .slot = slot, .epoch = 1 };
		ev.token.src = nbfw_plan_recvs(p)[slot].src;
		nbfw_step(s, p, &ev, &a);
	}
	require(a.complete && a.send_end == (p->nrecv || p->nsend ? p->nsend : 0),
		"size %u rank %u", p->size, p->rank);
	require(p->nstep == 0 || (releases ? a.send_first == last->first_send && last->nsend > 0
					   : last->nslot > 0),
		"size %u rank %u", p->size, p->rank);
	free(s);
}

/* What must hold for the plan of one rank: no self-send, no peer twice in a step, the number of
 * steps, the size of a state, and that nbfw_plan_check accepts the plan. */
static void check_plan(struct nbfw_alg alg, const struct nbar_plan *p, uint32_t size, uint32_t rank)
{
	const struct nbar_send *send = nbfw_plan_sends(p);
	const struct nbar_recv *recv = nbfw_plan_recvs(p);
	bool releases;
	uint32_t steps = steps_of(alg, size, rank, &releases);
	static uint64_t scratch[NBAR_SENDS_MAX + NBAR_SLOTS_MAX];
	const char *why = "";

	require(p->rank == rank && p->size == size && p->nstep == steps,
		"%s size %u rank %u: %u steps, want %u", group_plans_text(alg), size, rank,
		p->nstep, steps);
	require(is_limited(alg) || nbfw_state_size(p) <= 64, "%s size %u rank %u",
		group_plans_text(alg), size, rank);
	check_release(p, releases);
	if (size <= 128 || rank % 16 == 0) /* this check takes longer than all other checks */
		require(nbfw_plan_check(p, (size_t)nbfw_plan_length(p), scratch, &why) == 0,
			"%s size %u rank %u: %s", group_plans_text(alg), size, rank, why);
	for (uint32_t s = 0; s < p->nstep; s++) {
		const struct nbar_step *st = &nbfw_plan_steps(p)[s];
		const struct nbar_send *to = send + st->first_send;
		const struct nbar_recv *from = recv + st->first_slot;

		for (uint32_t i = 0; i < st->nsend; i++) {
			require(to[i].dst != rank, "%s size %u rank %u", group_plans_text(alg),
				size, rank);
			for (uint32_t j = 0; j < i; j++)
				require(to[i].dst != to[j].dst, "%s size %u rank %u",
					group_plans_text(alg), size, rank);
		}
		for (uint32_t i = 0; i < st->nslot; i++) {
			require(from[i].src != rank, "%s size %u rank %u", group_plans_text(alg),
				size, rank);
			for (uint32_t j = 0; j < i; j++)
				require(from[i].src != from[j].src, "%s size %u rank %u",
					group_plans_text(alg), size, rank);
		}
	}
}

static void check_set(struct nbfw_alg alg, uint32_t size)
{
	struct group_plans set = group_plans_generate(alg, size);

	for (uint32_t r = 0; r < size; r++)
		check_plan(alg, set.plan[r], size, r);
	require(group_plans_match(&set), "%s size %u", group_plans_text(alg), size);
	require(group_plans_spreads(&set, NULL, 0), "%s size %u", group_plans_text(alg), size);
	require(!is_tree(alg) || set.first_slot[size] == 2 * (size - 1), "%s size %u",
		group_plans_text(alg), size);
	group_plans_free(&set);
}

static void test_every_size_to_1024(void **state)
{
	uint32_t stride = unit_stride();

	group_plans_each (alg)
		for (uint32_t size = 1; size <= 1024; size += size > 128 ? stride : 1)
			check_set(alg, size);
}

/* Larger groups: the test makes all plans, but follows the arrival of only 64 ranks. */
static void test_large_sets(void **state)
{
	static const uint32_t sizes[] = { 1025, 4095, 4096, 4097, 15625, 16384, 16807, 24577 };
	struct rng rng = { unit_seed() };

	for (uint32_t i = 0; i < (unit_counted() ? 1 : sizeof(sizes) / sizeof(sizes[0])); i++) {
		group_plans_each (alg) {
			if (sizes[i] > nbfw_alg_row(alg.kind)->limit || (alg.n > 1 && alg.n % 5))
				continue;
			struct group_plans set = group_plans_generate(alg, sizes[i]);
			uint32_t column[64] = { 0, sizes[i] - 1 };

			for (uint32_t c = 2; c < 64; c++)
				column[c] = rng_below(&rng, sizes[i]);
			require(group_plans_match(&set), "%s size %u", group_plans_text(alg),
				sizes[i]);
			require(group_plans_spreads(&set, column, 64), "%s size %u",
				group_plans_text(alg), sizes[i]);
			group_plans_free(&set);
		}
	}
}

static struct nbar_plan *plan_of(struct nbfw_alg alg, uint32_t size, uint32_t rank, void *block)
{
	int32_t length = nbfw_plan_generate(alg, size, rank, block, GROUP_PLANS_BYTES_A_RANK);

	require(length > 0, "%s size %u rank %u", group_plans_text(alg), size, rank);
	return block;
}

/* Every signal of one rank has its counterpart at the other end. */
static void check_ends(struct nbfw_alg alg, uint32_t size, uint32_t rank)
{
	uint32_t mine[GROUP_PLANS_BYTES_A_RANK / 4], other[GROUP_PLANS_BYTES_A_RANK / 4];
	struct nbar_plan *p = plan_of(alg, size, rank, mine);

	check_plan(alg, p, size, rank);
	for (uint32_t i = 0; i < p->nsend; i++) {
		const struct nbar_send *s = &nbfw_plan_sends(p)[i];
		struct nbar_plan *q = plan_of(alg, size, s->dst, other);

		require(s->slot < q->nrecv && nbfw_plan_recvs(q)[s->slot].src == rank,
			"%s size %u rank %u send %u", group_plans_text(alg), size, rank, i);
	}
	for (uint32_t i = 0; i < p->nrecv; i++) {
		struct nbar_plan *q = plan_of(alg, size, nbfw_plan_recvs(p)[i].src, other);
		uint32_t n = 0;

		for (uint32_t j = 0; j < q->nsend; j++)
			n += nbfw_plan_sends(q)[j].dst == rank && nbfw_plan_sends(q)[j].slot == i;
		require(n == 1, "%s size %u rank %u slot %u", group_plans_text(alg), size, rank, i);
	}
}

static void test_sizes_to_a_million(void **state)
{
	struct rng rng = { unit_seed() };

	group_plans_each (alg) {
		for (uint32_t i = 0; i < 60 && !is_limited(alg); i++) {
			uint32_t two = UINT32_C(1) << (11 + i / 6);
			uint32_t size = i % 6 < 3 ? two - 1 + i % 6 : 1 + rng_below(&rng, 1u << 20);
			uint32_t half;

			size = size > NBAR_SIZE_MAX ? NBAR_SIZE_MAX : size;
			half = largest_power_of_two(size);
			check_ends(alg, size, 0);
			check_ends(alg, size, half - 1);
			check_ends(alg, size, size - half);
			check_ends(alg, size, size - 1);
			for (uint32_t j = 0; j < 8; j++)
				check_ends(alg, size, rng_below(&rng, size));
		}
	}
}

static struct nbfw_alg ways(uint32_t n)
{
	return (struct nbfw_alg){ NBFW_ALG_DISSEMINATION, n };
}

static uint32_t ways_max(void)
{
	return nbfw_alg_row(NBFW_ALG_DISSEMINATION)->high;
}

/*
 * All ranks of a dissemination have the same steps relative to their own rank (check_ends compares
 * samples). So one row of the knowledge matrix, by offsets, stands for all rows. That proves sizes
 * whose whole matrix would not fit into memory.
 */
static void check_offsets(uint32_t n, uint32_t size)
{
	uint32_t block[GROUP_PLANS_BYTES_A_RANK / 4];
	struct nbar_plan *p = plan_of(ways(n), size, 0, block);
	uint8_t *known = calloc(size, 1), *next = calloc(size, 1);

	known[0] = 1;
	for (uint32_t s = 0; s < p->nstep; s++) {
		const struct nbar_step *st = &nbfw_plan_steps(p)[s];

		memcpy(next, known, size);
		for (uint32_t i = st->first_slot; i < st->first_slot + st->nslot; i++) {
			uint32_t src = nbfw_plan_recvs(p)[i].src;

			for (uint32_t at = 0; at < size - src; at++)
				next[src + at] |= known[at];
			for (uint32_t at = size - src; at < size; at++)
				next[src + at - size] |= known[at];
		}
		memcpy(known, next, size);
	}
	require(!memchr(known, 0, size), "n %u size %u", n, size);
	free(known);
	free(next);
}

static void test_dissemination_spreads_to_a_million(void **state)
{
	for (uint32_t n = 1; n <= ways_max(); n++)
		check_offsets(n, NBAR_SIZE_MAX - n % 2);
}

/* All exact powers, also those where a floating-point logarithm rounds up by mistake. */
static void test_rounds_are_exact(void **state)
{
	static const uint32_t known[][3] = {
		{ 4, 125, 3 }, { 4, 15625, 6 }, { 5, 216, 3 }, { 6, 16807, 5 }
	};
	uint32_t block[GROUP_PLANS_BYTES_A_RANK / 4];

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(plan_of(ways(known[i][0]), known[i][1], 0, block)->nstep,
				 known[i][2]);
	for (uint32_t n = 1; n <= ways_max(); n++) {
		uint32_t power = n + 1;

		for (uint32_t k = 1; power < NBAR_SIZE_MAX; k++, power *= n + 1) {
			assert_int_equal(plan_of(ways(n), power, 0, block)->nstep, k);
			assert_int_equal(plan_of(ways(n), power + 1, 0, block)->nstep, k + 1);
		}
	}
}

/* The matrix test must find errors: in these sets every signal is needed, so the test must fail
 * without any one of them. */
static void test_missing_signal_is_no_barrier(void **state)
{
	static const struct {
		const char *alg;
		uint32_t size;
	} sets[] = { { "pairwise", 8 },         { "pairwise", 13 },        { "pairwise", 16 },
		     { "dissemination:1", 8 },  { "dissemination:1", 16 }, { "dissemination:2", 9 },
		     { "dissemination:2", 27 }, { "dissemination:3", 16 }, { "mcs", 23 },
		     { "tournament", 13 },      { "binomial", 13 },        { "linear", 6 },
		     { "tree:3", 23 } };

	for (uint32_t k = 0; k < sizeof(sets) / sizeof(sets[0]); k++) {
		struct nbfw_alg alg;
		uint32_t n;

		assert_int_equal(nbfw_alg_parse(sets[k].alg, &alg), 0);

		struct group_plans set = group_plans_generate(alg, sets[k].size);

		assert_true(group_plans_is_barrier(&set));
		struct edge *edge = group_plans_edges(&set, &n);

		for (uint32_t i = 0; i < n; i++) {
			struct edge gone = edge[i];

			edge[i] = edge[n - 1];
			struct group_plans less = group_plans_from_edges(set.size, edge, n - 1);

			require(group_plans_match(&less), "%s size %u", sets[k].alg, sets[k].size);
			require(!group_plans_spreads(&less, NULL, 0), "%s size %u without %u>%u",
				sets[k].alg, sets[k].size, gone.src, gone.dst);
			group_plans_free(&less);
			edge[i] = gone;
		}
		free(edge);
		group_plans_free(&set);
	}
}

static bool edges_are_barrier(uint32_t size, const struct edge *edge, uint32_t n)
{
	struct group_plans set = group_plans_from_edges(size, edge, n);
	bool yes = group_plans_match(&set) && group_plans_spreads(&set, NULL, 0);

	group_plans_free(&set);
	return yes;
}

static void test_other_broken_sets(void **state)
{
	struct edge linear[] = { { 1, 0, 0, 0 }, { 2, 0, 0, 0 }, { 0, 1, 1, 0 }, { 0, 1, 2, 0 } };
	struct edge circle[] = { { 0, 1, 1, 0 }, { 1, 1, 0, 0 } };
	struct edge pair[] = { { 0, 0, 1, 0 }, { 1, 0, 0, 0 } };

	assert_true(edges_are_barrier(3, linear, 4));
	linear[3].src_step = 0; /* rank 2 is released before the root has any token */
	assert_false(edges_are_barrier(3, linear, 4));
	assert_true(edges_are_barrier(2, pair, 2));
	assert_false(edges_are_barrier(2, circle, 2)); /* each rank waits before it sends */
	assert_false(edges_are_barrier(2, pair, 1));
	assert_false(edges_are_barrier(3, pair, 2)); /* rank 2 takes no part */

	struct group_plans set = group_plans_generate(ways(1), 8);
	struct nbar_send *send = (struct nbar_send *)nbfw_plan_sends(set.plan[3]);

	assert_true(group_plans_match(&set));
	send[0].slot = 1; /* two signals for one slot, no signal for another */
	assert_false(group_plans_match(&set));
	send[0].slot = 99;
	assert_false(group_plans_match(&set));
	group_plans_free(&set);
}

UNIT_MAIN(NULL, NULL, UNIT(test_every_size_to_1024), UNIT(test_large_sets),
	  UNIT(test_sizes_to_a_million), UNIT(test_dissemination_spreads_to_a_million),
	  UNIT(test_rounds_are_exact), UNIT(test_missing_signal_is_no_barrier),
	  UNIT(test_other_broken_sets))
