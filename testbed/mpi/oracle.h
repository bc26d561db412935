/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.h - what the parts of the MPI oracle share: who has entered which barrier.
 *
 * The truth is in memory that all ranks of one machine share (a file), so it is no part of what is
 * tested. A rank says that it has entered before it calls the barrier; whoever comes out looks
 * whether all members had.
 */
#ifndef TESTBED_MPI_ORACLE_H
#define TESTBED_MPI_ORACLE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "extensions.h"

#define LANES 8 /* sequences of barriers at once: one a thread */

struct oracle {
	int rank, size;
	uint64_t *entered; /* [LANES][size], eight words each: a cache line a rank */
	uint64_t bad;      /* what this rank has seen that must not be */
	uint32_t random;   /* the same on all ranks */
};
extern struct oracle oracle;

/* This rank enters barrier `step` of a lane. Steps only grow. */
void oracle_enter(int lane, uint64_t step);

/* Counts every member of comm (of ranks, n of them, in the world) that had not. */
void oracle_leave(int lane, uint64_t step, const int *ranks, int n);

/* Ranks in the world of the members; to be freed. */
int *oracle_members(MPI_Comm comm, int *n);

/* Counts as bad, and says on stderr where (a few times), if the condition does not hold. */
void oracle_want(bool good, const char *what, uint64_t where);

/* Blocking barriers, as many as it takes before nbar runs those of a communicator. */
void oracle_settle(MPI_Comm comm);

/* One at a time in all ranks, from the same beginning: 0..n-1. */
uint32_t oracle_random(uint32_t n);

/* What nbar has counted in this rank: offloaded, within the host, by fallback. False: it is not
 * there. */
bool oracle_counters(unsigned long long out[3]);

/* Tests; n is how many barriers, communicators or the like. */
void test_blocking(int n);
void test_nonblocking(int n);
void test_outstanding(int n);
void test_mixed(int n);
void test_late(int n);
void test_persistent(int n);
void test_split(int n);
void test_storm(int n);
void test_alive(int n);
void test_pairs(int n);
void test_short(int n);
void test_freed(int n);
void test_order(int n);
void test_rendezvous(int n);
void test_one_sided(int n);
void test_probe(int n);
void test_threads(int n);
void test_idle(int n);
void test_inter(int n);
void test_fails(int n);
void test_dies(int n);
void test_shrinks(int n);

#endif
