/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.c - news of a group for threads that do not wait in this library: a descriptor for poll(),
 * and the abort of a group by any thread.
 *
 * Called by programs with an event loop, and after failures. The NIC, or for a remote one the
 * thread of its library, sends a message each time it wakes the sleepers of the group. When the NIC
 * ends, the other end of the socket closes.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

#define TAKEN_MAX 64u /* messages read from a socket at most; a NIC sends one per wake request */

int nbar_group_fd(struct nbar_group *g)
{
	struct nbar_req_group_events request = { .cell = g->cell };
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_EVENTS,
		.body = { { &request, sizeof(request) } },
		.fd = &g->events,
	};
	int err;

	if (g->events >= 0)
		return g->events;
	if (g->is_signal)
		return nblib_fail(-EINVAL, "a \"signal\" group has no barriers to poll for");
	if (g->attached)
		return nblib_fail(-EPERM, "this process is only attached to the group: the process "
					  "that opened it can poll");
	err = g->port->link.remote ? nblib_remote_events(g)
				   : nblib_link_call(&g->port->link, &call);
	if (err)
		return err;
	return g->events >= 0 ? g->events
			      : nblib_fail(-EPROTO, "NIC %s: it passed no descriptor to poll",
					   g->port->link.nic);
}

/* Reads all messages of the socket. True: the NIC has closed its end. */
static bool take_events(const struct nbar_group *g)
{
	char byte[8];

	for (uint32_t i = 0; i < TAKEN_MAX; i++) {
		ssize_t n = recv(g->events, byte, sizeof(byte), MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
	return false;
}

int nbar_group_arm(struct nbar_group *g, uint32_t ticket)
{
	bool closed;
	int rc;

	if (order_down_read(&g->port->link.down) != NBLIB_UP)
		return nbar_test(g, ticket) == 1 ? 1 : nblib_link_lost(&g->port->link);
	if (g->events < 0)
		return nblib_fail(-EINVAL, "the group has no descriptor: call nbar_group_fd first");
	closed = take_events(g);
	/* Like a thread that will sleep in nbar_wait: the test finds a barrier that completed
	 * before this request; for a barrier that completes later, the NIC sends a message. */
	order_ask(&g->doorbell->wake_seq);
	nblib_rang(g, ticket, true);
	rc = nbar_test(g, ticket);
	if (rc == 0 && closed && nblib_link_look(&g->port->link))
		rc = nbar_test(g, ticket);
	return rc;
}

/* Makes the threads of this process return from the group's barriers. */
static void end_waits(struct nbar_group *g)
{
	order_runs_write(&g->runs, false);
	if (order_down_read(&g->port->link.down) != NBLIB_UP)
		return; /* the threads see that the link is down */
	nblib_wake_group(g);
	if (g->events >= 0)
		shutdown(g->events, SHUT_RDWR);
}

int nbar_group_abort(struct nbar_group *g)
{
	struct nbar_req_group_abort request = { .cell = g->cell };
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_ABORT,
		.body = { { &request, sizeof(request) } },
	};
	int err;

	if (g->is_signal)
		return nblib_fail(-EINVAL, "a \"signal\" group has no barriers to abort");
	if (!order_abort(&g->aborted))
		end_waits(g);
	if (order_aborted(&g->abort_sent))
		return 0;
	/* Several threads may send an abort at once: after the first, the NIC changes nothing. */
	err = nblib_link_start(&g->port->link, &call);
	if (order_down_read(&g->port->link.down) != NBLIB_UP)
		return 0; /* the other members learn of the abort from their NICs */
	if (err == 0)
		order_abort(&g->abort_sent);
	return err;
}
