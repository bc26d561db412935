/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - the program that this rank runs: what run.c and run_wait.c share.
 */
#ifndef TESTBED_MPI_RANDOM_RUN_H
#define TESTBED_MPI_RANDOM_RUN_H

#include "random.h"

#define NONE UINT32_MAX

struct run {
	const struct program *p;
	uint64_t state; /* of this rank's own random numbers */
	uint32_t at;    /* the current action */
	MPI_Comm comm[COMMS];
	MPI_Request request[EVENTS];
	int value[EVENTS], sum[EVENTS];
	char *buffer[EVENTS];
	bool done[EVENTS], own[EVENTS]; /* own: a barrier that the MPI runs itself */
};
extern struct run run;

/* A persistent barrier has one request for all its starts. */
MPI_Request *request_of(uint32_t event);

/* The value that the event sends: no other event has this value. */
int value_of(uint32_t event);

/* --- run_wait.c ------------------------------------------------------------------------------ */

/* An MPI call has reported that the event is complete. */
void finish(uint32_t event, const MPI_Status *status);

void test(uint32_t event);

/* Completes the event of action `first`, and the events of the completions right after this action.
 */
void wait_from(uint32_t first);

#endif
