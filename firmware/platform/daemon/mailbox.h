/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mailbox.h - how the control thread has something done by the polling thread.
 *
 * One slot: the control thread puts a call in and waits until it is done; the polling thread looks
 * at the slot once a pass. So all state of a NIC belongs to one thread, without a lock. Knows no
 * DPDK. One caller and one server at a time.
 *
 * Where there is no polling thread, but threads that have time for a pass (hostnic.c), the mailbox
 * is shared: a lock. Whoever holds the lock acts as the polling thread. A thread that polls never
 * waits for another one, and a caller runs its call by itself, between two passes.
 */
#ifndef NBAR_DAEMON_MAILBOX_H
#define NBAR_DAEMON_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef void mailbox_fn(void *arg, uint64_t now);

struct mailbox {
	uint32_t full; /* futex */
	mailbox_fn *fn;
	void *arg;
	uint64_t (*clock)(void); /* NULL: it is not shared */
	uint32_t wanted;         /* calls that wait for the end of a pass */
	pthread_mutex_t lock;
	int cancel; /* whether the holder of the lock could be cancelled before */
};

/* Makes it a shared one, before anybody uses it. */
void mailbox_share(struct mailbox *m, uint64_t (*clock)(void));

static inline bool mailbox_is_shared(const struct mailbox *m)
{
	return m->clock;
}

/* A thread with time for a pass takes the lock of a shared one, and gives it back. False: another
 * thread holds the lock, or a call waits for it. */
bool mailbox_enter(struct mailbox *m);
void mailbox_leave(struct mailbox *m);

/* Control thread: has fn(arg, now) run by the polling thread; returns when it is done. A shared one
 * takes calls of any thread that does not hold its lock. */
void mailbox_call(struct mailbox *m, mailbox_fn *fn, void *arg);

/* Polling thread: runs what is in the slot. False: nothing. */
bool mailbox_serve(struct mailbox *m, uint64_t now);

/* Polling thread: sleeps for ns, or until a call comes. */
void mailbox_doze(struct mailbox *m, uint64_t ns);

#endif
