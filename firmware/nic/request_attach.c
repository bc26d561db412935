/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_attach.c - clients that attach to a port of another client, and to groups on it.
 *
 * An attached client holds the cells of its groups. If it ends, these groups fail. While it holds a
 * cell, the NIC gives the cell to no other group, because the client still reads the completion
 * there.
 */
#include "request.h"

static bool same_bytes(const void *a, const void *b, size_t size)
{
	return __builtin_memcmp(a, b, size) == 0;
}

void nbnic_request_port_reply(struct nbnic_request *r, const struct nbnic_client *owner)
{
	struct nbar_rep_port_open *rep = nbnic_request_reply(r, sizeof(*rep));

	rep->port = owner->port->number;
	rep->page_size = sizeof(struct nbar_page);
	rep->pid = r->device->pid;
	__builtin_memcpy(rep->secret, owner->secret, sizeof(rep->secret));
	__builtin_memcpy(rep->nic, r->device->name, sizeof(rep->nic));
	r->client->gives_page = true;
	r->client->page_port = owner->port->number;
}

int nbnic_request_port_attach(struct nbnic_request *r)
{
	const struct nbar_req_port_attach *req = r->body;
	struct nbnic_client *c = r->client, *owner;
	struct nbnic_device *d = r->device;
	int rc;

	if (c->port || c->owner)
		return nbnic_request_fail(r, -NBAR_EALREADY,
					  "this connection has a port of %s already; open another "
					  "connection for another port",
					  d->name);
	owner = req->port < NBNIC_PORTS_MAX ? d->owner[req->port] : NULL;
	if (!owner || !same_bytes(owner->secret, req->secret, sizeof(req->secret)))
		return nbnic_request_fail(r, -NBAR_ENOENT,
					  "port %u of %s is not shared under this secret: has the "
					  "process that opened it ended?",
					  req->port, d->name);
	if (owner->uid != c->uid)
		return nbnic_request_fail(r, -NBAR_EACCES,
					  "port %u of %s belongs to uid %u, not to uid %u; a port "
					  "is shared within one user's processes",
					  req->port, d->name, owner->uid, c->uid);
	if (d->nattached == NBNIC_ATTACHED_MAX)
		return nbnic_request_fail(r, -NBAR_ENOSPC,
					  "%u processes are attached to ports of %s; have some of "
					  "them use another NIC",
					  NBNIC_ATTACHED_MAX, d->name);
	rc = nbnic_user_check_attach(r, owner);
	if (rc)
		return rc;
	c->owner = owner;
	d->nattached++;
	d->user[owner->user].nattached++;
	nbnic_request_port_reply(r, owner);
	return 0;
}

struct hold_call {
	struct nbnic_device *device;
	struct nbnic_port *port;
	const struct nbar_req_group_attach *req;
	bool found;
};

static void run_hold(void *arg, uint64_t now)
{
	struct hold_call *call = arg;
	const struct nbnic_group *g = nbnic_cell_group(call->port, call->req->cell);
	struct nbar_endpoint endpoint;

	(void)now;
	if (!g || g->is_signal)
		return;
	nbnic_group_endpoint(&call->device->nic, g, &endpoint);
	if (!same_bytes(&endpoint, &call->req->endpoint, sizeof(endpoint)))
		return;
	call->port->cell[call->req->cell].held++;
	call->found = true;
}

static uint64_t bit_of(uint32_t cell)
{
	return UINT64_C(1) << (cell % 64);
}

bool nbnic_client_holds(const struct nbnic_client *c, uint32_t cell)
{
	return cell < NBNIC_GROUPS_MAX && c->held[cell / 64] & bit_of(cell);
}

int nbnic_request_group_attach(struct nbnic_request *r)
{
	struct nbnic_client *c = r->client;
	struct hold_call call = { .device = r->device, .req = r->body };
	uint32_t cell = call.req->cell;

	if (!c->owner)
		return nbnic_request_fail(r, -NBAR_ENXIO,
					  "this connection is not attached to a port of %s; attach "
					  "to one first",
					  r->device->name);
	if (nbnic_client_holds(c, cell))
		return nbnic_request_fail(r, -NBAR_EALREADY,
					  "attached to the group in cell %u already", cell);
	call.port = c->owner->port;
	nbnic_request_call(r->device, run_hold, &call);
	if (!call.found)
		return nbnic_request_fail(r, -NBAR_ENOENT,
					  "the group is not in cell %u of port %u; was it closed "
					  "before?",
					  cell, call.port->number);
	c->held[cell / 64] |= bit_of(cell);
	return 0;
}

/* Releases the cells of one word of a bit set. */
struct let_go_call {
	struct nbnic_device *device;
	struct nbnic_port *port;
	uint32_t first; /* cell of bit 0 */
	uint64_t cells;
	uint8_t cause; /* NBAR_STATUS_OK, or the reason why the groups fail */
};

static void run_let_go(void *arg, uint64_t now)
{
	struct let_go_call *call = arg;

	for (uint32_t bit = 0; bit < 64; bit++) {
		uint32_t cell = call->first + bit;
		struct nbnic_group *g;

		if (!(call->cells & bit_of(bit)))
			continue;
		g = call->port->cell[cell].group;
		call->port->cell[cell].held--;
		if (g && call->cause != NBAR_STATUS_OK)
			nbnic_group_fail(&call->device->nic, g, call->cause, now);
	}
}

static void let_go(struct nbnic_client *c, uint32_t first, uint64_t cells, uint8_t cause)
{
	struct let_go_call call = { c->device, c->owner->port, first, cells, cause };

	c->held[first / 64] &= ~cells;
	nbnic_request_call(c->device, run_let_go, &call);
}

int nbnic_request_group_detach(struct nbnic_request *r)
{
	const struct nbar_req_group_close *req = r->body;
	struct nbnic_client *c = r->client;

	if (!nbnic_client_holds(c, req->cell))
		return nbnic_request_fail(r, -NBAR_ENOENT, "not attached to a group in cell %u",
					  req->cell);
	let_go(c, req->cell & ~63u, bit_of(req->cell), NBAR_STATUS_OK);
	return 0;
}

static void attach_forget(struct nbnic_client *c)
{
	__builtin_memset(c->held, 0, sizeof(c->held));
	c->device->user[c->owner->user].nattached--;
	c->device->nattached--;
	c->owner = NULL;
}

void nbnic_client_detach(struct nbnic_client *c, uint8_t cause)
{
	for (uint32_t i = 0; i < sizeof(c->held) / sizeof(c->held[0]); i++)
		if (c->held[i])
			let_go(c, 64 * i, c->held[i], cause);
	attach_forget(c);
}

void nbnic_client_detach_all(struct nbnic_client *c)
{
	for (struct nbnic_client *other = c->device->client; other; other = other->next)
		if (other->owner == c)
			attach_forget(other);
}
