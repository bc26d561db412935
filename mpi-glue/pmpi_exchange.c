/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi_exchange.c - nbmpi_ops.sum and .exchange with the functions of any MPI.
 *
 * For the PMPI library, and for programs that call the set-up of the glue.
 */
#include "pmpi.h"

int pmpi_sum(MPI_Comm comm, struct nbmpi_sum *sum)
{
	uint64_t least[2] = { sum->least };
	int rc;

	sum->before = 0; /* the scan does not set it at rank 0 */
	rc = PMPI_Exscan(&sum->total, &sum->before, 1, MPI_UINT32_T, MPI_SUM, comm);
	if (rc != MPI_SUCCESS)
		return rc;
	/* The total is the largest of all partial sums. Each value has the 64th bit, so the order
	 * stays the same if MPICH takes this bit for a sign. */
	least[1] = UINT64_MAX - sum->before - sum->total;
	rc = PMPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_UINT64_T, MPI_MIN, comm);
	sum->least = least[0];
	sum->total = (uint32_t)(UINT64_MAX - least[1]);
	return rc;
}

int pmpi_exchange(MPI_Comm comm, int tag, struct nbmpi_message *message, uint32_t n)
{
	MPI_Request request;
	int rc = MPI_SUCCESS;

	for (uint32_t i = 0; i < n && rc == MPI_SUCCESS; i++) {
		struct nbmpi_message *m = &message[i];
		int rank = m->rank == NBAR_RANK_NONE ? MPI_ANY_SOURCE : (int)m->rank;

		rc = m->in ? PMPI_Irecv(m->data, (int)m->size, MPI_BYTE, rank, tag, comm, &request)
			   : PMPI_Isend(m->data, (int)m->size, MPI_BYTE, rank, tag, comm, &request);
		m->request = (void *)(uintptr_t)request;
	}
	for (uint32_t i = 0; i < n && rc == MPI_SUCCESS; i++) {
		request = (MPI_Request)(uintptr_t)message[i].request;
		rc = PMPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	return rc;
}
