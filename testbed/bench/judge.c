/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - barriers of MPI_COMM_WORLD, tight or amid other calls of the MPI, as applications have
 * them: mean time of a barrier in us, with the set-up and the verdict of the glue; the time of
 * each, if they are few. See judge.sh.
 *
 * judge BARRIERS PAUSE_US: PAUSE_US is between two Allreduces before each barrier; -1: tight.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FEW 32 /* before so many barriers between hosts, no set-up begins */

int main(int argc, char **argv)
{
	int rank, n, one = 1, sum;
	double took, total = 0;
	long pause;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc != 3)
		MPI_Abort(MPI_COMM_WORLD, 2);
	n = atoi(argv[1]);
	pause = atol(argv[2]);
	for (int i = 0; i < n; i++) {
		double begin;

		if (pause >= 0) {
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			if (pause > 0)
				usleep((useconds_t)pause);
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		}
		begin = MPI_Wtime();
		MPI_Barrier(MPI_COMM_WORLD);
		took = MPI_Wtime() - begin;
		total += took;
		if (rank == 0 && n <= FEW)
			printf("us: %d %.2f\n", i, 1e6 * took);
	}
	if (rank == 0 && n > FEW)
		printf("us: 0 %.2f\n", 1e6 * total / n);
	MPI_Finalize();
	return 0;
}
