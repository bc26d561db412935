/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile_rounds.c - see profile_rounds.h. All processes of a run call these functions, and must
 * get the same results.
 */
#include "profile_rounds.h"

uint32_t profile_partner(uint32_t n, uint32_t round, uint32_t i)
{
	uint32_t even = n + n % 2, all = even - 1, j;

	if (i == all)
		j = round;
	else if (2 * round % all == 2 * i % all)
		j = all;
	else
		j = (2 * round + all - i) % all;
	return j < n ? j : i;
}

uint32_t profile_parts(const uint32_t *owner, const uint32_t *other, uint32_t n, bool single,
		       uint32_t *part)
{
	uint32_t parts = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = other[i], at = 0;

		if (j < i)
			continue; /* this node already has the part of its partner */
		/* Takes the first part after the parts of earlier pairs on the same processors. */
		for (uint32_t k = 0; k < i; k++) {
			bool shares = owner[k] == owner[i] || owner[k] == owner[j] ||
				      owner[other[k]] == owner[i] || owner[other[k]] == owner[j];

			if (shares && part[k] != UINT32_MAX && part[k] >= at)
				at = part[k] + 1;
		}
		part[i] = part[j] = i == j && !single ? UINT32_MAX : at;
		if (part[i] != UINT32_MAX && at + 1 > parts)
			parts = at + 1;
	}
	return parts;
}
