/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib.c - two methods: nbar's library without MPI, on its own group. lib uses the NIC of the glue,
 * lib2 the NIC of --nic2.
 *
 * MPI only transports the data to open the group. The set-up is the code of the glue (join.c), so
 * hosts, process teams and NICs are the same as in method nbar. A rank waits as in the glue, but
 * without the MPI's progress.
 */
#include "bench.h"

#include <stdlib.h>

#include "comm_internal.h"
#include "exchange.h"
#include "pmpi.h"

struct lib {
	struct nbmpi_comm *comm;
	struct nbmpi_port *own, *ports; /* what the glue's set-up has opened for this method */
	struct nbar_wait_policy wait;
	uint32_t ticket;
};

static struct nbar_wait_policy policy_of(const struct mpib_world *w)
{
	const struct nbar_wait_policy yield = { 0 };
	struct nbar_wait_policy policy = yield;

	switch (w->config.wait) {
	case NBMPI_WAIT_AUTO:
		policy.spin_us = 20; /* if nobody else wants the processor */
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

/* For the set-up, `mpi` is the world of this program: its communicator has all ranks. */
static uint32_t *lib_mates(void *mpi, uint32_t *n, enum nbmpi_why *why)
{
	const struct mpib_world *w = mpi;
	uint32_t *mate = mpib_alloc((size_t)w->size, sizeof(*mate));

	(void)why;
	*n = 0;
	for (int r = 0; r < w->size; r++)
		if (w->host[r] == w->host[w->rank])
			mate[(*n)++] = (uint32_t)r;
	return mate;
}

static uint64_t host(void *mpi, uint32_t rank)
{
	const struct mpib_world *w = mpi;

	return w->host[rank];
}

/* Exchanges messages for the set-up. This program has no other messages in flight. */
static int exchange(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n)
{
	MPI_Group group;
	int rc;

	(void)mpi;
	PMPI_Comm_group(MPI_COMM_WORLD, &group);
	rc = pmpi_exchange(MPI_COMM_WORLD, group, tag & 1, message, n);
	PMPI_Group_free(&group);
	return rc;
}

static int sum(void *mpi, struct nbmpi_sum *sum)
{
	const struct nbmpi_channel at = { .exchange = exchange };
	const struct mpib_world *w = mpi;

	return nbmpi_tree_sum(&at, (uint32_t)w->rank, (uint32_t)w->size, NULL, sum);
}

static int error(const char *text)
{
	mpib_fatal("lib: %s", text);
	return MPI_ERR_OTHER;
}

/* This program has nothing else under way. */
static void lib_progress(void)
{
}

static const struct nbmpi_ops ops = {
	.mates = lib_mates,
	.host = host,
	.sum = sum,
	.exchange = exchange,
	.progress = lib_progress,
	.error = error,
};

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
	/* So that nbar prints why it does not take a communicator. */
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
	lib->comm = nbmpi_comm_open(w, start.rank, (uint32_t)w->size, false, NBMPI_BARRIERS);
	if (!lib->comm)
		mpib_fatal("%s: no memory", m->choice->name);
	nbmpi_set_up(lib->comm); /* MPI's errors end the program */
	/* The next method must open its own ports. */
	lib->own = nbmpi_self.own;
	lib->ports = nbmpi_self.ports;
	nbmpi_self.own = NULL;
	nbmpi_self.ports = NULL;
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

	nbmpi_self.own = lib->own;
	nbmpi_self.ports = lib->ports;
	nbmpi_comm_close(lib->comm);
	nbmpi_ports_close();
	free(lib);
	m->state = NULL;
}

static void lib_start(struct mpib_method *m)
{
	struct lib *lib = m->state;
	struct nbmpi_comm *c = lib->comm;
	int rc;

	rc = c->memory ? nbar_process_team_post(&c->memory->procs, c->group, c->mate, &lib->ticket)
		       : nbar_post(c->group, &lib->ticket);
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
