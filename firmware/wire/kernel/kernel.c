/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.c - frames on Ethernet, through a packet socket, or in UDP datagrams, through the socket
 * of wire udp; and programs in the kernel that run the barriers of groups that the NIC has lent
 * (programs.bpf.c).
 *
 * libnbar-wire-kernel.so, which the daemon loads. The socket gets the frames that the programs let
 * through.
 */
#include <linux/if_packet.h>
#include <stdio.h>

#include "kernel.h"
#include "object.h"
#include "wire_build.h"

#define FRAME_MAX (KERNEL_ETHER + WIRE_FRAME_MAX)

static unsigned loop_take(struct kernel_wire *w, struct nbnic *nic, uint64_t now, unsigned most)
{
	unsigned n = 0;

	for (uint32_t end = w->loop_tail; w->loop_head != end && n < most; n++) {
		struct nbfw_token t = w->loop[w->loop_head++ % KERNEL_LOOP];

		nbnic_receive(nic, &w->base.addr, &t, now);
	}
	return n;
}

/* Hears the bell: takes back the groups that the programs want the NIC to take. */
static unsigned bell_hear(struct kernel_wire *w, struct nbnic *nic, uint64_t now)
{
	/* Pairs with the store of the kernel after a record. */
	unsigned long rung = __atomic_load_n(w->rung, __ATOMIC_ACQUIRE);

	if (rung == *w->heard)
		return 0;
	/* Before the words are read: the programs set a word before they ring. Either this sees the
	 * word, or a program that found the ring full sees this. */
	__atomic_store_n(w->heard, rung, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < KERNEL_GROUPS && i < nic->high; i++)
		if (__atomic_load_n(&w->wanted[i], __ATOMIC_RELAXED))
			nbnic_lend_wanted(nic, i,
					  (enum nbnic_want)__atomic_exchange_n(&w->wanted[i], 0,
									       __ATOMIC_ACQ_REL),
					  now);
	return 1;
}

_Static_assert(KERNEL_WAKE == (int)NBNIC_WANT_WAKE && KERNEL_TAKE == (int)NBNIC_WANT_TAKE &&
		       KERNEL_TIMEOUT == (int)NBNIC_WANT_TIMEOUT,
	       "the programs want what the NIC knows");

static unsigned kernel_poll(struct wire_base *base, struct nbnic *nic, uint64_t now,
			    unsigned budget)
{
	struct kernel_wire *w = (struct kernel_wire *)base;
	unsigned n = bell_hear(w, nic, now) + loop_take(w, nic, now, budget / 2);

	if (kernel_is_udp(w))
		return n < budget ? n + wire_udp_ops.poll(base, nic, now, budget - n) : n;
	for (; n < budget; n++) {
		uint8_t frame[FRAME_MAX];
		struct sockaddr_ll who = { 0 };
		socklen_t size = sizeof(who);
		struct nbnic_addr from = { { 0 } };
		struct nbfw_token t;
		ssize_t length = recvfrom(w->fd, frame, sizeof(frame), MSG_DONTWAIT,
					  (struct sockaddr *)&who, &size);

		if (length < 0)
			break;
		if (length < (ssize_t)KERNEL_ETHER || who.sll_pkttype != PACKET_HOST)
			continue;
		memcpy(from.byte, frame + ETH_ALEN, ETH_ALEN);
		if (wire_frame_unpack(base, nic, &from, frame + KERNEL_ETHER,
				      (size_t)length - KERNEL_ETHER, &t))
			nbnic_receive(nic, &from, &t, now);
	}
	return n;
}

static bool kernel_transmit(struct wire_base *base, const struct nbnic_addr *to,
			    const struct nbfw_token *t)
{
	struct kernel_wire *w = (struct kernel_wire *)base;
	uint8_t frame[FRAME_MAX];
	size_t length = KERNEL_ETHER;

	if (kernel_is_udp(w))
		return wire_udp_ops.transmit(base, to, t);
	if (memcmp(to->byte, w->mac, sizeof(w->mac)) == 0) {
		if (w->loop_tail - w->loop_head == KERNEL_LOOP) {
			base->refused++;
			return false;
		}
		w->loop[w->loop_tail++ % KERNEL_LOOP] = *t;
		return true;
	}
	kernel_ether_header(w, to, frame);
	length += wire_frame_pack(base, to, t, frame + KERNEL_ETHER);
	if (send(w->fd, frame, length, MSG_DONTWAIT) >= 0)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS) {
		base->refused++;
		return false;
	}
	base->errors++;
	return true;
}

static int kernel_wakes(const struct wire_base *base)
{
	return ((const struct kernel_wire *)base)->epoll;
}

static void kernel_show(const struct wire_base *base, const struct nbnic_addr *a, char *text,
			size_t size)
{
	if (kernel_is_udp((const struct kernel_wire *)base)) {
		wire_udp_ops.show(base, a, text, size);
		return;
	}
	snprintf(text, size, "%02x:%02x:%02x:%02x:%02x:%02x", a->byte[0], a->byte[1], a->byte[2],
		 a->byte[3], a->byte[4], a->byte[5]);
}

static const struct wire_ops kernel_ops = {
	.quota = 1, /* each frame is a system call */
	.values = true,
	.open = kernel_open,
	.close = kernel_close,
	.poll = kernel_poll,
	.transmit = kernel_transmit,
	.peer_begin = wire_auth_peer_begin,
	.peer_end = wire_auth_peer_end,
	.wakes = kernel_wakes,
	.show = kernel_show,
	.forked = kernel_forked,
	.lend = kernel_lend,
	.take = kernel_take,
	.port_begin = kernel_port_begin,
	.port_end = kernel_port_end,
	.port_fds = kernel_port_fds,
};

__attribute__((visibility("default"))) const struct wire_object nbar_wire = {
	.build = WIRE_BUILD,
	.nic_size = sizeof(struct nbnic),
	.ops = &kernel_ops,
	.log = &wire_object_log,
};
