/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mailbox.h - how the control thread has something done by the polling thread.
 *
 * One slot: the control thread puts a call in and waits until it is done; the polling thread looks
 * at the slot once a turn. So all state of a NIC belongs to one thread, without a lock. Knows no
 * DPDK. One caller and one server at a time.
 */
#ifndef NBAR_PORT_MAILBOX_H
#define NBAR_PORT_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

typedef void mailbox_fn(void *arg, uint64_t now);

struct mailbox {
	uint32_t full; /* futex */
	mailbox_fn *fn;
	void *arg;
};

/* Control thread: has fn(arg, now) run by the polling thread; returns when it is done. */
void mailbox_call(struct mailbox *m, mailbox_fn *fn, void *arg);

/* Polling thread: runs what is in the slot. False: nothing. */
bool mailbox_serve(struct mailbox *m, uint64_t now);

/* Polling thread: sleeps for ns, or until a call comes. */
void mailbox_doze(struct mailbox *m, uint64_t ns);

#endif
