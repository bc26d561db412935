/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_user.c - the users of a daemon: their epoll sets, which give them turns on the control
 * thread, and their file descriptors.
 *
 * Called by the control thread. Each user has an epoll set of its own, and the epoll set of the
 * thread contains these sets: so the kernel serves the users round robin, and then the clients of a
 * user. A user with a thousand clients has no more turns than a user with one. In-process NICs need
 * none of this: all their clients have the same user.
 */
#include <errno.h>
#include <stdlib.h>
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
	uint32_t most = fds_of_a_user(u->control);

	return u->nfd < most ? most - u->nfd : 0;
}

struct control_user *control_user_get(struct control *k, uint32_t uid)
{
	struct control_user *u = k->user;

	while (u && u->uid != uid)
		u = u->next;
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	*u = (struct control_user){ .source = CONTROL_USER, .control = k, .uid = uid, .nfd = 1 };
	u->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (u->epoll < 0 || control_watch(k, u->epoll, u) < 0) {
		if (u->epoll >= 0)
			close(u->epoll);
		free(u);
		return NULL;
	}
	u->next = k->user;
	k->user = u;
	return u;
}

void control_user_put(struct control_user *u)
{
	struct control_user **at = &u->control->user;

	if (u->nclient > 0)
		return;
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	close(u->epoll);
	free(u);
}

void control_user_count(struct control_client *c, uint32_t nfd)
{
	if (!c->user)
		return;
	c->user->nfd += nfd - c->nfd;
	c->nfd = nfd;
}
