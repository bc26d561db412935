/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world_host.c - the hosts of simulated NICs; see world.h. They communicate with their NIC as
 * libnbar does: by messages, and by stores to the page of their port.
 */
#include <stdlib.h>
#include <string.h>

#include "fast.h"

int sim_host_request(struct sim_world *w, struct sim_host *h, enum nbar_op op, const void *body,
		     size_t length, const void **reply)
{
	struct nbar_request *q = (void *)w->in;
	const struct nbar_reply *r = (const void *)w->out;

	*q = (struct nbar_request){
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = (uint16_t)op,
		.length = (uint32_t)(sizeof(*q) + length),
	};
	memcpy(q + 1, body, length);
	nbnic_client_request(&h->client, q, q->length, false, w->out);
	if (reply)
		*reply = r + 1;
	return r->status;
}

static bool host_room(struct sim_world *w)
{
	if (w->nhost < w->host_room)
		return true;
	uint32_t n = 2 * w->host_room + 16;
	struct sim_host **host = realloc(w->host, n * sizeof(struct sim_host *));

	if (!host)
		return false;
	w->host = host;
	w->host_room = n;
	return true;
}

struct sim_host *sim_host_begin(struct sim_world *w, uint32_t nic)
{
	const struct nbar_req_port_open req = { .port = NBAR_PORT_ANY };
	struct sim_host *h = host_room(w) ? calloc(1, sizeof(*h)) : NULL;
	struct sim_nic *n = w->nic[nic];

	if (!h || n->dead) {
		free(h);
		return NULL;
	}
	nbnic_client_begin(&n->device, &h->client, 1 + w->nhost, 1, false);
	if (sim_host_request(w, h, NBAR_OP_PORT_OPEN, &req, sizeof(req), NULL)) {
		nbnic_client_end(&h->client, NBAR_STATUS_CLOSED);
		free(h);
		return NULL;
	}
	h->page = h->client.port->page;
	h->nic = nic;
	h->index = w->nhost;
	h->next = n->first_host;
	n->first_host = h->index;
	w->host[w->nhost++] = h;
	return h;
}

void sim_host_end(struct sim_world *w, struct sim_host *h, uint8_t cause)
{
	if (!h->page)
		return;
	h->page = NULL;
	nbnic_client_end(&h->client, cause);
}

static int host_group_open(struct sim_world *w, struct sim_host *h, uint32_t rank, uint32_t size,
			   const char *alg, const struct nbar_plan *plan, uint32_t value_max,
			   struct nbar_endpoint *endpoint)
{
	static uint64_t room[NBAR_MESSAGE_MAX / 8];
	struct nbar_req_group_open *req = (void *)room;
	const struct nbar_rep_group_open *rep;
	const void *body;
	size_t length = plan ? (size_t)nbfw_plan_length(plan) : 0;

	*req = (struct nbar_req_group_open){
		.rank = rank, .size = size, .plan_length = (uint32_t)length, .value_max = value_max
	};
	strncpy(req->alg, plan ? NBFW_ALG_CUSTOM_NAME : alg, sizeof(req->alg) - 1);
	if (length > sizeof(room) - sizeof(*req) - sizeof(struct nbar_request))
		return -NBAR_EMSGSIZE;
	if (plan)
		memcpy(req + 1, plan, length);
	int r = sim_host_request(w, h, NBAR_OP_GROUP_OPEN, req, sizeof(*req) + length, &body);

	if (r < 0)
		return r;
	rep = body;
	h->cell = rep->cell;
	h->values = rep->values;
	h->rank = rank;
	h->seen = 0;
	h->posted = 0;
	h->asking = h->asleep = false;
	*endpoint = rep->endpoint;
	return 0;
}

/* Names the peers to the NIC, in as few messages as possible. */
static int group_connect(struct sim_world *w, struct sim_host *h,
			 const struct nbar_endpoint *endpoint)
{
	static uint64_t room[NBAR_MESSAGE_MAX / 8];
	struct nbar_req_group_connect *req = (void *)room;
	struct nbar_endpoint *to = (struct nbar_endpoint *)(req + 1);
	const uint32_t most =
		(NBAR_MESSAGE_MAX - sizeof(struct nbar_request) - sizeof(*req)) / sizeof(*to);
	const struct nbnic_group *g = nbnic_cell_group(h->client.port, h->cell);
	uint32_t npeer = g->npeer, at = 0;

	while (at < npeer) {
		uint32_t n = npeer - at < most ? npeer - at : most;

		*req = (struct nbar_req_group_connect){ .cell = h->cell, .nendpoint = n };
		for (uint32_t i = 0; i < n; i++)
			to[i] = endpoint[g->peer[at + i].rank];
		int r = sim_host_request(w, h, NBAR_OP_GROUP_CONNECT, req,
					 sizeof(*req) + n * sizeof(*to), NULL);

		if (r < 0)
			return r;
		at += n;
	}
	if (npeer > 0)
		return 0;
	*req = (struct nbar_req_group_connect){ .cell = h->cell };
	return sim_host_request(w, h, NBAR_OP_GROUP_CONNECT, req, sizeof(*req), NULL);
}

int sim_group_begin(struct sim_world *w, struct sim_host *const *host, uint32_t size,
		    const char *alg, const struct nbar_plan *const *plan, uint32_t value_max)
{
	struct nbar_endpoint *endpoint = calloc(size, sizeof(*endpoint));
	int r = endpoint ? 0 : -NBAR_ENOMEM;

	for (uint32_t i = 0; !r && i < size; i++)
		r = host_group_open(w, host[i], i, size, alg, plan ? plan[i] : NULL, value_max,
				    &endpoint[i]);
	for (uint32_t i = 0; !r && i < size; i++)
		r = group_connect(w, host[i], endpoint);
	free(endpoint);
	return r;
}

void sim_host_post(struct sim_world *w, struct sim_host *h, uint32_t epoch)
{
	if (!h->page)
		return;
	if (w->nic[h->nic]->fast) {
		sim_fast_post(w->nic[h->nic], h, epoch);
		return;
	}
	/* Pairs with the acquire in scan_doorbell, as the store of order_post does. */
	__atomic_store_n(&h->page->doorbell[h->cell].posted, epoch, __ATOMIC_RELEASE);
	sim_nic_jump(w, h->nic, 0);
}
