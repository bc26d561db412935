/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - what the files of the wire "verbs" share; nobody else includes it.
 *
 * wire_verbs.c is the polling thread's side, verbs_device.c opens a port of an RDMA device,
 * verbs_peer.c is what the control thread does for peers.
 */
#ifndef NBAR_PORT_VERBS_H
#define NBAR_PORT_VERBS_H

#include <infiniband/verbs.h>

#include "mailbox.h"
#include "wire.h"

#define VERBS_QKEY 0x6e626172u
#define VERBS_RECVS 512u    /* datagrams that may have come and not been looked at */
#define VERBS_SENDS 128u    /* that may be under way */
#define VERBS_SIGNALLED 32u /* every so many sends one says that it is done; divides VERBS_SENDS \
			     */
#define VERBS_GRH 40u
#define VERBS_ROOM 128u /* a receive buffer: GRH, frame, and to spare */
#define VERBS_BUCKETS 4096u
#define VERBS_LOOP 1024u
#define VERBS_STRANGERS_MAX 64u

enum verbs_mode { VERBS_UD = 1, VERBS_WRITE = 2 };

/* The address of a NIC as its bytes stand in blobs; WIRE.md. */
struct verbs_addr {
	uint8_t mode;
	uint8_t link;     /* IBV_LINK_LAYER_* */
	uint8_t mtu;      /* enum ibv_mtu */
	uint8_t gid_type; /* 1 + enum ibv_gid_type */
	uint16_t lid;
	uint16_t reserved;
	uint32_t qpn;
	uint32_t reserved2;
	uint8_t gid[16];
	uint64_t id; /* random: tells a NIC from an earlier one with the same number */
};
_Static_assert(sizeof(struct verbs_addr) <= NBNIC_ADDR_SIZE, "an address fits");

/*
 * A NIC that frames go to. Made and ended by the control thread, and put into the table and taken
 * out of it by the polling thread: so either may look it up.
 */
struct verbs_peer {
	struct verbs_peer *next; /* in its bucket */
	struct nbnic_addr addr;
	struct ibv_ah *ah;
	uint32_t qpn;
	uint32_t users;   /* control thread: groups that have it; 0: a stranger, who only asked */
	uint64_t made_at; /* control thread: peers made before it */
};

struct verbs_wire {
	struct wire_base base;
	struct verbs_addr self;
	char nic[NBAR_NAME_MAX];
	struct ibv_context *context;
	uint8_t port, gid_index, sl;
	struct ibv_pd *pd;
	int wake_fd; /* eventfd, by which the polling thread asks for the control thread */

	/* Polling thread. */
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *room;          /* VERBS_RECVS times VERBS_ROOM bytes */
	uint32_t posted, done;  /* sends */
	bool broken;            /* the queue pair is being made new */
	uint64_t look_at;       /* when completions of sends are looked for, too */
	bool wanted;            /* a stranger asked ... */
	struct verbs_addr want; /* ... and cannot be answered yet */
	struct verbs_peer *bucket[VERBS_BUCKETS];
	uint32_t loop_head, loop_tail;
	struct nbfw_token loop[VERBS_LOOP]; /* to itself */

	/* Control thread. */
	uint64_t nmade;
	uint32_t nstranger;
};

/* verbs_device.c: opens the device, port and GID that the options name. Reports what is wrong. */
int verbs_device_open(struct verbs_wire *w, const char *(*option)(void *args, const char *key),
		      void *args);

void verbs_device_close(struct verbs_wire *w);

/* Brings the datagram queue pair from RESET to where it sends and receives. */
int verbs_qp_start(struct verbs_wire *w);

/* Says why a thing could not be made, and what to do; returns negative errno. */
int verbs_error(const struct verbs_wire *w, const char *what, int err);

/* Either thread. */
struct verbs_peer *verbs_peer_find(const struct verbs_wire *w, const struct verbs_addr *a);

/* verbs_peer.c: control thread */
int verbs_peer_begin(struct wire_base *base, const struct nbnic_addr *addr, const char **why);
void verbs_peer_end(struct wire_base *base, const struct nbnic_addr *addr);
void verbs_serve(struct wire_base *base);
void verbs_peers_free(struct verbs_wire *w);

/* wire_verbs.c, for the polling thread but verbs_peer_find */
void verbs_peer_insert(struct verbs_wire *w, struct verbs_peer *p);
void verbs_peer_remove(struct verbs_wire *w, struct verbs_peer *p);
/* Gives the queue pair all its receive buffers. */
void verbs_post_all(struct verbs_wire *w);
/* Asks for the control thread: it is to call verbs_serve. */
void verbs_wake(const struct verbs_wire *w);
/* Sends a datagram of up to NBFW_FRAME_SIZE bytes; false: it cannot go now. */
bool verbs_send(struct verbs_wire *w, const struct verbs_peer *p, const void *data,
		uint32_t length);

static inline struct verbs_addr verbs_addr_of(const struct nbnic_addr *a)
{
	struct verbs_addr v;

	__builtin_memcpy(&v, a->byte, sizeof(v));
	return v;
}

#endif
