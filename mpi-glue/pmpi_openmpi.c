/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi_openmpi.c - requests of MPI_Ibarrier in Open MPI: generalized requests, completed by a
 * function that Open MPI calls whenever it makes progress.
 *
 * That function is registered with opal_progress_register, which every Open MPI has but mpi.h does
 * not declare; so programs that wait for these requests need not be touched. Any thread may be in
 * it, also one that came from further up in the glue: it never waits for another.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmpi.h"

struct request {
	struct nbmpi_request barrier;
	MPI_Comm comm;
	MPI_Request handle;
	struct request *next;
	int code;
};

static struct {
	pthread_mutex_t lock;
	struct request *list;
} pending = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef int progress_fn(void);
static int (*progress_register)(progress_fn *), (*progress_unregister)(progress_fn *);
static void (*progress)(void);

/* Takes out of the list what is complete. */
static struct request *take_done(void)
{
	struct request *done = NULL, **at = &pending.list;

	while (*at) {
		struct request *r = *at;
		int rc = nbmpi_test(&r->barrier);

		if (rc == 0) {
			at = &r->next;
			continue;
		}
		if (rc < 0)
			r->code = r->barrier.code;
		*at = r->next;
		r->next = done;
		done = r;
	}
	return done;
}

static int on_progress(void)
{
	struct request *done;
	int n = 0;

	nbmpi_progress();
	/* Another thread, or this one further up, does it already. */
	if (pthread_mutex_trylock(&pending.lock) != 0)
		return 0;
	done = take_done();
	pthread_mutex_unlock(&pending.lock);
	while (done) {
		struct request *r = done;

		done = r->next;
		if (r->code != MPI_SUCCESS && !r->barrier.orphan)
			pmpi_request_fails(r->comm);
		PMPI_Grequest_complete(r->handle);
		n++;
	}
	return n;
}

bool pmpi_request_begin(void)
{
	/* The standard's way round a conversion that C does not have. */
	*(void **)&progress_register = dlsym(RTLD_DEFAULT, "opal_progress_register");
	*(void **)&progress_unregister = dlsym(RTLD_DEFAULT, "opal_progress_unregister");
	*(void **)&progress = dlsym(RTLD_DEFAULT, "opal_progress");
	if (progress_register && progress_unregister && progress &&
	    progress_register(on_progress) == 0)
		return true;
	fprintf(stderr, "nbar: this Open MPI has no opal_progress_register: all barriers are left "
			"to MPI\n");
	return false;
}

void pmpi_request_end(void)
{
	progress_unregister(on_progress);
}

void pmpi_progress(void)
{
	progress();
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

/* A collective cannot be cancelled. */
static int on_cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

int pmpi_request_start(const struct nbmpi_request *barrier, MPI_Comm comm, MPI_Request *out)
{
	struct request *r = malloc(sizeof(*r));
	int rc;

	if (!r)
		return MPI_ERR_NO_MEM;
	*r = (struct request){ .barrier = *barrier, .comm = comm };
	rc = PMPI_Grequest_start(on_query, on_free, on_cancel, r, &r->handle);
	if (rc != MPI_SUCCESS) {
		free(r);
		return rc;
	}
	/* From here on another thread's progress may complete it. */
	*out = r->handle;
	pthread_mutex_lock(&pending.lock);
	r->next = pending.list;
	pending.list = r;
	pthread_mutex_unlock(&pending.lock);
	return MPI_SUCCESS;
}
