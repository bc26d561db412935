/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.c - latency of the thread barrier next to those of OpenMP and POSIX, in one run.
 *
 * All three run in the same threads of one parallel region, in turn, several times; a figure is the
 * median over the turns of the mean of a barrier. Usage: bench-team [THREADS...]
 */
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "nbar.h"

#define TURNS_MAX 501

enum kind { NBAR, OPENMP, POSIX, KINDS };

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run(enum kind kind, struct nbar_team *team, pthread_barrier_t *posix, long n)
{
	switch (kind) {
	case NBAR:
		for (long i = 0; i < n; i++)
			nbar_team_barrier(team);
		return;
	case OPENMP:
		for (long i = 0; i < n; i++) {
#pragma omp barrier
		}
		return;
	case POSIX:
		for (long i = 0; i < n; i++)
			pthread_barrier_wait(posix);
		return;
	case KINDS:
		return;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A processor a thread, if there are as many: then no scheduler is in the figure. */
static void pin(int thread, int nthread)
{
	cpu_set_t all, one;
	int left = thread;

	if (sched_getaffinity(0, sizeof(all), &all) < 0 || CPU_COUNT(&all) < nthread)
		return;
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && left-- == 0)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static int measure(int nthread, int turns, long n)
{
	static double mean[KINDS][TURNS_MAX];
	struct nbar_team team;
	pthread_barrier_t posix;

	if (nbar_team_init(&team, (uint32_t)nthread, NULL) < 0) {
		fprintf(stderr, "%s\n", nbar_error());
		return 1;
	}
	pthread_barrier_init(&posix, NULL, (unsigned)nthread);
#pragma omp parallel num_threads(nthread)
	{
		cpu_set_t before;

		sched_getaffinity(0, sizeof(before), &before);
		pin(omp_get_thread_num(), nthread);
		for (int turn = -1; turn < turns; turn++) { /* the first one warms up */
			for (int kind = 0; kind < KINDS; kind++) {
				double start;

				run((enum kind)kind, &team, &posix, 100);
				start = now_ns();
				run((enum kind)kind, &team, &posix, n);
				if (omp_get_thread_num() == 0 && turn >= 0)
					mean[kind][turn] = (now_ns() - start) / (double)n;
			}
		}
		sched_setaffinity(0, sizeof(before), &before);
	}
	pthread_barrier_destroy(&posix);
	for (int kind = 0; kind < KINDS; kind++)
		qsort(mean[kind], (size_t)turns, sizeof(double), compare);
	printf("%7d %12.0f %12.0f %12.0f %12.1f %12.1f\n", nthread, mean[NBAR][turns / 2],
	       mean[OPENMP][turns / 2], mean[POSIX][turns / 2],
	       mean[OPENMP][turns / 2] / mean[NBAR][turns / 2],
	       mean[POSIX][turns / 2] / mean[NBAR][turns / 2]);
	return 0;
}

int main(int argc, char **argv)
{
	static char *usual[] = { "2", "4", "8", "16" };
	char **size = argc > 1 ? argv + 1 : usual;
	int nsize = argc > 1 ? argc - 1 : 4, rc = 0;

	omp_set_dynamic(0);
	printf("ns a barrier, median over the turns; x: how many times nbar's\n");
	printf("%7s %12s %12s %12s %12s %12s\n", "threads", "nbar_team", "omp", "pthread", "omp x",
	       "pthread x");
	for (int i = 0; i < nsize && rc == 0; i++) {
		int n = atoi(size[i]);

		if (n < 1) {
			fprintf(stderr, "bench-team: \"%s\" is no number of threads\n", size[i]);
			return 2;
		}
		/* With a processor each, turns so short that most are not disturbed by others. */
		rc = n <= omp_get_num_procs() ? measure(n, TURNS_MAX, 500) : measure(n, 21, 1000);
	}
	return rc;
}
