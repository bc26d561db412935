/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_trace.h - the events that a NIC can note, and the file that a daemon keeps them in.
 *
 * The file is a ring: nbar-nicd --trace writes it, `nbar trace` reads it, also while it changes. It
 * is no part of the ABI: its version changes with any field. This header includes <stdint.h> only.
 */
#ifndef NBAR_TRACE_H
#define NBAR_TRACE_H

#include <stdint.h>

enum nbar_trace_what {
	NBAR_TRACE_DOORBELL = 1, /* the host has posted up to `epoch` */
	NBAR_TRACE_START = 2,    /* the NIC starts the barrier `epoch` */
	NBAR_TRACE_COMPLETE = 3,
	NBAR_TRACE_FAIL = 4,   /* `peer` is the failed rank */
	NBAR_TRACE_OUT = 5,    /* the wire has taken a frame for `peer` */
	NBAR_TRACE_IN = 6,     /* a frame of `peer` has come from the wire */
	NBAR_TRACE_LATE = 7,   /* others say that the host of `peer` is late, stopped or ended */
	NBAR_TRACE_SILENT = 8, /* the NIC of `peer` does not answer */
	NBAR_TRACE_END = 9     /* the first invalid value */
};

struct nbar_trace_event {
	uint64_t time;   /* CLOCK_MONOTONIC, nanoseconds; the platform sets it */
	uint32_t handle; /* of the group at this NIC */
	uint32_t rank;   /* of its member here */
	uint32_t epoch;
	uint32_t peer; /* a rank */
	/* Of a frame: the lower half of the receiver's cookie. Sender and receiver note the same
	 * value. */
	uint32_t cookie;
	uint16_t slot; /* of a frame */
	uint8_t what;  /* enum nbar_trace_what */
	uint8_t type;  /* of a frame: enum nbfw_type */
};

#define NBAR_TRACE_MAGIC 0x63617274u /* "trac" as bytes in memory */
#define NBAR_TRACE_VERSION 2u
#define NBAR_TRACE_HEAD_BYTES 4096u
#define NBAR_TRACE_EVENTS_MAX 4194304u
#define NBAR_TRACE_SUFFIX ".trace"

/* The first bytes of the file; events[capacity] are at NBAR_TRACE_HEAD_BYTES. */
struct nbar_trace_head {
	uint32_t magic, version;
	uint32_t capacity; /* events, a power of two */
	uint32_t pid;      /* of the daemon */
	char nic[32];
	char host[64];
	char boot_id[40]; /* NICs of one boot share a clock */
	/* Event i is whole if i < written, and begun <= i + capacity: see trace_ring.c of the
	 * daemon. */
	uint64_t begun, written;
};

_Static_assert(sizeof(struct nbar_trace_event) == 32, "trace event");
_Static_assert(sizeof(struct nbar_trace_head) <= NBAR_TRACE_HEAD_BYTES, "trace head");

#endif
