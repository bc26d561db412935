/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist.c - see hist.h. A bench calls hist_add between two measured barriers, so hist_add must touch
 * few cache lines and never fail.
 */
#include "hist.h"

static uint32_t bucket_of(uint64_t value)
{
	if (value < HIST_SUB)
		return (uint32_t)value;
	uint32_t shift = 63u - (uint32_t)__builtin_clzll(value) - HIST_SUB_BITS;

	/* value >> shift lies in [HIST_SUB, 2 * HIST_SUB). */
	return shift * HIST_SUB + (uint32_t)(value >> shift);
}

/* The value in the middle of a bucket. */
static uint64_t middle_of(uint32_t bucket)
{
	if (bucket < 2 * HIST_SUB)
		return bucket;
	uint32_t shift = bucket / HIST_SUB - 1;
	uint64_t first = (uint64_t)(bucket - shift * HIST_SUB) << shift;

	return first + (UINT64_C(1) << shift) / 2;
}

void hist_add(struct hist *h, uint64_t value)
{
	if (!h->total || value < h->min)
		h->min = value;
	if (!h->total || value > h->max)
		h->max = value;
	h->total++;
	h->sum += value;
	h->count[bucket_of(value)]++;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	if (!from->total)
		return;
	if (!to->total || from->min < to->min)
		to->min = from->min;
	if (!to->total || from->max > to->max)
		to->max = from->max;
	to->total += from->total;
	to->sum += from->sum;
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		to->count[i] += from->count[i];
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	double exact = q * (double)h->total;
	uint64_t want = (uint64_t)exact;
	uint64_t sum = 0;

	if ((double)want < exact || !want)
		want++;
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		sum += h->count[i];
		if (sum < want || !sum)
			continue;
		uint64_t value = middle_of(i);

		return value < h->min ? h->min : value > h->max ? h->max : value;
	}
	return h->total ? h->max : 0;
}
