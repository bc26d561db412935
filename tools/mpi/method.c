/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * method.c - two methods that are calls of MPI: the MPI's own barrier, and nbar's.
 *
 * The MPI's own barrier is called by its PMPI name, on a communicator that nbar does not handle;
 * nbar's barrier is called as in any program. The counters of nbar prove which barrier has run.
 */
#include "bench.h"
#include "judge.h"

#include <stdlib.h>

struct call {
	MPI_Comm comm;
	MPI_Request request;
	int count; /* doubles of an allreduce; 0: a barrier */
	double in[NBAR_VALUE_MAX / 8], out[NBAR_VALUE_MAX / 8];
};

static struct call *call_new(const struct mpib_world *w, MPI_Comm comm)
{
	struct call *c = mpib_alloc(1, sizeof(*c));

	c->comm = comm;
	c->count = (int)w->value / 8;
	for (int i = 0; i < c->count; i++)
		c->in[i] = w->rank;
	c->request = MPI_REQUEST_NULL;
	return c;
}

static void call_close(struct mpib_method *m)
{
	free(m->state);
	m->state = NULL;
}

/* True if `mine` is true at all ranks. */
static bool agreed(bool mine)
{
	int in = mine, all = 0;

	PMPI_Allreduce(&in, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return all;
}

static void check_call(int code)
{
	/* Only with MPI_ERRORS_RETURN: any other error handler has ended the program. */
	if (code != MPI_SUCCESS)
		mpib_fatal("a barrier has failed with code %d of the MPI", code);
}

/* --- mpi ------------------------------------------------------------------------------------- */

static void mpi_barrier(struct mpib_method *m)
{
	struct call *c = m->state;

	check_call(c->count ? PMPI_Allreduce(c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, c->comm)
			    : PMPI_Barrier(c->comm));
}

static void mpi_start(struct mpib_method *m)
{
	struct call *c = m->state;

	check_call(PMPI_Ibarrier(c->comm, &c->request));
}

static void mpi_finish(struct mpib_method *m)
{
	struct call *c = m->state;

	check_call(PMPI_Wait(&c->request, MPI_STATUS_IGNORE));
}

/* The calls that nbar has seen. */
static uint64_t calls_of(const struct nbmpi_counters *n)
{
	return n->by_nic + n->by_host + n->fallback + n->allreduces_by_nic + n->allreduces_by_mpi;
}

static int mpi_open(struct mpib_method *m)
{
	struct nbmpi_counters before, after;

	m->state = call_new(m->world, m->world->off);
	mpib_glue_counters(m->world->glue, &before);
	mpi_barrier(m);
	mpib_glue_counters(m->world->glue, &after);
	if (agreed(calls_of(&after) == calls_of(&before)))
		return 0;
	tool_error("mpi: nbar handles a communicator that was made with nbar_enable=false; "
		   "is the component older than this program?");
	return TOOL_FAILED;
}

/* --- nbar ------------------------------------------------------------------------------------ */

static void nbar_barrier_(struct mpib_method *m)
{
	struct call *c = m->state;

	check_call(c->count ? MPI_Allreduce(c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, c->comm)
			    : MPI_Barrier(c->comm));
}

static void nbar_start(struct mpib_method *m)
{
	struct call *c = m->state;

	check_call(MPI_Ibarrier(c->comm, &c->request));
}

static void nbar_finish(struct mpib_method *m)
{
	struct call *c = m->state;

	check_call(MPI_Wait(&c->request, MPI_STATUS_IGNORE));
}

/* The reason why nbar does not run these barriers. */
static const char *why_not(const struct nbmpi_counters *before, const struct nbmpi_counters *after)
{
	if (after->allreduces_by_mpi != before->allreduces_by_mpi)
		return "no NIC carries their values";
	if (after->comms == before->comms)
		return "nbar is not enabled (Open MPI: --mca coll_nbar_enable 1)";
	for (int why = NBMPI_WHY_none + 1; why < NBMPI_WHY_END; why++)
		if (after->why[why] != before->why[why])
			return nbmpi_why_text((enum nbmpi_why)why);
	return "no counter shows the reason";
}

static int nbar_open_(struct mpib_method *m)
{
	struct nbmpi_counters first, before, after;
	struct mpib_world *w = m->world;

	if (!agreed(w->glue != MPIB_NO_GLUE)) {
		tool_error("nbar: this program runs without nbar: start it with --mca "
			   "coll_nbar_enable 1 (Open MPI's component), or with LD_PRELOAD set to "
			   "libnbar-mpi-mpich.so (MPICH)");
		return TOOL_FAILED;
	}
	m->state = call_new(w, w->on);
	mpib_glue_counters(w->glue, &first);
	for (uint32_t i = 0; i <= NBMPI_PAYS; i++)
		nbar_barrier_(m); /* the last of these barriers sets up the group */
	mpib_glue_counters(w->glue, &before);
	nbar_barrier_(m);
	mpib_glue_counters(w->glue, &after);
	if (agreed(after.by_nic + after.by_host + after.allreduces_by_nic >
		   before.by_nic + before.by_host + before.allreduces_by_nic))
		return 0;
	tool_error("nbar: the MPI runs these %s: %s; %s", w->value ? "allreduces" : "barriers",
		   why_not(&first, &after),
		   first.why[NBMPI_WHY_disabled] != after.why[NBMPI_WHY_disabled]
			   ? "a line on stderr gives the cause"
			   : "NBAR_MPI_VERBOSE=2 (component: --mca coll_nbar_verbose 2) says more");
	return TOOL_FAILED;
}

const struct mpib_ops mpib_mpi = { mpi_open, call_close, mpi_barrier, mpi_start, mpi_finish };
const struct mpib_ops mpib_nbar = { nbar_open_, call_close, nbar_barrier_, nbar_start,
				    nbar_finish };

const struct mpib_ops *mpib_ops_of(enum mpib_kind kind)
{
	switch (kind) {
	case MPIB_MPI:
		return &mpib_mpi;
	case MPIB_NBAR:
		return &mpib_nbar;
	case MPIB_LIB:
	case MPIB_LIB2:
		return &mpib_lib;
	case MPIB_P2P:
		return &mpib_p2p;
	}
	return NULL;
}
