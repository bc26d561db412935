/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi.h - what pmpi.c asks of pmpi_request.c (requests for MPI_Ibarrier, and progress) and of
 * pmpi_exchange.c (the set-up of communicators).
 */
#ifndef NBMPI_PMPI_H
#define NBMPI_PMPI_H

#include <mpi.h>

#include "comm.h"

/* Before all else. MPI_SUCCESS or an error code. */
int pmpi_request_begin(void);

/* When no barrier is under way any more. */
void pmpi_request_end(void);

/* Makes an MPI request of a barrier that has begun. MPI_SUCCESS or an error code. */
int pmpi_request_start(const struct nbmpi_request *r, MPI_Comm comm, MPI_Request *out);

/* Lets MPI go on with all that is pending. */
void pmpi_progress(void);

/* nbmpi_ops.sum, and .exchange on a communicator that carries nothing else by this tag. */
int pmpi_sum(MPI_Comm comm, struct nbmpi_sum *sum);
int pmpi_exchange(MPI_Comm comm, int tag, const struct nbmpi_message *message, uint32_t n);

/* For programs that want to know: what the glue has done so far. Found by dlsym. */
void nbar_mpi_counters(struct nbmpi_counters *out);

#endif
