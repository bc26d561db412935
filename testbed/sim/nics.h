/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics.h - a simulation as in sim.h, but a whole NIC (libnbnic.a) for each member, with one host.
 */
#ifndef TESTBED_SIM_NICS_H
#define TESTBED_SIM_NICS_H

#include "sim.h"

/* alg: the algorithm of the plans; of another name, hosts upload the plans. pass: time of a poll
 * pass without frames. */
void sim_nics_run(const struct sim_setup *setup, const char *alg, sim_time pass,
		  struct sim_report *out);

/* The plan of a member with the original ranks, in memory that the caller frees. NULL: no memory.
 */
struct nbar_plan *sim_plan_plain(const struct sim_plans *p, uint32_t member);

#endif
