/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.h - what the parts of the MPI oracle share: who has entered which barrier.
 *
 * The truth is in memory that all ranks of one machine share (a file), so it does not depend on the
 * tested barriers. A rank writes that it has entered before it calls the barrier. A rank that
 * leaves the barrier checks that all members have entered.
 */
#ifndef TESTBED_MPI_ORACLE_H
#define TESTBED_MPI_ORACLE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "extensions.h"

#define LANES 8 /* parallel sequences of barriers: one per thread */

struct oracle {
	int rank, size;
	uint64_t *entered; /* [LANES][size], eight words each: one cache line per rank */
	uint64_t bad;      /* errors that this rank has seen */
	bool by_nic;       /* nbar must offload communicators of all ranks */
	uint32_t random;   /* state of oracle_random, the same on all ranks */
	uint64_t records;  /* records of nbar's component that it has fetched since MPI_Init */
};
extern struct oracle oracle;

/* This rank enters barrier `step` of a lane. Steps only grow. */
void oracle_enter(int lane, uint64_t step);

/* Counts every member that has not entered. ranks: the n members, by their ranks in
 * MPI_COMM_WORLD. */
void oracle_leave(int lane, uint64_t step, const int *ranks, int n);

/* Ranks of the members in MPI_COMM_WORLD. The caller frees the array. */
int *oracle_members(MPI_Comm comm, int *n);

/* If good is false, counts an error, and prints it on stderr (only the first few errors). */
void oracle_want(bool good, const char *what, uint64_t where);

/* Runs the first blocking barriers of a communicator. After them nbar runs its barriers. */
void oracle_settle(MPI_Comm comm);

/* A random number 0..n-1. All ranks draw the same sequence. */
uint32_t oracle_random(uint32_t n);

/* Gets nbar's counters of this rank: barriers offloaded, within the host, by fallback. False: nbar
 * is not loaded. */
bool oracle_counters(unsigned long long out[3]);

/* As oracle_counters: allreduces of few bytes, offloaded and by the MPI. */
bool oracle_allreduces(unsigned long long out[2]);

/* The tests. n is the number N of the argument TEST=N: barriers, communicators, or a rank. */
void test_blocking(int n);
void test_nonblocking(int n);
void test_outstanding(int n);
void test_mixed(int n);
void test_late(int n);
void test_allreduce(int n);
void test_persistent(int n);
void test_split(int n);
void test_storm(int n);
void test_alive(int n);
void test_pairs(int n);
void test_short(int n);
void test_records(int n);
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
