/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - sends the endpoint addresses of a group's peers to the NIC: at once, or in parts
 * while the host continues.
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

struct nblib_connect {
	struct nbar_req_group_connect request;
	struct nbar_rep_group_connect reply;
	struct nblib_call call;
	struct nblib_answer answer;
	bool sent;                       /* the request is sent; its reply is not handled */
	uint32_t first;                  /* index of the peer of endpoint[0] */
	struct nbar_endpoint endpoint[]; /* addresses of all peers from `first` on */
};

static int connect_refused(const struct nbar_group *g)
{
	if (g->connected)
		return nblib_fail(-EISCONN, "the group is connected already");
	if (g->connecting)
		return nblib_fail(-EALREADY, "the group is being connected: call "
					     "nbar_group_connect_test until it is");
	if (g->unsure)
		return nblib_fail(-ETIME,
				  "NIC %s has not answered an earlier request to connect the "
				  "group: close the group, and open another",
				  g->port->link.nic);
	return 0;
}

/* Fills in the next message. The NIC keeps the addresses that earlier messages carried. */
static void next_message(struct nbar_group *g, struct nblib_connect *c)
{
	uint32_t left = g->npeer - g->nconnected;

	c->request.cell = g->cell;
	c->request.nendpoint = left < ENDPOINTS_A_MESSAGE ? left : (uint32_t)ENDPOINTS_A_MESSAGE;
	c->call = (struct nblib_call){
		.op = NBAR_OP_GROUP_CONNECT,
		.body = { { &c->request, sizeof(c->request) },
			  { &c->endpoint[g->nconnected - c->first],
			    c->request.nendpoint * sizeof(*c->endpoint) } },
		.fixed = { &c->reply, sizeof(c->reply) },
	};
	c->answer.came = c->sent = false;
}

/* Makes the first message. rank: index of each peer's address in `endpoints`; NULL: the addresses
 * are in the order of the peers. */
static int begin(struct nbar_group *g, const uint32_t *rank, const struct nbar_endpoint *endpoints)
{
	uint32_t left = g->npeer - g->nconnected;
	int err = connect_refused(g);
	struct nblib_connect *c;

	if (err)
		return err;
	c = calloc(1, sizeof(*c) + left * sizeof(*c->endpoint));
	if (!c)
		return nblib_fail(-ENOMEM, "no memory for %u endpoint addresses", left);
	c->first = g->nconnected;
	for (uint32_t i = 0; i < left; i++)
		c->endpoint[i] = endpoints[rank ? rank[c->first + i] : c->first + i];
	g->connecting = c;
	next_message(g, c);
	return 0;
}

void nblib_connect_end(struct nbar_group *g)
{
	if (g->connecting)
		nblib_link_forget(&g->port->link, &g->connecting->answer);
	free(g->connecting);
	g->connecting = NULL;
}

/* Handles the reply to a message; err: its error. 0: more messages follow; 1: connected. */
static int answered(struct nbar_group *g, int err)
{
	struct nblib_connect *c = g->connecting;

	if (err == 0) {
		g->nconnected += c->request.nendpoint;
		if (g->nconnected < g->npeer) {
			next_message(g, c);
			return 0;
		}
	}
	g->unsure = c->call.unanswered;
	if (err == 0 && c->reply.missing != 0)
		err = nblib_fail(-EPROTO, "NIC %s: misses %u peers that it did not ask for",
				 g->port->link.nic, c->reply.missing);
	nblib_connect_end(g);
	if (err)
		return err;
	g->connected = true;
	order_runs_write(&g->runs, !g->is_signal && !order_aborted(&g->aborted));
	return 1;
}

static int connect_by(struct nbar_group *g, const uint32_t *rank,
		      const struct nbar_endpoint *endpoints)
{
	int err = begin(g, rank, endpoints);

	while (err == 0)
		err = answered(g, nblib_link_call(&g->port->link, &g->connecting->call));
	return err < 0 ? err : 0;
}

int nbar_group_connect(struct nbar_group *g, const struct nbar_endpoint *endpoints)
{
	return connect_by(g, g->peer, endpoints);
}

int nbar_group_connect_peers(struct nbar_group *g, const struct nbar_endpoint *endpoints)
{
	return connect_by(g, NULL, endpoints);
}

int nbar_group_connect_start(struct nbar_group *g, const struct nbar_endpoint *endpoints)
{
	int err = begin(g, g->peer, endpoints);

	if (err == 0)
		err = nbar_group_connect_test(g);
	return err < 0 ? err : 0;
}

int nbar_group_connect_test(struct nbar_group *g)
{
	struct nblib_connect *c = g->connecting;
	int err;

	if (!c)
		return g->connected ? 1
				    : nblib_fail(-ENOTCONN, "the group is not being connected: "
							    "call nbar_group_connect_start");
	if (!c->sent) {
		err = nblib_link_start(&g->port->link, &c->call, &c->answer);
		c->sent = err == 0;
		return err == 0 || err == -EAGAIN ? 0 : answered(g, err);
	}
	err = nblib_link_finish(&g->port->link, &c->call, &c->answer);
	if (err == 0)
		return 0;
	return answered(g, err < 0 ? err : 0);
}
