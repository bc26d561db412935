/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire_ring.c - the wire between the NICs of one daemon: a DPDK ring for each NIC, on which all
 * others put what they send to it.
 *
 * Called by the polling thread alone. Both ends of every ring are in that thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_errno.h>
#include <rte_ring.h>

#include "log.h"
#include "wire.h"

#define RING_SIZE 2048u /* frames that may be on their way to one NIC */
#define BURST 32u
/* A frame is in use while it is on the ring or in a burst; so the oldest one is always free. */
#define FRAMES (2 * RING_SIZE)

struct ring_wire;

struct ring_frame {
	const struct ring_wire *src;
	struct nbfw_token token;
};

/* What an address holds. */
struct ring_addr {
	uint64_t daemon; /* random: a NIC of another daemon is not on this wire */
	uint32_t index;
};

struct ring_wire {
	struct wire_base base;
	struct rte_ring *ring; /* of pointers to frames */
	uint32_t index;
	uint32_t next; /* frame to be used */
	struct ring_frame frame[FRAMES];
};

static uint64_t daemon_id;
static uint32_t nwire;
static struct ring_wire *wires[NBAR_NICS_MAX];

static struct ring_addr addr_of(const struct nbnic_addr *a)
{
	struct ring_addr r;

	memcpy(&r, a->byte, sizeof(r));
	return r;
}

static void ring_close(struct wire_base *base)
{
	struct ring_wire *w = (struct ring_wire *)base;

	wires[w->index] = NULL;
	rte_ring_free(w->ring);
	free(w);
}

static int ring_open(const char *nic, const char *(*option)(void *args, const char *key),
		     void *args, struct wire_base **out)
{
	struct ring_wire *w = calloc(1, sizeof(*w));
	struct ring_addr addr;
	char name[RTE_RING_NAMESIZE];

	(void)option;
	(void)args;
	if (!w)
		return -ENOMEM;
	if (daemon_id == 0 && getrandom(&daemon_id, sizeof(daemon_id), 0) != sizeof(daemon_id)) {
		free(w);
		return -EIO;
	}
	snprintf(name, sizeof(name), "wire%u", nwire);
	w->ring = rte_ring_create(name, RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!w->ring) {
		log_error("nic %s: no memory for a ring: %s; give DPDK more, for example -- -m 128",
			  nic, rte_strerror(rte_errno));
		free(w);
		return -ENOMEM;
	}
	memset(&addr, 0, sizeof(addr));
	addr.daemon = daemon_id;
	addr.index = w->index = nwire;
	memcpy(w->base.addr.byte, &addr, sizeof(addr));
	snprintf(w->base.text, sizeof(w->base.text), "ring:%u", nwire);
	w->base.ops = &wire_ring_ops;
	wires[nwire++] = w;
	*out = &w->base;
	return 0;
}

static unsigned ring_poll(struct wire_base *base, struct nbnic *nic, uint64_t now)
{
	struct ring_wire *w = (struct ring_wire *)base;
	void *at[BURST];
	unsigned n = rte_ring_sc_dequeue_burst(w->ring, at, BURST, NULL);

	if (n == 0)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		const struct ring_frame *f = at[i];

		nbnic_receive(nic, &f->src->base.addr, &f->token, now);
	}
	/* Begin at the front again: so what little is in use stays in the cache. */
	if (rte_ring_empty(w->ring)) {
		rte_ring_reset(w->ring);
		w->next = 0;
	}
	return n;
}

static void ring_transmit(struct wire_base *base, const struct nbnic_addr *to,
			  const struct nbfw_token *t)
{
	struct ring_wire *w = (struct ring_wire *)base;
	struct ring_addr addr = addr_of(to);
	struct ring_wire *peer = addr.index < nwire ? wires[addr.index] : NULL;

	if (addr.daemon != daemon_id || !peer) {
		w->base.errors++;
		return;
	}
	struct ring_frame *f = &peer->frame[peer->next % FRAMES];

	if (rte_ring_sp_enqueue(peer->ring, f) < 0) {
		w->base.errors++;
		return;
	}
	peer->next++;
	f->src = w;
	f->token = *t;
}

static const char *const ring_options[] = { NULL };

const struct wire_ops wire_ring_ops = {
	.name = "ring",
	.kind = WIRE_RING,
	.open = ring_open,
	.close = ring_close,
	.poll = ring_poll,
	.transmit = ring_transmit,
	.options = ring_options,
};
