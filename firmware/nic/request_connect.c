/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_connect.c - a client names the peers of its group: their endpoint addresses go to the
 * wire, which prepares for frames to and from their NICs, and then to the group.
 */
#include "request.h"

/* Endpoint addresses that one call reads, so that the pass does not wait for long. */
#define ENDPOINTS_A_CALL 32u

enum connect_end { CONNECT_DONE, CONNECT_NO_CELL, CONNECT_TWICE, CONNECT_MANY, CONNECT_REFUSED };

struct connect_call {
	struct nbnic_device *device;
	struct nbnic_port *port;
	const struct nbar_req_group_connect *req;
	uint32_t first, n; /* endpoint addresses of this call */
	enum connect_end end;
	uint32_t missing; /* peers that the group lacks, after this call */
	uint32_t bad, rank;
	const char *why;
};

/* Checks the number of endpoint addresses in the request, before the wire prepares for any. */
static void run_check(void *arg, uint64_t now)
{
	struct connect_call *call = arg;
	const struct nbnic_group *g = nbnic_cell_group(call->port, call->req->cell);

	(void)now;
	call->end = CONNECT_NO_CELL;
	if (!g)
		return;
	call->missing = (g->is_signal ? g->npeer_max : g->npeer) - g->nconnected;
	call->end = CONNECT_TWICE;
	if (call->missing == 0 && call->req->nendpoint > 0)
		return;
	call->end = call->req->nendpoint > call->missing ? CONNECT_MANY : CONNECT_DONE;
}

static const struct nbar_endpoint *endpoints_of(const struct connect_call *call)
{
	return (const struct nbar_endpoint *)(call->req + 1) + call->first;
}

/* Checks all endpoint addresses: if one is refused, no part of the request takes effect. */
static void run_endpoints_check(void *arg, uint64_t now)
{
	struct connect_call *call = arg;
	const struct nbnic_group *g = nbnic_cell_group(call->port, call->req->cell);

	(void)now;
	/* The port may have ended since the last call, if its process exits. */
	call->end = CONNECT_NO_CELL;
	if (!g)
		return;
	call->end = CONNECT_DONE;
	if (nbnic_group_check(&call->device->nic, g, call->first, endpoints_of(call), call->n,
			      &call->bad, &call->why)) {
		call->rank =
			g->is_signal ? NBAR_RANK_NONE : g->peer[g->nconnected + call->bad].rank;
		call->end = CONNECT_REFUSED;
	}
}

static void run_group_connect(void *arg, uint64_t now)
{
	struct connect_call *call = arg;
	struct nbnic_group *g = nbnic_cell_group(call->port, call->req->cell);

	call->end = CONNECT_NO_CELL;
	if (!g || nbnic_group_connect(&call->device->nic, g, endpoints_of(call), call->n, now,
				      &call->bad, &call->why))
		return;
	call->end = CONNECT_DONE;
	call->missing = g->npeer - g->nconnected;
}

/* Runs fn for all endpoint addresses, a few at a time. call->first is then the number that fn has
 * accepted. */
static void for_endpoints(struct connect_call *call, nbnic_fn *fn)
{
	call->first = 0;
	do {
		call->n = call->req->nendpoint - call->first;
		if (call->n > ENDPOINTS_A_CALL)
			call->n = ENDPOINTS_A_CALL;
		nbnic_request_call(call->device, fn, call);
		if (call->end == CONNECT_DONE)
			call->first += call->n;
	} while (call->end == CONNECT_DONE && call->first < call->req->nendpoint);
}

static bool endpoint_is_ours(const struct wire_base *w, const struct nbar_endpoint *endpoint,
			     struct nbnic_addr *addr, uint32_t *rank)
{
	return nbnic_endpoint_addr(endpoint, w->kind, addr, rank);
}

/* Makes the wire ready for the NICs that the endpoint addresses name. *begun: the number of
 * endpoint addresses for which this succeeded. */
static int peers_begin(struct wire_base *w, const struct nbar_endpoint *endpoint, uint32_t n,
		       uint32_t *begun, uint32_t *rank, const char **why)
{
	struct nbnic_addr addr;
	int rc = 0;

	*begun = 0;
	while (rc == 0 && w->ops->peer_begin && *begun < n &&
	       endpoint_is_ours(w, &endpoint[*begun], &addr, rank)) {
		rc = w->ops->peer_begin(w, &addr, why);
		*begun += rc == 0;
	}
	return rc;
}

static void connect_peers_end(struct wire_base *w, const struct nbar_endpoint *endpoint,
			      uint32_t first, uint32_t end)
{
	struct nbnic_addr addr;
	uint32_t rank;

	for (uint32_t i = first; i < end; i++)
		if (endpoint_is_ours(w, &endpoint[i], &addr, &rank))
			w->ops->peer_end(w, &addr);
}

static int connect_refuse(struct nbnic_request *r, const struct connect_call *call)
{
	switch (call->end) {
	case CONNECT_NO_CELL:
		return nbnic_request_fail(r, -NBAR_ENOENT,
					  "there is no group in cell %u of port %u; open one "
					  "first",
					  call->req->cell, call->port->number);
	case CONNECT_TWICE:
		return nbnic_request_fail(r, -NBAR_EISCONN,
					  "the group in cell %u is connected already",
					  call->req->cell);
	case CONNECT_MANY:
		return nbnic_request_fail(
			r, -NBAR_ERANGE,
			"the group in cell %u lacks %u peers, but %u endpoint addresses "
			"came",
			call->req->cell, call->missing, call->req->nendpoint);
	case CONNECT_REFUSED:
		if (call->rank == NBAR_RANK_NONE)
			return nbnic_request_fail(
				r, -NBAR_EPROTO,
				"endpoint address %u is refused: %s; all members need the "
				"same size and tag, and one kind of wire",
				call->bad, call->why);
		return nbnic_request_fail(
			r, -NBAR_EPROTO,
			"the endpoint address of rank %u is refused: %s; all members need the "
			"same algorithm, size and tag, and one kind of wire",
			call->rank, call->why);
	case CONNECT_DONE:
		break;
	}
	return 0;
}

/* Connects endpoint addresses that have passed the checks. */
static int connect_all(struct nbnic_request *r, struct connect_call *call)
{
	const struct nbar_endpoint *endpoint = (const struct nbar_endpoint *)(call->req + 1);
	struct wire_base *w = call->device->wire;
	uint32_t begun;
	int rc = peers_begin(w, endpoint, call->req->nendpoint, &begun, &call->rank, &call->why);

	if (rc) {
		connect_peers_end(w, endpoint, 0, begun);
		return nbnic_request_fail(r, rc, "no way to the NIC of rank %u: %s", call->rank,
					  call->why);
	}
	for_endpoints(call, run_group_connect);
	connect_peers_end(w, endpoint, call->first,
			  begun); /* those that the group has not accepted */
	return connect_refuse(r, call);
}

int nbnic_request_group_connect(struct nbnic_request *r)
{
	struct connect_call call = { .device = r->device, .port = r->client->port, .req = r->body };
	struct nbar_rep_group_connect *rep;
	int rc;

	if (r->length != sizeof(*call.req) + (uint64_t)call.req->nendpoint * NBAR_ENDPOINT_SIZE)
		return nbnic_request_fail(
			r, -NBAR_EBADMSG, "%u endpoint addresses were announced, %u bytes came",
			call.req->nendpoint, r->length - (uint32_t)sizeof(*call.req));
	nbnic_request_call(r->device, run_check, &call);
	if (call.end == CONNECT_DONE)
		for_endpoints(&call, run_endpoints_check);
	rc = connect_refuse(r, &call);
	if (rc == 0)
		rc = connect_all(r, &call);
	if (rc)
		return rc;
	rep = nbnic_request_reply(r, sizeof(*rep));
	rep->missing = call.missing;
	return 0;
}
