/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mailbox.h - calls from the control thread, or that of a user, to the polling thread; and lists of
 * work for other threads.
 *
 * One slot: the control thread puts a call in and waits until it is done; the polling thread looks
 * at the slot once a pass. So all state of a NIC belongs to one thread, without a lock. Independent
 * of DPDK. One caller and one server at a time.
 *
 * Without a polling thread (hostnic.c), the mailbox is shared by all threads, and has a lock. The
 * thread that holds the lock acts as the polling thread. A thread that polls never waits for the
 * lock, and a caller runs its call itself, between two passes.
 */
#ifndef NBAR_DAEMON_MAILBOX_H
#define NBAR_DAEMON_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef void mailbox_fn(void *arg, uint64_t now);

struct mailbox {
	uint32_t full; /* futex */
	int bell;      /* eventfd that wakes a polling thread that sleeps; -1: it never sleeps */
	mailbox_fn *fn;
	void *arg;
	uint64_t (*clock)(void); /* of a shared mailbox; else NULL */
	uint32_t wanted;         /* calls that wait for the end of a pass */
	pthread_mutex_t lock;
	int cancel; /* cancel state of the holder before it took the lock */
};

/* A list of things to do: any thread adds to it without waiting, one thread takes from it. An item
 * is in the list once, however often it is added. */
struct mailbox_item {
	struct mailbox_item *next;
	uint32_t listed;
};

struct mailbox_list {
	struct mailbox_item *head;
};

/* True: the list was empty, so the thread that takes may sleep. */
bool mailbox_add(struct mailbox_list *l, struct mailbox_item *item);

/* Takes all items. Each can be added again only after mailbox_release. */
struct mailbox_item *mailbox_take(struct mailbox_list *l);
void mailbox_release(struct mailbox_item *item);

/* A set of numbers beside an item: marked before mailbox_add; taken, 64 at a time, before
 * mailbox_release, and looked at after it. */
void mailbox_mark(uint64_t *set, uint32_t n);
uint64_t mailbox_marks(uint64_t *word);
bool mailbox_is_marked(const uint64_t *word);

/* Makes a mailbox shared, before its first use. */
void mailbox_share(struct mailbox *m, uint64_t (*clock)(void));

static inline bool mailbox_is_shared(const struct mailbox *m)
{
	return m->clock;
}

/* Before a pass, a thread takes the lock of a shared mailbox; after the pass, it releases the lock.
 * False: another thread holds the lock, or a call waits for it. */
bool mailbox_enter(struct mailbox *m);
void mailbox_leave(struct mailbox *m);

/* Control thread: lets the polling thread run fn(arg, now); returns when it is done. A shared
 * mailbox takes calls of any thread that does not hold its lock. */
void mailbox_call(struct mailbox *m, mailbox_fn *fn, void *arg);

/* Polling thread: runs the call in the slot. False: the slot is empty. */
bool mailbox_serve(struct mailbox *m, uint64_t now);

/* Any thread: wakes the polling thread, or keeps it from its next sleep. */
void mailbox_ring(const struct mailbox *m);

#endif
