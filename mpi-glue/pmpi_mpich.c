/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi_mpich.c - requests of MPI_Ibarrier in MPICH and its kin: generalized requests with a poll
 * function, which MPICH calls whenever the program tests or waits for them.
 *
 * MPICH may call the functions here from any thread, and with a lock of its own: none of them
 * waits for another thread.
 */
#include <stdlib.h>

#include "pmpi.h"

#define POLLS 16u /* in vain, between two calls of MPI's progress: MPI_Wait makes none itself */

struct request {
	struct nbmpi_request barrier;
	MPI_Comm comm;
	MPI_Request handle;
	uint32_t polls;
	bool complete; /* MPICH polls such requests, too */
	int code;
};

/* One that is complete only at the end: to ask for its status makes MPICH go on with all else.
 * (A probe that finds nothing may not.) */
static MPI_Request never = MPI_REQUEST_NULL;

void pmpi_progress(void)
{
	int flag;

	PMPI_Request_get_status(never, &flag, MPI_STATUS_IGNORE);
}

static bool done(struct request *r)
{
	int rc = r->complete ? 1 : nbmpi_test(&r->barrier);

	if (rc == 0)
		return false;
	if (r->complete)
		return true;
	r->complete = true;
	if (rc < 0) {
		r->code = r->barrier.code;
		if (!r->barrier.orphan)
			pmpi_request_fails(r->comm);
	}
	PMPI_Grequest_complete(r->handle);
	return true;
}

static int on_poll(void *state, MPI_Status *status)
{
	struct request *r = state;

	(void)status;
	if (!done(r) && ++r->polls % POLLS == 0) {
		pmpi_progress();
		nbmpi_yield(r->polls / POLLS);
	}
	return MPI_SUCCESS;
}

/* Waits for all of them: MPICH then takes each to be complete. */
static int on_wait(int count, void **state, double timeout, MPI_Status *status)
{
	(void)timeout;
	(void)status;
	for (int i = 0; i < count; i++) {
		struct request *r = state[i];

		for (uint32_t round = 0; !done(r); round++) {
			pmpi_progress();
			nbmpi_yield(round);
		}
	}
	return MPI_SUCCESS;
}

static int on_query(void *state, MPI_Status *status)
{
	const struct request *r = state;

	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return r->code;
}

static int on_free(void *state)
{
	free(state);
	return MPI_SUCCESS;
}

static int on_query_never(void *state, MPI_Status *status)
{
	(void)state;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

/* A collective cannot be cancelled. */
static int on_cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

bool pmpi_request_begin(void)
{
	return PMPI_Grequest_start(on_query_never, on_free, on_cancel, NULL, &never) == MPI_SUCCESS;
}

void pmpi_request_end(void)
{
	if (never == MPI_REQUEST_NULL)
		return;
	PMPI_Grequest_complete(never);
	PMPI_Wait(&never, MPI_STATUS_IGNORE);
}

int pmpi_request_start(const struct nbmpi_request *barrier, MPI_Comm comm, MPI_Request *out)
{
	struct request *r = malloc(sizeof(*r));
	int rc;

	if (!r)
		return MPI_ERR_NO_MEM;
	*r = (struct request){ .barrier = *barrier, .comm = comm };
	rc = PMPIX_Grequest_start(on_query, on_free, on_cancel, on_poll, on_wait, r, &r->handle);
	if (rc == MPI_SUCCESS)
		*out = r->handle;
	else
		free(r);
	return rc;
}
