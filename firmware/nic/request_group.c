/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_group.c - a client opens and closes groups.
 *
 * Allocates memory and makes plans here, on the side of requests, so that the pass need not.
 */
#include "request.h"
#include "text.h"

struct open_call {
	struct nbnic_request *request;
	struct nbnic_port *port;
	struct nbnic_group *group;
	struct nbar_rep_group_open *reply;
	int rc;
};

static void run_group_open(void *arg, uint64_t now)
{
	struct open_call *call = arg;
	struct nbnic_device *d = call->request->device;
	struct nbnic_group *g = call->group;

	(void)now;
	/* The port may have ended: a process that exits ends its ports while its threads still run.
	 */
	call->rc = -NBAR_ENETDOWN;
	if (d->port[call->port->number] != call->port)
		return;
	g->cell = nbnic_page_free_cell(call->port);
	if (g->values && nbnic_page_free_values(call->port) == NBAR_VALUE_GROUPS)
		call->rc = -NBAR_EMFILE;
	else
		call->rc = g->cell < NBNIC_GROUPS_MAX ? nbnic_group_open(&d->nic, g) : -NBAR_ENOSPC;
	if (call->rc)
		return;
	nbnic_cell_begin(call->port, g->cell, g);
	call->reply->values = g->values ? call->port->cell[g->cell].values - 1u : 0;
	call->reply->fast_value = d->wire->auth ? 0 : d->wire->fast_value;
	nbnic_device_port_place(d, call->port);
	call->reply->cell = g->cell;
	nbnic_group_endpoint(&d->nic, g, &call->reply->endpoint);
}

/* Writes the list of peers here, because 4,096 of them would take too long in a pass. The pass adds
 * cell and endpoint address. */
static struct nbar_rep_group_open *reply_begin(struct nbnic_request *r, const struct nbnic_group *g)
{
	struct nbar_rep_group_open *rep = nbnic_request_reply(r, sizeof(*rep));
	uint32_t *rank = nbnic_request_reply(r, g->npeer * sizeof(*rank));

	rep->npeer = g->npeer;
	for (uint32_t i = 0; i < g->npeer; i++)
		rank[i] = g->peer[i].rank;
	return rep;
}

/* The name that a client sent; '?' stands for each character that cannot be shown. */
static const char *shown(const char name[NBAR_NAME_MAX], char out[NBAR_NAME_MAX])
{
	uint32_t i = 0;

	for (; i < NBAR_NAME_MAX - 1 && name[i]; i++)
		out[i] = (char)(name[i] >= ' ' && name[i] <= '~' ? name[i] : '?');
	out[i] = '\0';
	return out;
}

static bool has_end(const char name[NBAR_NAME_MAX])
{
	for (uint32_t i = 0; i < NBAR_NAME_MAX; i++)
		if (!name[i])
			return true;
	return false;
}

static int check_algorithm(struct nbnic_request *r, const struct nbar_req_group_open *req,
			   struct nbfw_alg *alg)
{
	const struct nbfw_alg_row *row;
	char name[NBAR_NAME_MAX];
	int rc;

	shown(req->alg, name);
	if (!has_end(req->alg))
		return nbnic_request_fail(r, -NBAR_EINVAL,
					  "the name of an algorithm has at most %u characters; "
					  "this one begins with \"%s\"",
					  NBAR_NAME_MAX - 1, name);
	/* All members must choose the same algorithm: connect checks that. */
	rc = nbfw_alg_parse(req->alg, alg);
	/* "auto" has no row, and its usual algorithm carries no values. */
	if (rc == 0 && req->value_max && nbfw_alg_find(req->alg) == NBFW_ALG_END)
		*alg = (struct nbfw_alg){ NBFW_ALG_PAIRWISE, 0 };
	if (rc == -NBAR_ERANGE) {
		row = nbfw_alg_row(nbfw_alg_find(req->alg));
		return nbnic_request_fail(r, rc, "algorithm \"%s\": %s of %s%s goes from %u to %u",
					  name, row->param + 1, row->name, row->param, row->low,
					  row->high);
	}
	if (rc)
		return nbnic_request_fail(r, rc,
					  "unknown algorithm \"%s\"; this NIC knows " NBFW_ALG_NAMES
					  ", " NBFW_ALG_CUSTOM_NAME " and " NBFW_ALG_SIGNAL_NAME,
					  name);
	row = nbfw_alg_row(alg->kind);
	if (req->size > row->limit)
		return nbnic_request_fail(r, -NBAR_ERANGE,
					  "size %u: a group with the algorithm %s has at most %u "
					  "ranks; use " NBFW_ALG_AUTO,
					  req->size, row->name, row->limit);
	if (req->plan_length > 0 && alg->kind != NBFW_ALG_CUSTOM)
		return nbnic_request_fail(r, -NBAR_EINVAL,
					  "algorithm \"%s\" makes its own plan, but one came "
					  "along; ask for \"" NBFW_ALG_CUSTOM_NAME
					  "\" to have it used",
					  name);
	return 0;
}

static int check_values(struct nbnic_request *r, const struct nbar_req_group_open *req,
			struct nbfw_alg alg)
{
	const struct nbnic_device *d = r->device;

	if (req->value_max > NBAR_VALUE_MAX)
		return nbnic_request_fail(r, -NBAR_ERANGE,
					  "values of %u bytes: a barrier carries at most %u",
					  req->value_max, NBAR_VALUE_MAX);
	if (req->value_max && !(NBNIC_VALUES && d->wire->ops->values))
		return nbnic_request_fail(r, -NBAR_EOPNOTSUPP,
					  "the wire of %s, %s, carries no values; use ring, udp, "
					  "shm, kernel, dpdk or verbs",
					  d->name, d->wire->name);
	if (req->value_max && d->wire->no_values)
		return nbnic_request_fail(r, -NBAR_EOPNOTSUPP, "%s carries no values: %s", d->name,
					  d->wire->no_values);
	if (req->value_max && !nbfw_value_plans(alg))
		return nbnic_request_fail(r, -NBAR_EINVAL,
					  "algorithm \"%s\" does not count each member's value "
					  "once; use " NBFW_ALG_AUTO " for values",
					  nbfw_alg_row(alg.kind)->name);
	return 0;
}

static int check_open(struct nbnic_request *r, const struct nbar_req_group_open *req,
		      struct nbfw_alg *alg)
{
	if (r->length != sizeof(*req) + (uint64_t)req->plan_length)
		return nbnic_request_fail(r, -NBAR_EBADMSG,
					  "a plan of %u bytes was announced, %u came",
					  req->plan_length, r->length - (uint32_t)sizeof(*req));
	if (req->size == 0 || req->size > NBAR_SIZE_MAX)
		return nbnic_request_fail(r, -NBAR_ERANGE, "size %u: a group has 1 to %u ranks",
					  req->size, NBAR_SIZE_MAX);
	if (req->rank >= req->size)
		return nbnic_request_fail(r, -NBAR_ERANGE,
					  "rank %u: a group of %u has ranks 0 to %u", req->rank,
					  req->size, req->size - 1);
	int rc = check_algorithm(r, req, alg);

	return rc ? rc : check_values(r, req, *alg);
}

static int check_plan(struct nbnic_request *r, const struct nbar_req_group_open *req)
{
	const struct nbnic_device *d = r->device;
	const struct nbar_plan *plan = (const void *)(req + 1);
	size_t words = nbfw_plan_scratch(req->plan_length) + 1;
	uint64_t *scratch = d->platform->alloc(d->ctx, words * sizeof(*scratch));
	const char *why;
	int rc;

	if (!scratch)
		return nbnic_request_fail(r, -NBAR_ENOMEM,
					  "%s has no memory to check a plan of %u bytes; close "
					  "groups, or use another NIC",
					  d->name, req->plan_length);
	rc = nbfw_plan_check(plan, req->plan_length, scratch, &why);
	d->platform->free(d->ctx, scratch);
	if (rc)
		return nbnic_request_fail(r, rc, "the plan of rank %u is refused: %s", req->rank,
					  why);
	if (plan->rank != req->rank || plan->size != req->size)
		return nbnic_request_fail(r, -NBAR_EINVAL,
					  "the plan is that of rank %u of %u, the group is opened "
					  "as rank %u of %u",
					  plan->rank, plan->size, req->rank, req->size);
	return 0;
}

/* Sets *plan to the plan of a group: the plan in the request ("custom"), NULL ("signal"), or a new
 * plan, which the caller frees by *to_free. */
static int make_plan(struct nbnic_request *r, const struct nbar_req_group_open *req,
		     struct nbfw_alg kind, const struct nbar_plan **plan, void **to_free)
{
	const struct nbnic_device *d = r->device;
	int32_t n;

	*plan = NULL;
	if (kind.kind == NBFW_ALG_SIGNAL)
		return 0;
	if (kind.kind == NBFW_ALG_CUSTOM) {
		*plan = (const void *)(req + 1);
		return check_plan(r, req);
	}
	/* This does not fail: check_open has checked algorithm, size and rank. */
	n = nbfw_plan_generate(kind, req->size, req->rank, NULL, 0);
	*to_free = d->platform->alloc(d->ctx, (size_t)n);
	if (!*to_free)
		return nbnic_request_fail(r, -NBAR_ENOMEM,
					  "%s has no memory for a plan of %d bytes; close groups, "
					  "or use another NIC",
					  d->name, n);
	nbfw_plan_generate(kind, req->size, req->rank, *to_free, (size_t)n);
	*plan = *to_free;
	return 0;
}

static uint32_t kib(uint64_t bytes)
{
	return (uint32_t)(bytes / 1024);
}

/* Checks a group of this size against the limits of its user, its port and the NIC. */
static int check_memory(struct nbnic_request *r, size_t bytes)
{
	const struct nbnic_device *d = r->device;
	const struct nbnic_client *c = r->client;
	int rc = nbnic_user_check_group(r, bytes);

	if (rc)
		return rc;
	if (c->bytes + bytes > d->port_bytes_max)
		return nbnic_request_fail(r, -NBAR_ENOSPC,
					  "groups of port %u of %s take %u KiB, this one %u more, "
					  "and a port may have %u; close some, or give the NIC "
					  "more memory",
					  c->port->number, d->name, kib(c->bytes), kib(bytes),
					  kib(d->port_bytes_max));
	if (d->open_bytes + bytes > d->open_bytes_max)
		return nbnic_request_fail(r, -NBAR_ENOSPC,
					  "groups of %s take %u KiB, this one %u more, and a NIC "
					  "has %u; close some, use another NIC, or give this one "
					  "more memory",
					  d->name, kib(d->open_bytes), kib(bytes),
					  kib(d->open_bytes_max));
	return 0;
}

/* Makes the group, but does not open it yet. */
static int group_build(struct nbnic_request *r, const struct nbar_req_group_open *req,
		       struct nbfw_alg alg, const struct nbar_plan *plan, struct nbnic_group **out)
{
	struct nbnic_device *d = r->device;
	struct nbnic_open open = {
		.port = r->client->port->number,
		.user = (uint8_t)r->client->user,
		.rank = req->rank,
		.size = req->size,
		.tag = req->tag,
		.alg = req->alg,
		.kind = alg,
		.plan = plan,
		.value_max = req->value_max,
	};
	size_t bytes = nbnic_group_size_values(plan, req->size, req->value_max);
	int rc = check_memory(r, bytes);
	void *block;

	if (rc)
		return rc;
	if (!d->platform->random(d->ctx, &open.cookie))
		return nbnic_request_fail(r, -NBAR_EIO,
					  "the machine of %s gives no random numbers for a cookie",
					  d->name);
	block = d->platform->alloc(d->ctx, bytes);
	if (!block)
		return nbnic_request_fail(
			r, -NBAR_ENOMEM,
			"%s has no memory for a group of %u; close groups, or use "
			"another NIC",
			d->name, req->size);
	*out = nbnic_group_build(&open, block);
	return 0;
}

/* Counts a group of this size as open, or as no longer open. */
static void group_account(struct nbnic_client *c, uint32_t bytes, bool open)
{
	struct nbnic_device *d = c->device;
	uint32_t one = open ? 1 : UINT32_MAX;
	uint64_t change = open ? bytes : 0 - (uint64_t)bytes;

	d->ngroup += one;
	c->ngroup += one;
	d->open_bytes += change;
	c->bytes += change;
	d->user[c->user].ngroup += one;
	d->user[c->user].bytes += change;
}

static int open_with(struct nbnic_request *r, const struct nbar_req_group_open *req,
		     struct nbfw_alg alg, const struct nbar_plan *plan)
{
	struct nbnic_device *d = r->device;
	struct open_call call = { .request = r, .port = r->client->port };
	int rc = group_build(r, req, alg, plan, &call.group);

	if (rc)
		return rc;
	d->nblock++;
	group_account(r->client, call.group->bytes, true);
	call.reply = reply_begin(r, call.group);
	nbnic_request_call(d, run_group_open, &call);
	if (call.rc == 0)
		return 0;
	d->nblock--;
	group_account(r->client, call.group->bytes, false);
	d->platform->free(d->ctx, call.group);
	if (call.rc == -NBAR_ENETDOWN)
		return nbnic_request_fail(r, call.rc,
					  "port %u of %s has ended, as its process exits",
					  call.port->number, d->name);
	if (call.rc == -NBAR_EMFILE)
		return nbnic_request_fail(r, -NBAR_ENOSPC,
					  "port %u of %s has %u groups with values, or attached "
					  "processes hold closed ones; close some",
					  call.port->number, d->name, NBAR_VALUE_GROUPS);
	return nbnic_request_fail(r, call.rc,
				  "%s is full: it has %u groups, or attached processes hold closed "
				  "ones; close some, or use another NIC",
				  d->name, NBNIC_GROUPS_MAX);
}

int nbnic_request_group_open(struct nbnic_request *r)
{
	const struct nbar_req_group_open *req = r->body;
	const struct nbar_plan *plan;
	struct nbfw_alg alg;
	void *to_free = NULL;
	int rc = check_open(r, req, &alg);

	if (rc == 0)
		rc = make_plan(r, req, alg, &plan, &to_free);
	if (rc == 0)
		rc = open_with(r, req, alg, plan);
	r->device->platform->free(r->device->ctx, to_free);
	return rc;
}

struct close_call {
	struct nbnic_device *device;
	struct nbnic_port *port;
	uint32_t cell;
	uint32_t bytes; /* of the group; 0: there is none */
};

static void run_group_close(void *arg, uint64_t now)
{
	struct close_call *call = arg;
	struct nbnic *nic = &call->device->nic;
	struct nbnic_group *g = nbnic_cell_group(call->port, call->cell);

	if (!g)
		return;
	call->bytes = g->bytes;
	if (call->port->cell[call->cell].held)
		nbnic_group_fail(nic, g, NBAR_STATUS_CLOSED, now);
	nbnic_cell_end(call->port, call->cell);
	nbnic_device_port_place(call->device, call->port);
	nbnic_group_close(nic, g, NBAR_STATUS_CLOSED, now);
}

int nbnic_request_group_close(struct nbnic_request *r)
{
	const struct nbar_req_group_close *req = r->body;
	struct nbnic_client *c = r->client;
	struct close_call call = { .device = r->device, .port = c->port, .cell = req->cell };

	if (c->owner)
		return nbnic_request_group_detach(r);
	nbnic_request_call(r->device, run_group_close, &call);
	if (call.bytes == 0)
		return nbnic_request_fail(r, -NBAR_ENOENT,
					  "there is no group in cell %u of port %u; was it closed "
					  "before?",
					  req->cell, c->port->number);
	group_account(c, call.bytes, false);
	if (r->device->platform->events_drop)
		r->device->platform->events_drop(r->device->ctx, c->port->number, req->cell);
	return 0;
}

/* --- a group that is open -------------------------------------------------------------------- */

struct cell_call {
	struct nbnic_device *device;
	struct nbnic_port *port;
	uint32_t cell;
	bool found;
};

static void run_find(void *arg, uint64_t now)
{
	struct cell_call *call = arg;

	(void)now;
	call->found = nbnic_cell_group(call->port, call->cell) != NULL;
}

static void run_abort(void *arg, uint64_t now)
{
	struct cell_call *call = arg;
	struct nbnic_group *g = nbnic_cell_group(call->port, call->cell);

	call->found = g && !g->is_signal;
	if (call->found)
		nbnic_group_fail(&call->device->nic, g, NBAR_STATUS_ABORTED, now);
}

static int no_such_cell(struct nbnic_request *r, uint32_t cell)
{
	return nbnic_request_fail(
		r, -NBAR_ENOENT,
		"there is no group of barriers in cell %u of this port of %s; was "
		"it closed before?",
		cell, r->device->name);
}

int nbnic_request_group_events(struct nbnic_request *r)
{
	const struct nbar_req_group_events *req = r->body;
	const struct nbnic_platform *platform = r->device->platform;
	struct cell_call call = { r->device, r->client->port, req->cell, false };
	int rc;

	if (!platform->events_make)
		return nbnic_request_fail(r, -NBAR_EOPNOTSUPP,
					  "%s has no sockets for poll(); wait by nbar_wait",
					  r->device->name);
	nbnic_request_call(r->device, run_find, &call);
	if (!call.found)
		return no_such_cell(r, req->cell);
	rc = platform->events_make(r->device->ctx, call.port->number, req->cell);
	if (rc)
		return nbnic_request_fail(r, rc,
					  "no socket for the group in cell %u of %s (error %d); "
					  "poll fewer groups, or wait by nbar_wait",
					  req->cell, r->device->name, -rc);
	r->client->gives_events = true;
	return 0;
}

int nbnic_request_group_abort(struct nbnic_request *r)
{
	const struct nbar_req_group_abort *req = r->body;
	struct nbnic_client *c = r->client;
	struct cell_call call = { r->device, c->port ? c->port : c->owner->port, req->cell, false };

	if (c->port || nbnic_client_holds(c, req->cell))
		nbnic_request_call(r->device, run_abort, &call);
	return call.found ? 0 : no_such_cell(r, req->cell);
}

struct reach_call {
	struct cell_call cell;
	uint32_t rank;
	struct nbar_rep_group_reach *rep;
	struct nbnic_addr peer;
};

static void run_reach(void *arg, uint64_t now)
{
	struct reach_call *call = arg;
	struct nbnic_group *g = nbnic_cell_group(call->cell.port, call->cell.cell);
	struct nbnic_reach reach;

	call->cell.found = g && !g->is_signal;
	if (!call->cell.found)
		return;
	nbnic_group_reach(&call->cell.device->nic, g, call->rank, now, &reach);
	call->rep->missing = reach.missing;
	call->rep->is_heard = reach.is_heard;
	call->rep->rank = NBAR_RANK_NONE;
	if (reach.peer) {
		call->rep->rank = reach.peer->rank;
		call->peer = reach.peer->addr;
	}
}

int nbnic_request_group_reach(struct nbnic_request *r)
{
	const struct nbar_req_group_reach *req = r->body;
	const struct nbnic_client *c = r->client;
	const struct wire_base *w = r->device->wire;
	struct reach_call call = {
		.cell = { r->device, c->port ? c->port : c->owner->port, req->cell, false },
		.rank = req->rank,
		.rep = nbnic_request_reply(r, sizeof(*call.rep)),
	};

	if (c->port || nbnic_client_holds(c, req->cell))
		nbnic_request_call(r->device, run_reach, &call);
	if (!call.cell.found)
		return no_such_cell(r, req->cell);
	nbnic_text_copy(call.rep->own, sizeof(call.rep->own), w->text);
	if (call.rep->rank != NBAR_RANK_NONE && w->ops->show)
		w->ops->show(w, &call.peer, call.rep->peer, sizeof(call.rep->peer));
	return 0;
}
