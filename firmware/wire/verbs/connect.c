/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - makes, connects, recreates and closes the queue pairs of the modes that write.
 *
 * Called by the control thread, because all this takes system calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "route.h"
#include "verbs.h"

#define TIMEOUT 14 /* a peer counts as dead after half a second */

struct ibv_ah_attr verbs_path(const struct verbs_wire *w, const struct verbs_addr *a)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.grh = { .sgid_index = w->gid_index, .hop_limit = 64 },
		.dlid = a->lid,
		.sl = w->sl,
		.port_num = w->port,
	};

	memcpy(attr.grh.dgid.raw, a->gid, sizeof(a->gid));
	return attr;
}

/* Brings a queue pair from RESET to INIT, in which it can be connected to its peer. */
static int connection_init(const struct verbs_wire *w, struct verbs_connection *l)
{
	memset(l->slot, 0, VERBS_SLOTS * sizeof(*l->slot));
	return verbs_route_begin(l->qp, w->port, &l->mine.psn);
}

static int connection_start(const struct verbs_wire *w, const struct verbs_peer *p)
{
	const struct verbs_connection *l = p->connection;
	const struct verbs_addr a = verbs_addr_of(&p->addr);
	const struct verbs_route route = {
		.path = verbs_path(w, &a),
		.mtu = w->self.mtu,
		.qpn = l->its.qpn,
		.psn = l->its.psn,
		.own_psn = l->mine.psn,
		.reliable = w->self.mode == VERBS_WRITE_RC,
		.timeout = TIMEOUT,
	};

	return verbs_route_start(l->qp, &route);
}

/* Makes a queue pair. A card that has not so much room for inline sends may have room for frames
 * without values: then those with values go as datagrams. */
static struct ibv_qp *qp_make(const struct verbs_wire *w, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap cap = init->cap;
	struct ibv_qp *qp = ibv_create_qp(w->pd, init);

	init->cap = cap; /* ibv_create_qp may have changed it */
	if (qp || !w->send_inline)
		return qp;
	init->cap.max_inline_data = VERBS_INLINE;
	qp = ibv_create_qp(w->pd, init);
	init->cap.max_inline_data = VERBS_INLINE;
	return qp;
}

/* Makes the queues. 0, or a negative errno: verbs_connection_free then frees the queues that exist.
 */
static int queues_make(const struct verbs_wire *w, struct verbs_connection *l)
{
	struct ibv_qp_init_attr init = {
		.qp_type = w->self.mode == VERBS_WRITE_RC ? IBV_QPT_RC : IBV_QPT_UC,
		.cap = {
			.max_send_wr = VERBS_WRITES,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = w->send_inline ? VERBS_WRITE_MAX : 0,
		},
	};

	/* All writes may fail at once, and each failure is a completion. */
	init.send_cq = init.recv_cq = l->cq =
		ibv_create_cq(w->context, VERBS_WRITES * VERBS_CQ_TIMES, NULL, NULL, 0);
	if (l->cq)
		l->qp = qp_make(w, &init);
	if (!l->qp)
		return -errno;
	l->out.inlined = init.cap.max_inline_data;
	l->mine.qpn = l->qp->qp_num;
	return connection_init(w, l);
}

static void queues_end(struct verbs_connection *l)
{
	if (l->qp)
		ibv_destroy_qp(l->qp);
	if (l->cq)
		ibv_destroy_cq(l->cq);
	l->qp = NULL;
	l->cq = NULL;
	l->mine.qpn = 0;
}

struct verbs_connection *verbs_connection_make(const struct verbs_wire *w)
{
	const size_t size = VERBS_SLOTS * sizeof(struct verbs_slot);
	struct verbs_connection *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return NULL;
	l->slot = aligned_alloc(4096, size);
	if (l->slot)
		l->mr = ibv_reg_mr(w->pd, l->slot, size,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (l->mr &&
	    (w->send_inline || verbs_out_make(w, &l->out, VERBS_WRITES, VERBS_WRITE_MAX) == 0) &&
	    queues_make(w, l) == 0) {
		l->mine.rkey = l->mr->rkey;
		l->mine.size = sizeof(*l->slot);
		l->mine.slot = (uintptr_t)l->slot;
		return l;
	}
	err = errno;
	verbs_connection_free(l);
	errno = err;
	return NULL;
}

void verbs_connection_free(struct verbs_connection *l)
{
	queues_end(l);
	if (l->mr)
		ibv_dereg_mr(l->mr);
	verbs_out_free(&l->out);
	free(l->slot);
	free(l);
}

struct connection_call {
	struct verbs_connection *connection;
	bool open;
};

static void run_made(void *arg, uint64_t now)
{
	struct connection_call *c = arg;
	struct verbs_connection *l = c->connection;
	struct ibv_wc wc;

	(void)now;
	while (l->cq && ibv_poll_cq(l->cq, 1, &wc) > 0)
		;
	l->posted = l->done = l->written = l->seen = 0;
	if (!l->renew)
		l->handshake_at = l->handshake_ns = 0;
	l->reset = l->taken = false;
	l->state = c->open ? VERBS_CONNECTION_OPEN : VERBS_CONNECTION_IDLE;
}

void verbs_connection_connect(struct verbs_wire *w, struct verbs_peer *p)
{
	struct verbs_connection *l = p->connection;
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct connection_call call = { .connection = l };
	int rc = 0;

	if (l->error)
		log_error("nic %s: the connection to queue pair %u broke: %s; datagrams go instead "
			  "until there is a new one",
			  w->nic, p->qpn,
			  l->renew ? "its completion queue is in an error"
				   : ibv_wc_status_str(l->error));
	l->error = 0;
	if (l->renew) {
		queues_end(l);
		rc = queues_make(w, l);
		l->renew = rc < 0;
	} else if (l->reset) {
		rc = ibv_modify_qp(l->qp, &reset, IBV_QP_STATE) ? -errno : connection_init(w, l);
	}
	if (rc == 0 && l->its.qpn != 0) {
		rc = connection_start(w, p);
		call.open = rc == 0;
		if (rc < 0 && ibv_modify_qp(l->qp, &reset, IBV_QP_STATE) == 0)
			(void)connection_init(w, l);
	}
	if (rc < 0)
		log_error("nic %s: no connection to queue pair %u: %s; datagrams go instead",
			  w->nic, p->qpn, strerror(-rc));
	w->base.call(&w->base, run_made, &call);
}
