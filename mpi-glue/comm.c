/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.c - communicators as the glue knows them: met, closed, and all of them at the end.
 *
 * Called by the glue of an MPI when a communicator calls its first barrier, and when it is freed.
 * Finds out who of its members are on one host, and whether it is one for NICs at all.
 */
#include <stdlib.h>
#include <string.h>

#include "comm_internal.h"

struct nbmpi_self nbmpi_self = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- a communicator begins and ends ---------------------------------------------------------- */

/* Who leads which host, and where we are. False: no memory. */
static bool find_hosts(struct nbmpi_comm *c, const uint32_t *host)
{
	uint32_t top = 0, *leader_of;

	for (uint32_t r = 0; r < c->size; r++)
		top = host[r] > top ? host[r] : top;
	leader_of = malloc(((size_t)top + 1) * sizeof(*leader_of));
	c->leaders = malloc(c->size * sizeof(*c->leaders));
	c->host_of = malloc(c->size * sizeof(*c->host_of));
	if (!leader_of || !c->leaders || !c->host_of) {
		free(leader_of);
		return false;
	}
	memset(leader_of, 0xff, ((size_t)top + 1) * sizeof(*leader_of));
	for (uint32_t r = 0; r < c->size; r++) {
		if (host[r] == host[c->rank]) {
			c->host = c->nlocal == 0 ? c->nhost : c->host;
			c->mate = r == c->rank ? c->nlocal : c->mate;
			c->nlocal++;
		}
		if (leader_of[host[r]] == NBAR_RANK_NONE) {
			leader_of[host[r]] = r;
			c->leaders[c->nhost++] = r;
		}
		c->host_of[r] =
			r == leader_of[host[r]] ? c->nhost - 1 : c->host_of[leader_of[host[r]]];
	}
	c->leader = leader_of[host[c->rank]];
	free(leader_of);
	return true;
}

void nbmpi_comm_free(struct nbmpi_comm *c)
{
	/* First out of the list: post.c looks at all that are in it. */
	pthread_mutex_lock(&nbmpi_self.lock);
	nbmpi_count(c, &nbmpi_self.gone);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	pthread_mutex_unlock(&nbmpi_self.lock);
	nbmpi_leave(c);
	pthread_mutex_destroy(&c->lock);
	free(c->leaders);
	free(c->host_of);
	free(c);
}

void nbmpi_start(const struct nbmpi_start *start)
{
	nbmpi_self.start = *start;
	nbmpi_self.gone = (struct nbmpi_counters){ 0 };
	nbmpi_nic_name(&start->config, start->rank, nbmpi_self.nic, sizeof(nbmpi_self.nic));
}

void nbmpi_stop(void)
{
	nbmpi_log_counters();
	nbmpi_post_stop();
	while (nbmpi_self.comm)
		nbmpi_comm_free(nbmpi_self.comm);
	nbmpi_ports_close();
}

/* What all members find out by themselves, and alike. */
static enum nbmpi_why why_not(const struct nbmpi_comm *c, enum nbmpi_why why)
{
	if (!nbmpi_self.start.config.enable)
		return NBMPI_WHY_disabled;
	if (why != NBMPI_WHY_none)
		return why;
	if (c->size == 1)
		return NBMPI_WHY_alone;
	if (c->nhost < nbmpi_self.start.config.min_hosts)
		return NBMPI_WHY_few;
	return NBMPI_WHY_none;
}

struct nbmpi_comm *nbmpi_comm_open(void *mpi, uint32_t rank, uint32_t size, const uint32_t *host,
				   enum nbmpi_why why)
{
	struct nbmpi_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->mpi = mpi;
	c->rank = rank;
	c->size = size;
	c->memory_fd = -1;
	c->why_rank = NBAR_RANK_NONE;
	if (why == NBMPI_WHY_none && !find_hosts(c, host)) {
		free(c->leaders);
		free(c->host_of);
		free(c);
		return NULL;
	}
	c->why = why_not(c, why);
	c->path = c->why == NBMPI_WHY_none ? NBMPI_OPENING : NBMPI_PLAIN;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_lock(&nbmpi_self.lock);
	c->next = nbmpi_self.comm;
	c->link = &nbmpi_self.comm;
	if (c->next)
		c->next->link = &c->next;
	nbmpi_self.comm = c;
	pthread_mutex_unlock(&nbmpi_self.lock);
	if (c->path == NBMPI_PLAIN)
		nbmpi_log_path(c);
	return c;
}

void nbmpi_comm_close(struct nbmpi_comm *c)
{
	bool last;

	pthread_mutex_lock(&c->lock);
	c->closed = true;
	last = c->nrequest == 0;
	pthread_mutex_unlock(&c->lock);
	if (last)
		nbmpi_comm_free(c);
}

int nbmpi_comm_code(const struct nbmpi_comm *c)
{
	return c->code;
}
