/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuned_mpi.c - calls the barrier that `nbar-lab tune --emit c` wrote, or MPI_Barrier: barriers in
 * which each rank in turn is late, and then ROUNDS barriers in a row.
 *
 *   tuned_mpi FILE LATE_MS ROUNDS [mpi]
 *
 * When a rank leaves a barrier, every rank must have entered it. Ranks record their barriers in
 * FILE, which all map. If FILE is "-", because the hosts share no file, each rank must instead
 * spend at least the delay of the late rank in the barrier. Prints the mean time of the barriers in
 * a row.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int nbar_tuned_barrier(MPI_Comm comm);

#define FIRST 10 /* barriers before the test; a glue leaves the first barriers to the MPI */

static int rank, size;
static volatile unsigned int *entered; /* by rank; NULL: hosts share no file */
static unsigned int round_now;
static int by_mpi;

static void bad(const char *what)
{
	fprintf(stderr, "rank %d of %d, barrier %u: %s\n", rank, size, round_now, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void barrier(void)
{
	round_now++;
	if (entered)
		__atomic_store_n(&entered[rank], round_now, __ATOMIC_SEQ_CST);
	if ((by_mpi ? MPI_Barrier(MPI_COMM_WORLD) : nbar_tuned_barrier(MPI_COMM_WORLD)) !=
	    MPI_SUCCESS)
		bad("it failed");
	for (int r = 0; entered && r < size; r++)
		if (__atomic_load_n(&entered[r], __ATOMIC_SEQ_CST) - round_now > 1)
			bad("some rank had not entered it");
}

/* Each rank in turn is late by ms; all ranks check that they have waited for it. */
static void late_ones(long ms)
{
	for (int late = 0; late < size; late++) {
		double begun;

		barrier();
		begun = MPI_Wtime();
		if (rank == late)
			usleep((useconds_t)ms * 1000);
		barrier();
		/* All ranks left the previous barrier almost at the same time. */
		if (!entered && MPI_Wtime() - begun < 0.9 * (double)ms / 1e3)
			bad("it did not wait for the late one");
	}
}

int main(int argc, char **argv)
{
	long ms, rounds;
	double begun;
	int fd;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 4)
		bad("usage: tuned_mpi FILE LATE_MS ROUNDS [mpi]");
	ms = atol(argv[2]);
	rounds = atol(argv[3]);
	by_mpi = argc > 4;
	if (strcmp(argv[1], "-") != 0) {
		fd = open(argv[1], O_RDWR | O_CREAT, 0600);
		if (fd < 0 || ftruncate(fd, 65536) < 0)
			bad("cannot open the file");
		entered = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (entered == MAP_FAILED)
			bad("cannot map the file");
	}
	for (int i = 0; i < FIRST; i++)
		barrier();
	late_ones(ms);
	begun = MPI_Wtime();
	for (long i = 0; i < rounds; i++)
		barrier();
	begun = MPI_Wtime() - begun;
	if (rank == 0)
		printf("%d ranks, each late once by %ld ms: seen by all; %ld barriers of %.2f us\n",
		       size, ms, rounds, rounds ? begun / (double)rounds * 1e6 : 0);
	MPI_Finalize();
	return 0;
}
