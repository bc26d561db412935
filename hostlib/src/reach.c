/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reach.c - whether the NICs of a group hear each other, and the addresses of its NICs in words.
 *
 * Called before the first barrier of a group, and for the text of a failure. Only the NIC asks its
 * peers; this file asks the NIC again and again, and with an in-process NIC it runs the NIC.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "internal.h"
#include "order.h"

/* Between two requests; each pause is twice as long as the one before. A NIC asks a peer at most
 * once in its pull interval, 1 ms by default. */
#define PAUSE_LEAST_NS UINT64_C(50000)
#define PAUSE_MOST_NS UINT64_C(64000000)
/* Longer between two requests: this process or its machine stood still, and so perhaps the peers.
 */
#define STEP_MOST_NS UINT64_C(1000000000)

static int reach_ask(const struct nbar_group *g, uint32_t rank, uint32_t patience_ms,
		     struct nbar_rep_group_reach *out)
{
	struct nbar_req_group_reach request = { .cell = g->cell, .rank = rank };
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_REACH,
		.body = { { &request, sizeof(request) } },
		.fixed = { out, sizeof(*out) },
		.patience_ms = patience_ms,
	};
	int err = nblib_link_call(&g->port->link, &call);

	out->own[sizeof(out->own) - 1] = '\0';
	out->peer[sizeof(out->peer) - 1] = '\0';
	return err;
}

const char *nblib_silent_address(struct nbar_group *g, uint32_t rank)
{
	struct nbar_rep_group_reach reply = { .rank = NBAR_RANK_NONE };

	if (order_text_claim(&g->silent_state)) {
		if (reach_ask(g, rank, NBLIB_ADDRESS_MS, &reply) == 0 && reply.rank == rank &&
		    reply.peer[0])
			snprintf(g->silent, sizeof(g->silent), " (%s)", reply.peer);
		order_text_write(&g->silent_state);
	}
	return order_text_read(&g->silent_state) ? g->silent : "";
}

static void pause_for(const struct nbar_port *port, uint64_t ns)
{
	const struct timespec t = { .tv_nsec = (long)ns };
	uint64_t end = nblib_now_ns() + ns;

	if (!port->link.host) {
		nanosleep(&t, NULL);
		return;
	}
	do {
		nblib_poll(port);
		sched_yield();
	} while (nblib_now_ns() < end);
}

static int reach_unreached(const struct nbar_group *g, const struct nbar_rep_group_reach *r,
			   uint64_t ns)
{
	return nblib_fail(
		-EHOSTUNREACH,
		"the NIC of rank %u, %s, has not answered the NIC of this host, %s, for %.1f s "
		"(%s; %u of %u peers are missing): look whether it runs, whether a firewall stops "
		"frames, and whether each host reaches the address of the other (bind=)",
		r->rank, r->peer[0] ? r->peer : "with an unknown address", r->own, (double)ns / 1e9,
		r->is_heard ? "its own frames arrive here, so those to it are lost"
			    : "no frame of it arrives here",
		r->missing, g->npeer);
}

int nbar_group_reach(struct nbar_group *g, uint64_t timeout_ns)
{
	struct nbar_rep_group_reach reply = { .missing = 0 };
	uint64_t seen = nblib_now_ns(), pause = PAUSE_LEAST_NS, passed = 0, now;
	int err;

	if (g->is_signal || g->attached)
		return nblib_fail(-EINVAL, "only the process that opened a group of barriers can "
					   "ask for its peers");
	if (!g->connected)
		return nblib_fail(-ENOTCONN, "the group is not connected: call nbar_group_connect "
					     "first");
	while ((err = reach_ask(g, NBAR_RANK_NONE, 0, &reply)) == 0 && reply.missing > 0) {
		now = nblib_now_ns();
		passed += now - seen < STEP_MOST_NS ? now - seen : STEP_MOST_NS;
		seen = now;
		if (passed >= timeout_ns)
			return reach_unreached(g, &reply, passed);
		pause_for(g->port, pause < timeout_ns - passed ? pause : timeout_ns - passed);
		pause = pause < PAUSE_MOST_NS ? 2 * pause : PAUSE_MOST_NS;
	}
	return err;
}
