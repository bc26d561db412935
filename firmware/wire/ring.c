/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - the wire between the NICs of one daemon: all NICs send and receive through one queue of
 * frames.
 *
 * All NICs share the queue: so frames lie next to each other in the order of their use, the queue
 * stays in the nearest cache, and an idle NIC costs nothing. Only the polling thread calls this
 * file: it is the sender and the receiver, so nothing orders memory here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "log.h"
#include "wire.h"

#define RING_SIZE 65536u /* frames that may be under way; a power of two */

struct ring_frame {
	_Alignas(64) uint16_t src; /* index of a NIC */
	uint16_t dst;
	struct nbfw_token token;
};
_Static_assert(sizeof(struct ring_frame) == 64, "a frame is a cache line");

/* A short value is a cache line, too. */
struct ring_value {
	_Alignas(64) struct nbfw_value value;
};

/* The contents of an address. */
struct ring_addr {
	uint64_t daemon; /* random: NICs of another daemon are not on this wire */
	uint32_t index;
};

struct ring_wire {
	struct wire_base base;
	struct nbnic *nic; /* set by the first poll */
	uint32_t index;
};

static uint64_t daemon_id;
static struct ring_frame *frames; /* RING_SIZE of them; the frames [head, tail) are under way */
static struct ring_value *values; /* behind them, in the same order; memory only if they are used */
static uint32_t head, tail;       /* both wrap */
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
		free(frames);
		frames = NULL;
		head = tail;
	}
}

static void ring_show(const struct wire_base *base, const struct nbnic_addr *a, char *text,
		      size_t size)
{
	(void)base;
	snprintf(text, size, "ring:%u", addr_of(a).index);
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
	if (!frames)
		frames = aligned_alloc(_Alignof(struct ring_frame),
				       RING_SIZE * (sizeof(*frames) + sizeof(*values)));
	if (!frames) {
		log_error("nic %s: no memory for a ring of %zu KiB", nic,
			  RING_SIZE * sizeof(*frames) / 1024);
		free(w);
		return -ENOMEM;
	}
	values = (struct ring_value *)(frames + RING_SIZE);
	nopen++;
	memset(&addr, 0, sizeof(addr));
	addr.daemon = daemon_id;
	addr.index = w->index = nwire;
	memcpy(w->base.addr.byte, &addr, sizeof(addr));
	ring_show(&w->base, &w->base.addr, w->base.text, sizeof(w->base.text));
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

/* Not inline, so that a poll of an empty queue stays short. */
__attribute__((noinline)) static unsigned take(uint64_t now, unsigned budget)
{
	unsigned n = tail - head < budget ? tail - head : budget;

	/* A frame stays in its place until the NIC has used it. */
	for (unsigned i = 0; i < n; i++, head++)
		ring_receive(&frames[head % RING_SIZE], now);
	/* An empty queue begins at the front again: so the part in use stays in the cache. */
	if (head == tail)
		head = tail = 0;
	return n;
}

/* Takes frames for all NICs: the NIC that is polled first also serves the others. */
static unsigned ring_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	((struct ring_wire *)base)->nic = nic;
	return head == tail ? 0 : take(now, budget);
}

__attribute__((noinline)) static bool put_value(struct ring_frame *f, const struct nbfw_value *from)
{
	struct nbfw_value *v = &values[f - frames].value;

	nbfw_value_copy(v, from, f->token.value_length);
	f->token.value = v;
	return true;
}

static bool ring_transmit(struct wire_base *base, const struct nbnic_addr *to,
			  const struct nbfw_token *t)
{
	struct ring_wire *w = (struct ring_wire *)base;
	struct ring_addr addr = addr_of(to);
	struct ring_frame *f = &frames[tail % RING_SIZE];

	if (addr.daemon != daemon_id || addr.index >= nwire) {
		w->base.errors++;
		return true;
	}
	if (tail - head == RING_SIZE) {
		w->base.refused++;
		return false;
	}
	f->src = (uint16_t)w->index;
	f->dst = (uint16_t)addr.index;
	memcpy(&f->token, t, offsetof(struct nbfw_token, value));
	tail++;
	return t->value_length ? put_value(f, t->value) : true;
}

static int ring_wakes(const struct wire_base *base)
{
	(void)base;
	return -1; /* all NICs of the ring are in this daemon, and sleep and wake together */
}

const struct wire_ops wire_ring_ops = {
	.values = true,
	.open = ring_open,
	.close = ring_close,
	.poll = ring_poll,
	.transmit = ring_transmit,
	.wakes = ring_wakes,
	.show = ring_show,
};
