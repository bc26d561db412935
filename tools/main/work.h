/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.h - the computation of a host between barriers, as times.
 */
#ifndef NBAR_TOOLS_WORK_H
#define NBAR_TOOLS_WORK_H

#include <stdint.h>

/*
 * Before each barrier, a host computes one step; after the last step comes the first step again.
 * The time of each step varies at random, with a uniform distribution, by up to the fraction
 * `vary`. The times depend only on seed, rank and barrier, so NIC-based and host-based runs have
 * equal times.
 *
 * A host "computes": it calls no function of the library until a given time. A host that runs the
 * protocol does not continue the protocol during this time. Nodes that share a core compute at the
 * same time, as if each had its own core.
 */
struct bench_work {
	const uint32_t *step_ns;
	uint32_t nstep;
	double vary;
	uint64_t seed;
};

/* The time that a host computes before barrier i (from 0). */
uint64_t bench_work_ns(const struct bench_work *w, uint32_t rank, uint32_t i);

#endif
