/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar_request.c - requests of nonblocking and persistent barriers.
 *
 * They are completed by a function that Open MPI calls whenever it makes progress. Any thread may
 * be in it, also one that came from further up in the glue: it never waits for another. A request
 * holds its communicator, so that this may be freed first.
 */
#include "coll_nbar.h"

#include <pthread.h>

#include "opal/runtime/opal_progress.h"

struct coll_nbar_request_t {
	ompi_request_t super;
	struct nbmpi_request barrier;
	ompi_request_t *inner;          /* or this is what we wait for: a barrier by MPI */
	mca_coll_nbar_module_t *module; /* persistent: to start it again */
	struct coll_nbar_request_t *next;
};
typedef struct coll_nbar_request_t coll_nbar_request_t;
OBJ_CLASS_DECLARATION(coll_nbar_request_t);

static struct {
	pthread_mutex_t lock;
	bool registered;
	int count; /* relaxed: who misses one sees it next time */
	coll_nbar_request_t *list;
} pending = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void failed(coll_nbar_request_t *r, int code)
{
	r->super.req_status.MPI_ERROR = code;
	/* The one type whose communicator's error handler Open MPI 4.1 asks; all others end the
	 * program by that of MPI_COMM_WORLD. */
	r->super.req_type = OMPI_REQUEST_PML;
}

/* 0: not yet; else r->super.req_status says what came of it. */
static int test(coll_nbar_request_t *r)
{
	int rc;

	if (r->inner) {
		if (!REQUEST_COMPLETE(r->inner))
			return 0;
		opal_atomic_rmb();
		if (r->inner->req_status.MPI_ERROR != MPI_SUCCESS)
			failed(r, r->inner->req_status.MPI_ERROR);
		ompi_request_free(&r->inner);
		r->inner = NULL; /* not Open MPI's null request */
		return 1;
	}
	rc = nbmpi_test(&r->barrier);
	if (rc < 0)
		failed(r, r->barrier.code);
	return rc;
}

/* Takes out of the list what is complete. */
static coll_nbar_request_t *take_done(void)
{
	coll_nbar_request_t *done = NULL, **at = &pending.list;

	while (*at) {
		coll_nbar_request_t *r = *at;

		if (test(r) == 0) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = done;
		done = r;
		__atomic_fetch_sub(&pending.count, 1, __ATOMIC_RELAXED);
	}
	return done;
}

static int on_progress(void)
{
	coll_nbar_request_t *done;
	int n = 0;

	nbmpi_progress();
	if (__atomic_load_n(&pending.count, __ATOMIC_RELAXED) == 0)
		return 0;
	/* Another thread, or this one further up, does it already. */
	if (pthread_mutex_trylock(&pending.lock) != 0)
		return 0;
	done = take_done();
	pthread_mutex_unlock(&pending.lock);
	while (done) {
		coll_nbar_request_t *r = done;

		/* Complete, it may be freed, or started again, at once. */
		done = r->next;
		ompi_request_complete(&r->super, true);
		n++;
	}
	return n;
}

void coll_nbar_request_stop(void)
{
	if (pending.registered)
		opal_progress_unregister(on_progress);
	pending.registered = false;
}

/* From here on any thread's progress may complete it. */
static void put(coll_nbar_request_t *r)
{
	bool first;

	pthread_mutex_lock(&pending.lock);
	r->next = pending.list;
	pending.list = r;
	__atomic_fetch_add(&pending.count, 1, __ATOMIC_RELAXED);
	first = !pending.registered;
	pending.registered = true;
	pthread_mutex_unlock(&pending.lock);
	if (first)
		opal_progress_register(on_progress);
}

static void discard(coll_nbar_request_t *r)
{
	OMPI_REQUEST_FINI(&r->super);
	OBJ_RELEASE(r->super.req_mpi_object.comm);
	OBJ_RELEASE(r);
}

static int request_free(ompi_request_t **request)
{
	coll_nbar_request_t *r = (coll_nbar_request_t *)*request;

	/* One under way is freed when it is complete: MPI lets nobody free it before. */
	if (!REQUEST_COMPLETE(&r->super))
		return MPI_ERR_REQUEST;
	discard(r);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

static coll_nbar_request_t *request_new(ompi_communicator_t *comm, bool persistent)
{
	coll_nbar_request_t *r = OBJ_NEW(coll_nbar_request_t);

	if (!r)
		return NULL;
	OMPI_REQUEST_INIT(&r->super, persistent);
	r->super.req_type = OMPI_REQUEST_COLL;
	r->super.req_status.MPI_ERROR = MPI_SUCCESS;
	r->super.req_status._cancelled = 0;
	r->super.req_free = request_free;
	r->super.req_cancel = NULL;
	r->super.req_mpi_object.comm = comm;
	OBJ_RETAIN(comm);
	return r;
}

ompi_request_t *coll_nbar_request_new(ompi_communicator_t *comm)
{
	coll_nbar_request_t *r = request_new(comm, false);

	return r ? &r->super : NULL;
}

int coll_nbar_request_start(ompi_request_t *request, struct nbmpi_comm *c)
{
	coll_nbar_request_t *r = (coll_nbar_request_t *)request;
	int rc = nbmpi_ibarrier(c, &r->barrier);

	if (rc != 0) {
		discard(r);
		return rc;
	}
	r->super.req_state = OMPI_REQUEST_ACTIVE;
	put(r);
	return 0;
}

/* --- persistent ---------------------------------------------------------------------------- */

static int start_one(coll_nbar_request_t *r)
{
	ompi_communicator_t *comm = r->super.req_mpi_object.comm;
	struct nbmpi_comm *c = coll_nbar_comm(r->module, comm);
	int rc = OMPI_SUCCESS;

	if (!c)
		return OMPI_ERR_OUT_OF_RESOURCE;
	switch (nbmpi_ibarrier(c, &r->barrier)) {
	case 0:
		break;
	case NBMPI_BY_MPI:
		rc = r->module->ibarrier(comm, &r->inner, r->module->ibarrier_module);
		break;
	default:
		rc = nbmpi_comm_code(c);
	}
	if (rc != OMPI_SUCCESS)
		return rc;
	r->super.req_status.MPI_ERROR = MPI_SUCCESS;
	r->super.req_complete = REQUEST_PENDING;
	r->super.req_state = OMPI_REQUEST_ACTIVE;
	put(r);
	return OMPI_SUCCESS;
}

static int request_start(size_t count, ompi_request_t **requests)
{
	for (size_t i = 0; i < count; i++) {
		int rc = start_one((coll_nbar_request_t *)requests[i]);

		if (rc != OMPI_SUCCESS)
			return rc;
	}
	return OMPI_SUCCESS;
}

int coll_nbar_barrier_init(ompi_communicator_t *comm, struct ompi_info_t *info,
			   ompi_request_t **out, mca_coll_base_module_t *module)
{
	coll_nbar_request_t *r = request_new(comm, true);

	(void)info;
	if (!r)
		return OMPI_ERR_OUT_OF_RESOURCE;
	r->module = (mca_coll_nbar_module_t *)module;
	r->super.req_start = request_start;
	*out = &r->super;
	return OMPI_SUCCESS;
}

static void request_construct(coll_nbar_request_t *r)
{
	r->inner = NULL;
	r->module = NULL;
	r->next = NULL;
}

OBJ_CLASS_INSTANCE(coll_nbar_request_t, ompi_request_t, request_construct, NULL);
