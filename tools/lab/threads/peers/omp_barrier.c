/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * omp_barrier.c - measures the `omp barrier` of the compiler that built it.
 *
 * It is built once with each compiler, and run by `nbar-lab threads`. Usage: THREADS ITERATIONS
 * WARMUP LIMIT_MS
 */
#include <omp.h>
#include <stdio.h>

#include "thread_loop.h"

static void barrier(void *arg, uint32_t me)
{
	(void)arg;
	(void)me;
#pragma omp barrier
}

int main(int argc, char **argv)
{
	static struct thread_loop loop;
	int r = thread_loop_parse(&loop, argv + (argc > 0));
	int got = 0;

	if (r)
		return r;
	omp_set_dynamic(0);
#pragma omp parallel num_threads((int)loop.threads)
	{
		uint32_t me = (uint32_t)omp_get_thread_num();

		if (me == 0)
			got = omp_get_num_threads();
#pragma omp barrier
		if (got == (int)loop.threads) {
			thread_loop_pin(&loop, me);
			thread_loop_run(&loop, me, barrier, NULL);
		}
	}
	if (got != (int)loop.threads) {
		fprintf(stderr, "OpenMP gave %d threads instead of %u\n", got, loop.threads);
		return 1;
	}
	return thread_loop_print(&loop);
}
