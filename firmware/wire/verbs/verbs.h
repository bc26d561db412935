/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - shared by the files of the wire "verbs", and by no others.
 *
 * Each file calls only files above it in this list:
 *
 *   slot.c table.c           leaves: receive slots, the table of peers
 *   queue.c route.c          leaves: the queue pair of datagrams, how a queue pair is connected
 *   mode.c device.c          open a port of an RDMA device
 *   connect.c                connections to peers: control thread
 *   connection.c             connections to peers: polling thread
 *   repair.c peer.c          what the control thread does for the device, and for peers
 *   verbs.c                  the wire
 */
#ifndef NBAR_WIRE_VERBS_H
#define NBAR_WIRE_VERBS_H

#include <infiniband/verbs.h>

#include "value.h"
#include "wire.h"

#define VERBS_QKEY 0x6e626172u
#define VERBS_RECVS 512u /* received datagrams that wait for the polling thread */
#define VERBS_SENDS 128u /* datagrams that may be outstanding */
/* One of VERBS_SIGNALLED sends reports its completion; divides VERBS_SENDS. */
#define VERBS_SIGNALLED 32u
#define VERBS_GRH 40u   /* bytes of a Global Routing Header, in front of each datagram */
#define VERBS_ROOM 384u /* bytes of a receive buffer: more than GRH and the longest frame */
#define VERBS_OUT 320u  /* bytes to send a datagram from: the longest frame has room */
#define VERBS_BUCKETS 4096u
#define VERBS_LOOP 1024u
#define VERBS_STRANGERS_MAX 64u
#define VERBS_SLOTS 64u            /* slots of a sender in the memory of its receiver */
#define VERBS_WRITES 64u           /* writes to one peer that may be outstanding */
#define VERBS_WRITES_SIGNALLED 16u /* divides VERBS_WRITES */
/* Completion queue size: 4 times the sends that can be outstanding. When a queue pair breaks, soft
 * RoCE of Linux 6.1 may also report the unused slots of its ring. */
#define VERBS_CQ_TIMES 4u

/* WRITE_RC: reliable connections; WRITE_UC: unreliable connections; WRITE: becomes WRITE_RC or
 * WRITE_UC when the device is known. */
enum verbs_mode { VERBS_WRITE = 0, VERBS_UD = 1, VERBS_WRITE_RC = 2, VERBS_WRITE_UC = 3 };

/* The address of a NIC, as endpoint addresses contain it; WIRE.md. */
struct verbs_addr {
	uint8_t gid[16]; /* a datagram tells its receiver GID and queue pair of the sender */
	uint32_t qpn;
	uint32_t reserved;
	uint8_t mode;
	uint8_t link;     /* IBV_LINK_LAYER_* */
	uint8_t mtu;      /* enum ibv_mtu */
	uint8_t gid_type; /* 1 + enum ibv_gid_type */
	uint16_t lid;
	uint16_t reserved2;
	uint64_t id; /* random: differs from the id of an earlier NIC with the same number */
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "NICs exchange little-endian structs");
_Static_assert(sizeof(struct verbs_addr) <= NBNIC_ADDR_SIZE, "an address fits");
_Static_assert(offsetof(struct verbs_addr, mode) == NBNIC_ADDR_NAME, "GID and QP name a NIC");

/*
 * Modes write-rc and write-uc: the sender writes into a slot in the receiver's memory, by one RDMA
 * write. The write of a frame without a value is the line. If the frame has a value, its elements
 * end where the line begins, and the write begins with them: so all writes end with the line.
 */
struct verbs_line {
	uint8_t head[NBFW_VALUE_HEAD]; /* of the value */
	uint8_t frame[NBFW_FRAME_SIZE];
	uint32_t sequence; /* counts the sender's writes; write n goes to slot (n - 1) mod
			      VERBS_SLOTS */
	uint32_t sum;      /* of frame, sequence and value: detects an incomplete write */
};
#define VERBS_WRITE_MAX 128u /* bytes: a slot */
#define VERBS_ELEMENTS 64u   /* frames with more bytes of elements go as datagrams */
struct verbs_slot {
	uint8_t element[VERBS_ELEMENTS]; /* filled up to a multiple of 8 bytes */
	struct verbs_line line;
};
_Static_assert(sizeof(struct verbs_line) == 64, "a line is a cache line");
_Static_assert(sizeof(struct verbs_slot) == VERBS_WRITE_MAX, "a slot");

/* One end of a connection, as a handshake carries it. */
struct verbs_end {
	uint32_t qpn, psn, rkey;
	uint32_t size; /* of a slot */
	uint64_t slot; /* address of the first slot */
};

/* A datagram between two NICs about the connection between them. */
struct verbs_handshake {
	uint8_t type;  /* VERBS_HANDSHAKE, which no frame has */
	uint8_t wants; /* 1: the sender wants an answer */
	uint16_t reserved;
	uint32_t known_qpn; /* receiver's queue pair, if the sender takes its writes; else 0 */
	uint64_t id;        /* of the receiver: proves that the sender has the receiver's address */
	struct verbs_end end;
	uint32_t known_psn, reserved2;
};
#define VERBS_HANDSHAKE 0x81u
_Static_assert(sizeof(struct verbs_handshake) == NBFW_FRAME_SIZE, "a handshake");
#define VERBS_INLINE 64u /* a line; a datagram with a value of 8 bytes */

/* Memory for sends that are not inline: a place for each outstanding send. */
struct verbs_out {
	uint8_t *room; /* NULL: all sends are inline */
	struct ibv_mr *mr;
	uint32_t size;    /* of a place */
	uint32_t inlined; /* sends of at most this size are inline */
};

enum verbs_connection_state {
	VERBS_CONNECTION_IDLE,   /* the other end is not known */
	VERBS_CONNECTION_MAKING, /* the control thread owns the connection */
	VERBS_CONNECTION_OPEN,   /* takes writes */
	VERBS_CONNECTION_READY   /* the other end takes writes, too: frames use this connection */
};

/* A connection to one peer. In state MAKING the control thread owns it, else the polling thread. */
struct verbs_connection {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct verbs_out out;
	struct verbs_slot *slot;
	struct verbs_end mine, its;
	enum verbs_connection_state state;
	bool reset;     /* MAKING: the connection has been used before */
	bool renew;     /* the completion queue has failed: the queues must be recreated */
	bool taken;     /* MAKING: the control thread has begun */
	uint32_t error; /* enum ibv_wc_status that broke the connection */
	uint32_t posted, done;
	uint32_t written, seen; /* sequence numbers */
	uint64_t handshake_at, handshake_ns;
};

/*
 * A NIC that this NIC sends to. The control thread makes and frees the peer; the polling thread
 * inserts it into the table and removes it from there. So both threads may look it up.
 */
struct verbs_peer {
	struct verbs_peer *next; /* in the same bucket of the table */
	struct nbnic_addr addr;
	struct ibv_ah *ah;
	uint32_t qpn;
	uint32_t users; /* control thread: groups with this peer; 0: a stranger that sent a PULL */
	uint64_t made_at;                    /* control thread: number of peers made before */
	struct verbs_connection *connection; /* NULL: mode ud, or a stranger */
	struct verbs_peer *next_connection;  /* in the list of peers with a connection */
};

struct verbs_wire {
	struct wire_base base;
	struct verbs_addr self;
	char nic[NBAR_NAME_MAX];
	struct ibv_context *context;
	uint8_t port, gid_index, sl;
	bool send_inline;
	struct ibv_pd *pd;
	int wake_fd; /* eventfd, by which the polling thread calls the control thread */

	/* Polling thread. */
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct verbs_out out;
	uint8_t *room;          /* VERBS_RECVS times VERBS_ROOM bytes */
	uint32_t posted, done;  /* sends */
	bool broken;            /* the queue pair must be recreated; until then nothing is sent */
	bool is_reply;          /* the frame to send answers a PULL */
	bool failing;           /* the repair is impossible: the groups must fail */
	uint64_t repair_at;     /* broken: time of the next repair, at the earliest */
	uint64_t look_at;       /* time of the next look for completions of sends */
	bool wanted;            /* a stranger has sent a PULL ... */
	struct verbs_addr want; /* ... from this address, and gets no answer yet */
	struct verbs_peer *bucket[VERBS_BUCKETS];
	struct verbs_peer *connections;
	struct verbs_peer *connection_at; /* where the next poll begins; NULL: at the first */
	uint32_t loop_head, loop_tail;
	struct nbfw_token loop[VERBS_LOOP]; /* frames to itself */

	/* Control thread. */
	uint64_t nmade;
	uint32_t nstranger;
	bool fatal;       /* the device has failed */
	const char *dead; /* NULL, or why the NIC refuses groups, and what to do */
	uint32_t repairs;
	uint64_t said_at;
	bool gid_missing; /* the GID is missing, and this was logged */

	struct nbfw_value loop_value[VERBS_LOOP]; /* of frames to itself */
};

/* table.c: both threads may search, the polling thread changes the table. */
struct verbs_peer *verbs_peer_find(const struct verbs_wire *w, const struct verbs_addr *a);
void verbs_peer_insert(struct verbs_wire *w, struct verbs_peer *p);
void verbs_peer_remove(struct verbs_wire *w, struct verbs_peer *p);

/* queue.c: reports why an object could not be made, and what to do; returns negative errno. */
int verbs_error(const struct verbs_wire *w, const char *what, int err);
/* Makes memory of n places of this size to send from. 0, or negative errno. */
int verbs_out_make(const struct verbs_wire *w, struct verbs_out *out, uint32_t n, uint32_t size);
void verbs_out_free(struct verbs_out *out);
/* Brings the datagram queue pair from RESET to the state in which it sends and receives. */
int verbs_qp_start(struct verbs_wire *w);
/* Polling thread: give the queue pair one receive buffer, or all of them. */
void verbs_post_one(struct verbs_wire *w, uint64_t i);
void verbs_post_all(struct verbs_wire *w);
/* Polling thread: the queue pair is in an error. */
void verbs_queue_failed(struct verbs_wire *w);
/* Polling thread: takes completions of sends. */
void verbs_look_for_completions(struct verbs_wire *w);
/* Polling thread: wakes the control thread, which then calls verbs_serve. */
void verbs_wake(const struct verbs_wire *w);
/* Polling thread: sends a datagram of up to NBFW_FRAME_MAX bytes; false: the queue cannot take it
 * now. */
bool verbs_send(struct verbs_wire *w, const struct verbs_peer *p, const void *data,
		uint32_t length);

/* slot.c: reads the sequence number of a receive slot. Later reads see the frame and the value that
 * were written before this number. */
uint32_t verbs_slot_sequence(const struct verbs_slot *p);

/* connection.c: polling thread */

/* Sends the frame as a write; false: the connection is not ready, or the frame is too long; send a
 * datagram. */
bool verbs_connection_write(struct verbs_wire *w, struct verbs_peer *p, const uint8_t *frame,
			    uint32_t size);
/* Takes frames that the peers have written, peer by peer, at most `most`. Returns their number. */
unsigned verbs_connection_poll(struct verbs_wire *w, struct nbnic *nic, uint64_t now,
			       unsigned most);
/* Periodic work: handshakes, and failed writes. */
void verbs_connection_look(struct verbs_wire *w, uint64_t now);
void verbs_connection_heard(struct verbs_wire *w, struct verbs_peer *p,
			    const struct verbs_handshake *h);

/* A queue pair of a connection (cq is NULL) or its completion queue (qp is NULL) has failed. */
void verbs_connection_failed(struct verbs_wire *w, const struct ibv_qp *qp,
			     const struct ibv_cq *cq);

/* connect.c: control thread. Make a connection (NULL: errno says why); connect or recreate a
 * connection in state MAKING; free a connection. */
struct verbs_connection *verbs_connection_make(const struct verbs_wire *w);
void verbs_connection_connect(struct verbs_wire *w, struct verbs_peer *p);
void verbs_connection_free(struct verbs_connection *l);
struct ibv_ah_attr verbs_path(const struct verbs_wire *w, const struct verbs_addr *a);

/* mode.c: reads the mode from an option (NULL: ud); resolves WRITE to the mode that suits the open
 * device. 0, or negative errno after a message. */
int verbs_mode_read(struct verbs_wire *w, const char *text);
int verbs_mode_resolve(struct verbs_wire *w);
const char *verbs_mode_name(const struct verbs_wire *w);

/* device.c: opens the device, port and GID that the options name. Reports errors. */
int verbs_device_open(struct verbs_wire *w, wire_option *option, void *args);

void verbs_device_close(struct verbs_wire *w);

/* peer.c: control thread */
int verbs_peer_begin(struct wire_base *base, const struct nbnic_addr *addr, const char **why);
void verbs_peer_end(struct wire_base *base, const struct nbnic_addr *addr);
void verbs_serve(struct wire_base *base);
void verbs_peers_free(struct verbs_wire *w);

/* repair.c: control thread. Starts the queue pair again; handles the events of the device. */
void verbs_repair(struct verbs_wire *w);
void verbs_events(struct verbs_wire *w);

/* Copies the data of sge to this place; for an inline send, copies nothing. Returns the flag of the
 * send. */
static inline unsigned verbs_out_put(const struct verbs_out *out, uint32_t place,
				     struct ibv_sge *sge)
{
	uint8_t *at;

	if (sge->length <= out->inlined)
		return IBV_SEND_INLINE;
	at = out->room + (size_t)place * out->size;
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

extern const struct wire_ops wire_verbs_ops;

#endif
