/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - barriers of MPI_COMM_WORLD, tight or amid other calls of the MPI, as applications have
 * them: mean time of a barrier in us, with the set-up and the verdict of the glue. See judge.sh.
 *
 * judge BARRIERS PAUSE_US: PAUSE_US is between two Allreduces before each barrier; -1: tight.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, n, one = 1, sum;
	double total = 0;
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
		total += MPI_Wtime() - begin;
	}
	if (rank == 0)
		printf("us: %.2f\n", 1e6 * total / n);
	MPI_Finalize();
	return 0;
}
