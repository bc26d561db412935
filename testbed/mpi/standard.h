/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard.h - what the parts of mpi-standard share.
 *
 * Every test runs on two ranks in a job of its own, so a hang fails only one test.
 */
#ifndef TESTBED_MPI_STANDARD_H
#define TESTBED_MPI_STANDARD_H

#include <mpi.h>
#include <stdbool.h>

#include "oracle.h" /* how nbar has run barriers */

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4
#define BARRIER_INIT MPI_Barrier_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define BARRIER_INIT MPIX_Barrier_init
#endif

#define OFFLOADED 24 /* barriers after which a communicator is offloaded, if ever */

/* If the condition is false, counts a failure of this rank, and prints it on stderr. */
void want(bool good, const char *what);

/* The rank of this process: 0 or 1. */
extern int me;

/* A duplicate of MPI_COMM_WORLD; offloaded: nbar runs its barriers. */
MPI_Comm duplicate(bool offloaded);

/* Send an empty message to the other rank, and receive one. */
void tell(void);
void hear(void);

/* standard_failures.c: barriers that fail, and wrong arguments. */
void rule_fails(void);
void rule_fails_freed(void);
void rule_handlers(void);
void rule_wrong_communicator(void);

#endif
