/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.c - see stats.h. Pure.
 */
#include "stats.h"

#include <math.h>
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

double stats_percentile(double *value, size_t n, double q)
{
	double exact = q * (double)n;
	size_t at = (size_t)exact;

	qsort(value, n, sizeof(*value), by_value);
	if ((double)at < exact || !at)
		at++;
	return value[(at < n ? at : n) - 1];
}

/*
 * The interval from the k-th least to the k-th greatest of n values (k from 1) does not cover the
 * median if fewer than k values lie on one side of the median. The probability of this is
 * 2 P(B < k), where B is binomial with n and 1/2.
 */
double stats_median_interval(double *value, size_t n, double level, double *low, double *high)
{
	double term = exp((double)n * log(0.5)), below = 0, covered = 1 - 2 * term;
	size_t k = 1;

	qsort(value, n, sizeof(*value), by_value);
	for (size_t next = 1; 2 * next <= n; next++) {
		/* term = P(B = next - 1) */
		below += term;
		if (1 - 2 * below < level)
			break;
		k = next;
		covered = 1 - 2 * below;
		term *= (double)(n - next + 1) / (double)next;
	}
	*low = value[k - 1];
	*high = value[n - k];
	return covered > 0 ? covered : 0;
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

bool stats_line(const double *x, const double *y, size_t n, double *intercept, double *slope)
{
	double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, d;

	for (size_t i = 0; i < n; i++) {
		double weight = 1 / (y[i] * y[i]);

		w += weight;
		wx += weight * x[i];
		wy += weight * y[i];
		wxx += weight * x[i] * x[i];
		wxy += weight * x[i] * y[i];
	}
	d = w * wxx - wx * wx;
	if (!(d > 0))
		return false;
	*slope = (w * wxy - wx * wy) / d;
	*intercept = (wy - *slope * wx) / w;
	return true;
}
