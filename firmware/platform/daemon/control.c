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
	bool own;
	struct nicd_released *released;
};

/* Polling thread. */
static void run_call(void *arg, uint64_t now)
{
	struct call *c = arg;

	if (c->fn)
		c->fn(c->arg, now);
	if (c->own)
		nicd_turn(c->nicd, now);
	c->released = nicd_take_released(c->nicd);
}

void control_call(struct control *k, mailbox_fn *fn, void *arg)
{
	struct call c = { .nicd = k->nicd, .fn = fn, .arg = arg, .own = k->own };

	mailbox_call(&k->nicd->mailbox, run_call, &c);
	k->nblock -= nicd_free_released(c.released, !k->stopped);
}

int control_watch(struct control *k, int fd, void *source)
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
	/* Nor would the client hear of it, who waits for that. */
	shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	free(c);
}

/* Sends the reply at hand. False: the client is gone, or does not read what it is sent. */
bool control_client_send(struct control_client *c)
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
	if (!control_client_send(c))
		client_drop(c);
}

/* Somebody who connects and then does nothing must not keep others out: the client without a port
 * that has been quiet longest makes room. There is one, as a port has one owner, and those who are
 * attached are counted. */
void control_make_room(struct control_nic *at)
{
	struct control_client *oldest = NULL;

	if (at->nclient < CONTROL_CLIENTS_MAX)
		return;
	for (struct control_client *c = at->client; c; c = c->next)
		if (!c->port && !c->owner && (!oldest || c->heard_at < oldest->heard_at))
			oldest = c;
	client_drop(oldest);
}

void control_client_add(struct control_client *c)
{
	c->source = CONTROL_CLIENT;
	c->heard_at = ++c->at->control->nheard;
	c->next = c->at->client;
	c->at->client = c;
	c->at->nclient++;
}

static void on_guest(struct control_client *c)
{
	control_client_add(c);
	on_client(c);
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

/* How long nothing but sockets needs this thread. */
static int wait_ms(const struct control *k)
{
	if (k->own)
		return k->nblock > 0 ? CONTROL_TURN_MS : -1;
	return k->nblock > k->ngroup ? RECLAIM_MS : -1;
}

/* Somebody has closed a NIC of this process. */
static bool look_again(const struct control *k)
{
	uint64_t n;

	(void)!read(k->stop_fd, &n, sizeof(n));
	return true;
}

/* False: that was the last. */
static bool on_event(struct control *k, void *from)
{
	switch (*(enum control_source *)from) {
	case CONTROL_STOP:
		if (k->own)
			return look_again(k);
		control_listeners_close(k);
		k->stopped = true; /* the polling thread may end before it has another call */
		control_call(k, run_stop, k->nicd);
		return false;
	case CONTROL_LISTENER:
		control_arrival(from);
		break;
	case CONTROL_GUEST:
		on_guest(from);
		break;
	case CONTROL_CLIENT:
		on_client(from);
		break;
	case CONTROL_WIRE:
		on_wire(from);
		break;
	}
	return true;
}

/* True: the process's own NIC is needed no more. Others that are still at its door do not count. */
static bool is_over(struct control *k)
{
	if (!k->own || k->nblock > 0)
		return false;
	for (const struct control_client *c = k->nic[0].client; c; c = c->next)
		if (!c->by_door)
			return false;
	if (!k->unused(k->arg))
		return false;
	while (k->nic[0].client)
		client_drop(k->nic[0].client);
	return true;
}

static void *control_main(void *arg)
{
	struct control *k = arg;
	bool more = true;

	while (more) {
		struct epoll_event ev;
		/* One at a time: what one event ends cannot be in the hands of the next one. */
		int n = epoll_wait(k->epoll, &ev, 1, wait_ms(k));

		if (n == 0)
			control_call(k, NULL, NULL);
		if (n > 0)
			more = on_event(k, ev.data.ptr);
		if (is_over(k))
			more = false;
	}
	if (k->over)
		k->over(k->arg);
	return NULL;
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

void control_free(struct control *k)
{
	control_listeners_close(k);
	if (k->epoll >= 0)
		close(k->epoll);
	if (k->spare_fd >= 0)
		close(k->spare_fd);
	free(k);
}

void control_forked(const struct control *k)
{
	/* A client is in the list for less long than its descriptor is open. */
	for (const struct control_client *c = k->nic[0].client; c; c = c->next)
		close(c->fd);
	close(k->epoll);
	if (k->spare_fd >= 0)
		close(k->spare_fd);
	if (k->nic[0].fd >= 0)
		close(k->nic[0].fd);
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
	k->own = !config->run_dir;
	k->unused = config->unused;
	k->over = config->over;
	k->arg = config->arg;
	rc = k->epoll < 0 ? -errno : control_watch(k, k->stop_fd, k);
	k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
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
		rc = k->own ? 0 : control_listen(&k->nic[i], config);
		if (k->own)
			control_door(&k->nic[i]);
		if (rc == 0 && d->nic[i]->wire->ops->serve)
			rc = control_watch(k, d->nic[i]->wire->fd, &k->nic[i].from_wire);
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

uint32_t control_door_of(const struct control *k)
{
	return k->nic[0].door;
}
