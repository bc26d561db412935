/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extensions.h - functions that some MPIs lack: persistent barriers, and ULFM (user-level failure
 * mitigation; OMPI_HAVE_MPI_EXT_FTMPI).
 *
 * Included by the programs of the tests.
 */
#ifndef TESTBED_MPI_EXTENSIONS_H
#define TESTBED_MPI_EXTENSIONS_H

#include <mpi.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

/* Open MPI 5 has MPI_Barrier_init, although it does not implement all of MPI 4. */
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define BARRIER_INIT MPI_Barrier_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define BARRIER_INIT MPIX_Barrier_init
#endif

#endif
