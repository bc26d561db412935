/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile.h - shared by the files of `nbar-lab profile`: the measurements between hosts.
 *
 * tool_profile.c       the command: reads options, writes a profile
 * tool_profile_host.c  a host: runs barriers of two members with special plans, round by round
 * tool_profile_flat.c  measures barriers of all hosts, several times
 * tool_profile_fit.c   fits the work of a step to the measured barriers of a profile
 * tool_profile_sample.c  selects the pairs that --sample measures; called through measure.sample
 */
#ifndef NBAR_TUNE_TOOL_PROFILE_H
#define NBAR_TUNE_TOOL_PROFILE_H

#include "bench_host.h"
#include "profile.h"
#include "profile_rounds.h"

#define MEASURE_MORE 8u /* messages of a plan that measures further messages */

/* Clusters of nodes. */
struct tool_profile_classes {
	uint32_t n;
	uint32_t *of;     /* by node: its cluster */
	uint32_t *centre; /* by cluster: its first node */
	uint32_t *second; /* by cluster: its second node; of a cluster of one, its first node */
};

/* What a host process needs to measure pairs. */
struct tool_profile_pairs;

/* In memory that all host processes share. Times are in ns; matrices are by node. */
struct measure {
	uint32_t nodes, iters, warmup;
	bool by_host;    /* hosts run the barriers */
	double quantile; /* the time of a pair is this quantile of its barriers */
	uint32_t passed; /* count of arrivals of nodes at the points where all meet */
	uint32_t failed;
	double *self;    /* a barrier of one member, while all nodes run such barriers */
	double *alone;   /* such a barrier while no other node of the processor runs one */
	double *round;   /* i sends one message, j answers */
	double *more;    /* i sends MEASURE_MORE messages, j answers once */
	double *spread;  /* 90th percentile / median of the barriers behind `round` */
	uint32_t *owner; /* by node: the process that runs its barriers */
	/* tool_profile_sample: measures clusters; NULL: all pairs. Hosts are forks, so the function
	 * has the same address in all hosts. */
	int (*sample)(struct tool_profile_pairs *pairs, struct tool_profile_classes *out);
	struct tool_profile_classes classes; /* written by the process of node 0 */
	struct nbar_endpoint *endpoint;
};

/* The measurement of this run; set it before the hosts are started. */
extern struct measure *tool_measure;

/* Measures one pair into a matrix of the measurement, while all other nodes are idle. The lower
 * node sends k messages; if swapped, the higher node sends them. All processes must call it. 0 or
 * an exit code. */
int tool_profile_pair(struct tool_profile_pairs *pairs, uint32_t i, uint32_t j, uint32_t k,
		      bool swapped, double *matrix);

/* Clusters the nodes and measures between clusters. All processes must call it; all find equal
 * clusters. The arrays of *out have room for all nodes. 0 or an exit code. */
int tool_profile_sample(struct tool_profile_pairs *pairs, struct tool_profile_classes *out);

/* Measures one run of an algorithm among all hosts, in seconds; *seconds is 0 if there is no time.
 * round: from 0. Returns 0 or an exit code. */
typedef int tool_profile_run(void *arg, struct nbfw_alg alg, uint32_t round, double *seconds);

/* Fills p->flat: the algorithms that nbar-lab tune would try. The fast algorithms run several
 * times, in rounds; the profile gets this quantile of the runs. 0 or an exit code. */
int tool_profile_flats(struct profile *p, double quantile, tool_profile_run *run, void *arg);

/* Sets p->step so that predictions are as near as possible to the measured barriers of the profile.
 * 0 or an exit code. */
int tool_profile_fit(struct profile *p);

/* For bench_config.drive. */
int tool_profile_drive(const struct bench_host *h, struct bench_member *member);

#endif
