/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - sends the endpoint addresses of a group's peers to the NIC, in one message or more.
 *
 * Called when a group is made; one thread at a time per port. Knows no algorithm: the NIC has named
 * the peers whose endpoint addresses it needs.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

#define ENDPOINTS_A_MESSAGE                                \
	((NBAR_MESSAGE_MAX - sizeof(struct nbar_request) - \
	  sizeof(struct nbar_req_group_connect)) /         \
	 sizeof(struct nbar_endpoint))

static int connect_refused(const struct nbar_group *g)
{
	if (g->connected)
		return nblib_fail(-EISCONN, "the group is connected already");
	if (g->unsure)
		return nblib_fail(-ETIME,
				  "NIC %s has not answered an earlier request to connect the "
				  "group: close the group, and open another",
				  g->port->link.nic);
	return 0;
}

/* Sends the addresses of the next n peers. The NIC keeps the addresses that earlier messages
 * carried. */
static int send_endpoints(struct nbar_group *g, struct nbar_endpoint *endpoint, uint32_t n)
{
	struct nbar_req_group_connect request = { .cell = g->cell, .nendpoint = n };
	struct nbar_rep_group_connect reply;
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_CONNECT,
		.body = { { &request, sizeof(request) }, { endpoint, n * sizeof(*endpoint) } },
		.fixed = { &reply, sizeof(reply) },
	};
	int err = nblib_link_call(&g->port->link, &call);

	g->unsure = call.unanswered;
	if (err)
		return err;
	g->nconnected += n;
	if (g->nconnected == g->npeer && reply.missing != 0)
		return nblib_fail(-EPROTO, "NIC %s: misses %u peers that it did not ask for",
				  g->port->link.nic, reply.missing);
	return 0;
}

/* rank: index of each peer's address in `endpoints`; NULL: the addresses are in the order of the
 * peers. */
static int connect_by(struct nbar_group *g, const uint32_t *rank,
		      const struct nbar_endpoint *endpoints)
{
	struct nbar_endpoint *part;
	int err = connect_refused(g);

	if (err)
		return err;
	part = malloc(ENDPOINTS_A_MESSAGE * sizeof(*part));
	if (!part)
		return nblib_fail(-ENOMEM, "no memory for endpoint addresses");
	do {
		uint32_t n = 0;

		for (uint32_t i = g->nconnected; i < g->npeer && n < ENDPOINTS_A_MESSAGE; i++)
			part[n++] = endpoints[rank ? rank[i] : i];
		err = send_endpoints(g, part, n);
	} while (err == 0 && g->nconnected < g->npeer);
	free(part);
	if (err)
		return err;
	g->connected = true;
	order_runs_write(&g->runs, !g->is_signal && !order_aborted(&g->aborted));
	return 0;
}

int nbar_group_connect(struct nbar_group *g, const struct nbar_endpoint *endpoints)
{
	return connect_by(g, g->peer, endpoints);
}

int nbar_group_connect_peers(struct nbar_group *g, const struct nbar_endpoint *endpoints)
{
	return connect_by(g, NULL, endpoints);
}
