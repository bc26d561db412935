/* SPDX-License-Identifier: BSD-3-Clause */
/* arena.h - the memory of groups, ports and clients: one region, first fit, merged when freed. */
#ifndef BARED_ARENA_H
#define BARED_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *free; /* free pieces, by address; adjacent pieces are merged */
	size_t left;              /* bytes of all free pieces, headers included */
};

/* The region [begin, end), aligned for uint64_t. */
void arena_init(struct arena *a, void *begin, void *end);

/* Memory aligned for uint64_t, not cleared; NULL: no free piece is large enough. */
void *arena_alloc(struct arena *a, size_t size);

void arena_free(struct arena *a, void *block);

#endif
