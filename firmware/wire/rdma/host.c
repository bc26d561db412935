/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.c - the side of a remote host: a thread that carries control messages between a socket pair
 * and TCP, wakes the threads whose barriers have completed, and pushes for other processes.
 *
 * libnbar has the other end of the pair. It reads whole messages there, and the end of the
 * connection, as from a NIC of its own machine. The thread ends the connection if TCP or the RDMA
 * connection fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdma.h"
#include "verbs/route.h"

/* A message on its way: `have` bytes are here, `done` of them have gone on. */
struct message {
	uint32_t have, done;
	union {
		struct nbar_request head; /* length is at the same place in a reply */
		uint8_t byte[NBAR_MESSAGE_MAX];
	};
};
_Static_assert(offsetof(struct nbar_request, length) == offsetof(struct nbar_reply, length),
	       "one head");

#define ASKS_A_TURN 64u
#define ASK_AGAIN_MS 1 /* while the device has no room, or pushes have not arrived */

struct rdma_host {
	pthread_t thread;
	bool runs;
	int tcp, pair, bell;
	void (*wake)(void *arg, uint32_t cell);
	pthread_mutex_t lock; /* of link, page and asks */
	struct nbar_rdma_link *link;
	struct nbar_page *page;
	int asks;
	bool has_ask; /* ask is to be done */
	struct nbar_rdma_ask ask;
	uint64_t mark; /* of an ask of no bytes */
	bool over;     /* the thread must end */
	bool finished; /* libnbar sends no more messages */
	bool lost;
	struct message out, in; /* to the NIC; from the NIC */
};

/* Bytes of the message that begins here; 0: it has no such length. */
static uint32_t length_of(const struct message *m)
{
	uint32_t n = m->have < sizeof(m->head) ? sizeof(m->head) : m->head.length;

	return n >= sizeof(m->head) && n <= NBAR_MESSAGE_MAX ? n : 0;
}

static bool is_whole(const struct message *m)
{
	return m->have >= sizeof(m->head) && m->have == length_of(m);
}

static bool again(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* TCP to pair. False: the connection has ended. */
static bool carry_in(struct rdma_host *h)
{
	struct message *m = &h->in;
	ssize_t n;

	while (!is_whole(m)) {
		uint32_t length = length_of(m);

		n = length ? recv(h->tcp, m->byte + m->have, length - m->have, MSG_DONTWAIT) : 0;
		if (again(n))
			return true;
		if (n <= 0)
			return false;
		m->have += (uint32_t)n;
	}
	n = send(h->pair, m->byte, m->have, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!again(n))
		m->have = 0;
	return true;
}

/* Pair to TCP. False: the connection has ended. */
static bool carry_out(struct rdma_host *h)
{
	struct message *m = &h->out;
	ssize_t n;

	if (m->have == 0) {
		n = recv(h->pair, m->byte, sizeof(m->byte), MSG_DONTWAIT);
		if (again(n))
			return true;
		if (n <= 0) {
			h->finished = true;
			return shutdown(h->tcp, SHUT_WR) == 0;
		}
		m->have = (uint32_t)n;
		m->done = 0;
	}
	n = send(h->tcp, m->byte + m->done, m->have - m->done, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		m->done += (uint32_t)n;
	if (m->done == m->have)
		m->have = 0;
	return n > 0 || again(n);
}

static void host_on_heard(void *arg, uint32_t cell, void *more)
{
	struct rdma_host *h = more;

	if (cell == NBAR_RDMA_NO_CELL)
		h->lost = true;
	else
		h->wake(arg, cell);
}

/* Another process of the host wrote it, of the same user. */
static bool is_good(const struct nbar_rdma_ask *a)
{
	const uint32_t n = a->has_word ? sizeof(a->word) : a->n;

	return a->at <= sizeof(struct nbar_page) && n <= sizeof(struct nbar_page) - a->at &&
	       (a->cell == NBAR_RDMA_NO_CELL || a->cell < NBAR_GROUPS_MAX);
}

/* False: to be tried again later. */
static bool do_ask(struct rdma_host *h)
{
	const struct nbar_rdma_ask *a = &h->ask;
	int rc;

	if (!is_good(a))
		return true;
	if (a->has_word)
		rc = rdma_push_word(h->link, a->at, a->word, a->cell);
	else if (a->n > 0)
		rc = rdma_push(h->link, (uint8_t *)h->page + a->at, a->n, a->cell);
	else
		rc = rdma_arrived(h->link, &h->mark);
	if (rc == 0 && !a->has_word && a->n == 0)
		rc = -EAGAIN;
	/* Nobody else hears of a push that failed. */
	h->lost |= rc < 0 && rc != -EAGAIN;
	return rc != -EAGAIN;
}

/* page->asked is 1 before an ask leaves the pipe, and until it is done: so a process that finds the
 * pipe empty, and then the word 0, knows that its own asks are done (remote.c of libnbar). */
static void take_asks(struct rdma_host *h)
{
	uint32_t *asked = &h->page->asked;

	for (uint32_t i = 0; i < ASKS_A_TURN; i++) {
		__atomic_store_n(asked, 1, __ATOMIC_SEQ_CST);
		if (!h->has_ask) {
			h->mark = NBAR_RDMA_NO_MARK;
			h->has_ask = read(h->asks, &h->ask, sizeof(h->ask)) == sizeof(h->ask);
		}
		if (h->has_ask && !do_ask(h))
			return;
		/* Release: the ask is done. Partner: order_asked of libnbar. */
		__atomic_store_n(asked, 0, __ATOMIC_RELEASE);
		if (!h->has_ask)
			return;
		h->has_ask = false;
	}
}

static void *host_main(void *arg)
{
	struct nbar_rdma *d = arg;
	struct rdma_host *h = d->host;
	const struct nbar_rdma_link *link;
	bool over = false;

	while (!over && !h->lost) {
		struct pollfd p[5] = {
			{ .fd = h->bell, .events = POLLIN },
			{ .fd = h->tcp, .events = is_whole(&h->in) ? 0 : POLLIN },
			{ .fd = h->finished ? -1 : h->pair, .events = h->out.have ? 0 : POLLIN },
			{ .fd = -1, .events = POLLIN },
			{ .fd = -1, .events = POLLIN },
		};
		int wait_ms = -1;
		uint64_t n;

		if (is_whole(&h->in) && h->pair >= 0) {
			p[2].fd = h->pair;
			p[2].events |= POLLOUT;
		}
		if (h->out.have)
			p[1].events |= POLLOUT;
		/* A socket from which nothing is wanted must not wake this thread by its end. */
		for (uint32_t i = 1; i < 3; i++)
			if (p[i].events == 0)
				p[i].fd = -1;
		pthread_mutex_lock(&h->lock);
		over = h->over;
		if (h->link) {
			p[3].fd = d->channel->fd;
			p[4].fd = h->has_ask ? -1 : h->asks;
			wait_ms = h->has_ask ? ASK_AGAIN_MS : -1;
		}
		pthread_mutex_unlock(&h->lock);
		if (over || poll(p, 5, wait_ms) < 0)
			continue;
		if (p[0].revents)
			(void)!read(h->bell, &n, sizeof(n));
		if (p[3].revents)
			rdma_heard(d, host_on_heard, h);
		if (p[4].revents || h->has_ask)
			take_asks(h);
		if (!h->finished && (p[2].revents || (p[1].revents & POLLOUT)))
			h->lost |= !carry_out(h);
		if (p[1].revents || (p[2].revents & POLLOUT))
			h->lost |= !carry_in(h);
	}
	/* libnbar reads the end, and takes the link as lost. */
	shutdown(h->pair, SHUT_RDWR);
	shutdown(h->tcp, SHUT_RDWR);
	pthread_mutex_lock(&h->lock);
	link = h->link;
	pthread_mutex_unlock(&h->lock);
	if (link)
		h->wake(link->arg, NBAR_RDMA_NO_CELL);
	return NULL;
}

/* Signals of the program are for its own threads. */
static int bridge_start(struct nbar_rdma *d)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&d->host->thread, NULL, host_main, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	d->host->runs = rc == 0;
	if (rc == 0)
		pthread_setname_np(d->host->thread, "nbar-rdma");
	return -rc;
}

void rdma_host_end(struct nbar_rdma *d)
{
	struct rdma_host *h = d->host;
	const uint64_t one = 1;

	if (h->runs) {
		pthread_mutex_lock(&h->lock);
		h->over = true;
		pthread_mutex_unlock(&h->lock);
		(void)!write(h->bell, &one, sizeof(one));
		pthread_join(h->thread, NULL);
	}
	if (h->link)
		rdma_leave(h->link);
	if (h->tcp >= 0)
		close(h->tcp);
	if (h->pair >= 0)
		close(h->pair);
	if (h->bell >= 0)
		close(h->bell);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Memory stays: the child may have forked while a thread held its lock. */
void rdma_host_forked(const struct nbar_rdma *d)
{
	close(d->host->tcp);
	close(d->host->pair);
	close(d->host->bell);
	if (!d->context)
		return;
	close(d->channel->fd);
	close(d->context->cmd_fd);
	close(d->context->async_fd);
}

int rdma_host_join(struct nbar_rdma *d, struct nbar_page *page, void *arg, int asks,
		   struct nbar_rdma_link **out, struct nbar_rdma_end *mine,
		   char text[NBAR_RDMA_TEXT])
{
	const uint64_t one = 1;
	int rc = rdma_device_open(d, text);

	if (rc == 0)
		rc = rdma_join(d, page, arg, out, mine, text);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&d->host->lock);
	d->host->link = *out;
	d->host->page = page;
	d->host->asks = asks;
	pthread_mutex_unlock(&d->host->lock);
	(void)!write(d->host->bell, &one, sizeof(one));
	return 0;
}

int rdma_host_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its)
{
	if (!nbar_rdma_gid_is_of(its->gid, l->device->host->tcp))
		return -EADDRNOTAVAIL;
	return rdma_start(l, its);
}

int rdma_connect(const char *address, const char *nic, void (*wake)(void *arg, uint32_t cell),
		 struct nbar_rdma **out, int *sock, char text[NBAR_RDMA_TEXT])
{
	struct nbar_rdma *d = calloc(1, sizeof(*d));
	struct rdma_host *h = d ? calloc(1, sizeof(*h)) : NULL;
	int pair[2], rc = 0;

	if (!h) {
		free(d);
		snprintf(text, NBAR_RDMA_TEXT, "no memory");
		return -ENOMEM;
	}
	h->tcp = h->pair = h->bell = h->asks = -1;
	h->wake = wake;
	pthread_mutex_init(&h->lock, NULL);
	d->host = h;
	(void)verbs_devices();
	rc = rdma_hello(address, nic, &d->name, &h->tcp, text);
	if (rc == 0 && ((h->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
			socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)) {
		rc = -errno;
		snprintf(text, NBAR_RDMA_TEXT, "no file descriptor: %s", strerror(-rc));
	} else if (rc == 0) {
		h->pair = pair[1];
		rc = bridge_start(d);
		if (rc < 0) {
			close(pair[0]);
			snprintf(text, NBAR_RDMA_TEXT, "no thread: %s", strerror(-rc));
		}
	}
	if (rc < 0) {
		rdma_host_end(d);
		free(d);
		return rc;
	}
	*sock = pair[0];
	*out = d;
	return 0;
}
