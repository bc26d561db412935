/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what a soft NIC asks of a wire, and what a wire may ask of its platform.
 *
 * Included by every wire and by every platform. A wire sees nic.h and log.h of the firmware, and no
 * header of a platform. wires.h has the registry of all wires.
 *
 * All calls come from the polling thread, except open and close, which come before it starts and
 * after it ends, and those that are said to come from the control thread.
 */
#ifndef NBNIC_WIRE_H
#define NBNIC_WIRE_H

#include "nbar_abi.h"
#include "nic.h"
#include "platform.h"

#define WIRE_KIND_TEST 255u /* of the wires of test programs */

typedef nbnic_fn wire_fn;
/* Value of a key, or NULL if it is not given. */
typedef const char *wire_option(void *args, const char *key);

/* One NIC's end of a wire; each wire has its own struct, which begins with this one. */
struct wire_base {
	const struct wire_ops *ops; /* set by wires_open */
	const char *name;           /* of the wire; set by wires_open */
	uint16_t kind;              /* as it stands in endpoint addresses; set by wires_open */
	struct nbnic_addr addr;     /* set by open */
	char text[64];              /* address for people; set by open */
	/* nbnic_device_count_wire moves these to the counters of the NIC, and sets them to 0. */
	uint64_t errors;    /* frames the wire did not take */
	uint64_t malformed; /* frames that did not unpack */
	uint64_t drops;     /* frames that the receive queue had no room for */
	uint64_t refused;   /* times that transmit had no room for a frame */
	uint64_t writes;    /* frames that went as RDMA writes */
	int fd;             /* with ops->serve: readable when it is to be called */
	/*
	 * Control thread: has fn(arg, now) run where no call of the polling thread is under way,
	 * and returns when it is done. Set by the platform, before the first call of peer_begin or
	 * serve.
	 */
	void (*call)(struct wire_base *w, wire_fn *fn, void *arg);
	void *platform; /* for the platform's own use */
	/* The key for the tags of frames, set before the NIC is made; NULL: they have none. */
	const struct wire_auth *auth;
};

struct wire_ops {
	/*
	 * Frames that a pass may carry for all that waits in queues; 0: NBNIC_QUOTA. A pass with so
	 * many should cost about as much as the pass that serves one barrier of an idle NIC: few
	 * where a frame is a system call, more where it is a store. A port that has the NIC for
	 * itself gets NBNIC_QUOTA at least.
	 */
	uint32_t quota;
	/*
	 * nic: its name. Keys come one by one from --nic, by option(args, key). Errors are reported
	 * by log_error(), with what to do; returns 0 or negative errno.
	 */
	int (*open)(const char *nic, wire_option *option, void *args, struct wire_base **out);
	void (*close)(struct wire_base *w);
	/* Takes what has come in, at most `budget` frames (at least 1), and calls nbnic_receive for
	 * each; returns how many. */
	unsigned (*poll)(struct wire_base *w, struct nbnic *nic, uint64_t now, unsigned budget);
	/* Sends a frame, which may be lost. False: no room now; nothing was sent, and a later call
	 * may succeed. A frame that can never be sent: counts it in base.errors, and
	 * returns true. */
	bool (*transmit)(struct wire_base *w, const struct nbnic_addr *to,
			 const struct nbfw_token *t);
	/*
	 * Control thread; both are set, or both are NULL. A group is about to have this peer, or
	 * has it no more: what takes long is done here, so that transmit has only to send. As many
	 * ends as begins. Refused: negative errno, and *why is a constant text that says what to
	 * do.
	 */
	int (*peer_begin)(struct wire_base *w, const struct nbnic_addr *a, const char **why);
	void (*peer_end)(struct wire_base *w, const struct nbnic_addr *a);
	/* Control thread, may be NULL: base.fd is readable. */
	void (*serve)(struct wire_base *w);
	/* In a child of fork(), where nobody uses the wire: closes its descriptors, no more. */
	void (*forked)(struct wire_base *w);
};

#endif
