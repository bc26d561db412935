/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.c - finds out whether the NICs of a group hear each other, before the group relies on it.
 *
 * Called for requests of a host, for frames of the types PROBE and ECHO, and by the scheduler in
 * pass.c. A NIC sends PROBEs only because its own host asks, and at most one to each peer in each
 * pull interval. A group without such a request costs nothing.
 */
#include "nic.h"
#include "nic_internal.h"

/* Bits of group.reached[]. */
#define HEARD 1u    /* a PROBE of the peer has arrived */
#define ANSWERED 2u /* an ECHO of the peer has arrived: frames go both ways */

uint32_t nbnic_peer_find(const struct nbnic_group *g, uint32_t rank)
{
	uint32_t first = 0, end = g->npeer;

	while (first < end) {
		uint32_t middle = (first + end) / 2;

		if (g->peer[middle].rank < rank)
			first = middle + 1;
		else
			end = middle;
	}
	return first < g->npeer && g->peer[first].rank == rank ? first : g->npeer;
}

/* Begins a round of PROBEs to all peers that have not answered. */
static void probe_begin(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	if (g->probe.next || now < g->probe_next || g->nanswered == g->npeer)
		return;
	g->probe_next = now + nic->interval[0];
	g->probe_at = 0;
	nbnic_rota_add(&nic->probes, g->port, &g->probe);
	nic->probing = true;
}

void nbnic_group_reach(struct nbnic *nic, struct nbnic_group *g, uint32_t rank, uint64_t now,
		       struct nbnic_reach *out)
{
	uint32_t i = 0;

	*out = (struct nbnic_reach){ .missing = g->npeer - g->nanswered };
	if (rank == NBAR_RANK_NONE) {
		probe_begin(nic, g, now);
		while (i < g->npeer && (g->reached[i] & ANSWERED))
			i++;
	} else {
		i = nbnic_peer_find(g, rank);
	}
	if (i == g->npeer || g->peer[i].handle == 0)
		return;
	out->peer = &g->peer[i];
	out->is_heard = g->reached[i] & HEARD;
}

/* Goes on with the round of a group: at most `limit` PROBEs now. Returns how many were sent. */
static uint32_t probe_send_some(struct nbnic *nic, struct nbnic_group *g, uint32_t limit)
{
	uint32_t sent = 0;

	for (; g->probe_at < g->npeer && sent < limit; g->probe_at++) {
		const struct nbnic_peer *peer = &g->peer[g->probe_at];
		const struct nbfw_token t = {
			.type = NBFW_PROBE,
			.handle = peer->handle,
			.cookie = peer->cookie,
			.src = g->rank,
			.slot = g->probe_at,
			.arg = peer->rank,
			.sender = g->handle,
			.reply_cookie = g->cookie,
		};

		if (peer->handle == 0 || (g->reached[g->probe_at] & ANSWERED))
			continue;
		if (!nbnic_transmit(nic, &peer->addr, &t, NBAR_COUNTER_probes_sent))
			break;
		nbnic_trace_frame(nic, g->handle, g->rank, peer->rank, &t, NBAR_TRACE_OUT);
		sent++;
	}
	return sent;
}

uint32_t nbnic_probe_serve(struct nbnic *nic, uint32_t most)
{
	uint32_t left = most;

	for (uint32_t n = 0; n < NBNIC_PASS_VISITS && left > 0 && !nic->full; n++) {
		bool fresh = !nbnic_link_empty(&nic->probes.fresh);

		if (nbnic_rota_empty(&nic->probes))
			break;
		struct nbnic_group *g =
			NBNIC_CONTAINER(nbnic_rota_take(&nic->probes, fresh), probe);

		left -= probe_send_some(nic, g, left < NBNIC_QUANTUM ? left : NBNIC_QUANTUM);
		if (g->probe_at < g->npeer)
			nbnic_rota_add(&nic->probes, g->port, &g->probe);
	}
	nic->probing = !nbnic_rota_empty(&nic->probes);
	return most - left;
}

static void take_echo(struct nbnic *nic, struct nbnic_group *g, uint32_t i)
{
	nbnic_count(nic, NBAR_COUNTER_echoes_received);
	if (g->reached[i] & ANSWERED)
		return;
	g->reached[i] |= ANSWERED;
	g->nanswered++;
}

void nbnic_probe_receive(struct nbnic *nic, struct nbnic_group *g, const struct nbnic_addr *from,
			 const struct nbfw_token *t)
{
	static const struct nbfw_action echo = { .reply = NBFW_ECHO, .reply_arg = NBAR_RANK_NONE };
	uint32_t i = nbnic_peer_find(g, t->src);

	nbnic_trace_frame(nic, g->handle, g->rank, t->src, t, NBAR_TRACE_IN);
	/* The NIC of a peer that is not connected yet is not known. */
	if (i == g->npeer || (g->peer[i].handle == 0 && t->type == NBFW_ECHO) ||
	    (g->peer[i].handle != 0 && !nbnic_is_of(&g->peer[i], from, t))) {
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
		return;
	}
	if (t->type == NBFW_ECHO) {
		take_echo(nic, g, i);
		return;
	}
	g->reached[i] |= HEARD;
	/* A group that is closed has no more barriers. */
	if (g->life != NBAR_LIFE_LINGER)
		nbnic_send_reply(nic, g, g->rank, &echo, t, from);
}
