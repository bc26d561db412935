/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_ulfm.c - a rank is killed, and the others shrink the communicator, where the MPI has ULFM.
 *
 * Called by the oracle under `mpirun --with-ft ulfm`; rank n does not return.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "oracle_predict.h"

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

/* Runs 100 barriers on comm. Returns how many nbar has offloaded. *good: no barrier failed. */
static unsigned long long barriers(MPI_Comm comm, bool *good)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };
	int rc = MPI_SUCCESS;

	oracle_counters(before);
	for (int i = 0; i < 100 && rc == MPI_SUCCESS; i++)
		rc = MPI_Barrier(comm);
	oracle_counters(after);
	*good = rc == MPI_SUCCESS;
	return after[0] - before[0];
}

/* Every rank that sees the failure revokes the communicator, so the other ranks leave the barrier,
 * too. The last of the first 100 barriers may already lack the dead rank. Open MPI 5.0.7 writes to
 * the socket of the dead rank: SIGPIPE must not end the ranks that are alive. */
void test_shrinks(int n)
{
	unsigned long long first, second;
	int rc = MPI_SUCCESS, size = 0;
	MPI_Comm comm, less;
	bool good;

	signal(SIGPIPE, SIG_IGN);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	first = barriers(comm, &good);
	if (oracle.rank == n)
		kill(getpid(), SIGKILL);
	while (rc == MPI_SUCCESS)
		rc = MPI_Barrier(comm);
	MPIX_Comm_revoke(comm);
	rc = MPIX_Comm_shrink(comm, &less);
	if (rc == MPI_SUCCESS)
		MPI_Comm_size(less, &size);
	second = rc == MPI_SUCCESS ? barriers(less, &good) : 0;
	good = good && size == oracle.size - 1 && first > 0 && second > 0;
	printf("# rank %d: %d ranks, %llu barriers offloaded after the shrink: %s\n", oracle.rank,
	       size, second, good ? "goes on" : "wrong");
	fflush(stdout);
	_exit(!good);
}

#else

/* suite.sh runs this test only with an MPI that has ULFM. */
void test_shrinks(int n)
{
	(void)n;
	printf("# this MPI has no ULFM\n");
}

#endif
