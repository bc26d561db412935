/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_stack.c - threads with small stacks.
 *
 * The standard names no size. Programs choose it for their own functions and those of the MPI, and
 * know nothing of nbar.
 */
#include <pthread.h>

#include "standard.h"

static const size_t sizes[] = { 128 * 1024, 64 * 1024 };

static void *run(void *comm)
{
	for (int i = 0; i < OFFLOADED; i++)
		MPI_Barrier(*(MPI_Comm *)comm);
	return NULL;
}

/* The set-up and offloaded barriers; a stack that is too small ends the program. */
void rule_stack(void)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		MPI_Comm comm = duplicate(false);
		pthread_attr_t attr;
		pthread_t id;

		pthread_attr_init(&attr);
		want(pthread_attr_setstacksize(&attr, sizes[i]) == 0, "the size is refused");
		want(pthread_create(&id, &attr, run, &comm) == 0, "no thread");
		pthread_join(id, NULL);
		pthread_attr_destroy(&attr);
		MPI_Comm_free(&comm);
	}
}
