/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_thread.c - the thread of each user of a daemon: it serves the clients of the user, wakes
 * the hosts of its ports, and closes its sockets.
 *
 * Called by the control thread, which makes the threads and waits for their end.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "daemon.h"

#define STACK_BYTES (256u << 10)
#define END_MS 300 /* how long the daemon waits for threads that a client may delay */

static void client_close(struct control_client *c)
{
	if (c->refusal)
		daemon_send(c->fd, c->refusal, c->refusal->length, NULL, 0);
	close(c->fd);
	free(c->refusal);
	free(c->remote);
	free(c);
}

/* Closes the sockets of dropped clients, without the turn. Returns with the turn. */
static void close_dropped(struct control_user *u)
{
	struct control_client *c, *next;

	control_turn_take(u->control);
	while ((c = u->closing)) {
		uint32_t n = 0;

		u->closing = NULL;
		control_turn_give(u->control);
		for (; c; c = next, n++) {
			next = c->next;
			client_close(c);
		}
		control_turn_take(u->control);
		u->nfd -= n;
		u->nclosing -= n;
		if (u->nclosing == 0)
			u->nnap = 0;
	}
}

static void user_free(struct control_user *u)
{
	close(u->waker.fd);
	close(u->epoll);
	free(u);
}

/* With the turn. True: the user is out of the list, and nobody uses it any more. */
static bool user_is_over(struct control_user *u)
{
	struct control *k = u->control;
	struct control_user **at = &k->user;

	if (u->nclient > 0 || u->waker.list.head || (u == k->nobody && !k->over))
		return false;
	if (u == k->nobody) {
		k->nobody = NULL;
		return true;
	}
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	return true;
}

static void *user_main(void *arg)
{
	struct control_user *u = arg;
	struct control *k = u->control;
	bool over = false;

	while (!over) {
		struct epoll_event ev;
		uint64_t n;

		if (epoll_wait(u->epoll, &ev, 1, -1) <= 0)
			continue;
		if (ev.data.ptr != u) {
			if (control_client_read(ev.data.ptr, &u->room))
				continue;
		} else {
			(void)!read(u->waker.fd, &n, sizeof(n));
			waker_serve(&u->waker);
		}
		close_dropped(u);
		over = user_is_over(u);
		control_turn_give(k);
	}
	user_free(u);
	pthread_mutex_lock(&k->lock);
	k->nuser--;
	pthread_cond_signal(&k->user_ended);
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

static int user_thread_start(struct control_user *u)
{
	pthread_attr_t attr;
	pthread_t id;
	int rc = pthread_attr_init(&attr);

	if (rc == 0)
		rc = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (rc == 0)
		rc = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (rc == 0)
		rc = pthread_create(&id, &attr, user_main, u);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		pthread_setname_np(id, "nbar-user");
	return -rc;
}

struct control_user *control_user_new(struct control *k, uint32_t uid)
{
	struct control_user *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->control = k;
	u->uid = uid;
	u->nfd = 2;
	u->waker.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (control_watch_in(u->epoll, u->waker.fd, u) < 0 || user_thread_start(u) < 0) {
		user_free(u);
		return NULL;
	}
	pthread_mutex_lock(&k->lock);
	k->nuser++;
	pthread_mutex_unlock(&k->lock);
	return u;
}

struct control_user *control_user_get(struct control *k, uint32_t uid)
{
	struct control_user *u = k->user;

	while (u && u->uid != uid)
		u = u->next;
	if (u)
		return u;
	u = control_user_new(k, uid);
	if (!u)
		return NULL;
	u->next = k->user;
	k->user = u;
	return u;
}

bool control_users_end(struct control *k)
{
	struct timespec end;
	bool all;

	control_turn_take(k);
	k->over = true;
	/* All others have been woken: their last client has ended. */
	if (k->nobody)
		control_user_wake(k->nobody);
	control_turn_give(k);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += END_MS * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&k->lock);
	while (k->nuser > 0 &&
	       pthread_cond_clockwait(&k->user_ended, &k->lock, CLOCK_MONOTONIC, &end) == 0)
		continue;
	all = k->nuser == 0;
	pthread_mutex_unlock(&k->lock);
	return all;
}
