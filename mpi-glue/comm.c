/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.c - communicators of the glue: opens and closes them, and closes all of them at the end.
 *
 * Called by the glue of an MPI when a communicator calls its first barrier or allreduce, and when
 * the program frees the communicator. Sends no message: most communicators call few barriers.
 */
#include <stdlib.h>

#include "comm_internal.h"

struct nbmpi_self nbmpi_self = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- a communicator begins and ends ---------------------------------------------------------- */

void nbmpi_comm_free(struct nbmpi_comm *c)
{
	/* First remove it from the list: post.c reads all communicators of the list. */
	pthread_mutex_lock(&nbmpi_self.lock);
	nbmpi_count(c, &nbmpi_self.gone);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	pthread_mutex_unlock(&nbmpi_self.lock);
	nbmpi_leave(c);
	pthread_mutex_destroy(&c->lock);
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

struct nbmpi_comm *nbmpi_comm_open(void *mpi, uint32_t rank, uint32_t size, bool inter,
				   enum nbmpi_kind kind)
{
	struct nbmpi_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->mpi = mpi;
	c->rank = rank;
	c->size = size;
	c->kind = kind;
	c->why_rank = NBAR_RANK_NONE;
	c->asks = NBMPI_PAYS;
	if (!nbmpi_self.start.config.enable)
		c->why = NBMPI_WHY_disabled;
	else if (inter)
		c->why = NBMPI_WHY_inter;
	else if (size == 1)
		c->why = NBMPI_WHY_alone;
	c->path = c->why == NBMPI_WHY_none ? NBMPI_OPENING : NBMPI_PLAIN;
	c->judge.closed = nbmpi_self.start.config.where != NBMPI_WHERE_AUTO;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_lock(&nbmpi_self.lock);
	c->next = nbmpi_self.comm;
	c->link = &nbmpi_self.comm;
	if (c->next)
		c->next->link = &c->next;
	nbmpi_self.comm = c;
	pthread_mutex_unlock(&nbmpi_self.lock);
	if (c->path == NBMPI_PLAIN)
		nbmpi_log_path(c, "");
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

uint64_t *nbmpi_comm_fallbacks(struct nbmpi_comm *c)
{
	return c->path == NBMPI_PLAIN ? &c->fallback[c->why] : NULL;
}

/* Bytes of an element, by enum nbar_value_type. */
static const uint8_t element[] = {
#define ELEMENT(name, number, class, size, ...) [number] = size,
	NBAR_VALUE_TYPES(ELEMENT)
#undef ELEMENT
};

bool nbmpi_value_is_fast(const struct nbmpi_comm *c, const struct nbar_value *value)
{
	uint32_t length;

	if (!value || c->fast_value >= NBAR_VALUE_MAX)
		return true;
	length = (uint32_t)value->count * element[value->type];
	return !NBAR_IS_PAIR(value->type) && length <= c->fast_value && length % 4 == 0;
}

bool nbmpi_comm_offloaded(const struct nbmpi_comm *c, const struct nbar_value *value)
{
	return c->path == NBMPI_OFFLOADED && nbmpi_value_is_fast(c, value);
}

int nbmpi_comm_code(const struct nbmpi_comm *c)
{
	return c->code;
}
