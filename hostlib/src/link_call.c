/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_call.c - sends a request on the control socket, and checks version and length of the reply.
 *
 * Called by the slow path; a lock admits one thread at a time. Checks the version and the lengths
 * of each reply before it uses the reply. If a request gets no reply in time, only this request
 * fails, and the link remembers the number of the request. When the late reply comes, the link
 * closes the group that the NIC has opened for the request.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"
#include "order.h"

static int lost(struct nblib_link *l)
{
	if (order_down_read(&l->down) == NBLIB_UP) {
		/* Ends the link. A daemon that still runs sees the end, and frees the port. */
		shutdown(l->sock, SHUT_RDWR);
		order_down_write(&l->down, NBLIB_GONE);
	}
	return nblib_link_lost(l);
}

static bool timed_out(void)
{
	return errno == EAGAIN;
}

static int no_answer(const struct nblib_link *l)
{
	return nblib_fail(-ETIME,
			  "NIC %s: its %s has not answered in time: is it stopped, or kept from "
			  "the processor? Try again",
			  l->nic, nblib_link_server(l));
}

/* Keeps the first `most` descriptors of a message and closes all others. */
static void take_descriptors(struct msghdr *msg, int *out, uint32_t most)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < most; i++)
		out[i] = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (n < most)
				out[n++] = fd;
			else
				close(fd);
		}
	}
}

/* Checks that the n received bytes are a reply to this call. */
static int check_reply(const struct nblib_link *l, struct nblib_call *call,
		       struct nbar_reply *reply, size_t n)
{
	size_t fixed = sizeof(*reply) + call->fixed.iov_len;
	bool ours = reply->op == (uint16_t)call->op && reply->seq == call->seq;

	if (n < offsetof(struct nbar_reply, text) || reply->magic != NBAR_ABI_MAGIC)
		return nblib_fail(-EPROTO, "NIC %s: what answers at %s is no NIC of nbar", l->nic,
				  l->path);
	if (reply->version != NBAR_ABI_VERSION)
		return nblib_fail(
			-EPROTO,
			"NIC %s speaks version %u of the host interface, this program %u: "
			"install the same nbar for both, and start the %s again",
			l->nic, reply->version, NBAR_ABI_VERSION, nblib_link_server(l));
	/* Op 0: the reply of a daemon that has not read the request. */
	if (n >= sizeof(*reply) && reply->length == n && (ours || reply->op == 0) &&
	    reply->status < 0) {
		reply->text[sizeof(reply->text) - 1] = 0;
		return nblib_fail(nblib_errno(reply->status), "NIC %s: %s", l->nic, reply->text);
	}
	if (n < fixed || n > fixed + call->rest.iov_len || reply->length != n || !ours ||
	    reply->status != 0)
		return nblib_fail(-EPROTO,
				  "NIC %s: its reply to request %d makes no sense (%zu bytes): "
				  "install the same nbar for both, and start the %s again",
				  l->nic, (int)call->op, n, nblib_link_server(l));
	call->nrest = n - fixed;
	return 0;
}

static int send_request(struct nblib_link *l, struct nblib_call *call, int flags)
{
	struct nbar_request request = {
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = (uint16_t)call->op,
	};
	struct iovec out[] = { { &request, sizeof(request) }, call->body[0], call->body[1] };
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 3 };
	size_t length = sizeof(request) + call->body[0].iov_len + call->body[1].iov_len;
	ssize_t n;

	if (length > NBAR_MESSAGE_MAX)
		return nblib_fail(-EINVAL,
				  "NIC %s: a request of %zu bytes is longer than the %u that a "
				  "message may have",
				  l->nic, length, NBAR_MESSAGE_MAX);
	request.length = (uint32_t)length;
	l->seq += l->seq == UINT32_MAX ? 2 : 1; /* never 0, which means: no number */
	request.seq = call->seq = l->seq;
	do
		n = sendmsg(l->sock, &msg, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0 && timed_out())
		return flags ? nblib_fail(-EAGAIN,
					  "NIC %s: its %s has not read earlier requests yet",
					  l->nic, nblib_link_server(l))
			     : no_answer(l);
	/* Nothing was sent, and the link is unchanged. */
	if (n < 0 && (errno == ENOBUFS || errno == ENOMEM))
		return nblib_fail(-ENOMEM,
				  "NIC %s: the system has no memory for a request: try again",
				  l->nic);
	/* A daemon that has closed the connection may have sent the reason before: read on. */
	return n < 0 && errno != EPIPE && errno != ECONNRESET ? lost(l) : 0;
}

/* True if a call that has failed to receive a message must be repeated. If the daemon closed the
 * connection before it read a request, the socket gives an error first, and then the last message
 * of the daemon. *reset: false before the first call. */
static bool interrupted(bool *reset)
{
	bool again = errno == EINTR || (errno == ECONNRESET && !*reset);

	*reset |= errno == ECONNRESET;
	return again;
}

static ssize_t receive(const struct nblib_link *l, void *message, size_t size, int flags)
{
	bool reset = false;
	ssize_t n;

	do
		n = recv(l->sock, message, size, flags);
	while (n < 0 && interrupted(&reset));
	return n;
}

/* Reads the head of the next reply, and leaves the reply in the socket. */
static ssize_t peek(const struct nblib_link *l, struct nbar_reply *head, int flags)
{
	return receive(l, head, sizeof(*head), MSG_PEEK | flags);
}

/* --- replies that come late ------------------------------------------------------------------ */

static int give_up(struct nblib_link *l, struct nblib_call *call)
{
	struct nblib_late *late = &l->late[l->nlate++];

	*late = (struct nblib_late){ .seq = call->seq, .op = call->op };
	if (call->op == NBAR_OP_GROUP_ATTACH)
		late->cell = ((const struct nbar_req_group_attach *)call->body[0].iov_base)->cell;
	call->unanswered = true;
	return no_answer(l);
}

/* Returns the request that this late reply belongs to; or NULL. */
static struct nblib_late *find_late(struct nblib_link *l, const struct nbar_reply *head, ssize_t n)
{
	for (uint32_t i = 0; n == sizeof(*head) && i < l->nlate; i++)
		if (l->late[i].seq == head->seq && l->late[i].op == (enum nbar_op)head->op)
			return &l->late[i];
	return NULL;
}

/* Takes a late reply. Closes the group that the NIC has opened or attached to; the reply to this
 * close is again a late reply. */
static void take_late(struct nblib_link *l, struct nblib_late *late)
{
	struct {
		struct nbar_reply head;
		struct nbar_rep_group_open opened;
	} reply;
	struct nbar_req_group_close request = { .cell = late->cell };
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_CLOSE,
		.body = { { &request, sizeof(request) } },
	};
	enum nbar_op op = late->op;
	ssize_t n;

	n = receive(l, &reply, sizeof(reply), 0); /* also closes the descriptors of the reply */
	*late = l->late[--l->nlate];
	if (n < 0) {
		lost(l);
		return;
	}
	if (reply.head.status != 0)
		return;
	if (op == NBAR_OP_GROUP_OPEN && n == sizeof(reply))
		request.cell = reply.opened.cell;
	else if (op != NBAR_OP_GROUP_ATTACH)
		return;
	if (send_request(l, &call, 0) == 0)
		l->late[l->nlate++] = (struct nblib_late){ .seq = call.seq, .op = call.op };
	else
		lost(l);
}

/* Takes all late replies in the socket. An error: the link is lost. */
static int take_all_late(struct nblib_link *l)
{
	struct nblib_late *late;
	struct nbar_reply head;

	while (l->nlate > 0) {
		late = find_late(l, &head, peek(l, &head, MSG_DONTWAIT));
		if (!late)
			break;
		take_late(l, late);
	}
	if (order_down_read(&l->down) != NBLIB_UP)
		return nblib_link_lost(l);
	if (l->nlate == 0)
		l->overdue = false;
	return 0;
}

/* Makes room for one more request whose reply comes later. If the list is full, and no reply has
 * come: waits for a reply, or returns -EAGAIN. */
static int late_room(struct nblib_link *l, bool wait)
{
	int err;

	while ((err = take_all_late(l)) == 0 && l->nlate == NBLIB_LATE_MAX) {
		struct nblib_late *late;
		struct nbar_reply head;
		ssize_t n;

		if (!wait)
			return nblib_fail(-EAGAIN, "NIC %s: %u requests have no reply yet", l->nic,
					  NBLIB_LATE_MAX);
		if (l->overdue)
			return no_answer(l);
		n = peek(l, &head, 0);
		if (n < 0 && timed_out()) {
			l->overdue = true;
			return no_answer(l);
		}
		late = find_late(l, &head, n);
		if (!late)
			return lost(l);
		take_late(l, late);
	}
	return err;
}

/* Waits until the next message is the reply to this call. Each earlier message must be the late
 * reply to a request in l->late. */
static int await_reply(struct nblib_link *l, struct nblib_call *call)
{
	struct nbar_reply head = { .magic = 0 };
	struct nblib_late *late;

	for (;;) {
		ssize_t n = peek(l, &head, 0);

		if (n < 0 && timed_out()) {
			l->overdue = true;
			return give_up(l, call);
		}
		if (n <= 0)
			return lost(l);
		late = find_late(l, &head, n);
		if (!late)
			return 0;
		take_late(l, late);
	}
}

/* The error: the NIC sent a descriptor, but this process has no room for another one. */
static int no_descriptor(const struct nblib_link *l)
{
	return nblib_fail(-EMFILE,
			  "NIC %s: this process has no file descriptor left: close some, or raise "
			  "its limit (ulimit -n)",
			  l->nic);
}

static int call_locked(struct nblib_link *l, struct nblib_call *call)
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct nbar_reply reply = { .magic = 0 };
	struct iovec in[] = { { &reply, sizeof(reply) }, call->fixed, call->rest };
	struct msghdr msg = {
		.msg_iov = in,
		.msg_iovlen = 3,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const uint32_t nfd = !call->fd ? 0 : call->nfd ? call->nfd : 1;
	bool reset = false;
	ssize_t n;
	int err;

	/* A link that is down needs no late replies: their groups have ended with it. */
	if (order_down_read(&l->down) != NBLIB_UP)
		return nblib_link_lost(l);
	err = late_room(l, true);
	if (err == 0)
		err = send_request(l, call, 0);
	if (err && call->op == NBAR_OP_GROUP_CLOSE)
		return lost(l);
	/* A program that closes many groups of a slow NIC does not wait for each reply. */
	if (err == 0)
		err = call->op == NBAR_OP_GROUP_CLOSE && l->overdue ? give_up(l, call)
								    : await_reply(l, call);
	if (err)
		return err;
	while ((n = recvmsg(l->sock, &msg, MSG_CMSG_CLOEXEC)) < 0)
		if (!interrupted(&reset))
			return lost(l);
	take_descriptors(&msg, call->fd, nfd);
	/* The length in the head shows whether the reply is complete. */
	if (nfd && call->fd[nfd - 1] < 0 && (msg.msg_flags & MSG_CTRUNC))
		err = no_descriptor(l);
	else
		err = check_reply(l, call, &reply, (size_t)n);
	for (uint32_t i = 0; err && i < nfd && call->fd[i] >= 0; i++) {
		close(call->fd[i]);
		call->fd[i] = -1;
	}
	return err;
}

int nblib_link_call(struct nblib_link *l, struct nblib_call *call)
{
	int err;

	/* A child of fork() may have inherited a locked lock. */
	if (order_down_read(&l->down) == NBLIB_FORKED)
		return nblib_link_lost(l);
	pthread_mutex_lock(&l->lock);
	if (call->patience_ms)
		nblib_link_limit(l, call->patience_ms);
	err = call_locked(l, call);
	if (call->patience_ms)
		nblib_link_limit(l, 0);
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* --- requests without a waiting thread ------------------------------------------------------- */

static int start_locked(struct nblib_link *l, struct nblib_call *call)
{
	int err = late_room(l, false);

	if (err == 0)
		err = send_request(l, call, MSG_DONTWAIT);
	if (err)
		return err;
	l->late[l->nlate++] = (struct nblib_late){ .seq = call->seq, .op = call->op };
	return 0;
}

int nblib_link_start(struct nblib_link *l, struct nblib_call *call)
{
	int err;

	if (order_down_read(&l->down) != NBLIB_UP)
		return nblib_link_lost(l);
	pthread_mutex_lock(&l->lock);
	err = start_locked(l, call);
	pthread_mutex_unlock(&l->lock);
	return err;
}
