/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sort.c - the heap sort of the firmware core, against qsort(). */
#include "sort.h"
#include "unit/unit.h"

#define KEYS_MAX 5000u

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y ? 1 : 0;
}

static void compare(const uint64_t *key, uint32_t n, uint64_t seed)
{
	static uint64_t ours[KEYS_MAX], theirs[KEYS_MAX];

	memcpy(ours, key, n * sizeof(key[0]));
	memcpy(theirs, key, n * sizeof(key[0]));
	nbfw_sort(ours, n);
	qsort(theirs, n, sizeof(theirs[0]), by_value);
	require(!memcmp(ours, theirs, n * sizeof(key[0])), "%u keys, NBAR_SEED=%llu", n,
		(unsigned long long)seed);
}

static void test_orders(void **state)
{
	static uint64_t rising[KEYS_MAX], falling[KEYS_MAX], same[KEYS_MAX];

	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		rising[i] = i;
		falling[i] = UINT64_MAX - i;
		same[i] = 7;
	}
	for (uint32_t n = 0; n < 70; n++) {
		compare(rising, n, 0);
		compare(falling, n, 0);
		compare(same, n, 0);
	}
	compare(rising, KEYS_MAX, 0);
	compare(falling, KEYS_MAX, 0);
}

static void test_random(void **state)
{
	static uint64_t key[KEYS_MAX];

	for (uint64_t seed = unit_seed(), last = seed + 300; seed != last; seed++) {
		struct rng rng = { seed };
		uint32_t n = rng_below(&rng, 300);
		bool few = rng_percent(&rng, 50); /* many keys are equal */

		for (uint32_t i = 0; i < n; i++)
			key[i] = few ? rng_below(&rng, 20) : rng_next(&rng);
		compare(key, n, seed);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_orders), UNIT(test_random))
