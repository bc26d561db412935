/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.c - clients of the control socket: their messages go to the firmware, its replies to them.
 *
 * Called by main.c; one thread. The firmware interprets requests. This file decides only what a NIC
 * cannot know: the identity of a process (from the kernel), and which users may still have the
 * memory of a port mapped. A page is a BAR, which later clients get again. So until this process
 * ends, a port belongs to the first user that opened it.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "log.h"
#include "serve.h"

#define NO_PORT UINT32_MAX

struct client {
	int fd; /* -1: this entry is free */
	uint32_t pid, uid;
	uint32_t port;     /* the port that the client has opened, or NO_PORT */
	uint32_t attached; /* the port of another client that it is attached to, or NO_PORT */
	uint64_t heard_at;
};

struct serve {
	struct nic *nic;
	struct client client[BARED_CLIENTS_MAX];
	uint64_t nheard;
	struct {
		bool open;  /* a client has it open */
		bool bound; /* to uid */
		uint32_t uid;
	} port[BARED_PORTS_MAX];
};

int serve_listen(const struct options *o, struct rundir_socket *out)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0) {
		rc = -errno;
		log_error("control socket of %s: %s", o->set.name, strerror(-rc));
		return rc;
	}
	rc = rundir_bind(o->set.run_dir, o->set.name, fd, out);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	/* Nobody can connect before listen(), so the permissions are right from the start. */
	if ((o->set.group == (gid_t)-1 || chown(out->path, (uid_t)-1, o->set.group) == 0) &&
	    chmod(out->path, o->set.mode) == 0 && daemon_listen(fd) == 0)
		return fd;
	rc = -errno;
	log_error("control socket %s: %s", out->path, strerror(errno));
	close(fd);
	return rc;
}

/* Sends the refusal of a request, or of a client if q is NULL. False: the client is gone, or does
 * not read. */
__attribute__((format(printf, 4, 5))) static bool
refuse(const struct client *c, const struct nbar_request *q, int error, const char *format, ...)
{
	struct nbar_reply r = {
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = q ? q->op : 0,
		.length = sizeof(r),
		.status = -error,
		.seq = q ? q->seq : 0,
	};
	va_list args;

	va_start(args, format);
	vsnprintf(r.text, sizeof(r.text), format, args);
	va_end(args);
	return daemon_send(c->fd, &r, sizeof(r), NULL, 0);
}

static struct bared_call *call_of(struct serve *s, const struct client *c)
{
	struct bared_call *call = &s->nic->control->call;

	call->client = (uint32_t)(c - s->client);
	call->length = 0;
	call->truncated = 0;
	call->pid = c->pid;
	call->uid = c->uid;
	return call;
}

static void disconnect(struct client *c)
{
	/* A forked child may also hold the socket; the client must see the end nevertheless. */
	shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	c->fd = -1;
}

static void client_drop(struct serve *s, struct client *c)
{
	call_of(s, c);
	nic_call(s->nic, BARED_CLIENT_END);
	if (c->port != NO_PORT) {
		s->port[c->port].open = false;
		/* The firmware has detached the clients of this port. */
		for (uint32_t i = 0; i < BARED_CLIENTS_MAX; i++)
			if (s->client[i].attached == c->port)
				s->client[i].attached = NO_PORT;
	}
	disconnect(c);
}

/* Returns a free entry. If no entry is free, drops an idle client: of the clients without a port,
 * the client whose last request is the oldest. NULL: all clients have ports. */
static struct client *client_place(struct serve *s)
{
	struct client *oldest = NULL;

	for (uint32_t i = 0; i < BARED_CLIENTS_MAX; i++) {
		struct client *c = &s->client[i];

		if (c->fd < 0)
			return c;
		if (c->port == NO_PORT && c->attached == NO_PORT &&
		    (!oldest || c->heard_at < oldest->heard_at))
			oldest = c;
	}
	if (oldest)
		client_drop(s, oldest);
	return oldest;
}

static void on_arrival(struct serve *s, int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client fresh = { .fd = fd, .port = NO_PORT, .attached = NO_PORT };
	struct client *c;
	struct ucred who;
	socklen_t size = sizeof(who);

	if (fd < 0) {
		/* Out of descriptors: the client waits, and we do not spin. */
		if (errno == EMFILE || errno == ENFILE)
			nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0) {
		close(fd);
		return;
	}
	fresh.pid = (uint32_t)who.pid;
	fresh.uid = who.uid;
	fresh.heard_at = ++s->nheard;
	c = client_place(s);
	if (!c) {
		refuse(&fresh, NULL, NBAR_EMFILE,
		       "%s has %u connections, which all have ports: end "
		       "a process, or use another NIC",
		       s->nic->options->set.name, BARED_CLIENTS_MAX);
		disconnect(&fresh);
		return;
	}
	*c = fresh;
	call_of(s, c);
	if (nic_call(s->nic, BARED_CLIENT_BEGIN) == 0 && s->nic->control->answer.status < 0) {
		refuse(c, NULL, NBAR_ENOMEM,
		       "the memory of %s is full: close a group or end a "
		       "process that uses it",
		       s->nic->options->set.name);
		disconnect(c);
	}
}

/* True if this user may map the memory of the port: no other user has opened the port before. */
static bool may_map(const struct serve *s, uint32_t port, uint32_t uid)
{
	return !s->port[port].bound || s->port[port].uid == uid;
}

/* Checks a request to open a port, before the firmware gets it. If the request names no port,
 * writes a port into it that this user may have. False: the request is refused, and *alive tells
 * whether the client could get the refusal. */
static bool serve_port_choose(struct serve *s, const struct client *c, struct nbar_request *q,
			      bool *alive)
{
	struct nbar_req_port_open *req = (void *)(q + 1);
	uint32_t nport = s->nic->options->set.nport, others = 0;
	const char *name = s->nic->options->set.name;

	if (c->port != NO_PORT || c->attached != NO_PORT)
		return true; /* the firmware refuses the request with the reason */
	if (req->port != NBAR_PORT_ANY && req->port >= nport) {
		*alive = refuse(c, q, NBAR_ERANGE, "port %u: %s has ports 0 to %u", req->port, name,
				nport - 1);
		return false;
	}
	if (req->port != NBAR_PORT_ANY && !s->port[req->port].open &&
	    !may_map(s, req->port, c->uid)) {
		*alive = refuse(c, q, NBAR_EACCES,
				"port %u of %s was used by uid %u, whose processes may still have "
				"its memory: take another port, or restart nbar-bared",
				req->port, name, s->port[req->port].uid);
		return false;
	}
	if (req->port != NBAR_PORT_ANY)
		return true;
	for (uint32_t i = 0; i < nport; i++) {
		if (s->port[i].open)
			continue;
		if (may_map(s, i, c->uid)) {
			req->port = i;
			return true;
		}
		others++;
	}
	*alive = others == 0
			 ? refuse(c, q, NBAR_ENOSPC,
				  "all %u ports of %s are in use; use another NIC, or end a "
				  "process that has one (see nbar stat)",
				  nport, name)
			 : refuse(c, q, NBAR_ENOSPC,
				  "of the %u ports of %s, %u are in use, and the rest is for other "
				  "users, who may still have the memory; restart nbar-bared, with "
				  "more --ports",
				  nport, name, nport - others);
	return false;
}

/* Passes the current message to the firmware, and the answer to the client. False: drop the
 * client. */
static bool serve_forward(struct serve *s, struct client *c, size_t length, bool truncated)
{
	struct bared_control *k = s->nic->control;
	struct nbar_request *q = (void *)k->in;
	struct nbar_reply *r = (void *)k->out;
	struct bared_call *call = call_of(s, c);
	bool opens = length == sizeof(*q) + sizeof(struct nbar_req_port_open) && !truncated &&
		     q->magic == NBAR_ABI_MAGIC && q->op == NBAR_OP_PORT_OPEN;
	bool alive = true;
	uint32_t page;

	if (opens && !serve_port_choose(s, c, q, &alive))
		return alive;
	call->length = (uint32_t)length;
	call->truncated = truncated;
	if (nic_call(s->nic, BARED_REQUEST) < 0 || k->answer.length < sizeof(*r) ||
	    k->answer.length > NBAR_MESSAGE_MAX)
		return false;
	page = k->answer.page;
	if (page == 0 || page > s->nic->options->set.nport)
		return daemon_send(c->fd, k->out, k->answer.length, NULL, 0);
	page--;
	if (opens) {
		c->port = page;
		s->port[page].open = true;
		s->port[page].bound = true;
		s->port[page].uid = c->uid;
	} else {
		c->attached = page;
	}
	return daemon_send(c->fd, k->out, k->answer.length, &s->nic->page_fd[page], 1);
}

static void on_client(struct serve *s, struct client *c)
{
	struct iovec iov = { .iov_base = s->nic->control->in, .iov_len = NBAR_MESSAGE_MAX };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->heard_at = ++s->nheard;
	if (n <= 0 || !serve_forward(s, c, (size_t)n, msg.msg_flags & MSG_TRUNC))
		client_drop(s, c);
}

int serve_run(struct nic *n, int listen_fd, int stop_fd)
{
	struct serve s = { .nic = n };
	struct pollfd p[3 + BARED_CLIENTS_MAX];

	for (uint32_t i = 0; i < BARED_CLIENTS_MAX; i++)
		s.client[i].fd = -1;
	p[0] = (struct pollfd){ .fd = stop_fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = n->bell, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = listen_fd, .events = POLLIN };
	while (!n->failed && !(p[0].revents & POLLIN)) {
		for (uint32_t i = 0; i < BARED_CLIENTS_MAX; i++)
			p[3 + i] = (struct pollfd){ .fd = s.client[i].fd, .events = POLLIN };
		if (poll(p, 3 + BARED_CLIENTS_MAX, -1) < 0)
			continue;
		if (p[1].revents)
			nic_heard(n);
		for (uint32_t i = 0; i < BARED_CLIENTS_MAX && !n->failed; i++)
			if (p[3 + i].revents && s.client[i].fd == p[3 + i].fd)
				on_client(&s, &s.client[i]);
		if (p[2].revents && !n->failed)
			on_arrival(&s, listen_fd);
	}
	if (!n->failed)
		nic_stop(n);
	for (uint32_t i = 0; i < BARED_CLIENTS_MAX; i++)
		if (s.client[i].fd >= 0)
			disconnect(&s.client[i]);
	return n->failed ? -EIO : 0;
}
