/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c - control sockets: who may connect, who is connected, and who has gone.
 *
 * One thread with one epoll set for all NICs. No client can hold up another: nothing here waits
 * for a client, a client has one request answered in turn, and who does not read its replies is
 * dropped. A client that goes away, however it ends, loses its port.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "log.h"

#define RECLAIM_MS 1000 /* while closed groups linger: how often their memory is looked for */

struct call {
	struct nicd *nicd;
	mailbox_fn *fn;
	void *arg;
	struct nicd_released *released;
};

/* Polling thread. */
static void run_call(void *arg, uint64_t now)
{
	struct call *c = arg;

	if (c->fn)
		c->fn(c->arg, now);
	c->released = nicd_take_released(c->nicd);
}

void control_call(struct control *k, mailbox_fn *fn, void *arg)
{
	struct call c = { .nicd = k->nicd, .fn = fn, .arg = arg };

	mailbox_call(&k->nicd->mailbox, run_call, &c);
	k->nblock -= nicd_free_released(c.released, !k->stopped);
}

static int watch(struct control *k, int fd, void *source)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(k->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static void client_drop(struct control_client *c)
{
	struct control_client **at = &c->at->client;

	if (c->port)
		request_port_close(c, NBAR_STATUS_HOST_DIED);
	if (c->owner)
		request_detach(c);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->at->nclient--;
	/* close() alone leaves it in the set while a child of a fork holds it too. */
	epoll_ctl(c->at->control->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	free(c);
}

/* Sends the reply at hand. False: the client is gone, or does not read what it is sent. */
static bool client_send(struct control_client *c)
{
	struct control *k = c->at->control;
	struct iovec iov = { .iov_base = k->out.byte, .iov_len = k->out.head.length };
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(sizeof(int))];
	} rights = { .byte = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (k->out_fd >= 0) {
		msg.msg_control = rights.byte;
		msg.msg_controllen = sizeof(rights.byte);
		struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &k->out_fd, sizeof(int));
	}
	return sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void on_client(struct control_client *c)
{
	struct control *k = c->at->control;
	struct iovec iov = { .iov_base = k->in.byte, .iov_len = sizeof(k->in) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_drop(c);
		return;
	}
	c->heard_at = ++k->nheard;
	request_answer(c, (size_t)n, msg.msg_flags & MSG_TRUNC);
	if (!client_send(c))
		client_drop(c);
}

/* Somebody who connects and then does nothing must not keep others out: the client without a port
 * that has been quiet longest makes room. There is one, as a port has one owner, and those who are
 * attached are counted. */
static void make_room(struct control_nic *at)
{
	struct control_client *oldest = NULL;

	if (at->nclient < CONTROL_CLIENTS_MAX)
		return;
	for (struct control_client *c = at->client; c; c = c->next)
		if (!c->port && !c->owner && (!oldest || c->heard_at < oldest->heard_at))
			oldest = c;
	client_drop(oldest);
}

/* Out of descriptors: says so to the one at the door, with the descriptor kept for that. */
static void turn_away(struct control_nic *at)
{
	struct control *k = at->control;
	struct control_client c = { .at = at };

	close(k->spare_fd);
	c.fd = accept4(at->fd, NULL, NULL, SOCK_CLOEXEC);
	if (c.fd < 0) {
		/* The system has none either. He stays at the door: no reason to spin here. */
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	} else {
		k->out_fd = -1;
		k->out.head = (struct nbar_reply){
			.magic = NBAR_ABI_MAGIC,
			.version = NBAR_ABI_VERSION,
			.length = sizeof(k->out.head),
		};
		request_fail(k, -EMFILE,
			     "the daemon of %s has no file descriptors left; "
			     "restart it with a higher limit (ulimit -n)",
			     at->nic->name);
		client_send(&c);
		close(c.fd);
	}
	k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_listener(struct control_nic *at)
{
	struct control *k = at->control;
	struct control_client *c;
	struct ucred who;
	socklen_t size = sizeof(who);
	int fd;

	make_room(at);
	fd = accept4(at->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(at);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || watch(k, fd, c) < 0) {
		free(c);
		close(fd);
		return;
	}
	*c = (struct control_client){
		.source = CONTROL_CLIENT,
		.fd = fd,
		.at = at,
		.next = at->client,
		.pid = (uint32_t)who.pid,
		.uid = who.uid,
		.heard_at = ++k->nheard,
	};
	at->client = c;
	at->nclient++;
}

static void on_wire(struct control_wire *at)
{
	at->wire->ops->serve(at->wire);
}

/* Polling thread. */
static void run_stop(void *arg, uint64_t now)
{
	nicd_stop(arg, now);
}

static void listeners_close(struct control *k)
{
	for (uint32_t i = 0; i < k->nnic; i++) {
		if (k->nic[i].fd < 0)
			continue;
		unlink(k->nic[i].path);
		close(k->nic[i].fd);
		k->nic[i].fd = -1;
	}
}

static void *control_main(void *arg)
{
	struct control *k = arg;

	for (;;) {
		struct epoll_event ev;
		/* One at a time: what one event ends cannot be in the hands of the next one. */
		int n = epoll_wait(k->epoll, &ev, 1, k->nblock > k->ngroup ? RECLAIM_MS : -1);

		if (n == 0)
			control_call(k, NULL, NULL);
		if (n <= 0)
			continue;
		switch (*(enum control_source *)ev.data.ptr) {
		case CONTROL_STOP:
			listeners_close(k);
			k->stopped =
				true; /* the polling thread may end before it has another call */
			control_call(k, run_stop, k->nicd);
			return NULL;
		case CONTROL_LISTENER:
			on_listener(ev.data.ptr);
			break;
		case CONTROL_CLIENT:
			on_client(ev.data.ptr);
			break;
		case CONTROL_WIRE:
			on_wire(ev.data.ptr);
			break;
		}
	}
}

static int listener_open(struct control *k, struct control_nic *at,
			 const struct control_config *config)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int n = snprintf(at->path, sizeof(at->path), "%s/%s.sock", config->run_dir, at->nic->name);

	if (n < 0 || (size_t)n >= sizeof(at->path)) {
		log_error("run directory %s is too long a name: a socket's path has at most %zu "
			  "bytes; give a shorter one with --run-dir",
			  config->run_dir, sizeof(at->path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(sun.sun_path, at->path, sizeof(sun.sun_path));
	at->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (at->fd < 0)
		goto fail;
	if (bind(at->fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0) {
		int err = errno;

		close(at->fd);
		at->fd = -1; /* what lies there is not ours to remove */
		errno = err;
		goto fail;
	}
	/* Nobody can connect before listen(), so the permissions are right from the start. */
	if ((config->group != (gid_t)-1 && chown(at->path, (uid_t)-1, config->group) < 0) ||
	    chmod(at->path, config->mode) < 0 || listen(at->fd, SOMAXCONN) < 0)
		goto fail;
	if (watch(k, at->fd, at) == 0)
		return 0;
fail:;
	int rc = -errno;

	log_error("control socket %s: %s", at->path, strerror(errno));
	return rc;
}

static int thread_start(struct control *k, const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc == 0 && cpus)
		rc = pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	if (rc == 0)
		rc = pthread_create(&k->thread, &attr, control_main, k);
	pthread_attr_destroy(&attr);
	if (rc)
		log_error("cannot start the control thread: %s", strerror(rc));
	return -rc;
}

static void control_free(struct control *k)
{
	listeners_close(k);
	close(k->epoll);
	close(k->spare_fd);
	free(k);
}

int control_start(struct nicd *d, const struct control_config *config, struct control **out)
{
	struct control *k = calloc(1, sizeof(*k));
	int rc;

	if (!k)
		return -ENOMEM;
	k->source = CONTROL_STOP;
	k->nicd = d;
	k->tune = config->tune;
	k->stop_fd = config->stop_fd;
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	rc = watch(k, k->stop_fd, k);
	if (rc < 0)
		log_error("control sockets: %s", strerror(-rc));
	for (uint32_t i = 0; rc == 0 && i < d->nnic; i++) {
		k->nic[i].source = CONTROL_LISTENER;
		k->nic[i].control = k;
		k->nic[i].nic = d->nic[i];
		k->nic[i].fd = -1;
		k->nic[i].from_wire.source = CONTROL_WIRE;
		k->nic[i].from_wire.wire = d->nic[i]->wire;
		k->nnic++;
		rc = listener_open(k, &k->nic[i], config);
		if (rc == 0 && d->nic[i]->wire->ops->serve)
			rc = watch(k, d->nic[i]->wire->fd, &k->nic[i].from_wire);
	}
	if (rc == 0)
		rc = thread_start(k, config->cpus);
	if (rc < 0) {
		control_free(k);
		return rc;
	}
	*out = k;
	return 0;
}

void control_end(struct control *k)
{
	pthread_join(k->thread, NULL);
	for (uint32_t i = 0; i < k->nnic; i++) {
		while (k->nic[i].client) {
			struct control_client *c = k->nic[i].client;

			k->nic[i].client = c->next;
			if (c->port) {
				page_destroy(c->port);
				free(c->port);
			}
			close(c->fd);
			free(c);
		}
	}
	control_free(k);
}

const char *control_path(const struct control *k, uint32_t i)
{
	return k->nic[i].path;
}
