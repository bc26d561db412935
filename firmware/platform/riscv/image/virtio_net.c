/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio_net.c - Ethernet by a virtio network device (virtio 1.x over MMIO): the frames of the wire
 * `dpdk`, so that both can be in one group.
 *
 * Called by the pass. Both rings have fixed buffers: no frame waits for memory. This file checks
 * each index that the device writes into the rings.
 */
#include "virtio_net.h"
#include "machine.h"

#define MMIO_BASE 0x10001000u /* eight transports, 4 KB each; interrupts 1 to 8 */
#define MMIO_STEP 0x1000u
#define MMIO_COUNT 8u

enum {
	REG_MAGIC = 0x00,
	REG_VERSION = 0x04,
	REG_DEVICE = 0x08,
	REG_FEATURES = 0x10,
	REG_FEATURES_SELECT = 0x14,
	REG_ACCEPT = 0x20,
	REG_ACCEPT_SELECT = 0x24,
	REG_QUEUE = 0x30,
	REG_QUEUE_MAX = 0x34,
	REG_QUEUE_SIZE = 0x38,
	REG_QUEUE_READY = 0x44,
	REG_NOTIFY = 0x50,
	REG_IRQ_STATUS = 0x60,
	REG_IRQ_ACK = 0x64,
	REG_STATUS = 0x70,
	REG_DESC = 0x80, /* each of these 64 bits, in two registers */
	REG_DRIVER = 0x90,
	REG_DEVICE_RING = 0xa0,
	REG_CONFIG = 0x100 /* first the MAC address */
};

#define VIRTIO_MAGIC 0x74726976u
#define DEVICE_NET 1u
#define STATUS_ACKNOWLEDGE 1u
#define STATUS_DRIVER 2u
#define STATUS_DRIVER_OK 4u
#define STATUS_FEATURES_OK 8u
#define FEATURE_MAC (1u << 5)
#define FEATURE_VERSION_1 1u /* bit 32 */
#define DESC_WRITE 2u
#define NO_NOTIFY 1u    /* used ring: the device looks by itself */
#define NO_INTERRUPT 1u /* available ring: none for this queue */

#define ETHER_TYPE_HIGH (NBFW_ETHER_TYPE >> 8)
#define ETHER_TYPE_LOW (NBFW_ETHER_TYPE & 0xff)
/* The kind of wire in endpoint addresses (WIRE.md): frames and addresses are those of wire dpdk. */
#define KIND_ETHERNET 2u
#define MAC_SIZE 6u
#define NET_HEADER 12u
#define ETHER_HEADER 14u
#define FRAME_AT (NET_HEADER + ETHER_HEADER)
/* Of a frame with a value; the device drops a longer frame, which is not ours. */
#define BUFFER_BYTES ((FRAME_AT + NBFW_FRAME_MAX + 15u) & ~15u)
#define SLOTS 16u /* buffers of each ring; a power of two. 32 do not fit into 256 KB */
#define LOOP 16u  /* frames on the way from this NIC to itself; a power of two */

struct desc {
	uint64_t addr;
	uint32_t length;
	uint16_t flags, next;
};

struct ring {
	struct desc desc[SLOTS];
	struct {
		uint16_t flags, idx, entry[SLOTS], event;
	} avail;
	_Alignas(4) struct {
		uint16_t flags, idx;
		struct {
			uint32_t id, length;
		} entry[SLOTS];
		uint16_t event;
	} used;
	uint16_t given; /* buffers that the device has been given so far ... */
	uint16_t taken; /* ... and that it has returned */
	uint16_t fresh; /* buffers from this index on have never been used */
	_Alignas(16) uint8_t buffer[SLOTS][BUFFER_BYTES];
};

static struct {
	struct wire_base base;
	uintptr_t mmio;
	uint32_t irq;
	uint8_t mac[MAC_SIZE];
	struct ring rx, tx;
	/* Frames to itself: two ports of a NIC may be in one group, and no switch sends them
	 * back. */
	uint32_t loop_head, loop_tail;
	struct nbfw_token loop[LOOP];
	struct nbfw_value loop_value[LOOP]; /* of those that carry one */
} net;

static void give(struct ring *r, uint16_t id)
{
	r->avail.entry[r->given % SLOTS] = id;
	r->given++;
	/* Pairs with the device's read of idx: entry, descriptor and buffer are ready. */
	__atomic_store_n(&r->avail.idx, r->given, __ATOMIC_RELEASE);
}

/* Tells the device that queue q has a new entry, unless the device looks by itself. */
static void net_notify(const struct ring *r, uint32_t q)
{
	/* The device sets its flag and then looks at idx again: either the device sees our idx, or
	 * we see that it wants a notification. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!(__atomic_load_n(&r->used.flags, __ATOMIC_RELAXED) & NO_NOTIFY))
		machine_write32(net.mmio + REG_NOTIFY, q);
}

/* Takes the next buffer that the device has returned. */
static bool net_take(struct ring *r, uint16_t *id, uint32_t *length)
{
	/* Pairs with the device's store of idx: the entry and its buffer are complete. */
	if (__atomic_load_n(&r->used.idx, __ATOMIC_ACQUIRE) == r->taken)
		return false;
	*id = (uint16_t)(r->used.entry[r->taken % SLOTS].id % SLOTS);
	*length = r->used.entry[r->taken % SLOTS].length;
	r->taken++;
	return true;
}

static bool net_to_itself(const struct nbfw_token *t)
{
	if (net.loop_tail - net.loop_head == LOOP) {
		net.base.refused++;
		return false;
	}
	struct nbfw_token *to = &net.loop[net.loop_tail % LOOP];

	*to = *t;
	if (t->value_length) {
		to->value = &net.loop_value[net.loop_tail % LOOP];
		__builtin_memcpy(&net.loop_value[net.loop_tail % LOOP], t->value, t->value_length);
	}
	net.loop_tail++;
	return true;
}

static bool same_mac(const uint8_t *a, const uint8_t *b)
{
	for (uint32_t i = 0; i < MAC_SIZE; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static void copy_mac(uint8_t *to, const uint8_t *from)
{
	for (uint32_t i = 0; i < MAC_SIZE; i++)
		to[i] = from[i];
}

static bool net_transmit(struct wire_base *w, const struct nbnic_addr *to,
			 const struct nbfw_token *t)
{
	struct ring *r = &net.tx;
	uint32_t length;
	uint16_t id;

	(void)w;
	if (same_mac(to->byte, net.mac))
		return net_to_itself(t);
	if (r->fresh < SLOTS) {
		id = r->fresh++;
	} else if (!net_take(r, &id, &length)) {
		net.base.refused++;
		return false;
	}
	copy_mac(r->buffer[id] + NET_HEADER, to->byte);
	r->desc[id].length = FRAME_AT + nbfw_token_pack(t, r->buffer[id] + FRAME_AT);
	give(r, id);
	net_notify(r, 1);
	return true;
}

/* Takes one frame from the wire. Ignores frames of other types or for other receivers. */
static void net_receive(const uint8_t *frame, uint32_t length, struct nbnic *nic, uint64_t now)
{
	struct nbnic_addr from = { { 0 } };
	struct nbfw_token t;

	if (length < ETHER_HEADER || !same_mac(frame, net.mac) ||
	    frame[2 * MAC_SIZE] != ETHER_TYPE_HIGH || frame[2 * MAC_SIZE + 1] != ETHER_TYPE_LOW)
		return;
	if (!nbfw_token_unpack(frame + ETHER_HEADER, length - ETHER_HEADER, &t)) {
		net.base.malformed++;
		return;
	}
	copy_mac(from.byte, frame + MAC_SIZE);
	nbnic_receive(nic, &from, &t, now);
}

/* Takes frames that the NIC has sent to itself, at most `most`. */
static unsigned net_take_loopback(struct nbnic *nic, uint64_t now, unsigned most)
{
	unsigned n = 0;

	/* A place is free after its token, whose value lies there. */
	for (uint32_t end = net.loop_tail; net.loop_head != end && n < most; n++, net.loop_head++)
		nbnic_receive(nic, &net.base.addr, &net.loop[net.loop_head % LOOP], now);
	return n;
}

static unsigned net_poll(struct wire_base *w, struct nbnic *nic, uint64_t now, unsigned budget)
{
	unsigned own = net_take_loopback(nic, now, (budget + 1) / 2), n = own;
	uint32_t length;
	uint16_t id;

	(void)w;
	for (; n < budget && net_take(&net.rx, &id, &length); n++) {
		if (length > BUFFER_BYTES)
			length = BUFFER_BYTES;
		if (length > NET_HEADER)
			net_receive(net.rx.buffer[id] + NET_HEADER, length - NET_HEADER, nic, now);
		give(&net.rx, id);
	}
	if (n > own)
		net_notify(&net.rx, 0);
	return n;
}

static void net_show(const struct wire_base *w, const struct nbnic_addr *a, char *text, size_t size)
{
	static const char hex[] = "0123456789abcdef";

	(void)w;
	for (uint32_t i = 0; i < MAC_SIZE && 3 * i + 2 < size; i++) {
		text[3 * i] = hex[a->byte[i] >> 4];
		text[3 * i + 1] = hex[a->byte[i] & 15];
		text[3 * i + 2] = i == MAC_SIZE - 1 ? '\0' : ':';
	}
}

static const struct wire_ops net_ops = {
	.values = true,
	.poll = net_poll,
	.transmit = net_transmit,
	.show = net_show,
};

static void write64(uint32_t reg, const void *at)
{
	machine_write32(net.mmio + reg, (uint32_t)(uintptr_t)at);
	machine_write32(net.mmio + reg + 4, (uint32_t)((uint64_t)(uintptr_t)at >> 32));
}

static bool queue_start(uint32_t q, struct ring *r, uint16_t flags)
{
	machine_write32(net.mmio + REG_QUEUE, q);
	if (machine_read32(net.mmio + REG_QUEUE_MAX) < SLOTS)
		return false;
	for (uint32_t i = 0; i < SLOTS; i++)
		r->desc[i] = (struct desc){
			.addr = (uintptr_t)r->buffer[i],
			.length = BUFFER_BYTES, /* of a frame to send: net_transmit sets it */
			.flags = flags,
		};
	machine_write32(net.mmio + REG_QUEUE_SIZE, SLOTS);
	write64(REG_DESC, r->desc);
	write64(REG_DRIVER, &r->avail);
	write64(REG_DEVICE_RING, &r->used);
	machine_write32(net.mmio + REG_QUEUE_READY, 1);
	return true;
}

static bool net_find(void)
{
	for (uint32_t i = 0; i < MMIO_COUNT; i++) {
		net.mmio = MMIO_BASE + i * MMIO_STEP;
		net.irq = 1 + i;
		if (machine_read32(net.mmio + REG_MAGIC) == VIRTIO_MAGIC &&
		    machine_read32(net.mmio + REG_VERSION) == 2 &&
		    machine_read32(net.mmio + REG_DEVICE) == DEVICE_NET)
			return true;
	}
	return false;
}

/* Takes the wanted feature bits, from bit 32 * select on. False: the device lacks such a bit. */
static bool feature(uint32_t select, uint32_t wanted)
{
	machine_write32(net.mmio + REG_FEATURES_SELECT, select);
	machine_write32(net.mmio + REG_ACCEPT_SELECT, select);
	machine_write32(net.mmio + REG_ACCEPT, wanted);
	return (machine_read32(net.mmio + REG_FEATURES) & wanted) == wanted;
}

static void net_describe(void)
{
	for (uint32_t i = 0; i < MAC_SIZE; i++) {
		net.mac[i] = *(const volatile uint8_t *)(net.mmio + REG_CONFIG + i);
		net.base.addr.byte[i] = net.mac[i];
	}
	net_show(&net.base, &net.base.addr, net.base.text, sizeof(net.base.text));
}

struct wire_base *virtio_net_open(const char **why)
{
	uint32_t status = STATUS_ACKNOWLEDGE | STATUS_DRIVER;

	*why = "the machine has no modern virtio network device";
	if (!net_find())
		return 0;
	*why = "its virtio network device lacks a feature";
	machine_write32(net.mmio + REG_STATUS, 0);
	machine_write32(net.mmio + REG_STATUS, status);
	if (!feature(0, FEATURE_MAC) || !feature(1, FEATURE_VERSION_1))
		return 0;
	status |= STATUS_FEATURES_OK;
	machine_write32(net.mmio + REG_STATUS, status);
	if (!(machine_read32(net.mmio + REG_STATUS) & STATUS_FEATURES_OK) ||
	    !queue_start(0, &net.rx, DESC_WRITE) || !queue_start(1, &net.tx, 0))
		return 0;
	net_describe();
	for (uint32_t i = 0; i < SLOTS; i++) { /* the parts of a sent frame that never change */
		uint8_t *eth = net.tx.buffer[i] + NET_HEADER;

		copy_mac(eth + MAC_SIZE, net.mac);
		eth[2 * MAC_SIZE] = ETHER_TYPE_HIGH;
		eth[2 * MAC_SIZE + 1] = ETHER_TYPE_LOW;
	}
	net.tx.avail.flags = NO_INTERRUPT;
	machine_write32(net.mmio + REG_STATUS, status | STATUS_DRIVER_OK);
	for (uint16_t i = 0; i < SLOTS; i++)
		give(&net.rx, i);
	net_notify(&net.rx, 0);
	net.base.ops = &net_ops;
	net.base.name = "virtio";
	net.base.kind = KIND_ETHERNET;
	return &net.base;
}

uint32_t virtio_net_irqs(void)
{
	return 1u << net.irq;
}

void virtio_net_acknowledge(uint32_t irq)
{
	if (irq == net.irq)
		machine_write32(net.mmio + REG_IRQ_ACK, machine_read32(net.mmio + REG_IRQ_STATUS));
}
