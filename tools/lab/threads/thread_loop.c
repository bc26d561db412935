/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread_loop.c - see thread_loop.h. Only the measured barrier orders the data that the threads
 * exchange here.
 */
#include "thread_loop.h"

#include "nbar_host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WARM_PART 10u /* the warm-up may take 1/10 of the limit */

/* The number of iterations to measure, by the time of the last part of the warm-up; 0: continue the
 * warm-up. */
static uint64_t loop_decide(struct thread_loop *loop, uint64_t step, uint64_t ns)
{
	loop->warmed += step;
	loop->warm_ns += ns;
	if (loop->warmed < loop->warmup && loop->warm_ns < loop->limit_ns / WARM_PART)
		return 0;
	uint64_t fit = ns ? (uint64_t)((double)loop->limit_ns / (double)ns * (double)step)
			  : loop->iterations;

	fit = fit ? fit : 1;
	return fit < loop->iterations ? fit : loop->iterations;
}

void thread_loop_run(struct thread_loop *loop, uint32_t me, void (*barrier)(void *arg, uint32_t me),
		     void *arg)
{
	uint64_t n = 0, start;

	for (uint64_t step = 1; n == 0; step *= 2) {
		start = nbar_now_ns();
		for (uint64_t i = 0; i < step; i++)
			barrier(arg, me);
		if (me == 0)
			loop->measured = loop_decide(loop, step, nbar_now_ns() - start);
		barrier(arg, me);
		n = loop->measured;
		barrier(arg, me);
	}
	start = nbar_now_ns();
	for (uint64_t i = 0; i < n; i++)
		barrier(arg, me);
	loop->mean_ns[me] = (double)(nbar_now_ns() - start) / (double)n;
}

void thread_loop_pin(const struct thread_loop *loop, uint32_t me)
{
	cpu_set_t all, one;
	uint32_t left = me;

	if (sched_getaffinity(0, sizeof(all), &all) || (uint32_t)CPU_COUNT(&all) < loop->threads)
		return;
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && left-- == 0)
			CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

int thread_loop_parse(struct thread_loop *loop, char **argv)
{
	uint64_t value[4];

	for (int i = 0; i < 4; i++) {
		char *end = NULL;

		value[i] = argv[i] ? strtoull(argv[i], &end, 10) : 0;
		if (!argv[i] || end == argv[i] || *end) {
			fprintf(stderr, "wants THREADS ITERATIONS WARMUP LIMIT_MS; it is run by "
					"`nbar-lab threads`\n");
			return 2;
		}
	}
	if (value[0] == 0 || value[0] > THREAD_LOOP_MAX || value[1] == 0) {
		fprintf(stderr, "1 to %u threads, and at least one iteration\n", THREAD_LOOP_MAX);
		return 2;
	}
	*loop = (struct thread_loop){
		.threads = (uint32_t)value[0],
		.iterations = value[1],
		.warmup = (uint32_t)value[2],
		.limit_ns = value[3] * UINT64_C(1000000),
	};
	return 0;
}

int thread_loop_print(const struct thread_loop *loop)
{
	for (uint32_t i = 0; i < loop->threads; i++)
		printf("%llu %.3f\n", (unsigned long long)loop->measured, loop->mean_ns[i]);
	return fflush(stdout) ? 1 : 0;
}
