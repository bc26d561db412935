/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shmem.c - barriers of OpenSHMEM (shmem_barrier_all): after the barrier, each processing element
 * reads the value that its predecessor has written before the barrier.
 */
#include <shmem.h>
#include <stdio.h>

#include "../oracle.h"

#define ROUNDS 100

static long word;

int main(void)
{
	unsigned long long by[3] = { 0 };
	int me, size, early = 0;

	shmem_init();
	me = shmem_my_pe();
	size = shmem_n_pes();
	for (long i = 1; i <= ROUNDS; i++) {
		shmem_long_p(&word, i, (me + 1) % size);
		shmem_barrier_all();
		early += word != i;
		shmem_barrier_all();
	}
	oracle_counters(by);
	printf("element %d: %d early, %llu offloaded\n", me, early, by[0]);
	fflush(stdout);
	shmem_finalize();
	return 0;
}
