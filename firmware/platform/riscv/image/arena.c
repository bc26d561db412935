/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.c - memory, bounded by the region that the link script leaves.
 *
 * Called for requests, never on the path from token to completion. The list of free pieces has at
 * most one more entry than there are blocks.
 */
#include "arena.h"

#include <stdint.h>

struct arena_block {
	size_t size;              /* of the whole piece, this header included */
	struct arena_block *next; /* while it is free */
};

#define HEADER offsetof(struct arena_block, next)
#define GRAIN sizeof(struct arena_block) /* pieces are multiples of it */

void arena_init(struct arena *a, void *begin, void *end)
{
	struct arena_block *all = begin;

	all->size = ((uintptr_t)end - (uintptr_t)begin) / GRAIN * GRAIN;
	all->next = NULL;
	a->free = all;
	a->left = all->size;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block **at = &a->free, *b;
	size_t need;

	if (size > a->left)
		return NULL;
	need = (size + HEADER + GRAIN - 1) / GRAIN * GRAIN;
	while (*at && (*at)->size < need)
		at = &(*at)->next;
	b = *at;
	if (!b)
		return NULL;
	if (b->size == need) {
		*at = b->next;
	} else { /* the end of the piece stays free */
		struct arena_block *rest = (void *)((uint8_t *)b + need);

		rest->size = b->size - need;
		rest->next = b->next;
		*at = rest;
		b->size = need;
	}
	a->left -= need;
	return (uint8_t *)b + HEADER;
}

/* Merges a free piece with the next free piece, if the two are adjacent. */
static void merge(struct arena_block *b)
{
	if (b->next && (uint8_t *)b + b->size == (uint8_t *)b->next) {
		b->size += b->next->size;
		b->next = b->next->next;
	}
}

void arena_free(struct arena *a, void *block)
{
	struct arena_block *b = (void *)((uint8_t *)block - HEADER), *before = NULL;
	struct arena_block *at = a->free;

	a->left += b->size;
	for (; at && at < b; at = at->next)
		before = at;
	b->next = at;
	if (before)
		before->next = b;
	else
		a->free = b;
	merge(b);
	if (before)
		merge(before);
}
