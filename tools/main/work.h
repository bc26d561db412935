/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.h - what a host computes between barriers, in times.
 */
#ifndef NBAR_TOOLS_WORK_H
#define NBAR_TOOLS_WORK_H

#include <stdint.h>

/*
 * What a host does before each barrier: it computes for a step, and after the last step begins
 * with the first again. Each host varies each step at random, evenly, by up to the fraction `vary`
 * of it; the times follow from seed, rank and barrier alone, so NIC- and host-based runs see the
 * same.
 *
 * To compute is to do nothing for the library until a time of the clock: a host that runs the
 * protocol lets it stand meanwhile, as it would if it computed. Nodes that share a core share it in
 * that time, so that they compute side by side, as on cores of their own.
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
