/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rounds.c - the rounds of `nbar-lab profile`: each pair of nodes meets once, and pairs that
 * are measured at the same time share no node and no processor.
 */
#include "profile_rounds.h"
#include "unit/unit.h"

#define NODES_MAX 40

/* Node i runs on owner[i]. Returns the parts of all rounds. */
static uint32_t check_rounds(uint32_t n, const uint32_t *owner)
{
	uint32_t met[NODES_MAX][NODES_MAX] = { { 0 } }, all = 0;

	for (uint32_t round = 0; round < n - 1 + n % 2; round++) {
		uint32_t other[NODES_MAX], part[NODES_MAX];

		for (uint32_t i = 0; i < n; i++)
			other[i] = profile_partner(n, round, i);
		uint32_t parts = profile_parts(owner, other, n, false, part);

		all += parts;
		for (uint32_t i = 0; i < n; i++) {
			require(other[other[i]] == i && part[other[i]] == part[i], "%u of %u", i,
				n);
			require((part[i] == UINT32_MAX) == (other[i] == i), "%u of %u", i, n);
			met[i][other[i]]++;
			for (uint32_t k = 0; k < n; k++)
				require(part[i] == UINT32_MAX || part[k] != part[i] || k == i ||
						k == other[i] || owner[k] != owner[i],
					"%u and %u of %u", i, k, n);
		}
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++)
			require(i == k || met[i][k] == 1, "%u and %u of %u", i, k, n);
	return all;
}

static void test_rounds(void **state)
{
	struct rng rng = { unit_seed() };

	for (uint32_t n = 2; n <= NODES_MAX; n++) {
		uint32_t owner[NODES_MAX];

		for (uint32_t i = 0; i < n; i++)
			owner[i] = i;
		assert_int_equal(check_rounds(n, owner), n - 1 + n % 2); /* all at once */
		for (uint32_t i = 0; i < n; i++)
			owner[i] = 7;
		assert_int_equal(check_rounds(n, owner), n * (n - 1) / 2); /* one by one */
		for (uint32_t i = 0; i < n; i++)
			owner[i] = rng_below(&rng, 1 + n / 2);
		check_rounds(n, owner);
	}
}

/* Nodes that are measured alone: nodes of one processor go one after the other. */
static void test_single(void **state)
{
	const uint32_t owner[] = { 3, 3, 9, 3, 9 }, want[] = { 0, 1, 0, 2, 1 };
	const uint32_t other[] = { 0, 1, 2, 3, 4 };
	uint32_t part[5];

	assert_int_equal(profile_parts(owner, other, 5, true, part), 3);
	assert_memory_equal(part, want, sizeof(want));
	assert_int_equal(profile_parts(owner, other, 5, false, part), 0);
}

UNIT_MAIN(NULL, NULL, UNIT(test_rounds), UNIT(test_single))
