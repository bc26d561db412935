/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread_loop.h - the loop that measures any thread barrier: of nbar_team or of a peer.
 *
 * `nbar-lab threads` uses this loop, and so do the small programs that it runs (OpenMP's barriers
 * need a program for each compiler). It needs only libc.
 */
#ifndef NBAR_TOOLS_THREAD_LOOP_H
#define NBAR_TOOLS_THREAD_LOOP_H

#include <stdint.h>

#define THREAD_LOOP_MAX 256u /* threads */

struct thread_loop {
	uint32_t threads, warmup;
	uint64_t iterations; /* wanted */
	uint64_t limit_ns;   /* approximate time limit of the measurement */
	/* For the loop. */
	uint64_t warmed, warm_ns;
	uint64_t measured; /* number of measured iterations, set after the warm-up */
	double mean_ns[THREAD_LOOP_MAX];
};

/* Each thread calls it: warms the barrier up, then measures it. */
void thread_loop_run(struct thread_loop *loop, uint32_t me, void (*barrier)(void *arg, uint32_t me),
		     void *arg);

/* Binds the calling thread to its own processor, if there are enough processors for all threads. */
void thread_loop_pin(const struct thread_loop *loop, uint32_t me);

/* Four numbers from argv: threads, iterations, warm-up, limit in ms. 0, or 2 and a message. */
int thread_loop_parse(struct thread_loop *loop, char **argv);

/* Prints a line "iterations mean_ns" per thread. 0, or 1 if the output cannot be written. */
int thread_loop_print(const struct thread_loop *loop);

#endif
