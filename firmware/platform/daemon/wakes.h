/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wakes.h - wakes the hosts of a port: those that sleep on a word of its page, and pollers.
 *
 * How long a wake takes is the choice of those who wait: a futex may have thousands of waiters, and
 * one socket may be in thousands of epoll sets. So the polling thread wakes at most WAKES_MAX
 * sleepers of a word itself. All others are woken by the thread of the port's user, which also
 * closes the sockets: each user bears only the delay that it has caused.
 */
#ifndef NBAR_DAEMON_WAKES_H
#define NBAR_DAEMON_WAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "mailbox.h"
#include "nbar_abi.h"

#define WAKES_MAX 4 /* a sleeper costs about 10 us */

/* A thread that wakes: it calls waker_serve when the eventfd is readable. */
struct waker {
	struct mailbox_list list;
	int fd;
};

struct wakes;

/* Begins a port. Without a waker, as in an in-process NIC, wakes_wake does everything. NULL: no
 * memory. */
struct wakes *wakes_new(struct waker *waker, struct nbar_page *page);

/* Pass: wakes those who wait for this cell. */
void wakes_wake(struct wakes *w, uint32_t cell);

/* Makes a socket for a poller of this cell, in place of an earlier one. fds_left: how many more
 * descriptors the user may have. Returns the poller's end, or negative errno. */
int wakes_events_make(struct wakes *w, struct mailbox *m, uint32_t cell, uint32_t fds_left);
void wakes_events_drop(struct wakes *w, struct mailbox *m, uint32_t cell);

/* Number of sockets. */
uint32_t wakes_events(const struct wakes *w);

/* Ends a port that no pass uses any more. */
void wakes_end(struct wakes *w);

/* Wakes and closes what others have handed over. */
void waker_serve(struct waker *waker);

#endif
