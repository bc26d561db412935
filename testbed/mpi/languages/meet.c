/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet.c - the barriers of meet.F90 in C: programs of both languages may be in one job.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define ROUNDS 100

static int64_t entered[ROUNDS], left[ROUNDS];
static int early;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void compare(MPI_Comm comm)
{
	int64_t last[ROUNDS], first[ROUNDS];

	MPI_Allreduce(entered, last, ROUNDS, MPI_INT64_T, MPI_MAX, comm);
	MPI_Allreduce(left, first, ROUNDS, MPI_INT64_T, MPI_MIN, comm);
	for (int i = 0; i < ROUNDS; i++)
		early += first[i] < last[i];
}

static void blocking(MPI_Comm comm)
{
	for (int i = 0; i < ROUNDS; i++) {
		entered[i] = now();
		MPI_Barrier(comm);
		left[i] = now();
	}
	compare(comm);
}

static void nonblocking(MPI_Comm comm)
{
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request request;

		entered[i] = now();
		MPI_Ibarrier(comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		left[i] = now();
	}
	compare(comm);
}

int main(int argc, char **argv)
{
	MPI_Comm halves;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
	blocking(MPI_COMM_WORLD);
	blocking(halves);
	nonblocking(MPI_COMM_WORLD);
	MPI_Comm_free(&halves);
	printf("c rank %d: %d early\n", rank, early);
	return MPI_Finalize();
}
