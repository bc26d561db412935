/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - the ranks of this program and their hosts.
 *
 * It is called at the beginning. It finds the hosts as the glue does (node.c).
 */
#include "bench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

void mpib_fatal(const char *format, ...)
{
	char text[512];
	va_list args;
	int rank = 0;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fprintf(stderr, "nbar mpi-bench: rank %d: %s\n", rank, text);
	MPI_Abort(MPI_COMM_WORLD, TOOL_FAILED);
	abort();
}

void *mpib_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		mpib_fatal("no memory");
	return p;
}

/* "Open MPI v4.1.4", "MPICH 4.0.2" */
static void name_library(char *out, size_t size)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	char *version;
	int length;

	MPI_Get_library_version(text, &length);
	text[strcspn(text, ",\n")] = '\0';
	version = strstr(text, "Version:");
	if (version)
		snprintf(out, size, "%.*s%s", (int)(version - text), text,
			 version + 8 + strspn(version + 8, " \t"));
	else
		snprintf(out, size, "%s", text);
}

/* Makes w->off, a communicator that nbar does not handle, and w->on, which nbar may handle. */
static void make_comms(struct mpib_world *w)
{
	MPI_Info info;

	PMPI_Info_create(&info);
	PMPI_Info_set(info, "nbar_enable", "false");
	PMPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &w->off);
	PMPI_Info_free(&info);
	PMPI_Comm_dup(MPI_COMM_WORLD, &w->on);
}

static void count_hosts(struct mpib_world *w)
{
	uint32_t *ranks = mpib_alloc((size_t)w->size, sizeof(*ranks));

	for (int r = 0; r < w->size; r++) {
		ranks[w->host[r]]++;
		if (w->host[r] >= w->nhost)
			w->nhost = w->host[r] + 1;
	}
	w->least = w->most = ranks[0];
	for (uint32_t h = 1; h < w->nhost; h++) {
		w->least = ranks[h] < w->least ? ranks[h] : w->least;
		w->most = ranks[h] > w->most ? ranks[h] : w->most;
	}
	free(ranks);
}

static uint64_t world_host_of_node(void *node, uint32_t rank)
{
	return nbmpi_node_host((const struct nbmpi_node *)node + rank);
}

/* True if this machine, with all its containers, has more ranks than processors. */
static bool is_crowded(const struct mpib_world *w, const struct nbmpi_node *node)
{
	const struct nbmpi_node *self = &node[w->rank];
	cpu_set_t all, own, *of = mpib_alloc((size_t)w->size, sizeof(*of));
	int ranks = 0;

	CPU_ZERO(&own);
	CPU_ZERO(&all);
	sched_getaffinity(0, sizeof(own), &own);
	PMPI_Allgather(&own, sizeof(own), MPI_BYTE, of, sizeof(own), MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < w->size; r++)
		if (!memcmp(node[r].boot, self->boot, sizeof(self->boot))) {
			ranks++;
			CPU_OR(&all, &all, &of[r]);
		}
	free(of);
	return ranks > CPU_COUNT(&all);
}

static void world_find_hosts(struct mpib_world *w)
{
	struct nbmpi_node self, *node = mpib_alloc((size_t)w->size, sizeof(*node));

	nbmpi_node_self(&w->config, (uint32_t)w->rank, &self);
	PMPI_Allgather(&self, sizeof(self), MPI_BYTE, node, sizeof(self), MPI_BYTE, MPI_COMM_WORLD);
	w->host = nbmpi_hosts_number(world_host_of_node, node, (uint32_t)w->size);
	if (!w->host)
		mpib_fatal("no memory");
	w->one_clock = true;
	for (int r = 0; r < w->size; r++)
		w->one_clock &= !memcmp(node[r].boot, self.boot, sizeof(self.boot));
	w->crowded = is_crowded(w, node);
	free(node);
}

int mpib_world_begin(struct mpib_world *w, const struct mpib_options *opt)
{
	*w = (struct mpib_world){ .rank = 0 };
	MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &w->size);
	if (w->size < 2)
		return tool_usage("start two ranks or more: one rank waits for nobody");
	name_library(w->library, sizeof(w->library));
	w->nic2 = opt->nic2;
	w->value = opt->value;
	w->glue = mpib_glue_find();
	mpib_glue_config(w->glue, (uint32_t)w->rank, &w->config);
	world_find_hosts(w);
	count_hosts(w);
	PMPI_Allreduce(MPI_IN_PLACE, &w->crowded, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD);
	PMPI_Allreduce(MPI_IN_PLACE, &w->config.enable, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
	w->compute = opt->compute            ? opt->compute
		     : !w->crowded           ? MPIB_SPIN
		     : opt->test == MPIB_APP ? MPIB_YIELD
					     : MPIB_SLEEP;
	make_comms(w);
	return 0;
}

void mpib_world_wire(struct mpib_world *w)
{
	char nic[NBMPI_NIC_SIZE] = "";
	struct nbar_rep_nic_stat stat;

	if (w->rank == 0 && nbmpi_nic_name(&w->config, 0, nic, sizeof(nic)) &&
	    nbar_nic_stat(nic[0] ? nic : NULL, &stat) == 0)
		snprintf(w->wire, sizeof(w->wire), "%.*s", (int)sizeof(stat.wire), stat.wire);
}

void mpib_world_end(struct mpib_world *w)
{
	if (!w->host)
		return;
	MPI_Comm_free(&w->on);
	MPI_Comm_free(&w->off);
	free(w->host);
}
