/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist.h - a histogram of times with a bounded relative error, as HDR histograms have.
 *
 * Log-linear: each power of two is cut into 64 buckets of equal width. Values below 128 are kept
 * exactly; for greater values, the error of a quantile is at most 1/128 (0.8 %). Count, sum, least
 * and greatest value are exact. Its size is fixed and it has no pointers, so it can be in shared
 * memory.
 */
#ifndef NBAR_TOOLS_HIST_H
#define NBAR_TOOLS_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 6u
#define HIST_SUB (1u << HIST_SUB_BITS)
#define HIST_BUCKETS ((64u - HIST_SUB_BITS + 1u) * HIST_SUB)

/* All bytes 0 is an empty histogram. */
struct hist {
	uint64_t total, sum;
	uint64_t min, max; /* not valid while total is 0 */
	uint64_t count[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t value);

/* Adds all of `from` to `to`. */
void hist_merge(struct hist *to, const struct hist *from);

/* The q-quantile (q from 0 to 1): the least value v such that at least a fraction q of all values
 * is at most v. 0 if the histogram is empty. */
uint64_t hist_quantile(const struct hist *h, double q);

#endif
