/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile_rounds.h - which pairs of nodes `nbar profile` measures at the same time. Pure.
 */
#ifndef NBAR_TUNE_PROFILE_ROUNDS_H
#define NBAR_TUNE_PROFILE_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* Node i's partner in a round of the 1-factorisation of n nodes; i itself: it has none. There are
 * n - 1 rounds, or n if n is odd, and each pair meets in one of them. */
uint32_t profile_partner(uint32_t n, uint32_t round, uint32_t i);

/*
 * Divides a round into parts: in a part, pairs share no processor. other[i] is node i's partner, i
 * itself if it has none; such nodes are measured alone if `single`, else never. Writes the part of
 * each node, UINT32_MAX for never, and returns the number of parts. owner[i]: what node i runs on.
 */
uint32_t profile_parts(const uint32_t *owner, const uint32_t *other, uint32_t n, bool single,
		       uint32_t *part);

#endif
