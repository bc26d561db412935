/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_connect.c - a client names the peers of its group: their blobs go to the wire, which
 * makes ready for their NICs, and then to the group.
 *
 * As request.c.
 */
#include <errno.h>

#include "control_internal.h"

struct connect_call {
	struct nicd_nic *nic;
	struct port *port;
	const struct nbar_req_group_connect *req;
	enum {
		CONNECT_DONE,
		CONNECT_NO_CELL,
		CONNECT_TWICE,
		CONNECT_MANY,
		CONNECT_REFUSED,
		CONNECT_NO_WIRE
	} end;
	uint32_t missing; /* before and, if it went well, after */
	uint32_t bad, rank;
	const char *why;
	int rc;
};

/* Whether the group can take so many peers: before the wire makes anything for them. */
static void run_check(void *arg, uint64_t now)
{
	struct connect_call *call = arg;
	const struct nbnic_group *g = request_group_in(call->port, call->req->cell);

	(void)now;
	call->end = CONNECT_NO_CELL;
	if (!g)
		return;
	call->missing = (g->is_signal ? g->npeer_max : g->npeer) - g->nconnected;
	call->end = CONNECT_TWICE;
	if (call->missing == 0 && call->req->nblob > 0)
		return;
	call->end = call->req->nblob > call->missing ? CONNECT_MANY : CONNECT_DONE;
}

static void run_group_connect(void *arg, uint64_t now)
{
	struct connect_call *call = arg;
	const struct nbar_blob *blob = (const void *)(call->req + 1);
	struct nbnic_group *g = request_group_in(call->port, call->req->cell);

	/* A process that exits has ended the port since run_check. */
	call->end = CONNECT_NO_CELL;
	if (!g)
		return;
	call->end = CONNECT_REFUSED;
	if (nbnic_group_connect(&call->nic->nic, g, blob, call->req->nblob, now, &call->bad,
				&call->why) < 0) {
		call->rank =
			g->is_signal ? NBAR_RANK_NONE : g->peer[g->nconnected + call->bad].rank;
		return;
	}
	call->end = CONNECT_DONE;
	call->missing = g->npeer - g->nconnected;
}

/* Has the wire make ready for the NICs that the first n blobs name. Those that are none of this
 * wire are left to connect, which refuses them: *begun is how many come before. */
static int peers_begin(struct wire_base *w, const struct nbar_blob *blob, uint32_t n,
		       uint32_t *begun, uint32_t *rank, const char **why)
{
	struct nbnic_addr addr;
	int rc = 0;

	*begun = 0;
	while (rc == 0 && w->ops->peer_begin && *begun < n &&
	       nbnic_blob_addr(&blob[*begun], w->kind, &addr, rank)) {
		rc = w->ops->peer_begin(w, &addr, why);
		*begun += rc == 0;
	}
	return rc;
}

static void peers_end(struct wire_base *w, const struct nbar_blob *blob, uint32_t n)
{
	struct nbnic_addr addr;
	uint32_t rank;

	for (uint32_t i = 0; i < n; i++)
		if (nbnic_blob_addr(&blob[i], w->kind, &addr, &rank))
			w->ops->peer_end(w, &addr);
}

/* Connects, with the wire made ready before. */
static void connect_ready(struct control *k, struct connect_call *call)
{
	const struct nbar_blob *blob = (const void *)(call->req + 1);
	uint32_t begun;
	int rc = peers_begin(call->nic->wire, blob, call->req->nblob, &begun, &call->rank,
			     &call->why);

	if (rc < 0) {
		call->end = CONNECT_NO_WIRE;
		call->rc = rc;
	} else {
		control_call(k, run_group_connect, call);
	}
	if (call->end != CONNECT_DONE)
		peers_end(call->nic->wire, blob, begun);
}

int request_group_connect(struct control_client *c, const void *body, size_t length)
{
	struct control *k = c->at->control;
	struct connect_call call = { .nic = c->at->nic, .port = c->port, .req = body };
	struct nbar_rep_group_connect *rep;

	if (length != sizeof(*call.req) + (uint64_t)call.req->nblob * NBAR_BLOB_SIZE)
		return request_fail(k, -EBADMSG, "%u blobs were announced, %zu bytes came",
				    call.req->nblob, length - sizeof(*call.req));
	control_call(k, run_check, &call);
	if (call.end == CONNECT_DONE)
		connect_ready(k, &call);
	switch (call.end) {
	case CONNECT_NO_CELL:
		return request_fail(k, -ENOENT,
				    "there is no group in cell %u of port %u; open one "
				    "first",
				    call.req->cell, c->port->number);
	case CONNECT_TWICE:
		return request_fail(k, -EISCONN, "the group in cell %u is connected already",
				    call.req->cell);
	case CONNECT_MANY:
		return request_fail(k, -ERANGE,
				    "the group in cell %u lacks %u peers, but %u blobs "
				    "came",
				    call.req->cell, call.missing, call.req->nblob);
	case CONNECT_REFUSED:
		if (call.rank == NBAR_RANK_NONE)
			return request_fail(k, -EPROTO,
					    "blob %u is refused: %s; all members need the "
					    "same size and tag, and one kind of wire",
					    call.bad, call.why);
		return request_fail(k, -EPROTO,
				    "the blob of rank %u is refused: %s; all members need the "
				    "same algorithm, size and tag, and one kind of wire",
				    call.rank, call.why);
	case CONNECT_NO_WIRE:
		return request_fail(k, call.rc, "no way to the NIC of rank %u: %s", call.rank,
				    call.why);
	case CONNECT_DONE:
		break;
	}
	rep = request_reply(k, sizeof(*rep));
	rep->missing = call.missing;
	return 0;
}
