/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_ulfm.c - a rank is killed, and the others shrink the communicator, where the MPI has ULFM.
 *
 * Called by the oracle under `mpirun --with-ft ulfm`; rank n does not return.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "oracle.h"

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

/* Barriers of nbar on comm; false: a barrier failed. */
static bool barriers(MPI_Comm comm, unsigned long long *offloaded)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };

	oracle_counters(before);
	for (int i = 0; i < 100; i++)
		if (MPI_Barrier(comm) != MPI_SUCCESS)
			return false;
	oracle_counters(after);
	*offloaded = after[0] - before[0];
	return true;
}

/* Every rank that sees the failure revokes: so the others get out of the barrier too. */
void test_shrinks(int n)
{
	unsigned long long offloaded = 0;
	int rc = MPI_SUCCESS, size = 0;
	MPI_Comm comm, less;
	bool good;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	good = barriers(comm, &offloaded) && offloaded > 0;
	if (oracle.rank == n)
		kill(getpid(), SIGKILL);
	while (rc == MPI_SUCCESS)
		rc = MPI_Barrier(comm);
	MPIX_Comm_revoke(comm);
	good = MPIX_Comm_shrink(comm, &less) == MPI_SUCCESS && good;
	MPI_Comm_size(less, &size);
	good = barriers(less, &offloaded) && offloaded > 0 && size == oracle.size - 1 && good;
	printf("# rank %d: %d ranks, %llu barriers offloaded after the shrink: %s\n", oracle.rank,
	       size, offloaded, good ? "goes on" : "wrong");
	fflush(stdout);
	_exit(!good);
}

#else

/* The caller asks only an MPI that has ULFM. */
void test_shrinks(int n)
{
	(void)n;
	printf("# this MPI has no ULFM\n");
}

#endif
