/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_predict.c - how many barriers nbar must run: counts the calls of each communicator.
 *
 * oracle_predict.h replaces MPI_Barrier and MPI_Ibarrier by the functions here. nbar sets up a
 * communicator in its first blocking barrier after EARLY barriers of any kind, and runs all later
 * barriers.
 */
#include <stdlib.h>

#include "oracle_predict.h"

#undef MPI_Barrier
#undef MPI_Ibarrier

#define EARLY 8u /* mpi-glue/comm.h, NBMPI_PAYS */

/* The calls of a communicator; an attribute of it. */
struct calls {
	unsigned early; /* barriers before the set-up */
	bool never;     /* nbar leaves the communicator to the MPI */
	bool set_up;
};

static int keyval = MPI_KEYVAL_INVALID;
static uint64_t predicted; /* barriers that nbar must have run; relaxed: it orders nothing */

static int forget(MPI_Comm comm, int key, void *calls, void *extra)
{
	(void)comm;
	(void)key;
	(void)extra;
	free(calls);
	return MPI_SUCCESS;
}

void oracle_predict_begin(void)
{
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
}

static struct calls *calls_of(MPI_Comm comm)
{
	struct calls *calls;
	int found, size, inter;

	MPI_Comm_get_attr(comm, keyval, &calls, &found);
	if (found)
		return calls;
	calls = calloc(1, sizeof(*calls));
	if (!calls)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Comm_size(comm, &size);
	MPI_Comm_test_inter(comm, &inter);
	calls->never = inter || size == 1;
	MPI_Comm_set_attr(comm, keyval, calls);
	return calls;
}

static void count(MPI_Comm comm, bool blocking)
{
	struct calls *calls = calls_of(comm);

	if (calls->never)
		return;
	if (calls->set_up)
		__atomic_fetch_add(&predicted, 1, __ATOMIC_RELAXED);
	else if (blocking && calls->early >= EARLY)
		calls->set_up = true;
	else
		calls->early++;
}

int oracle_barrier(MPI_Comm comm)
{
	count(comm, true);
	return MPI_Barrier(comm);
}

int oracle_ibarrier(MPI_Comm comm, MPI_Request *request)
{
	count(comm, false);
	return MPI_Ibarrier(comm, request);
}

uint64_t oracle_predicted(void)
{
	return __atomic_load_n(&predicted, __ATOMIC_RELAXED);
}
