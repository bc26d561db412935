/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile.h - shared by the files of `nbar profile`: the measurements between hosts.
 *
 * tool_profile.c       the command: reads options, writes a profile
 * tool_profile_host.c  a host: runs barriers of two members with special plans, round by round
 */
#ifndef NBAR_TUNE_TOOL_PROFILE_H
#define NBAR_TUNE_TOOL_PROFILE_H

#include "bench_host.h"

#define MEASURE_MORE 8u /* messages of a plan that has more than one */

/* In memory that all host processes share. Times are in ns; matrices are by node. */
struct measure {
	uint32_t nodes, iters, warmup;
	bool by_host;    /* hosts run the barriers */
	double quantile; /* quantile of the barriers of a pair that is used as its time */
	uint32_t passed; /* count of arrivals of nodes at the points where all meet */
	uint32_t failed;
	double *self;    /* a barrier of one, on all nodes at once */
	double *alone;   /* the same while no other node of the processor has one */
	double *round;   /* i sends one message, j answers */
	double *more;    /* i sends MEASURE_MORE, j answers once */
	double *spread;  /* of round: 90th percentile / median */
	uint32_t *owner; /* by node: the process that runs its barriers */
	struct nbar_endpoint *endpoint;
};

/* The measurement of the run that begins; set before the hosts are started. */
extern struct measure *tool_measure;

/* As bench_config.drive. */
int tool_profile_drive(const struct bench_host *h, struct bench_member *member);

/* Node i's partner in a round of the 1-factorisation of n nodes; i itself: it has none. There are
 * n - 1 rounds, or n if n is odd, and each pair meets in one of them. */
uint32_t tool_profile_partner(uint32_t n, uint32_t round, uint32_t i);

/*
 * Divides a round into parts: in a part, pairs share no processor. other[i] is node i's partner, i
 * itself if it has none; such nodes are measured alone if `single`, else never. Writes the part of
 * each node, UINT32_MAX for never, and returns the number of parts. owner[i]: what node i runs on.
 */
uint32_t tool_profile_parts(const uint32_t *owner, const uint32_t *other, uint32_t n, bool single,
			    uint32_t *part);

#endif
