/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sort.c - heap sort of 64-bit keys. See sort.h.
 *
 * Called by the check of plans and the set-up of groups. Must never recurse or allocate.
 */
#include "sort.h"

/* Moves the key at `root` down until the heap key[0, n) is in order below `root`. */
static void sift_down(uint64_t *key, uint32_t root, uint32_t n)
{
	uint64_t moved = key[root];

	for (uint32_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
		if (child + 1 < n && key[child] < key[child + 1])
			child++;
		if (key[child] <= moved)
			break;
		key[root] = key[child];
		root = child;
	}
	key[root] = moved;
}

void nbfw_sort(uint64_t *key, uint32_t n)
{
	for (uint32_t i = n / 2; i > 0; i--)
		sift_down(key, i - 1, n);
	for (uint32_t end = n; end > 1; end--) {
		uint64_t highest = key[0];

		key[0] = key[end - 1];
		key[end - 1] = highest;
		sift_down(key, 0, end - 1);
	}
}
