/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_client.c - the clients of a NIC: how a client begins, requests and ends, and which client
 * the NIC drops to make room for another.
 *
 * Called by the control thread. No client can delay another: nothing here waits for a client, each
 * client gets one reply at a time, and a client that does not read its replies is disconnected. A
 * client that ends, in any way, loses its port.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_internal.h"
#include "daemon.h"

void control_client_drop(struct control_client *c)
{
	struct control_client **at = &c->at->client;

	nbnic_client_end(&c->client, NBAR_STATUS_HOST_DIED);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->at->nclient--;
	/* If a forked child has the socket open, close() alone would leave it in the set. */
	epoll_ctl(c->user ? c->user->epoll : c->at->control->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	/* If a forked child has the socket open, close() alone would not end the connection. */
	shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	if (c->user) {
		control_user_count(c, 0);
		c->user->nclient--;
		control_user_put(c->user);
	}
	free(c);
}

/* Counts the descriptors of a client: its socket, the page of its port, its pollers' sockets. */
static void count_fds(struct control_client *c)
{
	const struct nbnic_port *p = c->client.port;

	control_user_count(c, p ? 2 + c->at->nic->nevents[p->number] : 1);
}

static bool is_kick(const struct nbar_request *q, size_t length)
{
	return length == sizeof(*q) && q->length == length && q->op == NBAR_OP_KICK &&
	       q->magic == NBAR_ABI_MAGIC && q->version == NBAR_ABI_VERSION;
}

void control_client_read(struct control_client *c)
{
	struct control *k = c->at->control;
	struct iovec iov = { .iov_base = k->in.byte, .iov_len = sizeof(k->in) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT);
	int fd = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		control_client_drop(c);
		return;
	}
	c->heard_at = ++k->nheard;
	/* Whatever it says: a host whose kick finds no room in the socket has said something
	 * before. */
	mailbox_ring(&k->nicd->mailbox);
	if (is_kick(&k->in.head, (size_t)n))
		return;
	if (c->user)
		c->at->nic->fds_left = control_user_fds_left(c->user);
	nbnic_client_request(&c->client, k->in.byte, (size_t)n, msg.msg_flags & MSG_TRUNC,
			     k->out.byte);
	count_fds(c);
	if (c->client.gives_page)
		fd = c->at->nic->page_fd[c->client.page_port];
	else if (c->client.gives_events)
		fd = c->at->nic->events_fd;
	bool sent = daemon_send(c->fd, k->out.byte, k->out.head.length, fd);

	if (c->client.gives_events)
		close(fd);
	if (!sent)
		control_client_drop(c);
}

void control_user_serve(struct control_user *u)
{
	struct epoll_event ev;

	if (epoll_wait(u->epoll, &ev, 1, 0) > 0)
		control_client_read(ev.data.ptr);
}

/* Returns the idle client of a user at a NIC: the client that neither has a port nor is attached to
 * one, and whose last request is the oldest. NULL: there is none. At an in-process NIC u is NULL,
 * and the clients of its own process do not count. */
static struct control_client *idle_at_nic(const struct control_nic *at,
					  const struct control_user *u)
{
	struct control_client *oldest = NULL;

	for (struct control_client *c = at->client; c; c = c->next)
		if (!c->client.port && !c->client.owner && c->user == u && (u || c->by_socket_id) &&
		    (!oldest || c->heard_at < oldest->heard_at))
			oldest = c;
	return oldest;
}

/* Returns the idle client of a user at this NIC, or at all NICs if `at` is NULL. */
static struct control_client *idle_of(const struct control *k, const struct control_nic *at,
				      const struct control_user *u)
{
	struct control_client *oldest = NULL;

	if (at)
		return idle_at_nic(at, u);
	for (uint32_t i = 0; i < k->nnic; i++) {
		struct control_client *c = idle_at_nic(&k->nic[i], u);

		if (c && (!oldest || c->heard_at < oldest->heard_at))
			oldest = c;
	}
	return oldest;
}

bool control_user_drop_idle(const struct control_user *u)
{
	struct control_client *c = idle_of(u->control, NULL, u);

	if (c)
		control_client_drop(c);
	return c != NULL;
}

bool control_drop_idle(const struct control *k, const struct control_nic *at)
{
	struct control_client *victim = k->in_process ? idle_of(k, at, NULL) : NULL;

	for (const struct control_user *u = k->user; u; u = u->next) {
		struct control_client *c = NULL;

		if (!victim || u->nfd > victim->user->nfd)
			c = idle_of(k, at, u);
		if (c)
			victim = c;
	}
	if (victim)
		control_client_drop(victim);
	return victim != NULL;
}

/* Drops an idle client if the NIC has CONTROL_CLIENTS_MAX clients. Then some client is idle,
 * because this limit is above the number of clients that can own a port or be attached to one. */
void control_make_room(struct control_nic *at)
{
	if (at->nclient >= CONTROL_CLIENTS_MAX)
		control_drop_idle(at->control, at);
}

void control_client_add(struct control_client *c, uint32_t pid, uint32_t uid)
{
	nbnic_client_begin(&c->at->nic->device, &c->client, pid, uid, c->by_socket_id);
	c->source = CONTROL_CLIENT;
	c->heard_at = ++c->at->control->nheard;
	c->next = c->at->client;
	c->at->client = c;
	c->at->nclient++;
	if (c->user)
		c->user->nclient++;
	control_user_count(c, 1);
}
