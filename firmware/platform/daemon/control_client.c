/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_client.c - the clients of a NIC: how a client begins, requests and ends, and which client
 * the NIC drops to make room for another.
 *
 * A client gets one reply at a time; a client that does not read its replies is disconnected. A
 * client that ends, in any way, loses its port.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "daemon.h"

#define FREE_TRIES 5 /* times a request waits 2 ms for descriptors of dropped clients */

/* True if the wire has descriptors for the hosts of a port, beside that of the page. */
static bool port_fds(const struct nicd_nic *nic, uint32_t port, int fd[2])
{
	const struct wire_base *w = nic->device.wire;

	return w->ops->port_fds && w->ops->port_fds(w, port, fd);
}

/* Counts the descriptors of a client: its socket, the page of its port, its pollers' sockets. */
static void count_fds(struct control_client *c)
{
	const struct nbnic_port *p = c->client.port;
	int fd[2];

	if (p)
		control_user_count(c, 2 + wakes_events(c->at->nic->wakes[p->number]) +
					      2 * port_fds(c->at->nic, p->number, fd));
	else
		control_user_count(c, 1);
}

/* A remote host's copy of a page cannot tell its processes that the one with the connection has
 * ended. */
static void drop_attached(const struct control_client *c)
{
	for (const struct control_client *o = c->at->client; o && c->remote; o = o->next)
		if (o->client.owner == &c->client)
			shutdown(o->fd, SHUT_RDWR);
}

void control_client_drop(struct control_client *c)
{
	struct control_client **at = &c->at->client;

	drop_attached(c);
	nbnic_client_end(&c->client, NBAR_STATUS_HOST_DIED);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->at->nclient--;
	if (c->user) {
		control_user_count(c, 1);
		c->user->nclient--;
		control_user_close(c->user, c);
		return;
	}
	/* If a forked child has the socket open, close() alone would leave it in the set. */
	epoll_ctl(c->at->control->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	/* If a forked child has the socket open, close() alone would not end the connection. */
	shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	free(c);
}

/* A client goes to another NIC. */
static void client_move(struct control_client *c, struct control_nic *at)
{
	struct control_client **before;
	uint32_t pid = c->client.pid, uid = c->client.uid;

	if (at == c->at)
		return;
	control_make_room(at);
	nbnic_client_end(&c->client, NBAR_STATUS_CLOSED);
	before = &c->at->client;
	while (*before != c)
		before = &(*before)->next;
	*before = c->next;
	c->at->nclient--;
	c->user->nclient--;
	c->at = at;
	control_client_add(c, pid, uid);
}

void control_client_refuse(struct control_client *c, int status, const char *text)
{
	struct control_user *u = c->user ? c->user : c->at->control->nobody;

	c->refusal = malloc(sizeof(*c->refusal));
	if (c->refusal)
		nbnic_refuse(status, text, c->refusal);
	if (u) {
		u->nfd++;
		control_user_close(u, c);
		return;
	}
	if (c->refusal)
		daemon_send(c->fd, c->refusal, c->refusal->length, NULL, 0);
	close(c->fd);
	free(c->refusal);
	free(c->remote);
	free(c);
}

static bool is_kick(const struct nbar_request *q, size_t length)
{
	return length == sizeof(*q) && q->length == length && q->op == NBAR_OP_KICK &&
	       q->magic == NBAR_ABI_MAGIC && q->version == NBAR_ABI_VERSION;
}

/* True if the reply to this request would carry a descriptor, and the client has not yet read an
 * earlier one: descriptors on their way count for the user of this process, who may have only so
 * many of them. */
static bool owes(struct control_client *c, const struct control_room *room)
{
	int unread = 0;

	if (!c->owes ||
	    (room->in.head.op != NBAR_OP_PORT_OPEN && room->in.head.op != NBAR_OP_PORT_ATTACH &&
	     room->in.head.op != NBAR_OP_GROUP_EVENTS))
		return false;
	c->owes = ioctl(c->fd, SIOCOUTQ, &unread) < 0 || unread > 0;
	return c->owes;
}

/* Whether client c is to be dropped rather than the other, which may be NULL. */
static bool goes_first(const struct control_client *c, const struct control_client *other)
{
	bool proven = control_remote_is_proven(c);

	if (!other || proven != control_remote_is_proven(other))
		return !other || !proven;
	return c->heard_at < other->heard_at;
}

/* Returns the idle client of a user at a NIC: the client that neither has a port nor is attached to
 * one, and whose last request is the oldest. NULL: there is none. At an in-process NIC u is NULL,
 * and the clients of its own process do not count. */
static struct control_client *idle_at_nic(const struct control_nic *at,
					  const struct control_user *u)
{
	struct control_client *oldest = NULL;

	for (struct control_client *c = at->client; c; c = c->next)
		if (!c->client.port && !c->client.owner && !c->busy && c->user == u &&
		    (u || c->by_socket_id) && goes_first(c, oldest))
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

		if (c && goes_first(c, oldest))
			oldest = c;
	}
	return oldest;
}

/* Hosts that have not proven themselves keep no descriptors from those that have. */
static bool unproven_drop(const struct control_user *u)
{
	struct control_client *c = idle_of(u->control, NULL, u);

	if (!c || control_remote_is_proven(c))
		return false;
	control_client_drop(c);
	return true;
}

/* A user, or the whole process, has no descriptor left. If the process has none and a client is
 * idle, waits a little until its user's thread has closed it. Gives the turn meanwhile. */
static bool free_descriptors(struct control_client *c)
{
	struct control *k = c->at->control;

	if (!c->user)
		return false;
	if (control_user_fds_left(c->user) == 0)
		return unproven_drop(c->user);
	if (!control_drop_idle(k, NULL))
		return false;
	control_turn_give(k);
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	control_turn_take(k);
	return !c->dropped && !k->over;
}

/* With the turn. Returns how many descriptors go with the reply, for the caller to close. */
static size_t client_request(struct control_client *c, struct control_room *room, size_t n,
			     bool truncated, int out[DAEMON_FDS_MAX])
{
	struct nicd_nic *nic = c->at->nic;
	int fd[DAEMON_FDS_MAX];
	size_t nfd = 1, i = 0;

	if (c->remote && control_remote_request(c, room)) {
		if (c->goes_to)
			client_move(c, c->goes_to);
		c->goes_to = NULL;
		c->client.gives_page = c->client.gives_events = false;
		return 0;
	}
	if (owes(c, room)) {
		c->client.gives_page = c->client.gives_events = false;
		nbnic_refuse(-NBAR_EINVAL,
			     "an earlier reply with a descriptor is unread on this connection; "
			     "read it before the next such request",
			     room->out.byte);
		room->out.head.seq = room->in.head.seq;
		room->out.head.op = room->in.head.op;
		return 0;
	}
	for (int t = 0;; t++) {
		nic->waker = c->user ? &c->user->waker : NULL;
		nic->fds_left = c->user ? control_user_fds_left(c->user) : UINT32_MAX;
		nbnic_client_request(&c->client, room->in.byte, n, truncated, room->out.byte);
		if (room->out.head.status != -NBAR_EMFILE || t == FREE_TRIES ||
		    !free_descriptors(c))
			break;
	}
	count_fds(c);
	if (c->remote) {
		c->client.gives_page = false;
		return 0;
	}
	if (c->client.gives_events) {
		out[0] = nic->events_fd;
		return 1;
	}
	if (!c->client.gives_page)
		return 0;
	fd[0] = nic->page_fd[c->client.page_port];
	nfd += 2 * port_fds(nic, c->client.page_port, fd + 1);
	/* Copies: without the turn, the owner of the port may close it. */
	while (i < nfd && (out[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 0)) >= 0)
		i++;
	for (; i > 0 && i < nfd; i--)
		close(out[i - 1]);
	return i;
}

/* With the turn. The descriptor of a reply could not be sent: the client has no port. */
static void take_back(struct control_client *c, struct control_room *room)
{
	bool page = c->client.gives_page, attach_only = c->by_socket_id;
	uint32_t pid = c->client.pid, uid = c->client.uid, seq = room->in.head.seq;

	if (page) {
		nbnic_client_end(&c->client, NBAR_STATUS_HOST_DIED);
		nbnic_client_begin(&c->at->nic->device, &c->client, pid, uid, attach_only);
	}
	count_fds(c);
	nbnic_refuse(-NBAR_EMFILE,
		     "the daemon cannot send a descriptor now: too many are open or unread; try "
		     "again, or restart it with a higher limit (ulimit -n)",
		     room->out.byte);
	room->out.head.seq = seq;
	room->out.head.op = room->in.head.op;
}

/* True if the connection is still of use. */
static bool client_answer(struct control_client *c, struct control_room *room, const int *fd,
			  size_t nfd)
{
	bool gives = c->client.gives_page || c->client.gives_events;

	if (gives && nfd && daemon_send(c->fd, room->out.byte, room->out.head.length, fd, nfd)) {
		c->owes = true;
		return true;
	}
	if (gives && nfd && (errno == EAGAIN || errno == EPIPE || errno == ECONNRESET))
		return false;
	if (gives) {
		if (c->user)
			control_turn_take(c->at->control);
		if (!c->at->control->over)
			take_back(c, room);
		if (c->user)
			control_turn_give(c->at->control);
	}
	return daemon_send(c->fd, room->out.byte, room->out.head.length, NULL, 0);
}

bool control_client_read(struct control_client *c, struct control_room *room)
{
	struct control *k = c->at->control;
	struct iovec iov = { .iov_base = room->in.byte, .iov_len = sizeof(room->in) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n =
		c->remote ? control_remote_receive(c, room) : recvmsg(c->fd, &msg, MSG_DONTWAIT);
	bool good = n > 0 && !c->refusal, of_user = c->user, proven = control_remote_is_proven(c);
	int fd[DAEMON_FDS_MAX];
	size_t nfd;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	/* Whatever it says: a host whose kick finds no room in the socket has said something
	 * before. */
	if (n > 0 && proven)
		mailbox_ring(&k->nicd->mailbox);
	if (n > 0 && proven && is_kick(&room->in.head, (size_t)n))
		return true;
	if (c->user)
		control_turn_take(k);
	good &= !c->dropped && !k->over;
	if (good) {
		/* Who has not proven itself does not grow younger. */
		c->heard_at = proven ? ++k->nheard : c->heard_at;
		c->busy = true;
		nfd = client_request(c, room, (size_t)n, msg.msg_flags & MSG_TRUNC, fd);
		c->busy = false;
		if (c->user)
			control_turn_give(k);
		good = client_answer(c, room, fd, nfd) && !control_remote_is_over(c);
		while (nfd > 0)
			close(fd[--nfd]);
		if (good)
			return true;
		if (c->user)
			control_turn_take(k);
	}
	if (!c->dropped && !k->over)
		control_client_drop(c);
	else if (of_user)
		epoll_ctl(c->user->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	if (of_user) /* a client without a user is freed by now */
		control_turn_give(k);
	return false;
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
		bool rich = !victim || u->nfd > victim->user->nfd;
		struct control_client *c = NULL;

		if (rich || u->uid == CONTROL_UID_REMOTE)
			c = idle_of(k, at, u);
		if (c && (rich || !control_remote_is_proven(c)))
			victim = c;
		if (c && !control_remote_is_proven(c))
			break;
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
	if (!c->user)
		return;
	c->user->nclient++;
	control_user_count(c, 1);
}
