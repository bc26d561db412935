/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.c - see stats.h. Pure.
 */
#include "stats.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_median(double *value, size_t n)
{
	qsort(value, n, sizeof(*value), by_value);
	return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t stats_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void stats_shuffle(uint32_t *order, uint32_t n, uint64_t *state)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)(stats_random(state) % i);
		uint32_t held = order[i - 1];

		order[i - 1] = order[j];
		order[j] = held;
	}
}
