/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what a soft NIC asks of a wire. A new wire is one file and one line in wires[].
 *
 * All calls come from the polling thread, except open and close, which come before it starts and
 * after it ends, and those that are said to come from the control thread.
 */
#ifndef NBNIC_WIRE_H
#define NBNIC_WIRE_H

#include "nbar_abi.h"
#include "nic.h"

/* Wire kinds as they stand in blobs. Never reuse a number. */
enum wire_kind { WIRE_RING = 1, WIRE_DPDK = 2, WIRE_UDP = 3, WIRE_VERBS = 4, WIRE_TEST = 255 };

struct mailbox;

struct wire_base {
	const struct wire_ops *ops;
	struct nbnic_addr addr; /* set by open */
	char text[64];          /* address for people; set by open */
	uint64_t errors;    /* frames the wire did not take; the loop moves it to the counters */
	uint64_t malformed; /* frames that did not unpack */
	uint64_t writes;    /* frames that went as RDMA writes */
	struct mailbox *mailbox; /* set by nicd_add: from the control thread to the polling one */
	int fd;                  /* with ops->serve: readable when it is to be called */
};

struct wire_ops {
	const char *name;
	enum wire_kind kind;
	/*
	 * nic: its name. Options come one by one from --nic: value of key, or NULL if not given.
	 * Errors are reported by log_error(), with what to do; returns 0 or negative errno.
	 */
	int (*open)(const char *nic, const char *(*option)(void *args, const char *key), void *args,
		    struct wire_base **out);
	void (*close)(struct wire_base *w);
	/* Takes what has come in, at most `budget` frames (at least 1), and calls nbnic_receive for
	 * each; returns how many. */
	unsigned (*poll)(struct wire_base *w, struct nbnic *nic, uint64_t now, unsigned budget);
	/* Sends a frame, which may be lost. False: no room now; nothing was sent, and a later call
	 * may succeed. What can never succeed is counted in base.errors, and true. */
	bool (*transmit)(struct wire_base *w, const struct nbnic_addr *to,
			 const struct nbfw_token *t);
	const char *const *options; /* keys that open understands, NULL-terminated */
	/*
	 * Control thread; all NULL, or none. A group is about to have this peer, or has it no more:
	 * what takes long is done here, so that transmit has only to send. As many ends as begins.
	 * Refused: negative errno, and *why is a constant text that says what to do.
	 */
	int (*peer_begin)(struct wire_base *w, const struct nbnic_addr *a, const char **why);
	void (*peer_end)(struct wire_base *w, const struct nbnic_addr *a);
	void (*serve)(struct wire_base *w); /* base.fd is readable */
	/* In a child of fork(), where nobody uses the wire: closes its descriptors, no more. */
	void (*forked)(struct wire_base *w);
};

extern const struct wire_ops wire_ring_ops, wire_dpdk_ops, wire_udp_ops, wire_verbs_ops;

#endif
