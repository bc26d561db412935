/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - groups: open, attach, close, and how their threads wait.
 *
 * Called when a group is made and ended; one thread at a time per port. Knows no algorithm: the
 * name of an algorithm is a text for the NIC. Only "signal", which is not an algorithm, is handled
 * here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "order.h"

static int check_attr(const struct nbar_group_attr *attr)
{
	const char *alg = attr->alg;

	if (alg && (!*alg || strlen(alg) >= NBAR_NAME_MAX))
		return nblib_fail(-EINVAL, "algorithm \"%.40s\": a name has 1 to %u characters",
				  alg, NBAR_NAME_MAX - 1);
	if (attr->size == 0 || attr->size > NBAR_SIZE_MAX)
		return nblib_fail(-ERANGE, "size %u: a group has 1 to %u ranks", attr->size,
				  NBAR_SIZE_MAX);
	if (attr->rank >= attr->size)
		return nblib_fail(-ERANGE, "rank %u: a group of %u has ranks 0 to %u", attr->rank,
				  attr->size, attr->size - 1);
	if (!attr->plan != !attr->plan_length)
		return nblib_fail(-EINVAL, "plan and plan_length go together");
	return 0;
}

/* "signal": every rank but our own is a peer, in order of rank. */
static void peer_all(struct nbar_group *g)
{
	for (uint32_t rank = 0; rank < g->size; rank++)
		if (rank != g->rank)
			g->peer[g->npeer++] = rank;
}

static void completion_find(struct nbar_group *g)
{
	struct nbar_port *p = g->port;

	g->completion =
		p->results ? &p->results->completion[g->cell] : &p->page->completion[g->cell];
}

/* index: of the NIC, or of a share. */
static void values_find(struct nbar_group *g, uint32_t value_max, uint32_t index)
{
	if (value_max == 0 || value_max > NBAR_VALUE_MAX || index >= NBAR_VALUE_GROUPS)
		return;
	g->values = g->port->results ? g->port->results->value[index] : g->port->page->value[index];
	g->values_index = index;
	g->value_max = value_max;
	/* In its own copy, the NIC has done the same. */
	for (uint32_t i = 0; g->port->link.page && i < NBAR_VALUES_AHEAD; i++)
		g->values[i].value = (struct nbar_value){ .op = NBAR_VALUE_RESULT };
}

/* Reads the NIC's reply about the new group. */
static int take_reply(struct nbar_group *g, const struct nbar_rep_group_open *reply, size_t nrest)
{
	const char *nic = g->port->link.nic;

	if (reply->cell >= NBAR_GROUPS_MAX || g->port->group[reply->cell] ||
	    nrest != (uint64_t)reply->npeer * sizeof(*g->peer))
		return nblib_fail(-EPROTO,
				  "NIC %s: its reply about the new group makes no sense: install "
				  "the same nbar for both",
				  nic);
	for (uint32_t i = 0; i < reply->npeer; i++)
		if (g->peer[i] >= g->size || g->peer[i] == g->rank)
			return nblib_fail(-EPROTO,
					  "NIC %s: names rank %u as a peer of rank %u of %u", nic,
					  g->peer[i], g->rank, g->size);
	g->cell = reply->cell;
	g->npeer = reply->npeer;
	if (g->is_signal && g->npeer == 0)
		peer_all(g);
	g->doorbell = &g->port->page->doorbell[g->cell];
	/* The NIC has begun its own copy anew. */
	if (g->port->link.remote)
		*g->doorbell = (struct nbar_doorbell){ 0 };
	completion_find(g);
	return 0;
}

static void group_free(struct nbar_group *g)
{
	if (g->events_end >= 0)
		nblib_remote_events_end(g);
	else if (g->events >= 0)
		close(g->events);
	free(g->peer);
	free(g);
}

static struct nbar_group *group_alloc(struct nbar_port *port, const struct nbar_group_attr *attr)
{
	bool is_signal = attr->alg && strcmp(attr->alg, "signal") == 0;
	/* The NIC names at most NBAR_PEERS_MAX peers, and never more than the group has ranks. */
	uint32_t most = attr->size < NBAR_PEERS_MAX || is_signal ? attr->size : NBAR_PEERS_MAX;
	struct nbar_group *g = aligned_alloc(_Alignof(struct nbar_group), sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct nbar_group){
		.port = port,
		.is_signal = is_signal,
		.rank = attr->rank,
		.size = attr->size,
		.events = -1,
		.events_end = -1,
		.peer = malloc(most * sizeof(*g->peer)),
	};
	if (g->peer)
		return g;
	free(g);
	return NULL;
}

static int open_group(struct nbar_port *port, const struct nbar_group_attr *attr,
		      struct nbar_group **out, struct nbar_endpoint *endpoint)
{
	const char *alg = attr->alg ? attr->alg : "auto";
	struct nbar_req_group_open request = {
		.rank = attr->rank,
		.size = attr->size,
		.tag = attr->tag,
		.plan_length = (uint32_t)attr->plan_length,
		.value_max = attr->value_max,
	};
	struct nbar_rep_group_open reply;
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_OPEN,
		.body = { { &request, sizeof(request) },
			  { (void *)(uintptr_t)attr->plan, attr->plan_length } },
		.fixed = { &reply, sizeof(reply) },
	};
	struct nbar_wait_policy wait;
	struct nbar_group *g;
	int err = check_attr(attr);

	if (err == 0)
		err = nblib_wait_default(&wait);
	if (err)
		return err;
	memcpy(request.alg, alg, strlen(alg));
	g = group_alloc(port, attr);
	if (!g)
		return nblib_fail(-ENOMEM, "no memory for a group of %u", attr->size);
	call.rest = (struct iovec){ g->peer, sizeof(*g->peer) * (attr->size < NBAR_PEERS_MAX
									 ? attr->size
									 : NBAR_PEERS_MAX) };
	err = nblib_link_call(&port->link, &call);
	if (err == 0 && port->link.remote)
		err = nblib_remote_await(port, call.seq);
	if (err == 0)
		err = take_reply(g, &reply, call.nrest);
	if (err) {
		group_free(g);
		return err;
	}
	values_find(g, attr->value_max, reply.values);
	g->fast_value = reply.fast_value ? reply.fast_value : NBAR_VALUE_MAX;
	if (g->is_signal)
		nblib_signal_drop(port, g->cell);
	nbar_group_set_wait(g, &wait);
	port->group[g->cell] = g;
	g->endpoint = reply.endpoint;
	*out = g;
	*endpoint = reply.endpoint;
	return 0;
}

int nbar_group_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		    struct nbar_group **out, struct nbar_endpoint *endpoint)
{
	struct nbar_group_attr ours;
	int err = nblib_struct_read("nbar_group_attr", &ours, sizeof(ours), NBLIB_ATTR_LEAST, attr,
				    attr->struct_size);

	return err ? err : open_group(port, &ours, out, endpoint);
}

int nbar_group_peers(const struct nbar_group *g, const uint32_t **ranks)
{
	*ranks = g->peer;
	return (int)g->npeer;
}

uint32_t nbar_group_fast_value(const struct nbar_group *g)
{
	return g->fast_value;
}

void nbar_group_share(const struct nbar_group *g, struct nbar_share *out)
{
	order_shared_write(&g->port->link.shared);
	*out = (struct nbar_share){
		.secret = { g->port->secret[0], g->port->secret[1] },
		.port = g->port->number,
		.cell = g->cell,
		.rank = g->rank,
		.size = g->size,
		.socket_id = g->port->link.socket_id,
		.struct_size = sizeof(*out),
		.endpoint = g->endpoint,
		.value_max = g->value_max,
		.values = g->values_index,
		.pid = g->port->link.opener.pid,
		.page = g->port->link.opener.page,
		.asks = g->port->link.opener.asks,
		.inode = g->port->link.opener.inode,
	};
}

int nbar_group_attach(struct nbar_port *port, const struct nbar_share *share,
		      struct nbar_group **out)
{
	const struct nbar_group_attr attr = { .rank = share->rank, .size = share->size };
	struct nbar_req_group_attach request = { .cell = share->cell, .endpoint = share->endpoint };
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_ATTACH,
		.body = { { &request, sizeof(request) } },
	};
	struct nbar_wait_policy wait;
	struct nbar_group *g;
	int err = check_attr(&attr);

	if (err == 0)
		err = nblib_wait_default(&wait);
	if (err == 0 && share->cell >= NBAR_GROUPS_MAX)
		err = nblib_fail(-EINVAL, "cell %u: a port has cells 0 to %u", share->cell,
				 NBAR_GROUPS_MAX - 1);
	if (err)
		return err;
	if (port->group[share->cell])
		return nblib_fail(-EALREADY, "this process has the group in cell %u already",
				  share->cell);
	g = group_alloc(port, &attr);
	if (!g)
		return nblib_fail(-ENOMEM, "no memory for a group of %u", attr.size);
	err = nblib_link_call(&port->link, &call);
	if (err) {
		group_free(g);
		return err;
	}
	g->cell = share->cell;
	g->endpoint = share->endpoint;
	g->doorbell = &port->page->doorbell[g->cell];
	completion_find(g);
	values_find(g, share->value_max, share->values);
	/* The process that opened the group connects it. Barriers posted before that wait. */
	g->attached = g->connected = true;
	order_runs_write(&g->runs, true);
	nbar_group_set_wait(g, &wait);
	port->group[g->cell] = g;
	*out = g;
	return 0;
}

void nbar_group_close(struct nbar_group *g)
{
	if (!g)
		return;
	struct nbar_req_group_close request = { .cell = g->cell };
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_CLOSE,
		.body = { { &request, sizeof(request) } },
	};

	/* The NIC closes the group even after an error: either the NIC gets the request, or the
	 * link has ended, and the NIC closes the port. */
	if (g->port->link.remote)
		nblib_remote_settle(g->port); /* a late post must not meet the next group */
	if (order_down_read(&g->port->link.down) == NBLIB_UP)
		nblib_link_call(&g->port->link, &call);
	g->port->group[g->cell] = NULL;
	group_free(g);
}

void nbar_group_set_wait(struct nbar_group *g, const struct nbar_wait_policy *policy)
{
	g->wait = *policy;
}
