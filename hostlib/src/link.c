/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - the control socket: find it, connect, one request and one reply at a time.
 *
 * Called by the slow path (open, connect, close, statistics), and by waiters that look whether the
 * daemon is still there. Believes a reply only as far as its lengths are right.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "internal.h"
#include "order.h"

#define ANSWER_S 30 /* a daemon that does not answer for so long is given up */
#define END_S 1     /* and one that does not see us off */

static const char *variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

/* The rule of the run directory; the daemon follows the same. */
static int run_dir(char *out, size_t size)
{
	const char *dir = variable("NBAR_RUN_DIR");
	const char *session = variable("XDG_RUNTIME_DIR");

	if (dir)
		return snprintf(out, size, "%s", dir);
	if (geteuid() == 0)
		return snprintf(out, size, "/run/nbar");
	if (session)
		return snprintf(out, size, "%s/nbar", session);
	return snprintf(out, size, "/tmp/nbar-%u", (unsigned)geteuid());
}

static int parse_port(const char *name, const char *text, uint32_t *out)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end)
		return nblib_fail(-EINVAL,
				  "\"%s\": after the colon comes the number of a port, as in n0:3",
				  name);
	if (port >= NBAR_PORTS_MAX)
		return nblib_fail(-EINVAL, "\"%s\": a NIC has ports 0 to %u", name,
				  NBAR_PORTS_MAX - 1);
	*out = (uint32_t)port;
	return 0;
}

/* From "n0", "n0:3" or a path: name and path of the socket, and the port. */
static int parse_name(struct nblib_link *l, const char *name, uint32_t *port)
{
	size_t length = strcspn(name, ":");
	char dir[sizeof(l->path)];
	int n;

	*port = NBAR_PORT_ANY;
	if (strchr(name, '/')) {
		const char *file = strrchr(name, '/') + 1;

		snprintf(l->nic, sizeof(l->nic), "%.*s", (int)strcspn(file, "."), file);
		n = snprintf(l->path, sizeof(l->path), "%s", name);
	} else {
		if (length == 0 || length >= sizeof(l->nic))
			return nblib_fail(-EINVAL,
					  "\"%s\" is no name of a NIC: it has 1 to %zu characters, "
					  "as in n0",
					  name, sizeof(l->nic) - 1);
		if (name[length] && parse_port(name, name + length + 1, port) < 0)
			return -EINVAL;
		snprintf(l->nic, sizeof(l->nic), "%.*s", (int)length, name);
		n = run_dir(dir, sizeof(dir));
		if (n >= 0 && (size_t)n < sizeof(dir))
			n = snprintf(l->path, sizeof(l->path), "%s/%s.sock", dir, l->nic);
	}
	if (n < 0 || (size_t)n >= sizeof(l->path))
		return nblib_fail(-EINVAL,
				  "the path of NIC %s's control socket is too long (%zu bytes at "
				  "most): choose a shorter run directory",
				  l->nic, sizeof(l->path) - 1);
	return 0;
}

static int connect_failed(const struct nblib_link *l, int err)
{
	if (err == ENOENT || err == ENOTDIR)
		return nblib_fail(-ENOENT,
				  "no NIC %s at %s: start one with `nbar-nicd --nic "
				  "name=%s`, or set NBAR_RUN_DIR to its run directory",
				  l->nic, l->path, l->nic);
	if (err == ECONNREFUSED)
		return nblib_fail(-err,
				  "NIC %s: nobody listens at %s, its daemon has ended: start it "
				  "again with `nbar-nicd --nic name=%s`",
				  l->nic, l->path, l->nic);
	if (err == EACCES || err == EPERM)
		return nblib_fail(
			-EACCES,
			"NIC %s: no permission for %s: ask its owner for access, or start "
			"a daemon of your own",
			l->nic, l->path);
	if (err == EPROTOTYPE || err == EAGAIN)
		return nblib_fail(err == EAGAIN ? -ECONNREFUSED : -EPROTO, "NIC %s: %s at %s",
				  l->nic,
				  err == EAGAIN ? "its daemon does not accept anybody"
						: "what listens is no NIC of nbar",
				  l->path);
	return nblib_fail(-err, "NIC %s: cannot connect to %s: %s", l->nic, l->path, strerror(err));
}

/* Anybody can be first to make a directory in /tmp: whoever listens in the one that this user's
 * daemon would have must be this user, or root. */
static int check_owner(const struct nblib_link *l)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	char dir[32];
	int n = snprintf(dir, sizeof(dir), "/tmp/nbar-%u/", (unsigned)geteuid());

	if (strncmp(l->path, dir, (size_t)n) != 0)
		return 0;
	if (getsockopt(l->sock, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return nblib_fail(-errno, "NIC %s: cannot tell who listens at %s: %s", l->nic,
				  l->path, strerror(errno));
	if (who.uid == 0 || who.uid == geteuid())
		return 0;
	return nblib_fail(-EACCES,
			  "NIC %s: %s belongs to uid %u, not to uid %u who runs this: start a "
			  "daemon of your own in another directory, and set NBAR_RUN_DIR to it",
			  l->nic, l->path, (unsigned)who.uid, (unsigned)geteuid());
}

void nblib_link_limit(const struct nblib_link *l)
{
	const struct timeval limit = { .tv_sec = ANSWER_S };

	setsockopt(l->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(l->sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

int nblib_link_reach(struct nblib_link *l, const struct sockaddr_un *to, size_t size)
{
	l->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (l->sock < 0)
		return errno;
	nblib_link_limit(l); /* of connect, too: whoever is there may not accept */
	while (connect(l->sock, (const struct sockaddr *)to, (socklen_t)size) < 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

static int connect_daemon(struct nblib_link *l)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err;

	memcpy(addr.sun_path, l->path, sizeof(l->path));
	err = nblib_link_reach(l, &addr, sizeof(addr));
	return err ? connect_failed(l, err) : check_owner(l);
}

int nblib_link_open(struct nblib_link *l, const char *name, uint32_t door, uint32_t *port)
{
	int err;

	*l = (struct nblib_link){ .sock = -1 };
	if (!name)
		name = variable("NBAR_NIC");
	if (name && strncmp(name, NBLIB_HOST_PREFIX, sizeof(NBLIB_HOST_PREFIX) - 1) == 0) {
		*port = NBAR_PORT_ANY;
		snprintf(l->nic, sizeof(l->nic), "%.31s", name);
		snprintf(l->path, sizeof(l->path), "%.100s", name);
		err = nblib_host_connect(l, name, door);
	} else {
		err = parse_name(l, name ? name : "n0", port);
		if (err == 0)
			err = connect_daemon(l);
	}
	if (err < 0)
		nblib_link_close(l);
	return err;
}

void nblib_link_close(struct nblib_link *l)
{
	if (l->sock >= 0)
		close(l->sock);
	l->sock = -1;
	nblib_host_close(l);
}

void nblib_link_end(struct nblib_link *l)
{
	const struct timeval limit = { .tv_sec = END_S };
	char byte[64];
	ssize_t n = 1;

	if (order_down_read(&l->down) == NBLIB_UP && shutdown(l->sock, SHUT_WR) == 0) {
		setsockopt(l->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		while (n > 0 || (n < 0 && errno == EINTR))
			n = recv(l->sock, byte, sizeof(byte), 0);
	}
	nblib_link_close(l);
}

const char *nblib_link_server(const struct nblib_link *l)
{
	return l->hosted ? "program" : "daemon";
}

int nblib_link_lost(const struct nblib_link *l)
{
	if (order_down_read(&l->down) == NBLIB_FORKED)
		return nblib_fail(-ENETDOWN,
				  "NIC %s: this port was opened before a fork and stays with the "
				  "parent: open one in the child",
				  l->nic);
	if (l->host)
		return nblib_fail(-ENETDOWN,
				  "NIC %s in this process does not answer, or has ended: does its "
				  "thread get a processor? Open ports and groups anew",
				  l->nic);
	if (l->hosted)
		return nblib_fail(-ENETDOWN,
				  "NIC %s is gone: the process that shared it has ended, or does "
				  "not answer: open ports and groups anew",
				  l->nic);
	return nblib_fail(
		-ENETDOWN,
		"NIC %s is gone: its daemon at %s ended or does not answer: start it again, "
		"then open ports and groups anew",
		l->nic, l->path);
}

bool nblib_link_look(struct nblib_link *l)
{
	char byte;

	if (order_down_read(&l->down) != NBLIB_UP)
		return true;
	/* Peeking, because a reply may lie there for a thread that opens or closes a group. */
	ssize_t n = recv(l->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
		return false;
	order_down_write(&l->down, NBLIB_GONE);
	return true;
}

static int lost(struct nblib_link *l)
{
	if (order_down_read(&l->down) == NBLIB_UP) {
		/* A reply that came late would be taken for that of the next request. */
		shutdown(l->sock, SHUT_RDWR);
		order_down_write(&l->down, NBLIB_GONE);
	}
	return nblib_link_lost(l);
}

/* Keeps the first descriptor that came along and closes all others. */
static void take_descriptors(struct msghdr *msg, int *out)
{
	if (out)
		*out = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (out && *out < 0)
				*out = fd;
			else
				close(fd);
		}
	}
}

/* What came back, n bytes of it, is a reply to this call. */
static int check_reply(const struct nblib_link *l, struct nblib_call *call,
		       struct nbar_reply *reply, size_t n)
{
	size_t fixed = sizeof(*reply) + call->fixed.iov_len;

	if (n < offsetof(struct nbar_reply, text) || reply->magic != NBAR_ABI_MAGIC)
		return nblib_fail(-EPROTO, "NIC %s: what answers at %s is no NIC of nbar", l->nic,
				  l->path);
	if (reply->version != NBAR_ABI_VERSION)
		return nblib_fail(
			-EPROTO,
			"NIC %s speaks version %u of the host interface, this program %u: "
			"install the same nbar for both, and start the %s again",
			l->nic, reply->version, NBAR_ABI_VERSION, nblib_link_server(l));
	/* Op 0: from a daemon that has not even read the request. */
	if (n >= sizeof(*reply) && reply->length == n &&
	    (reply->op == (uint16_t)call->op || reply->op == 0) && reply->status < 0) {
		reply->text[sizeof(reply->text) - 1] = 0;
		return nblib_fail(nblib_errno(reply->status), "NIC %s: %s", l->nic, reply->text);
	}
	if (n < fixed || n > fixed + call->rest.iov_len || reply->length != n ||
	    reply->op != (uint16_t)call->op || reply->status != 0)
		return nblib_fail(-EPROTO,
				  "NIC %s: its reply to request %d makes no sense (%zu bytes): "
				  "install the same nbar for both, and start the %s again",
				  l->nic, (int)call->op, n, nblib_link_server(l));
	call->nrest = n - fixed;
	return 0;
}

static int send_request(struct nblib_link *l, struct nblib_call *call)
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
	do
		n = sendmsg(l->sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* A daemon that hung up before may have said why: its reply is still there to read. */
	return n < 0 && errno != EPIPE && errno != ECONNRESET ? lost(l) : 0;
}

/* Receives the reply. If the daemon hung up with a request unread, that comes first, as an error,
 * and then what it had said. */
static ssize_t receive_reply(struct nblib_link *l, struct msghdr *msg)
{
	bool reset = false;

	for (;;) {
		ssize_t n = recvmsg(l->sock, msg, MSG_CMSG_CLOEXEC);

		if (n >= 0 || (errno != EINTR && (errno != ECONNRESET || reset)))
			return n;
		reset |= errno == ECONNRESET;
	}
}

int nblib_link_call(struct nblib_link *l, struct nblib_call *call)
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
	ssize_t n;
	int err;

	call->nrest = 0;
	if (order_down_read(&l->down) != NBLIB_UP)
		return nblib_link_lost(l);
	err = send_request(l, call);
	if (err < 0)
		return err;
	n = receive_reply(l, &msg);
	if (n <= 0)
		return lost(l);
	take_descriptors(&msg, call->fd);
	/* A reply cut short is told by its own length. */
	err = check_reply(l, call, &reply, (size_t)n);
	if (err < 0 && call->fd && *call->fd >= 0) {
		close(*call->fd);
		*call->fd = -1;
	}
	return err;
}
