/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib.c - two methods: nbar's library by itself, on a group of its own; and on another NIC.
 *
 * MPI only carries what is needed to open the group; the set-up is the glue's (join.c), so that
 * hosts, process teams and NICs are those of the barriers that it is compared with. Waits as the
 * glue does, but without the MPI's progress.
 */
#include "bench.h"

#include <stdlib.h>

#include "comm_internal.h"

struct lib {
	struct nbmpi_comm *comm;
	struct nbar_port *port;          /* what the glue's set-up has opened for this method ... */
	struct nbmpi_attached *attached; /* ... and attached to */
	struct nbar_wait_policy wait;
	uint32_t ticket;
};

static struct nbar_wait_policy policy_of(const struct mpib_world *w)
{
	const struct nbar_wait_policy yield = { 0 };
	struct nbar_wait_policy policy = yield;

	switch (w->config.wait) {
	case NBMPI_WAIT_AUTO:
		policy.spin_us = w->crowded || mpib_glue_yields(w->glue) ? 0 : 20;
		break;
	case NBMPI_WAIT_SPIN:
		policy.spin_us = UINT32_MAX;
		break;
	case NBMPI_WAIT_YIELD:
		break;
	case NBMPI_WAIT_BLOCK:
		policy.block = 1;
		break;
	}
	return policy;
}

static int gather(void *mpi, const void *in, void *out, uint32_t size)
{
	(void)mpi;
	return PMPI_Allgather(in, (int)size, MPI_BYTE, out, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static int minimum(void *mpi, const uint64_t *in, uint64_t *out)
{
	(void)mpi;
	return PMPI_Allreduce(in, out, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
}

static int error(const char *text)
{
	mpib_fatal("lib: %s", text);
	return MPI_ERR_OTHER;
}

static const struct nbmpi_ops ops = { .gather = gather, .minimum = minimum, .error = error };

static int lib_open(struct mpib_method *m)
{
	struct mpib_world *w = m->world;
	struct nbmpi_start start = { .config = w->config, .ops = &ops, .rank = (uint32_t)w->rank };
	struct lib *lib = mpib_alloc(1, sizeof(*lib));

	m->state = lib;
	if (!w->config.enable && m->choice->kind == MPIB_LIB) {
		tool_error("lib: the NIC that nbar is set to use is refused, see above");
		return TOOL_FAILED;
	}
	lib->wait = policy_of(w);
	/* Reasons come out in words. */
	start.config.verbose = 2;
	start.config.min_hosts = 1;
	if (m->choice->kind == MPIB_LIB2) {
		snprintf(start.config.nic, sizeof(start.config.nic), "%s", w->nic2);
		start.config.where = NBMPI_WHERE_NIC;
		start.config.enable = true;
		nbmpi_config_check(&start.config, start.rank);
		if (!start.config.enable)
			mpib_fatal("--nic2: see above");
	}
	nbmpi_start(&start);
	lib->comm = nbmpi_comm_open(NULL, start.rank, (uint32_t)w->size, w->host, NBMPI_WHY_none);
	if (!lib->comm)
		mpib_fatal("%s: no memory", m->choice->name);
	nbmpi_set_up(lib->comm); /* MPI's errors end the program */
	/* The next method is to have its own. */
	lib->port = nbmpi_self.port;
	lib->attached = nbmpi_self.attached;
	nbmpi_self.port = NULL;
	nbmpi_self.attached = NULL;
	if (lib->comm->path != NBMPI_OFFLOADED) {
		tool_error("%s: rank %u: %s", m->choice->name, lib->comm->why_rank,
			   nbmpi_why_text(lib->comm->why));
		return TOOL_FAILED;
	}
	if (lib->comm->group)
		nbar_group_set_wait(lib->comm->group, &lib->wait);
	return 0;
}

static void lib_close(struct mpib_method *m)
{
	struct lib *lib = m->state;

	nbmpi_comm_close(lib->comm);
	nbmpi_self.port = lib->port;
	nbmpi_self.attached = lib->attached;
	nbmpi_ports_close();
	free(lib);
	m->state = NULL;
}

static void lib_start(struct mpib_method *m)
{
	struct lib *lib = m->state;
	struct nbmpi_comm *c = lib->comm;
	int rc;

	lib->ticket++;
	rc = c->memory ? nbar_process_team_post(&c->memory->procs, c->group, c->mate, lib->ticket)
		       : nbar_post(c->group, NULL);
	if (rc < 0)
		mpib_fatal("%s: %s", m->choice->name, nbar_error());
}

static void lib_finish(struct mpib_method *m)
{
	struct lib *lib = m->state;
	struct nbmpi_comm *c = lib->comm;
	int rc = c->memory ? nbar_process_team_wait(&c->memory->procs, c->group, lib->ticket,
						    &lib->wait, NBAR_FOREVER)
			   : nbar_wait(c->group, lib->ticket, NBAR_FOREVER);

	if (rc < 0)
		mpib_fatal("%s: %s", m->choice->name, nbar_error());
}

static void lib_barrier(struct mpib_method *m)
{
	lib_start(m);
	lib_finish(m);
}

const struct mpib_ops mpib_lib = { lib_open, lib_close, lib_barrier, lib_start, lib_finish };
