/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd.h - the NICs of one daemon: nic/device.h on Linux, and the loop of the thread that polls.
 *
 * This is the daemon without its main(): tests run it in their own threads. The polling thread runs
 * the passes, and the control thread the requests (nic/platform.h); the mailbox keeps a request
 * from running during a pass.
 */
#ifndef NBAR_DAEMON_NICD_H
#define NBAR_DAEMON_NICD_H

#include <poll.h>

#include "device.h"
#include "mailbox.h"
#include "remote.h"
#include "trace_ring.h"
#include "wakes.h"

struct nicd;

struct nicd_nic {
	struct nbnic_device device;
	struct nicd *nicd;
	int page_fd[NBNIC_PORTS_MAX]; /* control thread: memory of the page of a port */
	struct wakes *wakes[NBNIC_PORTS_MAX];
	struct remote_port *remote[NBNIC_PORTS_MAX]; /* of remote hosts: remote.c */
	struct waker *waker; /* requests: of the user of the current request; NULL: see wakes.h */
	struct trace_ring *trace; /* polling thread; NULL: no event is recorded */
	int events_fd;            /* control thread: the socket that goes with the current reply */
	uint32_t fds_left;        /* requests: descriptors that the user may still take */
};

struct nicd {
	struct mailbox mailbox;
	struct nbnic_config config;
	uint32_t nnic;
	struct nicd_nic *nic[NBAR_NICS_MAX];
	int look_fd; /* a pass writes to this eventfd if others wait for a host; -1: none */
	uint64_t stop_at, stop_latest; /* 0: not asked to stop */
	struct remote *remote;         /* NULL: no remote hosts */
	/* Set by nicd_may_sleep. */
	struct pollfd wake[2 + NBAR_NICS_MAX]; /* of the mailbox, of the wires, of `remote` */
	uint32_t nwake;
	/* Some wire does not wake the thread; or a post of a remote host and the request for its
	 * kick may miss each other on their ways. */
	bool naps;
};

/* What the polling thread does when there is no work. */
enum nicd_idle {
	NICD_IDLE_SPIN,  /* still polls: for a processor of its own */
	NICD_IDLE_YIELD, /* yields between polls */
	NICD_IDLE_SLEEP  /* sleeps until there is work: call nicd_may_sleep before */
};
/* The longest sleep if some wire does not wake the thread. */
#define NICD_DOZE_MAX_NS UINT64_C(1000000)

/* Makes an empty set of NICs. */
void nicd_init(struct nicd *d, const struct nbnic_config *config);

/* Adds a NIC on a wire that is open; the wire then belongs to the set, which closes it. -ENOSPC:
 * NBAR_NICS_MAX are there; -EINVAL: the times of config do not fit each other; -ENOMEM. */
int nicd_add(struct nicd *d, const char *name, struct wire_base *wire);

/* Call it after the last nicd_add, and before any other thread uses the set. 0 or -errno. */
int nicd_may_sleep(struct nicd *d);

/* Records the events of NIC i from here on. Call it before the polling thread runs. The NIC does
 * not own the trace. */
void nicd_trace(struct nicd *d, uint32_t i, struct trace_ring *trace);

/* Looks at the mailbox once, and runs one pass of every NIC. True if there was work. */
bool nicd_pass(struct nicd *d, uint64_t now);

/* Runs passes until nicd_stop. spin_ns: for so long after the last work, the thread only polls;
 * then the idle policy begins. The next frame of a running barrier comes within microseconds. If
 * the NIC and hosts share a processor, use 0: no host runs while the NIC spins. */
void nicd_run(struct nicd *d, enum nicd_idle idle, uint64_t spin_ns);
#define NICD_SPIN_NS_DEFAULT UINT64_C(4000)

/* Polling thread: closes all ports with NIC_DOWN. nicd_run ends a little later, so that peers that
 * missed the ABORT can send PULLs. */
void nicd_stop(struct nicd *d, uint64_t now);

/* Ends all NICs and closes their wires. Call it when neither thread runs any more. */
void nicd_fini(struct nicd *d);

/* The clock of all times here, in nanoseconds. */
uint64_t nicd_clock(void);

#endif
