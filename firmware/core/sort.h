/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sort.h - sorts numbers in place.
 *
 * Called where a plan or a group is checked or built, never on the path of a token. Heap sort: the
 * time is O(n log n) for any input, the stack does not grow, and no other memory is needed.
 */
#ifndef NBFW_SORT_H
#define NBFW_SORT_H

#include <stdint.h>

/* Sorts n keys, the lowest first. */
void nbfw_sort(uint64_t *key, uint32_t n);

#endif
