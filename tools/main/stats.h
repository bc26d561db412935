/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.h - the little statistics that the tools need.
 */
#ifndef NBAR_TOOLS_STATS_H
#define NBAR_TOOLS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The middle of n values, or the mean of the two in the middle; sorts them. n must not be 0. */
double stats_median(double *value, size_t n);

/* The line through n points with the least squares of relative errors: y > 0. False: there are not
 * two points that differ in x. */
bool stats_line(const double *x, const double *y, size_t n, double *intercept, double *slope);

/* The least of n values that the fraction q (0..1) of them do not exceed; sorts them. */
double stats_percentile(double *value, size_t n, double q);

/*
 * A confidence interval of the median that assumes nothing about how the values are distributed,
 * only that they are independent (Hahn and Meeker 1991): the narrowest symmetric pair of order
 * statistics that covers it with at least `level`. Sorts them. Returns the coverage, which is less
 * than level if n is too small for any pair (below 6 for 0.95); then it is least and greatest.
 */
double stats_median_interval(double *value, size_t n, double level, double *low, double *high);

/* A fast repeatable random number; *state is the seed and any value will do. */
uint64_t stats_random(uint64_t *state);

/* Puts the n numbers 0 .. n - 1 into a random order. */
void stats_shuffle(uint32_t *order, uint32_t n, uint64_t *state);

#endif
