/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile_rounds.h - which pairs of nodes `nbar-lab profile` measures at the same time. Pure.
 */
#ifndef NBAR_TUNE_PROFILE_ROUNDS_H
#define NBAR_TUNE_PROFILE_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the partner of node i in a round of the 1-factorisation of n nodes; i itself: no partner.
 * There are n - 1 rounds, or n if n is odd, and each pair meets in exactly one round. */
uint32_t profile_partner(uint32_t n, uint32_t round, uint32_t i);

/*
 * Divides a round into parts: the pairs of a part share no processor. other[i]: the partner of node
 * i, or i itself; a node without a partner is measured alone if `single`, else never. owner[i]: the
 * processor of node i. Writes the part of each node (UINT32_MAX: never), and returns the number of
 * parts.
 */
uint32_t profile_parts(const uint32_t *owner, const uint32_t *other, uint32_t n, bool single,
		       uint32_t *part);

#endif
