/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * states.c - see states.h. Uses open addressing; no entry is ever removed.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "states.h"

#define SLOTS_FIRST 4096u

uint64_t mc_fingerprint(const void *data, size_t length)
{
	const uint8_t *at = data;
	uint64_t a = UINT64_C(0xcbf29ce484222325) ^ length, b = UINT64_C(0x9e3779b97f4a7c15);

	for (; length > 0; at += 8) {
		size_t n = length < 8 ? length : 8;
		uint64_t part = 0;

		memcpy(&part, at, n);
		length -= n;
		a = (a ^ part) * UINT64_C(0x9fb21c651e98df25);
		a ^= a >> 29;
		b = (b + part) * UINT64_C(0xbf58476d1ce4e5b9);
		b ^= b >> 32;
	}
	a ^= b * UINT64_C(0x94d049bb133111eb);
	a ^= a >> 31;
	return a ? a : 1;
}

void mc_states_begin(struct mc_states *s, uint64_t most)
{
	*s = (struct mc_states){ .most = most };
}

void mc_states_end(struct mc_states *s)
{
	free(s->slot);
	*s = (struct mc_states){ 0 };
}

/* The slot of a fingerprint, or the empty slot for it. The table always has an empty slot. */
static uint64_t *find(const struct mc_states *s, uint64_t fingerprint)
{
	uint64_t i = fingerprint * UINT64_C(0x9e3779b97f4a7c15);

	for (i &= s->nslot - 1; s->slot[i] && s->slot[i] != fingerprint;)
		i = (i + 1) & (s->nslot - 1);
	return &s->slot[i];
}

static bool grow(struct mc_states *s)
{
	struct mc_states more = { .nslot = s->nslot ? 2 * s->nslot : SLOTS_FIRST };

	more.slot = calloc(more.nslot, sizeof(more.slot[0]));
	if (!more.slot)
		return false;
	for (uint64_t i = 0; i < s->nslot; i++)
		if (s->slot[i])
			*find(&more, s->slot[i]) = s->slot[i];
	free(s->slot);
	s->slot = more.slot;
	s->nslot = more.nslot;
	return true;
}

enum mc_seen mc_states_add(struct mc_states *s, uint64_t fingerprint)
{
	uint64_t *slot;

	if (s->n >= s->nslot / 4 * 3 && !grow(s))
		return MC_FULL;
	slot = find(s, fingerprint);
	if (*slot)
		return MC_KNOWN;
	if (s->n == s->most)
		return MC_FULL;
	*slot = fingerprint;
	s->n++;
	return MC_NEW;
}
