/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi_exchange.c - nbmpi_ops.exchange with the functions of any MPI.
 *
 * For the PMPI library, and for programs that call the set-up of the glue.
 */
#include "pmpi.h"

static int exchange_begin(MPI_Comm comm, int rank, int tag, const struct nbmpi_message *m,
			  MPI_Request *out)
{
	return m->in ? PMPI_Irecv(m->data, (int)m->size, MPI_BYTE, rank, tag, comm, out)
		     : PMPI_Isend(m->data, (int)m->size, MPI_BYTE, rank, tag, comm, out);
}

int pmpi_exchange(MPI_Comm comm, MPI_Group group, int tag, struct nbmpi_message *message,
		  uint32_t n)
{
	MPI_Request request;
	MPI_Group all;
	int rc = PMPI_Comm_group(comm, &all);

	if (rc != MPI_SUCCESS)
		return rc;
	for (uint32_t i = 0; i < n && rc == MPI_SUCCESS; i++) {
		struct nbmpi_message *m = &message[i];
		int theirs = (int)m->rank, rank = MPI_ANY_SOURCE;

		if (m->rank != NBAR_RANK_NONE)
			PMPI_Group_translate_ranks(group, 1, &theirs, all, &rank);
		rc = exchange_begin(comm, rank, tag, m, &request);
		m->request = (void *)(uintptr_t)request;
	}
	PMPI_Group_free(&all);
	for (uint32_t i = 0; i < n && rc == MPI_SUCCESS; i++) {
		request = (MPI_Request)(uintptr_t)message[i].request;
		rc = PMPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	return rc;
}
