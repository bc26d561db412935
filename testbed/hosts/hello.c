/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.c - an MPI program that shows a cluster: where each rank runs, whether messages arrive
 * unchanged, and how long a barrier of the MPI takes. Built once for each MPI; run by
 * test-cluster.sh and by hand.
 *
 *   hello [ITERATIONS]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP 100
#define WORDS 100000

/* Each rank sends a large message to the next; returns how many words arrived wrong. */
static int exchange(int rank, int size)
{
	unsigned int *out = malloc(WORDS * sizeof(*out)), *in = calloc(WORDS, sizeof(*in));
	unsigned int from = (unsigned int)((rank + size - 1) % size);
	int wrong = 0;

	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (unsigned int i = 0; i < WORDS; i++)
		out[i] = i * 2654435761u + (unsigned int)rank;
	MPI_Sendrecv(out, WORDS, MPI_UNSIGNED, (rank + 1) % size, 0, in, WORDS, MPI_UNSIGNED,
		     (int)from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (unsigned int i = 0; i < WORDS; i++)
		wrong += in[i] != i * 2654435761u + from;
	free(out);
	free(in);
	return wrong;
}

/* Mean time of n consecutive barriers, in us. Rank 0 returns the largest mean of all ranks. */
static double barrier_us(int n)
{
	double begin, mean, largest = 0;

	for (int i = 0; i < WARM_UP; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < n; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	mean = (MPI_Wtime() - begin) / n * 1e6;
	MPI_Reduce(&mean, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return largest;
}

/* Number of ranks that can share memory with this rank, according to the MPI. */
static int ranks_here(void)
{
	MPI_Comm here;
	int n;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &n);
	MPI_Comm_free(&here);
	return n;
}

int main(int argc, char **argv)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "", *names = NULL;
	int rank, size, length, wrong, all_wrong = 0, near, *nears = NULL;
	int iterations = argc > 1 ? atoi(argv[1]) : 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(name, &length);
	near = ranks_here();
	if (rank == 0) {
		names = calloc((size_t)size, sizeof(name));
		nears = calloc((size_t)size, sizeof(*nears));
		if (!names || !nears)
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Gather(name, sizeof(name), MPI_CHAR, names, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Gather(&near, 1, MPI_INT, nears, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int r = 0; rank == 0 && r < size; r++)
		printf("rank %d of %d on %s, %d there\n", r, size, names + r * (int)sizeof(name),
		       nears[r]);
	wrong = exchange(rank, size);
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("words that arrived wrong: %d\n", all_wrong);
	if (iterations > 0) {
		double us = barrier_us(iterations);

		if (rank == 0)
			printf("barrier of %d: %.2f us\n", size, us);
	}
	free(names);
	free(nears);
	MPI_Finalize();
	return all_wrong != 0;
}
