/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_arena.c - the memory of the bare-metal NIC: blocks do not overlap, freed memory can be used
 * again completely, and a full arena refuses.
 */
#include "arena.h"
#include "unit/unit.h"

#define BYTES 65536u
#define BLOCKS 100u

static _Alignas(16) uint8_t memory[BYTES];

/* Random sizes and orders; each block is filled with its own byte and checked when it is freed. */
static void blocks_keep_to_themselves(void **state)
{
	uint8_t *block[BLOCKS] = { NULL };
	size_t size[BLOCKS], refused = 0;
	struct rng r = { unit_seed() };
	struct arena a;

	arena_init(&a, memory, memory + BYTES);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t k = rng_below(&r, BLOCKS);

		if (block[k]) {
			for (size_t n = 0; n < size[k]; n++)
				require(block[k][n] == k, "block %u, step %u", k, i);
			arena_free(&a, block[k]);
			block[k] = NULL;
			continue;
		}
		size[k] = rng_below(&r, 2500);
		block[k] = arena_alloc(&a, size[k]);
		if (!block[k]) {
			refused++;
			continue;
		}
		assert_int_equal((uintptr_t)block[k] % sizeof(uint64_t), 0);
		assert_true(block[k] >= memory && block[k] + size[k] <= memory + BYTES);
		memset(block[k], (int)k, size[k]);
	}
	assert_true(refused > 0);
	for (uint32_t k = 0; k < BLOCKS; k++)
		if (block[k])
			arena_free(&a, block[k]);
	/* All memory is one piece again. */
	assert_int_equal(a.left, BYTES);
	assert_non_null(arena_alloc(&a, BYTES - 16));
}

static void a_full_arena_refuses(void **state)
{
	struct arena a;
	void *all;

	arena_init(&a, memory, memory + 1024);
	assert_null(arena_alloc(&a, 1024));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 8));
	all = arena_alloc(&a, 1024 - 8);
	assert_non_null(all);
	assert_null(arena_alloc(&a, 0));
	arena_free(&a, all);
	assert_non_null(arena_alloc(&a, 0));
}

UNIT_MAIN(NULL, NULL, UNIT(blocks_keep_to_themselves), UNIT(a_full_arena_refuses))
