/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar_request.c - requests of nonblocking barriers and allreduces.
 *
 * Open MPI calls a function here whenever it makes progress; this function completes the requests.
 * Any thread may call it, also from within another function of the glue, so it never waits for
 * another thread. A request holds its communicator, so a program may free the communicator first.
 */
#include "coll_nbar.h"

#include <pthread.h>

#include "mpi_value.h"

struct coll_nbar_request_t {
	ompi_request_t super;
	struct nbmpi_request barrier;
	bool complete; /* the next call of on_progress reports it */
	/* An allreduce; out is NULL: a barrier. */
	struct nbar_value value;
	void *out;
	struct coll_nbar_request_t *next;
};
typedef struct coll_nbar_request_t coll_nbar_request_t;
OBJ_CLASS_DECLARATION(coll_nbar_request_t);

static struct {
	pthread_mutex_t lock;
	bool registered;
	int count; /* relaxed: a thread that misses a request sees it next time */
	coll_nbar_request_t *list;
	ompi_communicator_t *kept; /* see keep */
} pending = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Tests a request. False: not yet; else r->super.req_status has the result. A complete request is
 * reported in the next pass of Open MPI's progress: in between, Open MPI receives the messages that
 * were sent before the barrier.
 */
static bool ireq_test(coll_nbar_request_t *r)
{
	int rc;

	if (r->complete)
		return true;
	rc = nbmpi_test(&r->barrier);
	r->complete = rc != 0;
	if (rc == 1 && r->out)
		nbmpi_value_give(&r->value, r->out);
	if (rc < 0) {
		r->super.req_status.MPI_ERROR = r->barrier.code;
		r->super.req_type = COLL_NBAR_FAILED;
	}
	return false;
}

/* Removes complete requests from the list. */
static coll_nbar_request_t *take_done(void)
{
	coll_nbar_request_t *done = NULL, **at = &pending.list;

	while (*at) {
		coll_nbar_request_t *r = *at;

		if (!ireq_test(r)) {
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

	if (__atomic_load_n(&pending.count, __ATOMIC_RELAXED) == 0)
		return 0;
	/* Another thread, or a caller of this function, already completes the requests. */
	if (pthread_mutex_trylock(&pending.lock) != 0)
		return 0;
	done = take_done();
	pthread_mutex_unlock(&pending.lock);
	while (done) {
		coll_nbar_request_t *r = done;

		/* A complete request may be freed at any time. */
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

/* Puts a request into the list: from here on any thread's progress may complete it. */
static void ireq_put(coll_nbar_request_t *r)
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

/*
 * Open MPI frees a failed request, and calls the error handler of its communicator after that. So
 * the communicator of the last failed request stays until another request fails, or until MPI ends.
 */
static ompi_communicator_t *keep(ompi_communicator_t *comm)
{
	ompi_communicator_t *before;

	pthread_mutex_lock(&pending.lock);
	before = pending.kept;
	pending.kept = comm;
	pthread_mutex_unlock(&pending.lock);
	return before;
}

static void discard(coll_nbar_request_t *r)
{
	ompi_communicator_t *comm = r->super.req_mpi_object.comm;

	if (r->super.req_status.MPI_ERROR != MPI_SUCCESS)
		comm = keep(comm);
	if (comm)
		OBJ_RELEASE(comm);
	OMPI_REQUEST_FINI(&r->super);
	OBJ_RELEASE(r);
}

static int request_free(ompi_request_t **request)
{
	coll_nbar_request_t *r = (coll_nbar_request_t *)*request;

	/* A request under way is freed when it is complete: MPI does not allow a program to free
	 * it earlier. */
	if (!REQUEST_COMPLETE(&r->super))
		return MPI_ERR_REQUEST;
	discard(r);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

ompi_request_t *coll_nbar_request_new(ompi_communicator_t *comm, const struct nbar_value *value,
				      void *out)
{
	coll_nbar_request_t *r = OBJ_NEW(coll_nbar_request_t);

	if (!r)
		return NULL;
	r->complete = false;
	r->out = out;
	if (value)
		r->value = *value;
	OMPI_REQUEST_INIT(&r->super, false);
	r->super.req_type = OMPI_REQUEST_COLL;
	r->super.req_status.MPI_ERROR = MPI_SUCCESS;
	r->super.req_status._cancelled = 0;
	r->super.req_free = request_free;
	r->super.req_mpi_object.comm = comm;
	OBJ_RETAIN(comm);
	return &r->super;
}

int coll_nbar_request_start(ompi_request_t *request, struct nbmpi_comm *c)
{
	coll_nbar_request_t *r = (coll_nbar_request_t *)request;
	int rc = nbmpi_iallreduce(c, r->out ? &r->value : NULL, &r->barrier);

	if (rc != 0) {
		discard(r);
		return rc;
	}
	r->super.req_state = OMPI_REQUEST_ACTIVE;
	ireq_put(r);
	return 0;
}

OBJ_CLASS_INSTANCE(coll_nbar_request_t, ompi_request_t, NULL, NULL);
