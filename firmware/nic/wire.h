/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what a soft NIC asks of a wire, and what a wire may ask of its platform.
 *
 * Included by every wire and by every platform. A wire sees nic.h and log.h of the firmware, and no
 * header of a platform. wires.h has the registry of all wires.
 *
 * The polling thread makes all calls, with two exceptions. The control thread makes those whose
 * comments say so. open comes before the polling thread starts, and close after it ends.
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
	uint16_t kind;              /* in endpoint addresses; set by open or wires_open */
	struct nbnic_addr addr;     /* set by open */
	char text[64];              /* address for people; set by open */
	char why[96];               /* why it is this address; may be empty; set by open */
	const char *no_values;      /* NULL, or why this NIC carries no values; set by open */
	uint32_t fast_value;        /* bytes of the numbers that lent groups take; 0: all values are
				     * alike; set by open. With a key, nothing is lent */
	/* request_stat.c moves these to the counters of the NIC, and sets them to 0. */
	uint64_t errors;    /* frames the wire did not take */
	uint64_t malformed; /* frames that did not unpack */
	uint64_t drops;     /* frames that the receive queue had no room for */
	uint64_t refused;   /* times that transmit had no room for a frame */
	uint64_t writes;    /* frames that went as RDMA writes */
	int fd;             /* with ops->serve: readable when serve is to be called */
	/*
	 * Control thread: runs fn(arg, now) while no call of the polling thread is under way, then
	 * returns. The platform sets this before the first call of peer_begin or serve.
	 */
	void (*call)(struct wire_base *w, wire_fn *fn, void *arg);
	void *platform; /* for the platform's own use */
	/* The key for the tags of frames, set before the NIC is made; NULL: frames have no tags. */
	const struct wire_auth *auth;
};

/* A group that the wire steps by itself: how the NIC lends it, and what the wire did with it. */
struct wire_lend {
	uint64_t first_ns; /* the wire wants the group back after this time without progress; ... */
	uint64_t left_ns;  /* ... of the running barrier: after this time */
	bool sleeper;      /* the wire wants a wake when its barrier completes */
	uint8_t values;    /* where the host finds results, plus 1: nbnic_cell */
};
struct wire_counts {
	uint32_t completed, sent, received, duplicate, stale, bad;
};

struct wire_ops {
	/*
	 * Frames that a pass may send from queues; 0: NBNIC_QUOTA. Such a pass should cost about as
	 * much as a pass that serves one barrier of an idle NIC. So the quota is small if a frame
	 * is a system call, larger if a frame is a store. A port that has the NIC for itself gets
	 * NBNIC_QUOTA at least.
	 */
	uint32_t quota;
	bool values; /* transmit and poll also carry the values of tokens */
	/*
	 * nic: the name of the NIC. option(args, key) gives the value of a key of --nic. Returns 0
	 * or negative errno; reports each error by log_error(), with what to do.
	 */
	int (*open)(const char *nic, wire_option *option, void *args, struct wire_base **out);
	void (*close)(struct wire_base *w);
	/* Takes at most `budget` received frames (NBNIC_PASS_FRAMES, so 8 or more), calls
	 * nbnic_receive for each, and returns their number. */
	unsigned (*poll)(struct wire_base *w, struct nbnic *nic, uint64_t now, unsigned budget);
	/* Sends a frame, which may be lost. False: no room now for any frame, to whomever; nothing
	 * was sent, and a later call may succeed. If this peer alone has no room, or if a frame can
	 * never be sent, counts it in base.errors and returns true: no peer may stop the others. */
	bool (*transmit)(struct wire_base *w, const struct nbnic_addr *to,
			 const struct nbfw_token *t);
	/*
	 * Control thread; both functions are set, or both are NULL. A group is about to have this
	 * peer, or has it no more. Slow work is done here, so that transmit only sends. Each
	 * successful begin has one end. Refused: negative errno, and *why is a constant text that
	 * says what to do.
	 */
	int (*peer_begin)(struct wire_base *w, const struct nbnic_addr *a, const char **why);
	void (*peer_end)(struct wire_base *w, const struct nbnic_addr *a);
	/* Control thread, may be NULL. Writes the address of a NIC for people, as far as `size`
	 * bytes go. */
	void (*show)(const struct wire_base *w, const struct nbnic_addr *a, char *text,
		     size_t size);
	/* Control thread, may be NULL. Called when base.fd is readable. */
	void (*serve)(struct wire_base *w);
	/* A descriptor that is readable when poll has frames, so that a NIC may sleep; or -1: only
	 * passes of this thread bring frames. NULL: the wire wakes nobody. */
	int (*wakes)(const struct wire_base *w);
	/*
	 * All of these, or none: lend.c. lend takes the state of a group, whose posts and tokens
	 * the wire then handles; false: it does not. take gives the state back; false: it is lost,
	 * and the wire forgets the group. If the wire wants a take, it calls nbnic_lend_wanted in
	 * poll.
	 */
	bool (*lend)(struct wire_base *w, const struct nbnic_group *g, const struct wire_lend *how);
	bool (*take)(struct wire_base *w, struct nbnic_group *g, struct wire_counts *out);
	/* Control thread. A port begins: returns the place of its completions and values, which the
	 * wire writes too; NULL: the page, and no group of the port is lent. port_end: it has
	 * ended. */
	struct nbar_results *(*port_begin)(struct wire_base *w, uint32_t port);
	void (*port_end)(struct wire_base *w, uint32_t port);
	/* Control thread: the descriptors that a host of the port needs: of the results, and of
	 * a socket that takes posts. False: none. */
	bool (*port_fds)(const struct wire_base *w, uint32_t port, int fd[2]);
	/* In a child of fork(), where nobody uses the wire: closes the descriptors of the wire, and
	 * does no more. */
	void (*forked)(struct wire_base *w);
};

#endif
