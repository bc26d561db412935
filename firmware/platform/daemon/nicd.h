/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd.h - the NICs of one daemon: nic/device.h on Linux, and the loop of the thread that polls.
 *
 * The daemon without its main(): main.c puts DPDK around it, tests run it in threads of their own.
 * Knows no DPDK. The polling thread is the side of passes, the control thread that of requests
 * (nic/platform.h); the mailbox keeps them apart.
 */
#ifndef NBAR_DAEMON_NICD_H
#define NBAR_DAEMON_NICD_H

#include "device.h"
#include "mailbox.h"
#include "tune.h"

struct nicd;

struct nicd_nic {
	struct nbnic_device device;
	struct nicd *nicd;
	int page_fd[NBNIC_PORTS_MAX]; /* control thread: memory of the page of a port */
};

struct nicd {
	struct mailbox mailbox;
	struct nbnic_config config;
	const struct tune *tune; /* what "auto" is; NULL: as the core has it */
	uint32_t nnic;
	struct nicd_nic *nic[NBAR_NICS_MAX];
	uint64_t stop_at, stop_latest; /* 0: not asked to stop */
};

/* What the polling thread does when there is nothing to do. */
enum nicd_idle {
	NICD_IDLE_SPIN,  /* goes on: for a core of its own */
	NICD_IDLE_YIELD, /* lets others run in between */
	NICD_IDLE_SLEEP  /* sleeps in between, for up to NICD_DOZE_MAX_NS */
};
#define NICD_DOZE_MAX_NS UINT64_C(1000000)

/* An empty set. */
void nicd_init(struct nicd *d, const struct nbnic_config *config);

/* Adds a NIC on a wire that is open; the wire then belongs to the set, which closes it. -ENOSPC:
 * NBAR_NICS_MAX are there; -EINVAL: the times of config do not fit each other; -ENOMEM. */
int nicd_add(struct nicd *d, const char *name, struct wire_base *wire);

/* One look at the mailbox, and one pass of every NIC. True if there was work. */
bool nicd_pass(struct nicd *d, uint64_t now);

/* Turns until asked to stop. spin_ns: how long after the last work any idle policy begins. The
 * next frame of a barrier under way comes within microseconds; but on a processor that NIC and
 * hosts share, no host runs while the NIC spins. */
void nicd_run(struct nicd *d, enum nicd_idle idle, uint64_t spin_ns);
#define NICD_SPIN_NS_DEFAULT UINT64_C(4000)

/* Polling thread: closes all ports with NIC_DOWN; nicd_run ends a little later, so that peers who
 * missed that can ask. */
void nicd_stop(struct nicd *d, uint64_t now);

/* Ends all NICs and closes their wires, when neither thread runs any more. */
void nicd_fini(struct nicd *d);

/* Nanoseconds of the clock that all times here are of. */
uint64_t nicd_clock(void);

#endif
