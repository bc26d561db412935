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

#define OFFLOADED 24 /* barriers after which a communicator is offloaded, if ever */
#define SET_UP 9     /* the first blocking barrier after 8 barriers sets it up */

/* If good is false, counts a failure of this rank, and prints it on stderr. */
void want(bool good, const char *what);

/* The rank of this process, 0 or 1; the path of its program. */
extern int me;
extern const char *program;

/* Returns a duplicate of MPI_COMM_WORLD; if offloaded, nbar runs its barriers from now on. */
MPI_Comm duplicate(bool offloaded);

/* Send an empty message to the other rank, and receive one. */
void tell(void);
void hear(void);

/* standard_failures.c: barriers that fail, and wrong arguments. */
void rule_fails(void);
void rule_fails_freed(void);
void rule_fatal(void);
void rule_handlers(void);
void rule_wrong_communicator(void);

/* standard_life.c: begin and end of communicators and requests, threads, and counters. */
void rule_handle_again(void);
void rule_freed(void);
void rule_requests(void);
void rule_threads(void);
void rule_counters(void);

/* standard_worlds.c: intercommunicators, spawned processes, sessions. is_child: runs the part of a
 * spawned process and returns true; false in other processes. */
void rule_inter(void);
void rule_spawn(void);
void rule_sessions(void);
bool is_child(const char *name);

/* standard_memory.c: allocations that fail. */
void rule_memory(void);

/* standard_probe.c: messages from before a barrier. */
void rule_probe(void);

/* standard_stack.c: threads with small stacks. */
void rule_stack(void);

/* standard_values.c: MPI_Allreduce. */
void rule_allreduce(void);
void rule_allreduce_arguments(void);
void rule_allreduce_fails(void);
void rule_allreduce_idup(void);
void rule_allreduce_inter(void);
void rule_allreduce_threads(void);

/* standard_ulfm.c: a communicator that a rank revokes. */
void rule_revoked(void);

#endif
