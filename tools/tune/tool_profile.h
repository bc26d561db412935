/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile.h - shared by the files of `nbar profile`: the measurements between hosts.
 *
 * tool_profile.c       the command: reads options, writes a profile
 * tool_profile_host.c  a host: runs barriers of two members with special plans, round by round
 * tool_profile_flat.c  measures barriers of all hosts, several times
 * tool_profile_fit.c   fits the work of a step to the measured barriers of a profile
 * tool_profile_sample.c  which pairs --sample measures; the host calls it by measure.sample
 */
#ifndef NBAR_TUNE_TOOL_PROFILE_H
#define NBAR_TUNE_TOOL_PROFILE_H

#include "bench_host.h"
#include "profile.h"
#include "profile_rounds.h"

#define MEASURE_MORE 8u /* messages of a plan that has more than one */

/* Clusters of nodes. */
struct tool_profile_classes {
	uint32_t n;
	uint32_t *of;     /* by node: its cluster */
	uint32_t *centre; /* by cluster: its first node */
	uint32_t *second; /* by cluster: another node of it, or the first one again */
};

/* What a host process needs to measure pairs. */
struct tool_profile_pairs;

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
	/* tool_profile_sample: measures clusters; NULL: all pairs. Hosts are forks, which have it
	 * at the same address. */
	int (*sample)(struct tool_profile_pairs *pairs, struct tool_profile_classes *out);
	struct tool_profile_classes classes; /* written by the process of node 0 */
	struct nbar_endpoint *endpoint;
};

/* The measurement of the run that begins; set before the hosts are started. */
extern struct measure *tool_measure;

/* Measures one pair, while all others are idle, into a matrix of the measurement: the lower node
 * sends k messages, or the higher one, if swapped. All processes must call it. 0 or an exit code.
 */
int tool_profile_pair(struct tool_profile_pairs *pairs, uint32_t i, uint32_t j, uint32_t k,
		      bool swapped, double *matrix);

/* Clusters the nodes and measures between clusters. All processes must call it, and find the same.
 * The arrays of *out have room for all nodes. 0 or an exit code. */
int tool_profile_sample(struct tool_profile_pairs *pairs, struct tool_profile_classes *out);

/* Measures one run of an algorithm among all hosts, in seconds; 0: it has no time. round: 0, 1, ...
 * 0 or an exit code. */
typedef int tool_profile_run(void *arg, struct nbfw_alg alg, uint32_t round, double *seconds);

/* Fills p->flat: the algorithms that nbar tune would try. The fast ones run several times, in
 * rounds; the profile gets this quantile of their runs. 0 or an exit code. */
int tool_profile_flats(struct profile *p, double quantile, tool_profile_run *run, void *arg);

/* Sets p->step so that predictions are as near as possible to the measured barriers of the profile.
 * 0 or an exit code. */
int tool_profile_fit(struct profile *p);

/* As bench_config.drive. */
int tool_profile_drive(const struct bench_host *h, struct bench_member *member);

#endif
