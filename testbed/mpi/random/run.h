/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - a running program in this rank: what run.c and run_wait.c share.
 */
#ifndef TESTBED_MPI_RANDOM_RUN_H
#define TESTBED_MPI_RANDOM_RUN_H

#include "random.h"

#define NONE UINT32_MAX

struct run {
	const struct program *p;
	uint64_t state; /* of random numbers of this rank only */
	uint32_t at;    /* action */
	MPI_Comm comm[COMMS];
	MPI_Request request[EVENTS];
	int value[EVENTS], sum[EVENTS];
	char *buffer[EVENTS];
	bool done[EVENTS], own[EVENTS]; /* own: a barrier that the MPI runs itself */
};
extern struct run run;

/* A persistent barrier has one request for all its starts. */
MPI_Request *request_of(uint32_t event);

/* The value of the event: no other event has it. */
int value_of(uint32_t event);

/* --- run_wait.c ------------------------------------------------------------------------------ */

/* An MPI call has reported that the event is complete. */
void finish(uint32_t event, const MPI_Status *status);

void test(uint32_t event);

/* Completes the event of this action, and those of the completions right after it. */
void wait_from(uint32_t first);

#endif
