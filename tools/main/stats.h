/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.h - the statistics that the tools need.
 */
#ifndef NBAR_TOOLS_STATS_H
#define NBAR_TOOLS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The median of n values; sorts the values. n must not be 0. */
double stats_median(double *value, size_t n);

/* Fits a line to n points: the sum of the squared relative errors is least. All y must be above 0.
 * False: all points have the same x. */
bool stats_line(const double *x, const double *y, size_t n, double *intercept, double *slope);

/* The q-quantile (q from 0 to 1): the least of the n values v such that at least n * q values are
 * at most v. Sorts the values. */
double stats_percentile(double *value, size_t n, double q);

/*
 * A confidence interval of the median. The values must be independent; their distribution may be
 * any (Hahn and Meeker 1991). The interval is the narrowest symmetric pair of order statistics that
 * covers the median with at least `level`. If n is too small for any pair (below 6 for 0.95), the
 * interval is the least and the greatest value. Sorts the values. Returns the coverage.
 */
double stats_median_interval(double *value, size_t n, double level, double *low, double *high);

/* A fast repeatable random number. *state is the seed; any value is good. */
uint64_t stats_random(uint64_t *state);

/* Puts the n numbers 0 .. n - 1 into a random order. */
void stats_shuffle(uint32_t *order, uint32_t n, uint64_t *state);

#endif
