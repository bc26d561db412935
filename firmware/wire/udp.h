/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp.h - the socket of a NIC on "udp", for wires that have one too. See udp.c.
 */
#ifndef NBAR_WIRE_UDP_H
#define NBAR_WIRE_UDP_H

#include <sys/socket.h>

#include "auth.h"
#include "udp_address.h"

#define UDP_BURST 32u
#define UDP_ROOM (WIRE_FRAME_MAX + 8) /* a longer datagram is cut off: it is no frame */
#define UDP_HEARD_MAX 4096u           /* NICs in the table; a power of two */

struct udp_wire {
	struct wire_base base;
	int fd;
	uint32_t scope; /* of a link-local address */
	sa_family_t family;
	uint32_t dropped; /* datagrams dropped by the receive queue, as the kernel last told */
	int silent_max;   /* bytes in the send buffer, above which no silent NIC gets a frame */
	uint64_t now;     /* at the last poll */
	uint64_t seed;    /* so that nobody can choose two NICs with one entry below */
	struct udp_heard {
		uint64_t name, time;
		uint64_t quiet_at; /* begin of the last QUIET_NS */
		uint32_t quiet;    /* frames in it, to all NICs with this entry */
	} heard[UDP_HEARD_MAX];
	struct mmsghdr msg[UDP_BURST];
	struct iovec iov[UDP_BURST];
	union udp_name from[UDP_BURST];
	uint8_t frame[UDP_BURST][UDP_ROOM];
	uint8_t control[UDP_BURST][CMSG_SPACE(sizeof(uint32_t))] __attribute__((aligned(8)));
};

extern const struct wire_ops wire_udp_ops;

/* As wire_ops.open, but in memory of the caller, who closes w->fd (-1: there is none). */
int udp_begin(struct udp_wire *w, const char *nic, wire_option *option, void *args);

#endif
