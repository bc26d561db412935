/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wakes.c - see wakes.h. A pass marks a cell and puts the port on the list of its waker; it takes
 * no lock, and makes no system call except the futex wake and the wake of the waker.
 */
#include "wakes.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nic.h"

#define WORDS (NBNIC_GROUPS_MAX / 64)
_Static_assert(NBNIC_GROUPS_MAX % 64 == 0, "whole words");

/* The socket of a poller, at our end. */
struct events {
	int fd;
	struct events *next; /* in `dropped` */
};

struct wakes {
	struct mailbox_item item; /* first: the list of the waker points to it */
	struct waker *waker;
	struct nbar_page *page;
	uint64_t polled[WORDS]; /* polling thread: cells with a socket */
	uint64_t due[WORDS];    /* cells to wake; see mailbox_mark */
	pthread_mutex_t lock;   /* of what follows: requests and the waker, never a pass */
	struct events **events; /* by cell; NULL: there is none yet */
	struct events *dropped;
	uint32_t nevents;
	bool over;
};

struct wakes *wakes_new(struct waker *waker, struct nbar_page *page)
{
	struct wakes *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->waker = waker;
	w->page = page;
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

static long futex_wake(struct wakes *w, uint32_t cell, int n)
{
	/* The page may be unmapped already: then the call fails, or wakes nobody. */
	return syscall(SYS_futex, &w->page->completion[cell].wake, FUTEX_WAKE, n, NULL, NULL, 0);
}

static void events_send(struct wakes *w, uint32_t cell)
{
	struct events *e;

	pthread_mutex_lock(&w->lock);
	e = w->events ? w->events[cell] : NULL;
	pthread_mutex_unlock(&w->lock);
	/* Only this thread frees it. */
	if (e)
		(void)!send(e->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void hand_over(struct waker *waker, struct wakes *w)
{
	const uint64_t one = 1;

	if (mailbox_add(&waker->list, &w->item))
		(void)!write(waker->fd, &one, sizeof(one));
}

void wakes_wake(struct wakes *w, uint32_t cell)
{
	bool polled = w->polled[cell / 64] >> cell % 64 & 1;
	bool more = futex_wake(w, cell, w->waker ? WAKES_MAX : INT_MAX) == WAKES_MAX;

	if (!w->waker && polled)
		events_send(w, cell);
	if (!w->waker || (!polled && !more))
		return;
	mailbox_mark(w->due, cell);
	hand_over(w->waker, w);
}

struct polled_call {
	struct wakes *w;
	uint32_t cell;
	bool polled;
};

static void run_polled(void *arg, uint64_t now)
{
	const struct polled_call *call = arg;
	uint64_t *word = &call->w->polled[call->cell / 64], bit = UINT64_C(1) << call->cell % 64;

	(void)now;
	*word = call->polled ? *word | bit : *word & ~bit;
}

static void polled_set(struct wakes *w, struct mailbox *m, uint32_t cell, bool polled)
{
	struct polled_call call = { w, cell, polled };

	mailbox_call(m, run_polled, &call);
}

static void events_free(struct events *e)
{
	close(e->fd);
	free(e);
}

static void dropped_free(struct events *e)
{
	for (struct events *next; e; e = next) {
		next = e->next;
		events_free(e);
	}
}

/* Exchanges the socket of a cell. A pass does not use the table meanwhile. */
static void events_set(struct wakes *w, uint32_t cell, struct events *e)
{
	struct events *before, *free_now = NULL;

	pthread_mutex_lock(&w->lock);
	before = w->events[cell];
	w->events[cell] = e;
	w->nevents = w->nevents + (e != NULL) - (before != NULL);
	if (before && w->waker) {
		before->next = w->dropped;
		w->dropped = before;
	} else {
		free_now = before;
	}
	pthread_mutex_unlock(&w->lock);
	if (free_now)
		events_free(free_now);
	else if (before)
		hand_over(w->waker, w);
}

/* Makes a socket pair, and no eventfd: the owner of an eventfd could block the write of the NIC. A
 * message without room is lost, but then the socket is readable already. */
static struct events *pair_make(int *poller)
{
	const int least = 1; /* the kernel raises it to its own minimum */
	struct events *e = calloc(1, sizeof(*e));
	int fd[2];

	if (!e)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) < 0) {
		free(e);
		return NULL;
	}
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	shutdown(fd[0], SHUT_RD);
	e->fd = fd[0];
	*poller = fd[1];
	return e;
}

int wakes_events_make(struct wakes *w, struct mailbox *m, uint32_t cell, uint32_t fds_left)
{
	bool is_new = !w->events || !w->events[cell];
	struct events *e;
	int poller;

	if (is_new && w->nevents >= NBAR_EVENTS_MAX)
		return -ENOSPC;
	if (is_new && fds_left == 0)
		return -EMFILE;
	if (!w->events) {
		struct events **table = calloc(NBNIC_GROUPS_MAX, sizeof(struct events *));

		pthread_mutex_lock(&w->lock);
		w->events = table;
		pthread_mutex_unlock(&w->lock);
	}
	errno = ENOMEM;
	e = w->events ? pair_make(&poller) : NULL;
	if (!e)
		return -errno;
	polled_set(w, m, cell, false);
	events_set(w, cell, e);
	polled_set(w, m, cell, true);
	return poller;
}

void wakes_events_drop(struct wakes *w, struct mailbox *m, uint32_t cell)
{
	if (!w->events || !w->events[cell])
		return;
	polled_set(w, m, cell, false);
	events_set(w, cell, NULL);
}

uint32_t wakes_events(const struct wakes *w)
{
	return w->nevents;
}

/* Closes all sockets. */
static void finish(struct wakes *w)
{
	for (uint32_t cell = 0; w->events && cell < NBNIC_GROUPS_MAX; cell++)
		if (w->events[cell])
			events_free(w->events[cell]);
	dropped_free(w->dropped);
	pthread_mutex_destroy(&w->lock);
	free(w->events);
	free(w);
}

void wakes_end(struct wakes *w)
{
	if (!w->waker) {
		finish(w);
		return;
	}
	/* With the lock: the waker frees w as soon as it sees `over`. */
	pthread_mutex_lock(&w->lock);
	w->over = true;
	hand_over(w->waker, w);
	pthread_mutex_unlock(&w->lock);
}

/* True: w is gone. */
static bool wakes_tidy(struct wakes *w)
{
	struct events *dropped;
	bool over;

	pthread_mutex_lock(&w->lock);
	over = w->over;
	dropped = w->dropped;
	w->dropped = NULL;
	pthread_mutex_unlock(&w->lock);
	dropped_free(dropped);
	if (over)
		finish(w);
	return over;
}

/* Wakes what is marked. */
static void wake_due(struct wakes *w)
{
	for (uint32_t i = 0; i < WORDS; i++)
		for (uint64_t due = mailbox_marks(&w->due[i]); due; due &= due - 1) {
			uint32_t cell = 64 * i + (uint32_t)__builtin_ctzll(due);

			futex_wake(w, cell, INT_MAX);
			events_send(w, cell);
		}
}

/* Lets others add w again. Puts it on the list itself if there is something new: they could not. */
static void wakes_release(struct waker *waker, struct wakes *w)
{
	bool again;

	pthread_mutex_lock(&w->lock);
	mailbox_release(&w->item);
	again = w->over || w->dropped;
	pthread_mutex_unlock(&w->lock);
	for (uint32_t i = 0; i < WORDS && !again; i++)
		again = mailbox_is_marked(&w->due[i]);
	if (again)
		hand_over(waker, w);
}

void waker_serve(struct waker *waker)
{
	struct mailbox_item *item = mailbox_take(&waker->list);

	while (item) {
		struct wakes *w = (struct wakes *)item;

		item = item->next;
		if (wakes_tidy(w))
			continue;
		wake_due(w);
		wakes_release(waker, w);
	}
}
