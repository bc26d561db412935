/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi.h - what pmpi.c needs from pmpi_request.c (requests, and progress) and from
 * pmpi_exchange.c (the set-up of communicators), and what pmpi_f08.c has for Fortran.
 */
#ifndef NBMPI_PMPI_H
#define NBMPI_PMPI_H

#include <mpi.h>

#include "comm.h"

/* Called before all other functions. MPI_SUCCESS or an error code. */
int pmpi_request_begin(void);

/* Called when no barrier is under way any more. */
void pmpi_request_end(void);

/* Frees requests that a call completed which this library does not replace, as those of mpi_f08.
 * May call an error handler, which may free any communicator. */
void pmpi_request_drain(void);

/* Makes a request, and begins an offloaded barrier, or an allreduce of a value, whose result goes
 * to `out` (value NULL: a barrier). Returns MPI_SUCCESS, or a negative result of nbmpi_iallreduce,
 * or an error code of the MPI. With an error code, no barrier has begun, and an error handler was
 * called: without memory the handler of the communicator, else the handler that MPICH chooses. */
int pmpi_request_start(struct nbmpi_comm *c, MPI_Comm comm, const struct nbar_value *value,
		       void *out, MPI_Request *request);

/* Lets MPI make progress with everything that is pending. */
void pmpi_progress(void);

/* nbmpi_ops.exchange on a communicator that uses this tag for nothing else. The messages have ranks
 * of `group`. */
int pmpi_exchange(MPI_Comm comm, MPI_Group group, int tag, struct nbmpi_message *message,
		  uint32_t n);

/* Names of Fortran's module mpi_f08. */
void mpi_init_f08_(int *ierror);
void mpi_init_thread_f08_(const int *required, int *provided, int *ierror);
void mpi_finalize_f08_(int *ierror);
void mpi_barrier_f08_(const MPI_Comm *comm, int *ierror);
void mpi_ibarrier_f08_(const MPI_Comm *comm, MPI_Request *request, int *ierror);

/* For programs: the counters of the glue so far. A program finds this function by dlsym. */
void nbar_mpi_counters(struct nbmpi_counters *out);

#endif
