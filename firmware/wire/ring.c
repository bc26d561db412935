/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - the wire between the NICs of one daemon: one DPDK ring, on which all put what they
 * send, whomever it is for.
 *
 * One ring and not one a NIC: frames lie next to each other in the order in which they are used, so
 * the ring stays in the nearest cache, and an idle NIC costs nothing. Called by the polling thread
 * alone: both ends are there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <rte_ring_peek_zc.h>

#include "log.h"
#include "wire.h"

#define RING_SIZE 65536u /* frames that may be on their way */

struct ring_frame {
	uint16_t src, dst; /* indices of NICs */
	struct nbfw_token token;
};

/* What an address holds. */
struct ring_addr {
	uint64_t daemon; /* random: a NIC of another daemon is not on this wire */
	uint32_t index;
};

struct ring_wire {
	struct wire_base base;
	struct nbnic *nic; /* known since the first poll */
	uint32_t index;
};

static uint64_t daemon_id;
static struct rte_ring *ring;
static uint32_t nwire, nopen;
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
	free(w);
	if (--nopen == 0) {
		rte_ring_free(ring);
		ring = NULL;
	}
}

static int ring_open(const char *nic, wire_option *option, void *args, struct wire_base **out)
{
	struct ring_wire *w = calloc(1, sizeof(*w));
	struct ring_addr addr;

	(void)option;
	(void)args;
	if (!w) {
		log_error("nic %s: no memory for a wire", nic);
		return -ENOMEM;
	}
	if (daemon_id == 0 && getrandom(&daemon_id, sizeof(daemon_id), 0) != sizeof(daemon_id)) {
		log_error("nic %s: the system gives no random numbers: %s", nic, strerror(errno));
		free(w);
		return -EIO;
	}
	if (!ring)
		ring = rte_ring_create_elem("wire", sizeof(struct ring_frame), RING_SIZE,
					    SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!ring) {
		log_error("nic %s: no memory for a ring: %s; give DPDK more, for example -- -m 128",
			  nic, rte_strerror(rte_errno));
		free(w);
		return -ENOMEM;
	}
	nopen++;
	memset(&addr, 0, sizeof(addr));
	addr.daemon = daemon_id;
	addr.index = w->index = nwire;
	memcpy(w->base.addr.byte, &addr, sizeof(addr));
	snprintf(w->base.text, sizeof(w->base.text), "ring:%u", nwire);
	wires[nwire++] = w;
	*out = &w->base;
	return 0;
}

static void ring_receive(const struct ring_frame *f, uint64_t now)
{
	struct ring_wire *to = wires[f->dst], *from = wires[f->src];

	if (to && to->nic && from)
		nbnic_receive(to->nic, &from->base.addr, &f->token, now);
}

/* Takes frames for all NICs: whichever is polled first serves the others too. */
static unsigned ring_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct ring_wire *w = (struct ring_wire *)base;
	struct rte_ring_zc_data at;
	unsigned n;

	w->nic = nic;
	if (rte_ring_empty(ring))
		return 0;
	n = rte_ring_dequeue_zc_burst_elem_start(ring, sizeof(struct ring_frame), budget, &at,
						 NULL);
	for (unsigned i = 0; i < n; i++)
		ring_receive(i < at.n1 ? (const struct ring_frame *)at.ptr1 + i
				       : (const struct ring_frame *)at.ptr2 + (i - at.n1),
			     now);
	rte_ring_dequeue_zc_finish(ring, n);
	/* Begin at the front again: so what little is in use stays in the cache. */
	if (rte_ring_empty(ring))
		rte_ring_reset(ring);
	return n;
}

static bool ring_transmit(struct wire_base *base, const struct nbnic_addr *to,
			  const struct nbfw_token *t)
{
	struct ring_wire *w = (struct ring_wire *)base;
	struct ring_addr addr = addr_of(to);
	struct rte_ring_zc_data at;
	struct ring_frame *f;

	if (addr.daemon != daemon_id || addr.index >= nwire) {
		w->base.errors++;
		return true;
	}
	if (rte_ring_enqueue_zc_bulk_elem_start(ring, sizeof(*f), 1, &at, NULL) == 0) {
		w->base.refused++;
		return false;
	}
	f = at.ptr1;
	f->src = (uint16_t)w->index;
	f->dst = (uint16_t)addr.index;
	f->token = *t;
	rte_ring_enqueue_zc_finish(ring, 1);
	return true;
}

const struct wire_ops wire_ring_ops = {
	.open = ring_open,
	.close = ring_close,
	.poll = ring_poll,
	.transmit = ring_transmit,
};
