/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signal.c - the signal service: raw messages through the rings of a port's page.
 *
 * Entry k of an endless stream lies at k % NBAR_SIGNALS_MAX. Its seq is k + 1, and is written last.
 * The producer is at most NBAR_SIGNALS_MAX ahead of the count that the consumer publishes. While
 * the rings have room, nothing here makes a system call. One thread at a time per port.
 */
#include <errno.h>

#include "internal.h"
#include "order.h"

#define TAKEN_A_TELL 64u  /* the NIC is told after this many entries are taken */
#define FULLS_A_LOOK 256u /* the socket is checked when the ring was full this many times */

/* Checks that the ring has room for an entry. 0, or an error. */
static int send_room(struct nbar_port *port)
{
	static _Thread_local uint32_t full;

	if (port->sends_put - port->sends_taken < NBAR_SIGNALS_MAX)
		return 0;
	port->sends_taken = order_taken_read(&port->page->sends_taken);
	if (port->sends_put - port->sends_taken < NBAR_SIGNALS_MAX)
		return 0;
	nblib_poll(port);
	if (++full % FULLS_A_LOOK == 0 && nblib_link_look(&port->link))
		return nblib_link_lost(&port->link);
	return nblib_fail(-EAGAIN, "NIC %s has not taken the last %u messages yet: try again",
			  port->link.nic, NBAR_SIGNALS_MAX);
}

int nbar_signal_send(struct nbar_group *g, uint32_t peer, const uint32_t word[NBAR_SIGNAL_WORDS])
{
	struct nbar_port *port = g->port;
	struct nbar_signal *e = &port->page->send[port->sends_put % NBAR_SIGNALS_MAX];
	int err;

	if (!g->is_signal)
		return nblib_fail(-EINVAL, "only a \"signal\" group sends messages");
	if (!g->connected)
		return nblib_fail(-ENOTCONN,
				  "the group is not connected: call "
				  "nbar_group_connect with the endpoint addresses of its members");
	if (peer >= g->npeer)
		return nblib_fail(-EINVAL, "peer %u: the group has peers 0 to %u", peer,
				  g->npeer - 1);
	if (order_down_read(&port->link.down) != NBLIB_UP)
		return nblib_link_lost(&port->link);
	err = send_room(port);
	if (err)
		return err;
	order_signal_put(&e->cell, g->cell);
	order_signal_put(&e->peer, peer);
	for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
		order_signal_put(&e->word[i], word[i]);
	order_signal_publish(&e->seq, ++port->sends_put);
	if (port->link.remote) {
		/* The NIC must not see the sequence number before the message. */
		nblib_remote_push(port, &e->cell, sizeof(*e) - sizeof(e->seq));
		nblib_remote_push(port, &e->seq, sizeof(e->seq));
		return 0;
	}
	nblib_posted(port);
	return 0;
}

static void tell_taken(struct nbar_port *port)
{
	port->recvs_told = port->recvs_taken;
	order_taken_write(&port->page->recvs_taken, port->recvs_taken);
	if (port->link.remote)
		nblib_remote_push(port, &port->page->recvs_taken, sizeof(port->page->recvs_taken));
}

/* Marks the messages of the old group in the ring as unwanted; the NIC does not read these entries.
 * All its messages are there, because the NIC delivers nothing to a closed group. No message is for
 * the new group yet, because no member has its endpoint address. */
void nblib_signal_drop(struct nbar_port *port, uint32_t cell)
{
	for (uint32_t i = 0; i < NBAR_SIGNALS_MAX; i++) {
		uint32_t sequence = port->recvs_taken + i;
		struct nbar_signal *e = &port->page->recv[sequence % NBAR_SIGNALS_MAX];

		if (!order_signal_ready(&e->seq, sequence + 1))
			return;
		if (order_signal_get(&e->cell) == cell)
			order_signal_put(&e->cell, NBAR_GROUPS_MAX);
	}
}

int nbar_signal_recv(struct nbar_port *port, struct nbar_signal_in *out)
{
	for (bool polled = !port->link.host;;) {
		uint32_t sequence = port->recvs_taken;
		const struct nbar_signal *e = &port->page->recv[sequence % NBAR_SIGNALS_MAX];

		if (!order_signal_ready(&e->seq, sequence + 1)) {
			if (!polled) {
				nblib_poll(port);
				polled = true;
				continue;
			}
			if (port->recvs_told != sequence)
				tell_taken(port);
			return 0;
		}
		uint32_t cell = order_signal_get(&e->cell);
		struct nbar_group *g = cell < NBAR_GROUPS_MAX ? port->group[cell] : NULL;
		/* Drops a message for a group that was closed meanwhile. */
		bool wanted = g && g->is_signal;

		if (wanted) {
			out->group = g;
			out->src = order_signal_get(&e->peer);
			for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
				out->word[i] = order_signal_get(&e->word[i]);
		}
		port->recvs_taken = sequence + 1;
		if (port->recvs_taken - port->recvs_told >= TAKEN_A_TELL)
			tell_taken(port);
		if (wanted)
			return 1;
	}
}
