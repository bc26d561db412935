/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_ulfm.c - a revoked communicator, where the MPI has ULFM (user-level failure mitigation).
 *
 * No process fails: rank 1 revokes the communicator instead of calling its barriers.
 */
#include "standard.h"

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

static void want_revoked(int code)
{
	int class;

	MPI_Error_class(code, &class);
	want(class == MPIX_ERR_REVOKED, "no MPIX_ERR_REVOKED");
}

/* Rank 0 calls a barrier and waits for it, while rank 1 revokes the communicator instead. */
static void waits(MPI_Comm comm, bool nonblocking)
{
	MPI_Request request;

	if (!nonblocking) {
		tell();
		want_revoked(MPI_Barrier(comm));
		return;
	}
	want(MPI_Ibarrier(comm, &request) == MPI_SUCCESS, "MPI_Ibarrier failed");
	tell();
	want_revoked(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static bool by_nbar(MPI_Comm comm)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };

	oracle_counters(before);
	MPI_Barrier(comm);
	oracle_counters(after);
	return after[0] + after[1] > before[0] + before[1];
}

static void revoked(bool nonblocking)
{
	MPI_Comm comm = duplicate(true), again;

	want(by_nbar(comm), "nbar does not run barriers");
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (me == 0)
		waits(comm, nonblocking);
	else {
		hear();
		MPIX_Comm_revoke(comm);
	}
	want_revoked(MPI_Barrier(comm));
	want(MPIX_Comm_shrink(comm, &again) == MPI_SUCCESS, "MPIX_Comm_shrink failed");
	MPI_Comm_free(&comm);
	for (int i = 0; i < OFFLOADED; i++)
		want(MPI_Barrier(again) == MPI_SUCCESS, "a barrier failed after the shrink");
	want(by_nbar(again), "nbar does not run barriers after the shrink");
	MPI_Comm_free(&again);
}

void rule_revoked(void)
{
	for (int i = 0; i < 10; i++)
		revoked(i % 2);
}

#endif
