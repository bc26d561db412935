/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.c - see work.h.
 */
#include "work.h"

#include "stats.h"

uint64_t bench_work_ns(const struct bench_work *w, uint32_t rank, uint32_t i)
{
	double step = w->step_ns[i % w->nstep];
	uint64_t state = w->seed ^ (uint64_t)rank << 32;

	if (w->vary <= 0)
		return w->step_ns[i % w->nstep];
	state = stats_random(&state) + i;
	/* 53 random bits: from -1 to 1. */
	double unit = (double)(stats_random(&state) >> 11) / 4503599627370496.0 - 1;

	return (uint64_t)(step * (1 + w->vary * unit) + 0.5);
}
