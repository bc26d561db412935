/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - what the files of the wire "verbs" share; nobody else includes it.
 *
 * Each file calls only files above it in this list:
 *   slot.c table.c queue.c   leaves: memory that peers write to, peers, the queue pair of
 * datagrams mode.c device.c           opens a port of an RDMA device connect.c connection.c
 * connections to peers: control thread, polling thread repair.c peer.c           what the control
 * thread does for the device, and for peers verbs.c                   the wire
 */
#ifndef NBAR_WIRE_VERBS_H
#define NBAR_WIRE_VERBS_H

#include <infiniband/verbs.h>

#include "wire.h"

#define VERBS_QKEY 0x6e626172u
#define VERBS_RECVS 512u /* datagrams that may have come and not been looked at */
#define VERBS_SENDS 128u /* that may be under way */
#define VERBS_SIGNALLED                                                          \
	32u /* every so many sends one says that it is done; divides VERBS_SENDS \
	     */
#define VERBS_GRH 40u
#define VERBS_ROOM 128u /* a receive buffer: GRH, frame, and to spare */
#define VERBS_BUCKETS 4096u
#define VERBS_LOOP 1024u
#define VERBS_STRANGERS_MAX 64u
#define VERBS_SLOTS 64u            /* of a sender in the memory of its receiver */
#define VERBS_WRITES 64u           /* that may be under way to one peer */
#define VERBS_WRITES_SIGNALLED 16u /* divides VERBS_WRITES */
/* Completion queues of sends hold so many times those under way: when a queue pair breaks, soft
 * RoCE of Linux 6.1 may tell of the slots of its ring that are in no use, too. */
#define VERBS_CQ_TIMES 4u

/* WRITE_RC: by reliable connections; WRITE_UC: by unreliable ones; WRITE: one of these, until the
 * device is known. */
enum verbs_mode { VERBS_WRITE = 0, VERBS_UD = 1, VERBS_WRITE_RC = 2, VERBS_WRITE_UC = 3 };

/* The address of a NIC as its bytes stand in endpoint addresses; WIRE.md. */
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
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "what NICs tell each other is so");
_Static_assert(sizeof(struct verbs_addr) <= NBNIC_ADDR_SIZE, "an address fits");

/* The modes that write: what a sender writes into the receiver's memory, in one RDMA write. */
struct verbs_slot {
	uint8_t frame[NBFW_FRAME_SIZE];
	uint32_t sequence; /* counts what the sender wrote; it lies at (sequence - 1) mod
			      VERBS_SLOTS */
	uint32_t sum;      /* of frame and sequence: half of a write is none */
	uint32_t reserved[2];
};
_Static_assert(sizeof(struct verbs_slot) == 64, "a slot is a cache line");

/* One end of a connection, as its NIC tells the other in a handshake. */
struct verbs_end {
	uint32_t qpn, psn, rkey, reserved;
	uint64_t slot; /* address of the first */
};

/* A datagram between two NICs about the connection between them. */
struct verbs_handshake {
	uint8_t type;  /* VERBS_HANDSHAKE: no frame begins so */
	uint8_t wants; /* an answer */
	uint16_t reserved;
	uint32_t known_qpn; /* of the receiver's end, if the sender can take its writes */
	uint64_t id;        /* of the receiver: who has it has had an endpoint address */
	struct verbs_end end;
	uint32_t known_psn, reserved2;
};
#define VERBS_HANDSHAKE 0x81u
_Static_assert(sizeof(struct verbs_handshake) == NBFW_FRAME_SIZE, "a handshake");
#define VERBS_INLINE 64u

/* Where frames are sent from if not inline: a slot for each that may be under way. */
struct verbs_out {
	uint8_t *room; /* NULL: they are sent inline */
	struct ibv_mr *mr;
};

enum verbs_connection_state {
	VERBS_CONNECTION_IDLE,   /* the other end is not known */
	VERBS_CONNECTION_MAKING, /* the control thread has it */
	VERBS_CONNECTION_OPEN,   /* takes writes */
	VERBS_CONNECTION_READY   /* and the other end, too: frames go this way */
};

/* A connection to one peer. State MAKING: the control thread's; else the polling one's. */
struct verbs_connection {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct verbs_out out;
	struct verbs_slot *slot;
	struct verbs_end mine, its;
	enum verbs_connection_state state;
	bool reset;     /* MAKING: it has been used before */
	bool renew;     /* its completion queue is in an error, and there are to be new queues */
	bool taken;     /* MAKING: by the control thread */
	uint32_t error; /* enum ibv_wc_status that broke it */
	uint32_t posted, done;
	uint32_t written, seen; /* sequence numbers */
	uint64_t handshake_at, handshake_ns;
};

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
	struct verbs_connection *connection; /* NULL: mode ud, or a stranger */
	struct verbs_peer *next_connection;  /* in the list of those that have one */
};

struct verbs_wire {
	struct wire_base base;
	struct verbs_addr self;
	char nic[NBAR_NAME_MAX];
	struct ibv_context *context;
	uint8_t port, gid_index, sl;
	bool send_inline;
	struct ibv_pd *pd;
	int wake_fd; /* eventfd, by which the polling thread asks for the control thread */

	/* Polling thread. */
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct verbs_out out;
	uint8_t *room;          /* VERBS_RECVS times VERBS_ROOM bytes */
	uint32_t posted, done;  /* sends */
	bool broken;            /* the queue pair is to be recreated, and nothing sent */
	bool is_reply;          /* a question is being answered */
	bool failing;           /* and cannot: the groups are to fail */
	uint64_t repair_at;     /* broken: not before */
	uint64_t look_at;       /* when completions of sends are looked for, too */
	bool wanted;            /* a stranger asked ... */
	struct verbs_addr want; /* ... and cannot be answered yet */
	struct verbs_peer *bucket[VERBS_BUCKETS];
	struct verbs_peer *connections;
	struct verbs_peer *connection_at; /* where the next poll begins; NULL: at the first */
	uint32_t loop_head, loop_tail;
	struct nbfw_token loop[VERBS_LOOP]; /* to itself */

	/* Control thread. */
	uint64_t nmade;
	uint32_t nstranger;
	bool fatal;       /* the device has failed */
	const char *dead; /* NULL; or why there can be no groups, and what to do */
	uint32_t repairs;
	uint64_t said_at;
	bool gid_missing; /* and that has been told */
};

/* table.c: either thread finds, the polling thread changes. */
struct verbs_peer *verbs_peer_find(const struct verbs_wire *w, const struct verbs_addr *a);
void verbs_peer_insert(struct verbs_wire *w, struct verbs_peer *p);
void verbs_peer_remove(struct verbs_wire *w, struct verbs_peer *p);

/* queue.c: says why a thing could not be made, and what to do; returns negative errno. */
int verbs_error(const struct verbs_wire *w, const char *what, int err);
/* Memory of n slots to send from, unless frames are sent inline. 0, or negative errno. */
int verbs_out_make(const struct verbs_wire *w, struct verbs_out *out, uint32_t n);
void verbs_out_free(struct verbs_out *out);
/* Brings the datagram queue pair from RESET to where it sends and receives. */
int verbs_qp_start(struct verbs_wire *w);
/* Polling thread: gives the queue pair one receive buffer; all of them. */
void verbs_post_one(struct verbs_wire *w, uint64_t i);
void verbs_post_all(struct verbs_wire *w);
/* Polling thread: the queue pair is in an error. */
void verbs_queue_failed(struct verbs_wire *w);
/* Polling thread: sends that are done. */
void verbs_look_for_completions(struct verbs_wire *w);
/* Polling thread: asks for the control thread, which is to call verbs_serve. */
void verbs_wake(const struct verbs_wire *w);
/* Polling thread: sends a datagram of up to NBFW_FRAME_SIZE bytes; false: it cannot go now. */
bool verbs_send(struct verbs_wire *w, const struct verbs_peer *p, const void *data,
		uint32_t length);

/* slot.c: the sequence number of a receive slot; what stands before it is read after it. */
uint32_t verbs_slot_sequence(const struct verbs_slot *p);

/* connection.c: polling thread */

/* Sends the frame as a write; false: the connection is not ready, send a datagram. */
bool verbs_connection_write(struct verbs_wire *w, struct verbs_peer *p, const uint8_t *frame);
/* Takes what the peers have written, at most so many frames, peer by peer; how many. */
unsigned verbs_connection_poll(struct verbs_wire *w, struct nbnic *nic, uint64_t now,
			       unsigned most);
/* What is due now and then: handshakes, and writes that failed. */
void verbs_connection_look(struct verbs_wire *w, uint64_t now);
void verbs_connection_heard(struct verbs_wire *w, struct verbs_peer *p,
			    const struct verbs_handshake *h);

/* The queue pair of a connection, or its completion queue, is in an error; the other is NULL. */
void verbs_connection_failed(struct verbs_wire *w, const struct ibv_qp *qp,
			     const struct ibv_cq *cq);

/* connect.c: control thread. Makes a connection, errno says why not; connects one that is MAKING,
 * or makes it new; ends one. */
struct verbs_connection *verbs_connection_make(const struct verbs_wire *w);
void verbs_connection_connect(struct verbs_wire *w, struct verbs_peer *p);
void verbs_connection_free(struct verbs_connection *l);
struct ibv_ah_attr verbs_path(const struct verbs_wire *w, const struct verbs_addr *a);

/* mode.c: sets the mode to what an option says (NULL: ud); and where that is WRITE, to what
 * suits the open device. 0, or negative errno: reported. */
int verbs_mode_read(struct verbs_wire *w, const char *text);
int verbs_mode_resolve(struct verbs_wire *w);
const char *verbs_mode_name(const struct verbs_wire *w);

/* device.c: opens the device, port and GID that the options name. Reports what is wrong. */
int verbs_device_open(struct verbs_wire *w, wire_option *option, void *args);

void verbs_device_close(struct verbs_wire *w);

/* peer.c: control thread */
int verbs_peer_begin(struct wire_base *base, const struct nbnic_addr *addr, const char **why);
void verbs_peer_end(struct wire_base *base, const struct nbnic_addr *addr);
void verbs_serve(struct wire_base *base);
void verbs_peers_free(struct verbs_wire *w);

/* repair.c: control thread. Starts the queue pair again; takes what the device says. */
void verbs_repair(struct verbs_wire *w);
void verbs_events(struct verbs_wire *w);

/* What sge points at goes from this slot, or inline: the flag of the send. */
static inline unsigned verbs_out_put(const struct verbs_out *out, uint32_t slot,
				     struct ibv_sge *sge)
{
	uint8_t *at = out->room + (size_t)slot * VERBS_INLINE;

	if (!out->room)
		return IBV_SEND_INLINE;
	__builtin_memcpy(at, (const void *)(uintptr_t)sge->addr, sge->length);
	sge->addr = (uintptr_t)at;
	sge->lkey = out->mr->lkey;
	return 0;
}

static inline struct verbs_addr verbs_addr_of(const struct nbnic_addr *a)
{
	struct verbs_addr v;

	__builtin_memcpy(&v, a->byte, sizeof(v));
	return v;
}

#endif
