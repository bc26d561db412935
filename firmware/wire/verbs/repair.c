/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repair.c - events of the device of the wire "verbs", and the repair of the queue pair of
 * datagrams.
 *
 * Called by the control thread. A failed queue pair costs time, like any loss. If it cannot be
 * started again, or the device has failed, the groups of the NIC fail, and the NIC refuses new
 * groups.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "log.h"
#include "verbs.h"

#define AGAIN_NS UINT64_C(100000000) /* from a failed repair to the next */
#define SAY_NS UINT64_C(1000000000)  /* at most one message about repairs in this time */

struct repair_call {
	struct verbs_wire *w;
	const struct ibv_qp *qp; /* the queue pair that failed, ... */
	const struct ibv_cq *cq; /* ... or the completion queue that failed */
	bool fail;               /* the groups must fail, too */
	uint64_t now;
};

static void run_repaired(void *arg, uint64_t now)
{
	struct repair_call *c = arg;
	struct verbs_wire *w = c->w;
	struct ibv_wc wc;

	while (ibv_poll_cq(w->recv_cq, 1, &wc) > 0 || ibv_poll_cq(w->send_cq, 1, &wc) > 0)
		;
	w->posted = w->done = 0;
	w->broken = false;
	verbs_post_all(w);
	c->now = now;
}

static void run_postponed(void *arg, uint64_t now)
{
	struct repair_call *c = arg;

	c->w->broken = true;
	c->w->failing |= c->fail;
	c->w->repair_at = now + AGAIN_NS;
}

static void run_queue_error(void *arg, uint64_t now)
{
	struct repair_call *c = arg;

	(void)now;
	if (c->qp == c->w->qp)
		verbs_queue_failed(c->w);
	else
		verbs_connection_failed(c->w, c->qp, c->cq);
}

static bool port_is_up(const struct verbs_wire *w)
{
	struct ibv_port_attr port;

	return ibv_query_port(w->context, w->port, &port) == 0 && port.state == IBV_PORT_ACTIVE;
}

/* The NIC cannot send any more. Fails its groups now, so that their hosts need not wait until a
 * retry budget is over. */
static void repair_give_up(struct verbs_wire *w, const char *why)
{
	struct repair_call call = { .w = w, .fail = !w->dead };

	w->dead = why;
	w->base.call(&w->base, run_postponed, &call);
}

/* Starts the queue pair again, with the same number. Outstanding frames are lost; PULLs ask for
 * their tokens again. */
void verbs_repair(struct verbs_wire *w)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct repair_call call = { .w = w };

	if (w->fatal || !port_is_up(w)) {
		w->base.call(&w->base, run_postponed, &call);
		return;
	}
	if (ibv_modify_qp(w->qp, &attr, IBV_QP_STATE) || verbs_qp_start(w) < 0) {
		if (!w->dead)
			log_error(
				"nic %s: the queue pair is in an error and cannot be started again: "
				"%s; its groups fail; restart the daemon",
				w->nic, strerror(errno));
		repair_give_up(w,
			       "this NIC's queue pair is in an error and cannot be started again; "
			       "restart its process");
		return;
	}
	w->dead = NULL;
	w->repairs++;
	w->base.call(&w->base, run_repaired, &call);
	if (w->said_at && call.now - w->said_at < SAY_NS)
		return;
	w->said_at = call.now;
	log_error("nic %s: the queue pair was in an error and has been started again (%u so far)",
		  w->nic, w->repairs);
}

static void gid_look(struct verbs_wire *w)
{
	union ibv_gid gid;
	bool gone = ibv_query_gid(w->context, w->port, w->gid_index, &gid) ||
		    memcmp(gid.raw, w->self.gid, sizeof(w->self.gid)) != 0;

	if (gone == w->gid_missing)
		return;
	w->gid_missing = gone;
	if (!gone)
		log_error("nic %s: GID %u of %s is back", w->nic, w->gid_index,
			  ibv_get_device_name(w->context->device));
	else
		log_error(
			"nic %s: GID %u of %s is another now, or none: peers cannot reach this NIC; give "
			"the interface its address again, or restart the daemon",
			w->nic, w->gid_index, ibv_get_device_name(w->context->device));
}

static void port_event(struct verbs_wire *w, uint8_t port, bool up)
{
	if (port != w->port)
		return;
	if (up)
		verbs_wake(w); /* a repair may be necessary */
	log_error("nic %s: port %u of %s %s", w->nic, port, ibv_get_device_name(w->context->device),
		  up ? "is up again"
		     : "is down: barriers fail if that lasts longer than the retry budget");
}

static void device_failed(struct verbs_wire *w, const char *what)
{
	if (w->fatal)
		return;
	log_error("nic %s: %s says: %s; its groups fail; restart the daemon", w->nic,
		  ibv_get_device_name(w->context->device), what);
	w->fatal = true;
	repair_give_up(w, "this NIC's RDMA device has failed; restart its process");
}

static void repair_on_event(struct verbs_wire *w, const struct ibv_async_event *e)
{
	struct repair_call call = { .w = w };

	switch (e->event_type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		port_event(w, (uint8_t)e->element.port_num, e->event_type == IBV_EVENT_PORT_ACTIVE);
		return;
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
		if (e->element.port_num == w->port)
			gid_look(w);
		return;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		call.qp = e->element.qp;
		w->base.call(&w->base, run_queue_error, &call);
		return;
	case IBV_EVENT_CQ_ERR:
		call.cq = e->element.cq;
		if (call.cq == w->send_cq || call.cq == w->recv_cq)
			device_failed(w, "the completion queue of datagrams is in an error");
		else
			w->base.call(&w->base, run_queue_error, &call);
		return;
	case IBV_EVENT_DEVICE_FATAL:
		device_failed(w, ibv_event_type_str(e->event_type));
		return;
	default:
		return;
	}
}

void verbs_events(struct verbs_wire *w)
{
	struct ibv_async_event e;

	while (ibv_get_async_event(w->context, &e) == 0) {
		ibv_ack_async_event(&e);
		repair_on_event(w, &e);
	}
	if (errno != EIO) /* EIO: the device is gone, and each call reports this */
		return;
	epoll_ctl(w->base.fd, EPOLL_CTL_DEL, w->context->async_fd, NULL);
	device_failed(w, "it is gone");
}
