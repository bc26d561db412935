/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * last.c - which ranks the barriers of a communicator have waited for, as the NIC of this host has
 * counted.
 *
 * Called when a tool reads the statistic. Sends a request to the NIC; barriers do not wait for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comm_internal.h"

/* A member of the group is a host: the entry of a host goes to all its ranks. */
static void to_ranks(const struct nbmpi_comm *c, const uint32_t *host,
		     const struct nbar_group_stat *stat, struct nbmpi_last *of)
{
	for (uint32_t r = 0; r < c->size; r++) {
		for (uint32_t i = 0; i < stat->nlast; i++) {
			const struct nbar_last *last = &stat->last[i];

			if (last->rank == (host ? host[r] : r))
				of[r] = (struct nbmpi_last){ last->barriers, last->ns,
							     last->most_ns };
		}
	}
}

int nbmpi_comm_last(struct nbmpi_comm *c, struct nbmpi_last *all, struct nbmpi_last *of)
{
	struct nbar_group_stat stat = { .barriers = 0 };
	uint32_t *host = NULL;
	bool has_group;
	int rc = 0;

	memset(of, 0, c->size * sizeof(*of));
	*all = (struct nbmpi_last){ .barriers = 0 };
	/* A stopped NIC answers late. Only a thread that closes a group waits for this answer. */
	pthread_mutex_lock(&nbmpi_self.lock);
	has_group = c->port != NULL;
	pthread_mutex_lock(&nbmpi_self.read);
	pthread_mutex_unlock(&nbmpi_self.lock);
	if (has_group)
		rc = nbar_group_stat(c->group, &stat);
	pthread_mutex_unlock(&nbmpi_self.read);
	if (rc != 0 || stat.barriers == 0)
		return rc;
	if (c->nhost != c->size) {
		host = nbmpi_hosts_of(c);
		if (!host)
			return -ENOMEM;
	}
	*all = (struct nbmpi_last){ .barriers = stat.barriers, .ns = stat.ns };
	for (uint32_t i = 0; i < stat.nlast; i++)
		if (stat.last[i].most_ns > all->most_ns)
			all->most_ns = stat.last[i].most_ns;
	to_ranks(c, host, &stat, of);
	free(host);
	return 0;
}
