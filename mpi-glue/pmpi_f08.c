/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi_f08.c - the PMPI library for Fortran programs that use the module mpi_f08.
 *
 * MPICH's mpi_f08 calls PMPI_Barrier, not MPI_Barrier, so a library that replaces the names of C
 * alone never sees these programs. (mpif.h and the module mpi call the names of C; so does mpi_f08
 * for calls with buffers, such as MPI_Allreduce.) Called by Fortran. A communicator or request of
 * mpi_f08 holds the handle of C, and an absent ierror is NULL. A call of MPI_Wait or the like in
 * mpi_f08 stays MPICH's: see README.md.
 */
#include <mpi.h>

#include "pmpi.h"

static void set(int *ierror, int rc)
{
	if (ierror)
		*ierror = rc;
}

void mpi_init_f08_(int *ierror)
{
	set(ierror, MPI_Init(NULL, NULL));
}

void mpi_init_thread_f08_(const int *required, int *provided, int *ierror)
{
	set(ierror, MPI_Init_thread(NULL, NULL, *required, provided));
}

void mpi_finalize_f08_(int *ierror)
{
	set(ierror, MPI_Finalize());
}

void mpi_barrier_f08_(const MPI_Comm *comm, int *ierror)
{
	set(ierror, MPI_Barrier(*comm));
}

void mpi_ibarrier_f08_(const MPI_Comm *comm, MPI_Request *request, int *ierror)
{
	set(ierror, MPI_Ibarrier(*comm, request));
}
