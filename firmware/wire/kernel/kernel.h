/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.h - what the files of wire "kernel" share.
 *
 * kernel.c: frames. open.c: the interface and its programs. groups.c: lends groups to them.
 * ports.c: what hosts share with them. Called by the polling thread, but open, close and the
 * functions of ports.
 */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "auth.h"
#include "nbar_host.h"
#include "lent.h"
#include "log.h"
#include "udp.h"

#define KERNEL_LOOP 1024u /* frames that a NIC may have sent to itself; a power of two */

struct kernel_port {
	int map, socket; /* what its hosts get */
	uint64_t cookie;
	struct nbar_results *results; /* NULL: no group of the port is lent */
};

struct kernel_wire {
	union {
		struct wire_base base;
		struct udp_wire udp; /* its socket is -1 if frames are on Ethernet */
	};
	uint32_t headers; /* bytes before a frame: KERNEL_ETHER, ... */
	int fd, epoll;    /* fd: if frames are in datagrams, it only holds the interface */
	uint32_t ifindex;
	uint8_t mac[ETH_ALEN];
	struct bpf_object *object;
	int link[4], hand, groups, ports, cells, pages, bell;
	int routes; /* to NICs, as the programs have seen them; negative: frames are on Ethernet */
	/* The bell, a ring of the kernel: how far the daemon has read, and how far there is. */
	unsigned long *heard, *rung;
	uint64_t *wanted; /* of each group: the programs want the daemon to take it */
	uint8_t (*values)[KERNEL_VALUES_SIZE]; /* of each group; NULL: the programs take none */
	uint32_t handle[KERNEL_GROUPS];        /* that the programs know */
	uint64_t cell[KERNEL_GROUPS];          /* the key of the group in `cells` */
	uint64_t tried[KERNEL_GROUPS];         /* handle and epoch when a route was missing */
	struct kernel_port port[NBAR_PORTS_MAX];
	/* Frames to itself: no switch sends a frame back to its sender. */
	uint32_t loop_head, loop_tail;
	struct nbfw_token loop[KERNEL_LOOP];
};

static inline bool kernel_is_udp(const struct kernel_wire *w)
{
	return w->headers != KERNEL_ETHER;
}

static inline uint32_t kernel_ip_size(const struct kernel_wire *w)
{
	return w->headers == KERNEL_UDP6 ? KERNEL_IP6 : KERNEL_IP4;
}

static inline void kernel_ether_header(const struct kernel_wire *w, const struct nbnic_addr *to,
				       uint8_t *frame)
{
	memcpy(frame, to->byte, ETH_ALEN);
	memcpy(frame + ETH_ALEN, w->mac, ETH_ALEN);
	frame[2 * ETH_ALEN] = NBFW_ETHER_TYPE >> 8;
	frame[2 * ETH_ALEN + 1] = NBFW_ETHER_TYPE & 0xff;
}

/* Memory of a map of the kernel, or NULL. */
void *kernel_map_memory(int fd, size_t size, int prot, off_t at);

/* Of a socket that receives nothing. */
extern const struct sock_fprog kernel_receives_none;

/* Functions of wire_ops. */
int kernel_open(const char *nic, wire_option *option, void *args, struct wire_base **out);
void kernel_forked(struct wire_base *base);
void kernel_close(struct wire_base *base);
bool kernel_lend(struct wire_base *base, const struct nbnic_group *g, const struct wire_lend *how);
bool kernel_take(struct wire_base *base, struct nbnic_group *g, struct wire_counts *out);
struct nbar_results *kernel_port_begin(struct wire_base *base, uint32_t port);
void kernel_port_end(struct wire_base *base, uint32_t port);
bool kernel_port_fds(const struct wire_base *base, uint32_t port, int fd[2]);

#endif
