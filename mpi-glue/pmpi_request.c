/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi_request.c - requests of MPI_Ibarrier and MPI_Iallreduce: generalized requests with a poll
 * function, an extension of MPICH. MPICH calls it whenever the program tests or waits for such a
 * request.
 *
 * MPICH may call the functions here from any thread, and while it holds its own lock. So none of
 * them waits for another thread, and the function that frees a request makes no call into MPI.
 *
 * For MPICH these requests never fail. Otherwise it would call the error handler of MPI_COMM_WORLD
 * with an error of its own. This file replaces the functions that complete requests; the
 * replacements report the failures.
 */
#include <pthread.h>
#include <stdlib.h>

#include "mpi_value.h"
#include "pmpi.h"

#define FAILED_TAG (-77777) /* in a status with this tag, the source is the error code */
/* MPI_Wait does not call MPI's progress. */
#define POLLS 16u /* unsuccessful polls between two calls of MPI's progress */

struct request {
	struct nbmpi_request barrier;
	MPI_Comm comm;
	MPI_Errhandler handler; /* of the communicator, at the start */
	MPI_Request handle;
	uint32_t polls;
	bool complete; /* MPICH also polls complete requests */
	bool told;     /* MPICH reports the failure */
	int code;
	struct nbar_value value;
	void *out;                    /* for the result of an allreduce; NULL: a barrier */
	struct request *next, **link; /* list of requests that are not freed; later `freed` */
};

/* Freed by MPICH, in the current call of this thread. */
static _Thread_local struct request *freed;

/* Not 0: this thread is in a call that is replaced below, and that reports failures itself. */
static _Thread_local unsigned ours;

/* This thread is in such a call that waits; and since when it yields there (nbmpi_wait_yield). */
static _Thread_local bool waits;
static _Thread_local uint64_t yields_since;

static struct {
	pthread_mutex_t lock;
	struct request *first;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A request that completes only at the end: a query of its status makes MPICH progress everything
 * else. (A probe that finds no message may not do that.) */
static MPI_Request never = MPI_REQUEST_NULL;

void pmpi_progress(void)
{
	int flag;

	PMPI_Request_get_status(never, &flag, MPI_STATUS_IGNORE);
}

/* --- requests -------------------------------------------------------------------------------- */

static bool request_done(struct request *r)
{
	int rc = r->complete ? 1 : nbmpi_test(&r->barrier);

	if (rc == 0)
		return false;
	if (r->complete)
		return true;
	r->complete = true;
	if (rc < 0)
		r->code = r->barrier.code;
	else if (r->out)
		nbmpi_value_give(&r->value, r->out);
	/* Lets MPICH receive the messages that were sent before the barrier. */
	pmpi_progress();
	PMPI_Grequest_complete(r->handle);
	return true;
}

static void give_way(void)
{
	if (waits)
		nbmpi_wait_yield(&yields_since);
	else
		nbmpi_yield();
}

static int on_poll(void *state, MPI_Status *status)
{
	struct request *r = state;

	(void)status;
	if (!request_done(r) && ++r->polls % POLLS == 0) {
		pmpi_progress();
		give_way();
	}
	return MPI_SUCCESS;
}

/* Waits for all requests, because MPICH takes each request as complete when this returns. */
static int on_wait(int count, void **state, double timeout, MPI_Status *status)
{
	(void)timeout;
	(void)status;
	for (int i = 0; i < count; i++) {
		struct request *r = state[i];

		while (!request_done(r)) {
			pmpi_progress();
			give_way();
		}
	}
	return MPI_SUCCESS;
}

static int on_query(void *state, MPI_Status *status)
{
	struct request *r = state;
	bool shown = r && r->code && ours;

	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = shown ? r->code : MPI_UNDEFINED;
	status->MPI_TAG = shown ? FAILED_TAG : MPI_UNDEFINED;
	if (!r || !r->code || ours)
		return MPI_SUCCESS;
	r->told = true;
	return r->code;
}

static int request_on_free(void *state)
{
	struct request *r = state;

	if (!r)
		return MPI_SUCCESS;
	pthread_mutex_lock(&all.lock);
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	pthread_mutex_unlock(&all.lock);
	r->next = freed;
	freed = r;
	return MPI_SUCCESS;
}

/* A collective cannot be cancelled. */
static int on_cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

int pmpi_request_begin(void)
{
	return PMPI_Grequest_start(on_query, request_on_free, on_cancel, NULL, &never);
}

void pmpi_request_end(void)
{
	PMPI_Grequest_complete(never);
	PMPI_Wait(&never, MPI_STATUS_IGNORE);
}

/* Calls the handler of a freed communicator, with MPI_COMM_WORLD in place of the communicator. */
static void call_handler_of_freed(MPI_Errhandler handler, int code)
{
	MPI_Errhandler theirs;

	PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &theirs);
	PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	PMPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
	PMPI_Comm_set_errhandler(MPI_COMM_WORLD, theirs);
	PMPI_Errhandler_free(&theirs);
}

/* True if the handler that gets the failure of the request ends the job. */
static bool ends_job(const struct request *r)
{
	MPI_Errhandler now = r->handler;
	bool ends;

	if (!r->barrier.orphan)
		PMPI_Comm_get_errhandler(r->comm, &now);
	ends = now == MPI_ERRORS_ARE_FATAL;
#if MPI_VERSION >= 4
	ends |= now == MPI_ERRORS_ABORT;
#endif
	if (!r->barrier.orphan)
		PMPI_Errhandler_free(&now);
	return ends;
}

/* Frees the requests that the call has completed. Returns the result of the call: rc if it is an
 * error; else the code of a failed request (MPI_ERR_IN_STATUS for calls with several), after a call
 * of its handler. A handler that ends the job gets the code of the request in each case, because
 * the text that it prints says which rank is missing. */
static int request_completed(int rc, bool several)
{
	struct request *r;

	while ((r = freed) != NULL) {
		freed = r->next;
		if (r->code != MPI_SUCCESS && !r->told && rc == MPI_SUCCESS) {
			int code = several && !ends_job(r) ? MPI_ERR_IN_STATUS : r->code;

			rc = several ? MPI_ERR_IN_STATUS : r->code;
			if (r->barrier.orphan)
				call_handler_of_freed(r->handler, code);
			else
				PMPI_Comm_call_errhandler(r->comm, code);
		}
		PMPI_Errhandler_free(&r->handler);
		/* MPI forbids to free it under way. MPICH does so, and post.c still has it. */
		if (r->complete)
			free(r);
	}
	return rc;
}

void pmpi_request_drain(void)
{
	/* Their communicators may have been freed since. */
	for (struct request *r = freed; r; r = r->next)
		r->barrier.orphan = true;
	request_completed(MPI_SUCCESS, false);
}

/* Makes the request first: the other ranks may count on a barrier that has begun. */
int pmpi_request_start(struct nbmpi_comm *c, MPI_Comm comm, const struct nbar_value *value,
		       void *out, MPI_Request *request)
{
	struct request *r = malloc(sizeof(*r));
	int rc;

	if (!r) {
		PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
		return MPI_ERR_NO_MEM;
	}
	*r = (struct request){ .comm = comm, .out = out };
	if (value)
		r->value = *value;
	PMPI_Comm_get_errhandler(comm, &r->handler);
	rc = PMPIX_Grequest_start(on_query, request_on_free, on_cancel, on_poll, on_wait, r,
				  &r->handle);
	if (rc != MPI_SUCCESS) {
		PMPI_Errhandler_free(&r->handler);
		free(r);
		return rc;
	}
	pthread_mutex_lock(&all.lock);
	r->next = all.first;
	r->link = &all.first;
	if (r->next)
		r->next->link = &r->next;
	all.first = r;
	pthread_mutex_unlock(&all.lock);
	rc = nbmpi_iallreduce(c, value ? &r->value : NULL, &r->barrier);
	if (rc == 0) {
		*request = r->handle;
		return MPI_SUCCESS;
	}
	r->complete = true;
	PMPI_Grequest_complete(r->handle);
	PMPI_Request_free(&r->handle);
	request_completed(MPI_SUCCESS, false);
	return rc;
}

/* --- calls that complete requests ------------------------------------------------------------- */

static bool is_failed(const MPI_Status *status)
{
	return status->MPI_TAG == FAILED_TAG;
}

/* Only calls that complete several requests set MPI_ERROR. */
static void show_error(MPI_Status *status, bool several)
{
	if (!is_failed(status))
		return;
	if (several)
		status->MPI_ERROR = status->MPI_SOURCE;
	status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
}

/* Shows the errors of all requests of a call. rc: the result of MPICH. If rc is not an error, MPICH
 * may not have set MPI_ERROR. But if a request of ours has failed, the program reads MPI_ERROR in
 * each status. */
static void show_errors(int rc, int n, MPI_Status *status)
{
	bool any = false;

	for (int i = 0; i < n; i++)
		any |= is_failed(&status[i]);
	for (int i = 0; i < n; i++) {
		if (any && rc == MPI_SUCCESS)
			status[i].MPI_ERROR = MPI_SUCCESS;
		show_error(&status[i], true);
	}
}

static int completed_one(int rc, MPI_Status *status)
{
	if (!freed)
		return rc;
	if (status != MPI_STATUS_IGNORE)
		show_error(status, false);
	return request_completed(rc, false);
}

static int completed_some(int rc, int n, MPI_Status *status)
{
	if (!freed)
		return rc;
	if (status != MPI_STATUSES_IGNORE)
		show_errors(rc, n, status);
	return request_completed(rc, true);
}

static int ours_end(int rc)
{
	ours--;
	return rc;
}
#define BY_US(call) ours_end((ours++, (call)))

static int waits_end(int rc)
{
	waits = false;
	return ours_end(rc);
}
#define WAIT_BY_US(call) waits_end((ours++, waits = true, yields_since = 0, (call)))

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	return completed_one(WAIT_BY_US(PMPI_Wait(request, status)), status);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	return completed_one(BY_US(PMPI_Test(request, flag, status)), status);
}

int MPI_Waitany(int n, MPI_Request request[], int *index, MPI_Status *status)
{
	return completed_one(WAIT_BY_US(PMPI_Waitany(n, request, index, status)), status);
}

int MPI_Testany(int n, MPI_Request request[], int *index, int *flag, MPI_Status *status)
{
	return completed_one(BY_US(PMPI_Testany(n, request, index, flag, status)), status);
}

int MPI_Waitall(int n, MPI_Request request[], MPI_Status status[])
{
	return completed_some(WAIT_BY_US(PMPI_Waitall(n, request, status)), n, status);
}

int MPI_Testall(int n, MPI_Request request[], int *flag, MPI_Status status[])
{
	return completed_some(BY_US(PMPI_Testall(n, request, flag, status)), n, status);
}

int MPI_Waitsome(int n, MPI_Request request[], int *count, int index[], MPI_Status status[])
{
	int rc = WAIT_BY_US(PMPI_Waitsome(n, request, count, index, status));

	return completed_some(rc, *count, status);
}

int MPI_Testsome(int n, MPI_Request request[], int *count, int index[], MPI_Status status[])
{
	int rc = BY_US(PMPI_Testsome(n, request, count, index, status));

	return completed_some(rc, *count, status);
}

/* MPICH does not poll a generalized request in this call, so poll it here. The call that later
 * completes the request reports a failure. */
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct request *r;
	int rc;

	pthread_mutex_lock(&all.lock);
	for (r = all.first; r && r->handle != request; r = r->next)
		;
	pthread_mutex_unlock(&all.lock);
	if (r)
		request_done(r);
	rc = BY_US(PMPI_Request_get_status(request, flag, status));
	if (r && *flag && status != MPI_STATUS_IGNORE)
		show_error(status, false);
	return rc;
}
