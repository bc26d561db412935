/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_attach.c - processes that attach to a port which another one has opened, and to groups
 * on it.
 *
 * As request.c. An attached process holds cells: while it does, its end makes the group fail, and
 * the cell is not given to another group, because the process still looks at the completion there.
 */
#include <errno.h>
#include <string.h>

#include "control_internal.h"

int request_port_attach(struct control_client *c, const void *body)
{
	struct control *k = c->at->control;
	const struct nbar_req_port_attach *req = body;
	const char *nic = c->at->nic->name;
	struct control_client *owner;

	if (c->port || c->owner)
		return request_fail(k, -EALREADY,
				    "this connection has a port of %s already; open another "
				    "connection for another port",
				    nic);
	owner = req->port < NBAR_PORTS_MAX ? c->at->owner[req->port] : NULL;
	if (!owner || memcmp(owner->secret, req->secret, sizeof(req->secret)) != 0)
		return request_fail(k, -ENOENT,
				    "nobody shares port %u of %s in these words: has the "
				    "process that opened it ended?",
				    req->port, nic);
	if (owner->uid != c->uid)
		return request_fail(k, -EACCES,
				    "port %u of %s belongs to uid %u, not to uid %u; a port "
				    "is shared within one user's processes",
				    req->port, nic, owner->uid, c->uid);
	if (c->at->nattached == NBAR_ATTACHED_MAX)
		return request_fail(k, -ENOSPC,
				    "%u processes are attached to ports of %s; have some of "
				    "them use another NIC",
				    NBAR_ATTACHED_MAX, nic);
	c->owner = owner;
	c->at->nattached++;
	request_port_reply(c, owner);
	return 0;
}

struct hold_call {
	struct nicd_nic *nic;
	struct port *port;
	const struct nbar_req_group_attach *req;
	bool found;
};

static void run_hold(void *arg, uint64_t now)
{
	struct hold_call *call = arg;
	const struct nbnic_group *g = call->port->group[call->req->cell];
	struct nbar_blob blob;

	(void)now;
	if (!g || g->is_signal)
		return;
	nbnic_group_blob(&call->nic->nic, g, &blob);
	if (memcmp(&blob, &call->req->blob, sizeof(blob)) != 0)
		return;
	call->port->held[call->req->cell]++;
	call->found = true;
}

static uint64_t bit_of(uint32_t cell)
{
	return UINT64_C(1) << (cell % 64);
}

int request_group_attach(struct control_client *c, const void *body)
{
	struct control *k = c->at->control;
	struct hold_call call = { .nic = c->at->nic, .req = body };
	uint32_t cell = call.req->cell;

	if (!c->owner)
		return request_fail(k, -ENXIO,
				    "this connection is not attached to a port of %s; attach "
				    "to one first",
				    c->at->nic->name);
	if (cell < NBAR_GROUPS_MAX && c->held[cell / 64] & bit_of(cell))
		return request_fail(k, -EALREADY, "attached to the group in cell %u already", cell);
	call.port = c->owner->port;
	if (cell < NBAR_GROUPS_MAX)
		control_call(k, run_hold, &call);
	if (!call.found)
		return request_fail(k, -ENOENT,
				    "the group is not in cell %u of port %u; was it closed "
				    "before?",
				    cell, call.port->number);
	c->held[cell / 64] |= bit_of(cell);
	return 0;
}

struct let_go_call {
	struct nicd_nic *nic;
	struct port *port;
	const uint64_t *cells; /* a bit each */
	uint8_t cause;         /* NBAR_STATUS_OK, or what the groups fail for */
};

static void run_let_go(void *arg, uint64_t now)
{
	struct let_go_call *call = arg;

	for (uint32_t cell = 0; cell < NBAR_GROUPS_MAX; cell++) {
		struct nbnic_group *g = call->port->group[cell];

		if (!(call->cells[cell / 64] & bit_of(cell)))
			continue;
		call->port->held[cell]--;
		if (g && call->cause != NBAR_STATUS_OK)
			nbnic_group_fail(&call->nic->nic, g, call->cause, now);
	}
}

int request_group_let_go(struct control_client *c, const void *body)
{
	struct control *k = c->at->control;
	const struct nbar_req_group_close *req = body;
	uint64_t cells[NBAR_GROUPS_MAX / 64] = { 0 };
	struct let_go_call call = { .nic = c->at->nic, .port = c->owner->port, .cells = cells };

	if (req->cell >= NBAR_GROUPS_MAX || !(c->held[req->cell / 64] & bit_of(req->cell)))
		return request_fail(k, -ENOENT, "not attached to a group in cell %u", req->cell);
	cells[req->cell / 64] = bit_of(req->cell);
	c->held[req->cell / 64] &= ~bit_of(req->cell);
	control_call(k, run_let_go, &call);
	return 0;
}

static void forget(struct control_client *c)
{
	memset(c->held, 0, sizeof(c->held));
	c->owner = NULL;
	c->at->nattached--;
}

void request_detach(struct control_client *c)
{
	struct let_go_call call = {
		.nic = c->at->nic,
		.port = c->owner->port,
		.cells = c->held,
		.cause = NBAR_STATUS_HOST_DIED,
	};

	control_call(c->at->control, run_let_go, &call);
	forget(c);
}

void request_detach_all(struct control_client *c)
{
	for (struct control_client *other = c->at->client; other; other = other->next)
		if (other->owner == c)
			forget(other);
}
