/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd.h - the NICs of one daemon: nic/device.h on Linux, and the loop of the thread that polls.
 *
 * The daemon without its main(): main.c adds DPDK, tests run it in their own threads. Independent
 * of DPDK. The polling thread runs the passes, the control thread the requests (nic/platform.h);
 * the mailbox keeps them apart.
 */
#ifndef NBAR_DAEMON_NICD_H
#define NBAR_DAEMON_NICD_H

#include "device.h"
#include "mailbox.h"
#include "trace_ring.h"
#include "tune.h"

struct nicd;

struct nicd_nic {
	struct nbnic_device device;
	struct nicd *nicd;
	int page_fd[NBNIC_PORTS_MAX]; /* control thread: memory of the page of a port */
	/* Sockets of pollers, by port and cell; -1: none. The control thread makes and drops them,
	 * apart from the pass, which sends to them. NULL: the port has none. */
	int *events[NBNIC_PORTS_MAX];
	struct trace_ring *trace; /* polling thread; NULL: nothing is noted */
	int events_fd;            /* control thread: the end that goes with the reply at hand */
	/* Control thread: sockets of pollers of a port, and how many descriptors the user of the
	 * request at hand may still take. */
	uint32_t nevents[NBNIC_PORTS_MAX];
	uint32_t fds_left;
};

struct nicd {
	struct mailbox mailbox;
	struct nbnic_config config;
	const struct tune *tune; /* the meaning of "auto"; NULL: that of the core */
	uint32_t nnic;
	struct nicd_nic *nic[NBAR_NICS_MAX];
	uint64_t probes_next; /* polling thread: next look whether probes are wanted */
	int look_fd; /* the pass writes to it: others wait for hosts; -1: none. Control thread */
	uint64_t stop_at, stop_latest; /* 0: not asked to stop */
};

/* What the polling thread does when there is no work. */
enum nicd_idle {
	NICD_IDLE_SPIN,  /* goes on polling: for a processor of its own */
	NICD_IDLE_YIELD, /* yields between polls */
	NICD_IDLE_SLEEP  /* sleeps between polls, for up to NICD_DOZE_MAX_NS */
};
#define NICD_DOZE_MAX_NS UINT64_C(1000000)

/* An empty set. */
void nicd_init(struct nicd *d, const struct nbnic_config *config);

/* Adds a NIC on a wire that is open; the wire then belongs to the set, which closes it. -ENOSPC:
 * NBAR_NICS_MAX are there; -EINVAL: the times of config do not fit each other; -ENOMEM. */
int nicd_add(struct nicd *d, const char *name, struct wire_base *wire);

/* Events of NIC i are noted from here on; call it before the polling thread runs. The NIC does not
 * own the trace. */
void nicd_trace(struct nicd *d, uint32_t i, struct trace_ring *trace);

/* One look at the mailbox, and one pass of every NIC. True if there was work. */
bool nicd_pass(struct nicd *d, uint64_t now);

/* Runs passes until it is asked to stop. spin_ns: the idle policy begins so long after the last
 * work. The next frame of a barrier under way comes within microseconds; but on a processor that
 * NIC and hosts share, no host runs while the NIC spins. */
void nicd_run(struct nicd *d, enum nicd_idle idle, uint64_t spin_ns);
#define NICD_SPIN_NS_DEFAULT UINT64_C(4000)

/* Polling thread: closes all ports with NIC_DOWN. nicd_run ends a little later, so that peers that
 * missed the ABORT can send PULLs. */
void nicd_stop(struct nicd *d, uint64_t now);

/* Ends all NICs and closes their wires, when neither thread runs any more. */
void nicd_fini(struct nicd *d);

/* The clock of all times here, in nanoseconds. */
uint64_t nicd_clock(void);

#endif
