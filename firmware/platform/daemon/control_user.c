/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_user.c - the users of a daemon: the turn of their threads, and their quota of its file
 * descriptors (--user-percent).
 *
 * The turn goes to the threads in the order in which they ask, so users are served round robin: a
 * user with a thousand clients has no more turns than a user with one. In-process NICs have no
 * users, because all their clients have the same user.
 */
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control_internal.h"

int control_watch_in(int epoll, int fd, void *source)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int control_watch(struct control *k, int fd, void *source)
{
	return control_watch_in(k->epoll, fd, source);
}

void control_turn_take(struct control *k)
{
	uint64_t mine;

	pthread_mutex_lock(&k->lock);
	for (mine = k->turn_next++; mine != k->turn;)
		pthread_cond_wait(&k->turn_changed, &k->lock);
	pthread_mutex_unlock(&k->lock);
}

void control_turn_give(struct control *k)
{
	pthread_mutex_lock(&k->lock);
	k->turn++;
	if (k->turn != k->turn_next)
		pthread_cond_broadcast(&k->turn_changed);
	pthread_mutex_unlock(&k->lock);
}

/* Returns how many descriptors one user may have. The process needs some for itself. */
static uint32_t fds_of_a_user(const struct control *k)
{
	struct rlimit limit;
	uint64_t most;

	if (k->user_percent == 0 || k->user_percent >= 100 ||
	    getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > UINT32_MAX)
		return UINT32_MAX;
	most = limit.rlim_cur > k->fds_own ? limit.rlim_cur - k->fds_own : 0;
	return (uint32_t)(most * k->user_percent / 100);
}

uint32_t control_user_fds_left(const struct control_user *u)
{
	uint32_t most = fds_of_a_user(u->control), n = u->nfd - u->nclosing;

	return n < most && u->nclosing < CONTROL_CLOSING_MAX ? most - n : 0;
}

void control_user_wake(struct control_user *u)
{
	const uint64_t one = 1;

	(void)!write(u->waker.fd, &one, sizeof(one));
}

void control_user_close(struct control_user *u, struct control_client *c)
{
	c->dropped = true;
	c->next = u->closing;
	u->closing = c;
	u->nclosing++;
	control_user_wake(u);
}

void control_user_count(struct control_client *c, uint32_t nfd)
{
	if (!c->user)
		return;
	c->user->nfd += nfd - c->nfd;
	c->nfd = nfd;
}
