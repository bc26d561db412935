/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.h - the little statistics that the tools need.
 */
#ifndef NBAR_TOOLS_STATS_H
#define NBAR_TOOLS_STATS_H

#include <stddef.h>
#include <stdint.h>

/* The middle of n values, or the mean of the two in the middle; sorts them. n must not be 0. */
double stats_median(double *value, size_t n);

/* A fast repeatable random number; *state is the seed and any value will do. */
uint64_t stats_random(uint64_t *state);

/* Puts the n numbers 0 .. n - 1 into a random order. */
void stats_shuffle(uint32_t *order, uint32_t n, uint64_t *state);

#endif
