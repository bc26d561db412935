/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_to_many.h - what the files of `nbar-lab one-to-many` share.
 *
 * one_to_many.c       the command: options, runs, the model, results
 * one_to_many_host.c  what a host does in a 1:P ping-pong
 * one_to_many_tune.c  which algorithm is best at which size
 */
#ifndef NBAR_TOOLS_ONE_TO_MANY_H
#define NBAR_TOOLS_ONE_TO_MANY_H

#include "bench_host.h"
#include "lop.h"

#define ONE_TO_MANY_PEERS_MAX 512u
#define ONE_TO_MANY_WAYS 8u /* n that the model may suggest */

/* bench_figures.extra of a ping-pong, all of node 0, in us. */
enum { PING_RTT_MIN, PING_RTT_MEDIAN, PING_SENT_MEDIAN };

/* Runs ping-pongs instead of barriers: rank 0 sends to all other ranks, which answer at once. */
int one_to_many_drive(const struct bench_host *h, struct bench_member *member);

struct one_to_many {
	struct bench_options opt; /* nodes and alg: of the tuning */
	uint32_t peers;           /* the greatest P */
	uint32_t barriers;        /* barriers of a run of the tuning */
	bool tune;
	struct bench_point *ping, *barrier;
	uint32_t nbarrier;
	struct lop model;
};

/* The n of an n-way dissemination; 0: another algorithm. */
uint32_t one_to_many_ways(const char *alg);

/* The point of this size with the least median. (Other work of the machine changes a median less
 * than a mean.) NULL: no point of this size was measured. */
const struct bench_point *one_to_many_best(const struct one_to_many *t, uint32_t size,
					   enum bench_where where);

/* Adds rows and notes of the tuning. */
void one_to_many_report_tuned(const struct one_to_many *t, struct result *r);

#endif
