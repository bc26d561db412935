/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd.h - the soft NICs of one daemon, and the turn of the thread that polls them.
 *
 * The daemon without its main(): main.c puts DPDK around it, tests run it in threads of their
 * own. Knows no DPDK. After nicd_add, everything here belongs to the polling thread; the control
 * thread reaches it by mailbox_call only.
 */
#ifndef NBAR_PORT_NICD_H
#define NBAR_PORT_NICD_H

#include "mailbox.h"
#include "nic.h"
#include "page.h"
#include "wire.h"

struct nicd;

struct nicd_nic {
	struct wire_base *wire;
	uint64_t next_tick;
	uint32_t nopen;                    /* ports in open[] */
	struct port *open[NBAR_PORTS_MAX]; /* in no order: what a turn looks at */
	struct port *port[NBAR_PORTS_MAX]; /* by number */
	struct nicd *nicd;
	char name[NBAR_NAME_MAX];
	struct nbnic nic;
};

struct nicd {
	struct mailbox mailbox;
	struct nbnic_config config;
	uint32_t nnic;
	struct nicd_nic *nic[NBAR_NICS_MAX];
	uint64_t stop_at;               /* 0: not asked to stop */
	struct nicd_released *released; /* blocks that the NICs are done with */
};

/* Lies at the start of a block that is no longer in use; its peers can still be read. */
struct nicd_released {
	struct nicd_released *next;
	struct nicd_nic *nic;
};
_Static_assert(sizeof(struct nicd_released) <= offsetof(struct nbnic_group, peer), "peers stay");

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

/* One look at every wire, doorbell, timer and at the mailbox. True if there was work. */
bool nicd_turn(struct nicd *d, uint64_t now);

/* Turns until asked to stop. spin_ns: how long after the last work any idle policy begins. The
 * next frame of a barrier under way comes within microseconds; but on a processor that NIC and
 * hosts share, no host runs while the NIC spins. */
void nicd_run(struct nicd *d, enum nicd_idle idle, uint64_t spin_ns);
#define NICD_SPIN_NS_DEFAULT UINT64_C(4000)

/* Polling thread: closes all ports with NIC_DOWN; nicd_run ends a little later, so that peers who
 * missed that can ask. */
void nicd_stop(struct nicd *d, uint64_t now);

/* Polling thread: a port begins and ends. Its memory belongs to the caller before and after. An
 * end may take several calls, until it returns true. */
void nicd_port_begin(struct nicd_nic *n, struct port *p);
bool nicd_port_end(struct nicd_nic *n, struct port *p, uint8_t cause, uint64_t now);

/* Polling thread: moves what the wire has counted to the counters of the NIC. */
void nicd_count_wire(struct nicd_nic *n);

/* Polling thread: yields the blocks that are no longer in use. Free them elsewhere. */
struct nicd_released *nicd_take_released(struct nicd *d);

/* Frees such blocks; how many there were. While the polling thread runs (polled), wires are told of
 * the peers that go with them; the caller then is the control thread. */
uint32_t nicd_free_released(struct nicd_released *list, bool polled);

/* Ends all NICs and closes their wires, when neither thread runs any more. */
void nicd_fini(struct nicd *d);

/* Nanoseconds of the clock that all times here are of. */
uint64_t nicd_clock(void);

#endif
