/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recover.c - an MPI program during which the daemon of its NICs ends and starts again; for
 * test-recovery.sh.
 *
 * Usage: recover FOLDER. Barriers of a first communicator are offloaded; rank 0 makes FOLDER/ready,
 * and all ranks wait for FOLDER/again. Then barriers of the first communicator must fail, and
 * barriers of a new communicator must be offloaded. Exit status 0 if so.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "oracle.h"

#define BARRIERS 20 /* more barriers than the MPI runs before a set-up */
#define LOOK_US 10000

static int rank;

static int wrong(const char *what)
{
	fprintf(stderr, "rank %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	return 1;
}

static unsigned long long offloaded(void)
{
	unsigned long long n[3] = { 0 };

	if (!oracle_counters(n))
		wrong("no counters of nbar");
	return n[0];
}

/* Runs barriers. True if they succeeded and some were offloaded. */
static bool barriers(MPI_Comm comm)
{
	unsigned long long before = offloaded();
	bool good = true;

	for (int i = 0; i < BARRIERS; i++)
		good &= MPI_Barrier(comm) == MPI_SUCCESS;
	return good && offloaded() > before;
}

int main(int argc, char **argv)
{
	char path[4096];
	MPI_Comm first, second;
	FILE *f;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (argc != 2)
		return wrong("one argument, a folder");
	MPI_Comm_dup(MPI_COMM_WORLD, &first);
	if (!barriers(first))
		return wrong("the first communicator was not offloaded");
	snprintf(path, sizeof(path), "%s/ready", argv[1]);
	if (rank == 0 && (!(f = fopen(path, "w")) || fclose(f) != 0))
		return wrong("cannot write the file \"ready\"");
	snprintf(path, sizeof(path), "%s/again", argv[1]);
	while (access(path, F_OK) < 0)
		usleep(LOOK_US);
	if (MPI_Barrier(first) == MPI_SUCCESS)
		return wrong("a barrier over a NIC that has ended has succeeded");
	MPI_Comm_dup(MPI_COMM_WORLD, &second);
	if (!barriers(second))
		return wrong("the second communicator was not offloaded");
	MPI_Comm_free(&first);
	if (!barriers(second))
		return wrong("barriers have failed after the first communicator was freed");
	MPI_Comm_free(&second);
	MPI_Finalize();
	return 0;
}
