/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard.h - what the parts of mpi-standard share.
 *
 * Every test runs on two ranks and in a run of its own, so that a hang is the failure of one test.
 */
#ifndef TESTBED_MPI_STANDARD_H
#define TESTBED_MPI_STANDARD_H

#include <mpi.h>
#include <stdbool.h>

#include "oracle.h" /* how nbar has run barriers */

#define OFFLOADED 24 /* barriers after which a communicator is offloaded, if ever */

/* Counts a failure of this rank, and says on stderr what does not hold. */
void want(bool good, const char *what);

/* The rank of this process: 0 or 1. */
extern int me;

/* A duplicate of MPI_COMM_WORLD; offloaded: nbar runs its barriers. */
MPI_Comm duplicate(bool offloaded);

/* An empty message to the other rank, and from it. */
void tell(void);
void hear(void);

/* standard_failures.c: barriers that fail, and wrong arguments. */
void rule_fails(void);
void rule_fails_freed(void);
void rule_handlers(void);
void rule_wrong_communicator(void);

/* standard_ulfm.c: a communicator that a rank revokes. */
void rule_revoked(void);

#endif
