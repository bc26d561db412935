/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_abi.h - everything a host and its NIC share, and nothing else.
 *
 * They share three things: plans (a barrier as data), one page of memory per port (doorbells,
 * completions, signal rings) and the messages of the control socket. WIRE.md explains each bit. All
 * fields are in the machine's own byte order: host and NIC sit in one machine, or both are
 * little-endian (remote hosts).
 *
 * This header includes <stdint.h> only and compiles as C11 and as C++17. It holds no code.
 */
#ifndef NBAR_ABI_H
#define NBAR_ABI_H

#include <stdint.h>

#ifdef __cplusplus
#define NBAR_ABI_ASSERT(cond, msg) static_assert(cond, msg)
#else
#define NBAR_ABI_ASSERT(cond, msg) _Static_assert(cond, msg)
#endif

#define NBAR_ABI_MAGIC 0x7261626eu /* "nbar" as bytes in memory */
#define NBAR_ABI_VERSION 3u

/* Limits. A request beyond a limit is refused with a message that names the limit. */
#define NBAR_NICS_MAX 64u       /* NICs per daemon */
#define NBAR_PORTS_MAX 1024u    /* ports per NIC: one for each processor of a large host */
#define NBAR_ATTACHED_MAX 8192u /* processes per NIC that are attached to another's port */
#define NBAR_EVENTS_MAX 64u     /* groups per port that have a socket for poll() */
#define NBAR_GROUPS_MAX 1024u   /* open groups per NIC, and so cells per port */
#define NBAR_SIZE_MAX 1048576u  /* ranks per group */
#define NBAR_STEPS_MAX 256u     /* steps per plan */
#define NBAR_SENDS_MAX 4096u    /* sends per plan */
#define NBAR_SLOTS_MAX 4096u    /* receive slots per plan */
#define NBAR_PEERS_MAX 4096u    /* distinct peers per group */
#define NBAR_POSTED_MAX 1024u   /* barriers a host may post ahead of the last one completed */
#define NBAR_VALUE_MAX 256u     /* bytes of the elements of a value */
#define NBAR_VALUES_AHEAD 8u    /* the same as NBAR_POSTED_MAX for barriers that carry values */
#define NBAR_VALUE_GROUPS 32u   /* groups per port whose barriers can carry values */
#define NBAR_SIGNALS_MAX 1024u  /* entries in each signal ring of a port; a power of two */
#define NBAR_MESSAGE_MAX 65536u /* bytes of one message on the control socket */
#define NBAR_NAME_MAX 32u       /* bytes of a NIC's or an algorithm's name, with its final zero */

#define NBAR_RANK_NONE 0xffffffffu

/*
 * A plan: what one rank does in one barrier. One flat block: this header, then nstep steps, nsend
 * sends, nrecv receives. In each step the rank sends the signals of the step, then waits for its
 * slots. A slot is the place of one signal in its receiver's plan.
 */
struct nbar_plan {
	uint32_t magic; /* NBAR_PLAN_MAGIC */
	uint32_t rank, size;
	uint32_t nstep, nsend, nrecv;
};
#define NBAR_PLAN_MAGIC 0x6e616c70u /* "plan" */

/* Ranges are contiguous: the first begins at 0, and each other one begins where the range of the
 * previous step ends. */
struct nbar_step {
	uint32_t first_send, nsend;
	uint32_t first_slot, nslot;
};

struct nbar_send {
	uint32_t dst;  /* rank */
	uint32_t slot; /* in the plan of dst */
};

struct nbar_recv {
	uint32_t src; /* the sender of this slot's signal; from any other rank it is bad */
};

NBAR_ABI_ASSERT(sizeof(struct nbar_plan) == 24, "plan header");
NBAR_ABI_ASSERT(sizeof(struct nbar_step) == 16, "plan step");
NBAR_ABI_ASSERT(sizeof(struct nbar_send) == 8, "plan send");
NBAR_ABI_ASSERT(sizeof(struct nbar_recv) == 4, "plan receive");

/*
 * The address of a member, made by its NIC. Members exchange these 96 bytes by any means; only NICs
 * read them.
 */
#define NBAR_ENDPOINT_SIZE 96u
struct nbar_endpoint {
	uint8_t byte[NBAR_ENDPOINT_SIZE];
};
NBAR_ABI_ASSERT(sizeof(struct nbar_endpoint) == NBAR_ENDPOINT_SIZE, "endpoint address");

/*
 * A value that a barrier carries. All members post the same op, type and count; each gets the same
 * result. X(name, number, what it takes): I integers, F reals, L pairs of a number and an index.
 */
#define NBAR_VALUE_OPS(X)  \
	X(SUM, 1, "IF")    \
	X(MIN, 2, "IF")    \
	X(MAX, 3, "IF")    \
	X(PROD, 4, "I")    \
	X(BAND, 5, "I")    \
	X(BOR, 6, "I")     \
	X(BXOR, 7, "I")    \
	X(LAND, 8, "I")    \
	X(LOR, 9, "I")     \
	X(LXOR, 10, "I")   \
	X(MINLOC, 11, "L") \
	X(MAXLOC, 12, "L")

/* X(name, number, class, bytes of an element, bytes of its number): a pair is a number, then an
 * index of 32 bits, then bytes that the NIC makes 0. */
#define NBAR_VALUE_TYPES(X)           \
	X(INT8, 1, 'I', 1, 1)         \
	X(INT16, 2, 'I', 2, 2)        \
	X(INT32, 3, 'I', 4, 4)        \
	X(INT64, 4, 'I', 8, 8)        \
	X(UINT8, 5, 'I', 1, 1)        \
	X(UINT16, 6, 'I', 2, 2)       \
	X(UINT32, 7, 'I', 4, 4)       \
	X(UINT64, 8, 'I', 8, 8)       \
	X(FLOAT, 9, 'F', 4, 4)        \
	X(DOUBLE, 10, 'F', 8, 8)      \
	X(FLOAT_INT, 11, 'L', 8, 4)   \
	X(INT_INT, 12, 'L', 8, 4)     \
	X(DOUBLE_INT, 13, 'L', 16, 8) \
	X(INT64_INT, 14, 'L', 16, 8)

enum nbar_value_op {
#define NBAR_VALUE_OP_ID(name, number, ...) NBAR_##name = number,
	NBAR_VALUE_OPS(NBAR_VALUE_OP_ID)
#undef NBAR_VALUE_OP_ID
};

enum nbar_value_type {
#define NBAR_VALUE_TYPE_ID(name, number, ...) NBAR_##name = number,
	NBAR_VALUE_TYPES(NBAR_VALUE_TYPE_ID)
#undef NBAR_VALUE_TYPE_ID
};
#define NBAR_IS_PAIR(type) ((type) > NBAR_DOUBLE) /* of class L: the last of the table */

struct nbar_value {
	uint8_t op, type; /* enum nbar_value_op, enum nbar_value_type */
	uint16_t count;   /* of elements; at least 1, and at most NBAR_VALUE_MAX bytes */
	uint32_t epoch;   /* in a page: the barrier; else 0 */
	union {           /* little-endian */
		uint8_t byte[NBAR_VALUE_MAX];
		uint32_t word[NBAR_VALUE_MAX / 4];
		int32_t i32[NBAR_VALUE_MAX / 4];
		int64_t i64[NBAR_VALUE_MAX / 8];
		float f32[NBAR_VALUE_MAX / 4];
		double f64[NBAR_VALUE_MAX / 8];
	} of;
};
NBAR_ABI_ASSERT(sizeof(struct nbar_value) == 8 + NBAR_VALUE_MAX, "value");

/* The state of a group: the upper half of a completion word. 0: no failure; all others are
 * final. */
enum nbar_status {
	NBAR_STATUS_OK = 0,
	NBAR_STATUS_SILENT = 1,    /* a member's NIC did not answer for the whole retry budget */
	NBAR_STATUS_HOST_DIED = 2, /* a member's process ended without closing the group */
	NBAR_STATUS_CLOSED = 3,    /* a member closed the group; others still wait for it */
	NBAR_STATUS_NIC_DOWN = 4,  /* a member's NIC was stopped, or its device has failed */
	NBAR_STATUS_ABORTED = 5,   /* a member's process has aborted the group */
	NBAR_STATUS_MISMATCH = 6,  /* a member has posted another op, type or count, or no value */
	NBAR_STATUS_END = 7        /* the first invalid value */
};

/*
 * Why a member is missing. Its own NIC finds this out, or a NIC that waits for the member. Pages
 * and frames carry the reason and its age in 16 bits: kind << 13 | exponent << 9 | mantissa. Of a
 * host's reasons the greatest counts.
 */
enum nbar_why {
	NBAR_WHY_UNKNOWN = 0,      /* nothing is known: the member was merely asked */
	NBAR_WHY_HOST_LATE = 1,    /* its process runs, and has not arrived */
	NBAR_WHY_HOST_STOPPED = 2, /* its process is stopped: by SIGSTOP or by a debugger */
	NBAR_WHY_HOST_ENDED = 3,   /* its process has ended; another process has its socket open */
	NBAR_WHY_NIC_SILENT = 4,   /* its NIC does not answer */
	NBAR_WHY_END = 5           /* the first invalid value */
};
#define NBAR_WHY_KIND(why) ((uint32_t)(why) >> 13)
/* The age: for how long others have waited. It is rounded down, by at most a 256th. */
#define NBAR_WHY_NS(why) \
	((uint64_t)((uint32_t)(why)&0x1ffu) << (((uint32_t)(why) >> 9 & 0xfu) + NBAR_WHY_SHIFT))
#define NBAR_WHY_SHIFT 20u /* the unit of an age: 2^20 ns */

/*
 * The page of a port: the fast path. A cell is the index of a group within its port. The host
 * writes doorbells, the NIC writes completions; neither ever waits for the other.
 */

/* The start token. Both words are counters that only the host advances. */
struct nbar_doorbell {
	uint32_t posted;   /* epoch up to which this host has arrived; one store posts a barrier */
	uint32_t wake_seq; /* a thread increments it before it sleeps on the futex `wake` */
};

struct nbar_completion {
	uint64_t word; /* nbar_status << 32 | last epoch completed; never a mixture of two stores */
	uint32_t wake; /* futex: on request the NIC increments it and wakes all */
	uint32_t failed_rank; /* rank that a status other than OK names; written before word */
	uint32_t nstragglers; /* ranks known to be missing from the running barrier; advisory */
	uint32_t straggler[7];
	uint16_t why[7]; /* nbar_why of each straggler; not valid while `life` of the page is 0 */
	uint16_t reserved;
};
#define NBAR_STRAGGLERS_MAX 7u

/* A message to the start socket of a port, which a NIC in the kernel's network path gives out: the
 * host has posted, or a thread goes to sleep. */
struct nbar_start {
	uint32_t cell, posted;
	uint32_t sleeps; /* 1: a thread has asked for a wake; 0: a post */
	uint32_t values; /* 1: of a group with values; what a post carries, follows */
	uint32_t reserved;
};
NBAR_ABI_ASSERT(sizeof(struct nbar_start) == 20, "start message");

/* One raw message of the signal service. seq is the entry's sequence number: see WIRE.md, "signal
 * rings". */
#define NBAR_SIGNAL_WORDS 5u
struct nbar_signal {
	uint32_t seq;
	uint32_t cell;
	uint32_t peer; /* sending: index of the peer in connect order; receiving: rank of the source
			*/
	uint32_t word[NBAR_SIGNAL_WORDS];
};

/* Where the host writes the value of barrier `epoch` before it posts, and the NIC the result, with
 * NBAR_VALUE_RESULT in op. */
struct nbar_value_place {
	struct nbar_value value;
	uint8_t reserved[56];
};
#define NBAR_VALUE_RESULT 0x80u

/* What lies in a map of a NIC in the kernel's network path, instead of in the page: the NIC writes
 * it too. */
struct nbar_results {
	struct nbar_completion completion[NBAR_GROUPS_MAX];
	struct nbar_value_place value[NBAR_VALUE_GROUPS][NBAR_VALUES_AHEAD];
};

struct nbar_page {
	uint32_t magic, version; /* NBAR_ABI_MAGIC, NBAR_ABI_VERSION */
	uint32_t port;
	uint32_t life; /* the NIC changes it while it runs and the port has groups; never 0 */
	/* NIC of a remote host: all it wrote before its reply to request `settled` is here. */
	uint32_t settled;
	uint32_t asked; /* remote host: pushes for another of its processes are under way */
	uint32_t reserved0[10];
	uint32_t kick; /* NIC: not 0 while it sleeps; after a post the host sends NBAR_OP_KICK */
	uint32_t reserved3[15];
	uint32_t sends_taken; /* NIC: entries of send[] consumed so far */
	uint32_t reserved1[31];
	uint32_t recvs_taken; /* host: entries of recv[] consumed so far */
	uint32_t reserved2[31];
	struct nbar_doorbell doorbell[NBAR_GROUPS_MAX];
	struct nbar_completion completion[NBAR_GROUPS_MAX];
	struct nbar_signal send[NBAR_SIGNALS_MAX]; /* host to NIC */
	struct nbar_signal recv[NBAR_SIGNALS_MAX]; /* NIC to host */
	/* By nbar_rep_group_open.values, then by epoch modulo NBAR_VALUES_AHEAD. */
	struct nbar_value_place value[NBAR_VALUE_GROUPS][NBAR_VALUES_AHEAD];
};

NBAR_ABI_ASSERT(sizeof(struct nbar_doorbell) == 8, "doorbell");
NBAR_ABI_ASSERT(sizeof(struct nbar_completion) == 64, "a completion is one cache line");
NBAR_ABI_ASSERT(sizeof(struct nbar_signal) == 32, "signal");
NBAR_ABI_ASSERT(sizeof(struct nbar_page) == 384 + 8192 + 65536 + 2 * 32768 + 81920, "page");

/*
 * Error numbers of replies, which carry them negated. They are the numbers of Linux. Another
 * operating system has other numbers: its hosts translate these. X(name, number)
 */
#define NBAR_ERRORS(X)       \
	X(EPERM, 1)          \
	X(ENOENT, 2)         \
	X(EIO, 5)            \
	X(ENXIO, 6)          \
	X(EAGAIN, 11)        \
	X(ENOMEM, 12)        \
	X(EACCES, 13)        \
	X(EBUSY, 16)         \
	X(ENODEV, 19)        \
	X(EINVAL, 22)        \
	X(EMFILE, 24)        \
	X(ENOSPC, 28)        \
	X(ERANGE, 34)        \
	X(EPROTO, 71)        \
	X(EBADMSG, 74)       \
	X(EMSGSIZE, 90)      \
	X(EOPNOTSUPP, 95)    \
	X(ENETDOWN, 100)     \
	X(ENETUNREACH, 101)  \
	X(EISCONN, 106)      \
	X(ETIMEDOUT, 110)    \
	X(EHOSTUNREACH, 113) \
	X(EALREADY, 114)

enum nbar_error {
#define NBAR_ERROR_ID(name, number) NBAR_##name = number,
	NBAR_ERRORS(NBAR_ERROR_ID)
#undef NBAR_ERROR_ID
};

/*
 * Control socket (Unix domain, SOCK_SEQPACKET; of a remote host, TCP): each request is one message,
 * and each reply too. A client may give up waiting and send another request; it recognizes the late
 * reply by `seq`. A request is nbar_request, then the body of its op; a reply is nbar_reply, then
 * its body.
 */
enum nbar_op {
	NBAR_OP_PORT_OPEN = 1, /* nbar_req_port_open -> nbar_rep_port_open, page as SCM_RIGHTS */
	NBAR_OP_GROUP_OPEN =
		2, /* nbar_req_group_open [+ plan] -> nbar_rep_group_open + peer ranks */
	NBAR_OP_GROUP_CONNECT =
		3, /* nbar_req_group_connect + endpoint addresses -> nbar_rep_group_connect */
	NBAR_OP_GROUP_CLOSE = 4,  /* nbar_req_group_close -> nothing */
	NBAR_OP_NIC_STAT = 5,     /* nothing -> nbar_rep_nic_stat; needs no port */
	NBAR_OP_GROUP_STAT = 6,   /* nbar_req_group_stat -> nbar_rep_group_stat + infos; no port */
	NBAR_OP_PORT_ATTACH = 7,  /* nbar_req_port_attach -> nbar_rep_port_open, page as above */
	NBAR_OP_GROUP_ATTACH = 8, /* nbar_req_group_attach -> nothing */
	NBAR_OP_GROUP_EVENTS = 9, /* nbar_req_group_events -> nothing, a socket as SCM_RIGHTS */
	NBAR_OP_GROUP_ABORT = 10, /* nbar_req_group_abort -> nothing */
	NBAR_OP_GROUP_REACH = 11, /* nbar_req_group_reach -> nbar_rep_group_reach */
	NBAR_OP_NIC_LATENCY = 12, /* nothing -> nbar_rep_nic_latency; needs no port */
	NBAR_OP_GROUP_LATENCY =
		13, /* nbar_req_group_latency -> nbar_rep_group_latency + nbar_last; no port */
	NBAR_OP_KICK = 14, /* nothing, and no reply: wakes a NIC that sleeps; from any client */
	/* Of remote hosts only, whose messages come over TCP. */
	NBAR_OP_LINK_OPEN = 15,  /* nbar_req_link_open -> nbar_rep_link_open; the first request */
	NBAR_OP_LINK_PROVE = 16, /* nbar_req_link_prove -> nothing; if the NIC has a key */
	NBAR_OP_PORT_JOIN = 17   /* nbar_rdma_end -> nbar_rdma_end; after NBAR_OP_PORT_OPEN */
};

struct nbar_request {
	uint32_t magic;   /* NBAR_ABI_MAGIC */
	uint16_t version; /* NBAR_ABI_VERSION */
	uint16_t op;
	uint32_t length; /* of the whole message */
	uint32_t seq;    /* any number; the reply repeats it */
};

struct nbar_reply {
	uint32_t magic;
	uint16_t version;
	uint16_t op;
	uint32_t length;
	int32_t status; /* 0 or -NBAR_E*; if negative there is no body and text says why */
	char text[236]; /* for people, zero-terminated */
	uint32_t seq;   /* of the request; 0 if the NIC has not read one */
};

struct nbar_req_port_open {
	uint32_t port; /* the port wanted, or NBAR_PORT_ANY */
	uint32_t reserved;
};
#define NBAR_PORT_ANY 0xffffffffu

struct nbar_rep_port_open {
	uint32_t port;
	uint32_t page_size; /* sizeof(struct nbar_page) at the NIC */
	uint32_t pid;       /* of the daemon, in its own PID namespace */
	uint32_t reserved;
	uint64_t secret[2]; /* needed to attach to the port, by a process of the same user */
	char nic[NBAR_NAME_MAX];
};

/* A remote host names the NIC. If the NIC has a key, each proves that it knows the key: a proof is
 * SipHash-2-4 of "nbar host" or "nbar nic" with its final zero, filled up to 16 bytes, then the
 * nonces of NIC and host. Remote hosts and their NICs are little-endian. */
#define NBAR_NONCE_SIZE 16u
#define NBAR_PROOF_SIZE 8u
struct nbar_req_link_open {
	char nic[NBAR_NAME_MAX];
	uint8_t nonce[NBAR_NONCE_SIZE];
};

struct nbar_rep_link_open {
	uint8_t nonce[NBAR_NONCE_SIZE];
	uint8_t proof[NBAR_PROOF_SIZE];
	uint32_t keyed; /* 1: the NIC has a key; it waits for the proof of the host */
	uint32_t reserved;
};

struct nbar_req_link_prove {
	uint8_t proof[NBAR_PROOF_SIZE];
};

/* One end of the connection by which a remote host and its NIC write into each other's copy of the
 * page. */
struct nbar_rdma_end {
	uint8_t gid[16];
	uint64_t page; /* address of this end's copy */
	uint32_t qpn, psn, rkey;
	uint32_t mtu; /* the greatest: 1: 256 bytes, 2: 512 bytes, ..., 5: 4096 bytes */
};
NBAR_ABI_ASSERT(sizeof(struct nbar_rdma_end) == 40, "end of a connection");

/* Another process attaches to an open port. It may read the whole page, post for the groups that it
 * attaches to, and end its attachment to a group (NBAR_OP_GROUP_CLOSE). */
struct nbar_req_port_attach {
	uint32_t port;
	uint32_t reserved;
	uint64_t secret[2];
};

/* The group now fails if this process ends before it sends NBAR_OP_GROUP_CLOSE. */
struct nbar_req_group_attach {
	uint32_t cell;
	uint32_t reserved;
	struct nbar_endpoint endpoint; /* of the group: the cell may have another group by now */
};

struct nbar_req_group_open {
	char alg[NBAR_NAME_MAX]; /* of an algorithm: see nbar-nicd --list-algs */
	uint32_t rank, size;
	uint32_t tag;         /* any number; members with another tag are refused at connect */
	uint32_t plan_length; /* bytes of the plan that follows; 0 unless alg is "custom" */
	uint32_t value_max;   /* bytes of the elements of a value, at most; 0: no values */
	uint32_t reserved;
};

struct nbar_rep_group_open {
	uint32_t cell;
	uint32_t npeer; /* ranks that follow: connect needs their endpoint addresses, in this
			 * order */
	struct nbar_endpoint endpoint;
	uint32_t values;     /* with value_max: index in value[] of the page */
	uint32_t fast_value; /* see nbar_group_fast_value; 0: all are alike */
};

struct nbar_req_group_connect {
	uint32_t cell;
	uint32_t nendpoint; /* endpoint addresses that follow; a large group connects in several
			       calls, in order */
};

struct nbar_rep_group_connect {
	uint32_t missing; /* peers not named yet; 0: the group runs ("signal" groups: always 0) */
	uint32_t reserved;
};

struct nbar_req_group_close {
	uint32_t cell;
	uint32_t reserved;
};

/* A socket for poll(): the NIC sends a message to it whenever it wakes the sleepers of the group.
 * The NIC closes its end with the group. Only the process that opened the group may ask; a second
 * request replaces the first socket. */
struct nbar_req_group_events {
	uint32_t cell;
	uint32_t reserved;
};

/* The group fails for all members, with NBAR_STATUS_ABORTED. */
struct nbar_req_group_abort {
	uint32_t cell;
	uint32_t reserved;
};

/* Do the NICs of the peers hear this NIC, and this NIC them? It asks all that have not answered. If
 * `rank` is not NBAR_RANK_NONE, it asks none, and the reply is about this peer. */
struct nbar_req_group_reach {
	uint32_t cell;
	uint32_t rank;
};

struct nbar_rep_group_reach {
	uint32_t missing;  /* peers that have not answered yet; 0: all NICs hear each other */
	uint32_t rank;     /* of the first of them, or of the peer; NBAR_RANK_NONE: no such peer */
	uint32_t is_heard; /* 1: the NIC of this peer was heard; so it does not hear this one */
	uint32_t reserved;
	char own[64], peer[64]; /* addresses of this NIC, and of that of the peer; for people */
};

/* The wire of a daemon's NIC if the description of the NIC (--nic) names no wire. */
#define NBAR_WIRE_DEFAULT "ring"
#define NBAR_WIRE_OF_DEVICE "kernel" /* if dev= names an interface */

/* The counters of a NIC: X(name, text for people). nbar_rep_nic_stat.counter[] has this order. A
 * "pull" in a text is a PULL frame. */
#define NBAR_COUNTERS(X)                                                                  \
	X(barriers_completed, "barriers completed")                                       \
	X(barriers_failed, "groups that failed")                                          \
	X(tokens_sent, "tokens sent, answers to pulls included")                          \
	X(tokens_received, "tokens accepted")                                             \
	X(tokens_duplicate, "tokens received once more")                                  \
	X(tokens_stale, "frames of an epoch that is over")                                \
	X(pulls_sent, "requests for missing tokens")                                      \
	X(pulls_received, "pulls accepted")                                               \
	X(laters_sent, "answers: alive, not there yet")                                   \
	X(laters_received, "answers received: alive, not there yet")                      \
	X(aborts_sent, "failures passed on")                                              \
	X(aborts_received, "failures learned from others")                                \
	X(signals_sent, "messages of the signal service sent")                            \
	X(signals_received, "messages of the signal service delivered")                   \
	X(signals_dropped, "messages dropped because the host's receive ring was full")   \
	X(frames_malformed, "frames too short, of another version or of an unknown type") \
	X(frames_stranger, "frames with an old handle or a wrong cookie")                 \
	X(frames_bad, "frames that no correct member sends: wrong source, slot or epoch") \
	X(doorbells_bad, "doorbells out of range")                                        \
	X(entries_bad, "entries of a send ring that name no group or peer")               \
	X(wakes, "futex wakes")                                                           \
	X(wire_errors, "frames the wire did not take")                                    \
	X(linger_cut, "closed groups forgotten early to make room")                       \
	X(rdma_writes, "frames written into a peer's memory (wire verbs, mode write)")    \
	X(replies_dropped, "answers to pulls that had no room: the peer asks again")      \
	X(wire_drops, "frames that the receive queue of the wire dropped")                \
	X(wire_refused, "times that the wire had no room for a frame, which had to wait") \
	X(quota_refused, "requests refused because a user has its part of the NIC")       \
	X(frames_untagged, "frames without a tag, which a NIC with a key does not take")  \
	X(frames_tagged, "frames with a tag, which a NIC without a key cannot check")     \
	X(frames_forged, "frames with a wrong tag: of another key or address, or forged") \
	X(probes_sent, "frames that ask whether a peer's NIC hears this one")             \
	X(echoes_sent, "answers to these frames")                                         \
	X(echoes_received, "answers received: the peer's NIC hears this one")

enum nbar_counter {
#define NBAR_COUNTER_ID(name, text) NBAR_COUNTER_##name,
	NBAR_COUNTERS(NBAR_COUNTER_ID)
#undef NBAR_COUNTER_ID
		NBAR_COUNTER_END
};

struct nbar_rep_nic_stat {
	char nic[NBAR_NAME_MAX];
	char wire[NBAR_NAME_MAX];
	char address[64];     /* for people */
	char address_why[96]; /* why the NIC has this address; for people; may be empty */
	uint32_t pid;         /* of the daemon, in its own PID namespace; nbar_nic_stat maps it */
	uint32_t nport, ngroup, nlinger;
	uint64_t counter[64]; /* NBAR_COUNTER_END of them used, the others 0 */
};
NBAR_ABI_ASSERT(NBAR_COUNTER_END <= 64, "counters fit their message");

struct nbar_req_group_stat {
	uint32_t first; /* first group index wanted; start with 0 */
	uint32_t reserved;
};

struct nbar_rep_group_stat {
	uint32_t ninfo; /* infos that follow */
	uint32_t next;  /* next index to ask from; 0: the list is complete */
};

enum nbar_group_life {
	NBAR_LIFE_OPEN = 1, /* not connected yet */
	NBAR_LIFE_CONNECTED = 2,
	NBAR_LIFE_LINGER = 3 /* closed, still answering pulls */
};

struct nbar_group_info {
	char alg[NBAR_NAME_MAX];
	uint32_t index, port, cell, life;
	uint32_t pid, uid; /* owner of the port, as the daemon sees it */
	uint32_t rank, size;
	uint32_t epoch;  /* the last barrier started */
	uint32_t posted; /* the last barrier posted by the host */
	uint32_t step, nstep;
	uint32_t running; /* 1: a barrier is under way */
	uint32_t status;  /* nbar_status */
	uint32_t failed_rank;
	uint32_t nmissing;    /* slots of the step that have no token yet */
	uint32_t waits_for;   /* source of the first of these slots, or NBAR_RANK_NONE */
	uint32_t nstragglers; /* known stragglers, as members report them to each other */
	uint32_t straggler[NBAR_STRAGGLERS_MAX];
	uint16_t why[NBAR_STRAGGLERS_MAX];
	uint16_t host_why; /* nbar_why of this member's host, if others wait for it; else 0 */
	uint32_t reserved;
};

/*
 * Latency of barriers: the time at a NIC from the start of a barrier to its completion. A barrier
 * starts when the NIC reads its doorbell. A barrier that the host has posted ahead starts after the
 * barrier before it. The NIC reads the clock once per poll pass, so a latency can be wrong by one
 * pass. A NIC may be built without these requests; then it refuses them with NBAR_EOPNOTSUPP.
 */
#define NBAR_LATENCY_BUCKETS 28u
#define NBAR_LATENCY_NS(bucket) ((uint64_t)512 << (bucket))
struct nbar_rep_nic_latency {
	uint64_t ns; /* sum of all latencies */
	/* bucket[0] counts the barriers that took less than NBAR_LATENCY_NS(0); bucket[i] those
	 * from NBAR_LATENCY_NS(i - 1) up to NBAR_LATENCY_NS(i). The last bucket also counts all
	 * longer ones. */
	uint64_t bucket[NBAR_LATENCY_BUCKETS];
};

/* Asks for the nbar_last entries of the group in a cell of a port. The reply leaves out entries
 * without barriers. */
struct nbar_req_group_latency {
	uint32_t port, cell;
	uint32_t first; /* first entry wanted; start with 0 */
	uint32_t reserved;
};

struct nbar_rep_group_latency {
	uint32_t index, rank; /* of the group, and of this member */
	uint32_t nlast;       /* entries that follow */
	uint32_t next;        /* next entry to ask for; 0: the list is complete */
};

/* The barriers of a member in which the token of `rank` arrived last. If `rank` is the member's
 * own: the barriers in which all tokens arrived before the member's host. A rank that fills several
 * slots of the member has an entry for each slot. */
struct nbar_last {
	uint32_t rank;
	uint32_t reserved;
	uint64_t barriers;
	uint64_t ns;      /* sum of their latencies */
	uint64_t most_ns; /* the longest, at most 511 ns too short */
};
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_nic_latency) == 232, "latency of a NIC");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_latency) == 16, "latency of a group wanted");
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_group_latency) == 16, "latency of a group");
NBAR_ABI_ASSERT(sizeof(struct nbar_last) == 32, "last tokens of a rank");

NBAR_ABI_ASSERT(sizeof(struct nbar_request) == 16, "request");
NBAR_ABI_ASSERT(sizeof(struct nbar_reply) == 256, "reply");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_port_open) == 8, "port open");
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_port_open) == 64, "port opened");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_port_attach) == 24, "port attach");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_attach) == 104, "group attach");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_open) == 56, "group open");
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_group_open) == 112, "group opened");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_connect) == 8, "group connect");
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_group_connect) == 8, "group connected");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_close) == 8, "group close");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_events) == 8, "group events");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_abort) == 8, "group abort");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_reach) == 8, "group reached?");
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_group_reach) == 144, "group reached");
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_nic_stat) == 752, "NIC statistics");
NBAR_ABI_ASSERT(sizeof(struct nbar_req_group_stat) == 8, "group statistics wanted");
NBAR_ABI_ASSERT(sizeof(struct nbar_rep_group_stat) == 8, "group statistics");
NBAR_ABI_ASSERT(sizeof(struct nbar_group_info) == 152, "group information");

#endif
