/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote.c - ports of a NIC behind PCIe or a cable, "rdma:ADDRESS:PORT/NIC": loads their library,
 * and pushes what this host writes into its copy of the page.
 *
 * The control socket is one end of a pair, whose other end the library has. Only this file knows
 * that the NIC has a copy of its own. Knows only the library's interface, nbar_rdma.h.
 *
 * Processes that attach to a port map the same copy. They have a control connection of their own,
 * but pushes of different connections would arrive in any order: so they ask the process that has
 * made the port to push (struct nbar_rdma_ask). They find its memory and its pipe in /proc.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "nbar_host.h"
#include "order.h"

#define WAITS_A_LOOK 256u /* waits between two looks whether the link is lost */
#define WAITS_AWAKE 1024u
#define WAIT_NS 20000L
#define AWAITS_MAX 500000u /* 10 s at least: a NIC that answers, but pushes nothing, is lost */

static int remote_load(const char *name, const struct nbar_rdma_ops **out)
{
	const char *file = secure_getenv("NBAR_RDMA");
	void *library;

	file = file && *file ? file : NBAR_RDMA_LIBRARY;
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return nblib_fail(
			-ELIBACC,
			"NIC %s: a remote NIC needs a library of nbar: %s: install "
			"the package nbar-nicd-verbs, or set LD_LIBRARY_PATH to its folder or NBAR_RDMA to the file",
			name, dlerror());
	*out = dlsym(library, NBAR_RDMA_SYMBOL);
	if (!*out || (*out)->version != NBAR_RDMA_VERSION)
		return nblib_fail(-ELIBBAD,
				  "NIC %s: %s is not the library of this version of nbar: install "
				  "one nbar for both",
				  name, file);
	return 0;
}

/* Called by the library's thread: those who sleep or poll read the completion. */
static void remote_on_wake(void *arg, uint32_t cell)
{
	struct nbar_port *port = arg;

	if (cell < NBAR_GROUPS_MAX)
		syscall(SYS_futex, &port->page->completion[cell].wake, FUTEX_WAKE, INT_MAX);
	pthread_mutex_lock(&port->polled_lock);
	for (const struct nbar_group *g = port->polled; g; g = g->next_polled)
		if (cell == NBAR_RDMA_NO_CELL)
			shutdown(g->events_end, SHUT_RDWR);
		else if (cell == g->cell)
			(void)send(g->events_end, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	pthread_mutex_unlock(&port->polled_lock);
}

int nblib_remote_events(struct nbar_group *g)
{
	struct nbar_port *port = g->port;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return nblib_fail(-errno, "NIC %s: no descriptor to poll: %s", port->link.nic,
				  strerror(errno));
	pthread_mutex_lock(&port->polled_lock);
	g->events = pair[0];
	g->events_end = pair[1];
	g->next_polled = port->polled;
	port->polled = g;
	pthread_mutex_unlock(&port->polled_lock);
	/* If the link ends from here on, the library's thread ends the pair, too. */
	if (!nblib_link_look(&port->link))
		return 0;
	nblib_remote_events_end(g);
	return nblib_link_lost(&port->link);
}

void nblib_remote_events_end(struct nbar_group *g)
{
	struct nbar_group **at = &g->port->polled;

	/* In a child of the process nobody walks the list, and the lock may be held for ever. */
	if (order_down_read(&g->port->link.down) != NBLIB_FORKED) {
		pthread_mutex_lock(&g->port->polled_lock);
		while (*at != g)
			at = &(*at)->next_polled;
		*at = g->next_polled;
		pthread_mutex_unlock(&g->port->polled_lock);
	}
	close(g->events_end);
	close(g->events);
	g->events_end = g->events = -1;
}

int nblib_remote_connect(struct nblib_link *l, const char *name)
{
	const char *address = name + sizeof(NBAR_REMOTE_PREFIX) - 1;
	char text[NBAR_RDMA_TEXT];
	int err;

	err = remote_load(name, &l->rdma);
	if (err)
		return err;
	err = l->rdma->connect(address, l->nic, remote_on_wake, &l->remote, &l->sock, text);
	if (err)
		return nblib_fail(err, "NIC %s: %s", name, text);
	nblib_link_limit(l, 0);
	return 0;
}

static void close_all(struct nblib_link *l)
{
	int *fd[] = { &l->page_fd, &l->asks[0], &l->asks[1] };

	for (uint32_t i = 0; i < 3; i++) {
		if (*fd[i] >= 0)
			close(*fd[i]);
		*fd[i] = -1;
	}
}

void nblib_remote_close(struct nblib_link *l)
{
	if (!l->remote)
		return;
	if (order_down_read(&l->down) == NBLIB_FORKED)
		l->rdma->forked(l->remote);
	else
		l->rdma->close(l->remote);
	l->remote = NULL;
	close_all(l);
}

static uint64_t inode_of(int fd)
{
	struct stat st = { .st_ino = 0 };

	(void)fstat(fd, &st);
	return st.st_ino;
}

/* Memory that cannot shrink, mapped as the page, and the pipe of asks. A negative errno. */
static int remote_make(struct nblib_link *l, struct nbar_page **page)
{
	const off_t size = sizeof(struct nbar_page);

	l->page_fd = memfd_create("nbar-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->page_fd < 0 || ftruncate(l->page_fd, size) < 0 ||
	    fcntl(l->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
	    pipe2(l->asks, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	l->opener.pid = (uint32_t)getpid();
	l->opener.page = (uint32_t)l->page_fd;
	l->opener.asks = (uint32_t)l->asks[0];
	l->opener.inode = inode_of(l->page_fd);
	*page = mmap(NULL, sizeof(**page), PROT_READ | PROT_WRITE, MAP_SHARED, l->page_fd, 0);
	return *page == MAP_FAILED ? -errno : 0;
}

int nblib_remote_page(struct nbar_port *port)
{
	struct nblib_link *l = &port->link;
	struct nbar_rdma_end mine, its;
	struct nblib_call call = {
		.op = NBAR_OP_PORT_JOIN,
		.body = { { &mine, sizeof(mine) } },
		.fixed = { &its, sizeof(its) },
	};
	char text[NBAR_RDMA_TEXT];
	int err = remote_make(l, &port->page);

	if (err)
		return nblib_fail(err, "NIC %s: no memory for a page: %s", l->nic, strerror(-err));
	/* The head of the NIC's copy; any sign of life will do until the NIC gives one. */
	port->page->magic = NBAR_ABI_MAGIC;
	port->page->version = NBAR_ABI_VERSION;
	port->page->port = port->number;
	port->page->life = 1;
	pthread_mutex_init(&port->polled_lock, NULL);
	err = l->rdma->join(l->remote, port->page, port, l->asks[0], &l->page, &mine, text);
	if (err)
		err = nblib_fail(err, "NIC %s: %s", l->nic, text);
	else
		err = nblib_link_call(l, &call);
	if (err == 0 && (err = l->rdma->start(l->page, &its)) < 0)
		nblib_fail(err,
			   err == -EADDRNOTAVAIL
				   ? "NIC %s: its RDMA device has not the address of its daemon: %s"
				   : "NIC %s: the RDMA device refuses a connection to it: %s",
			   l->nic, strerror(-err));
	port->has_start = err == 0;
	if (err) {
		/* The device may write into the page until its connection is closed. */
		nblib_remote_close(l);
		munmap(port->page, sizeof(*port->page));
	}
	return err;
}

/* A file of the process that has made the port of a share. */
static int open_its(const struct nbar_share *share, uint32_t fd, int flags)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", share->pid, fd);
	return open(path, O_RDWR | O_CLOEXEC | flags);
}

int nblib_remote_share(struct nblib_link *l, const struct nbar_share *share)
{
	int fd = -1;

	l->attached = true;
	l->opener.pid = share->pid;
	l->opener.page = share->page;
	l->opener.asks = share->asks;
	l->opener.inode = share->inode;
	/* Both ends in one descriptor: to write to it never raises SIGPIPE. */
	l->asks[1] = open_its(share, share->asks, O_NONBLOCK);
	if (l->asks[1] >= 0)
		fd = open_its(share, share->page, 0);
	if (fd < 0)
		return nblib_fail(-errno,
				  "NIC %s: cannot map the page of process %u, which opened port "
				  "%u: %s: it must run in this PID namespace, and be dumpable",
				  l->nic, share->pid, share->port, strerror(errno));
	if (inode_of(fd) == share->inode)
		return fd;
	close(fd);
	return nblib_fail(-ENOENT,
			  "NIC %s: process %u of this PID namespace has not opened port %u", l->nic,
			  share->pid, share->port);
}

/* Waits a little for the device, or for the NIC. False: the link is lost. A dead NIC ends the
 * connection, and with it the link, within the limits of hello.c in wire/rdma. */
static bool wait_now(struct nblib_link *l, uint32_t *n)
{
	if (++*n % WAITS_A_LOOK == 0 && nblib_link_look(l))
		return false;
	if (*n < WAITS_AWAKE)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = WAIT_NS }, NULL);
	return true;
}

/* Asks the process that has the connection. -EAGAIN: its pipe is full. */
static int remote_ask(const struct nbar_port *port, const struct nbar_rdma_ask *ask)
{
	/* A pipe takes an ask whole, or not. It has no other error: this process can read it. */
	return write(port->link.asks[1], ask, sizeof(*ask)) < 0 ? -EAGAIN : 0;
}

static uint32_t offset_of(const struct nbar_port *port, const void *at)
{
	return (uint32_t)((const uint8_t *)at - (const uint8_t *)port->page);
}

/* As wait_now. A process that is stopped takes no asks: after 10 s at least, its port is lost. */
static bool wait_for_asks(struct nblib_link *l, uint32_t *n)
{
	if (*n == AWAITS_MAX)
		shutdown(l->sock, SHUT_RDWR);
	return wait_now(l, n);
}

static void ask_now(struct nbar_port *port, const struct nbar_rdma_ask *ask)
{
	uint32_t nwait = 0;

	while (remote_ask(port, ask) < 0 && wait_for_asks(&port->link, &nwait))
		;
}

/* While the queue is full, waits until the device has sent some. */
static void push_now(struct nbar_port *port, const void *at, size_t n, uint32_t cell)
{
	struct nblib_link *l = &port->link;
	uint32_t nwait = 0;
	int rc;

	if (!l->page) {
		ask_now(port, &(struct nbar_rdma_ask){
				      .at = offset_of(port, at), .n = (uint32_t)n, .cell = cell });
		return;
	}
	do
		rc = l->rdma->push(l->page, at, n, cell);
	while (rc == -EAGAIN && wait_now(l, &nwait));
	if (rc < 0)
		shutdown(l->sock, SHUT_RDWR);
}

/* True if asks may still be under way: all of this process, and all that were in the pipe. The pipe
 * is read first. */
static bool asks_are_left(const struct nbar_port *port)
{
	int n = 0;

	(void)ioctl(port->link.asks[1], FIONREAD, &n);
	return n > 0 || order_asked(&port->page->asked);
}

/* A post of a group with values: no later post may reach the NIC before its value, and none before
 * the asks of earlier ones. A process that has asked for an earlier post did so before it arrived
 * at this barrier. */
static void post_with_value(const struct nbar_group *g, uint32_t posted, uint32_t to)
{
	struct nbar_port *port = g->port;
	const struct nbar_value *v = nblib_value_place(g, posted);
	/* Else the barrier carries none. */
	const bool has_value = v->epoch == posted && !(v->op & NBAR_VALUE_RESULT);
	const size_t n = offsetof(struct nbar_value, of) + nblib_value_length(v);

	if (port->link.page && !(order_shared(&port->link.shared) && asks_are_left(port))) {
		if (has_value)
			push_now(port, v, n, NBAR_RDMA_NO_CELL);
		push_now(port, g->doorbell, sizeof(*g->doorbell), to);
		return;
	}
	if (has_value)
		ask_now(port, &(struct nbar_rdma_ask){ .at = offset_of(port, v),
						       .n = (uint32_t)n,
						       .cell = NBAR_RDMA_NO_CELL });
	ask_now(port, &(struct nbar_rdma_ask){ .at = offset_of(port, &g->doorbell->posted),
					       .cell = to,
					       .has_word = 1,
					       .word = posted });
}

void nblib_remote_rang(const struct nbar_group *g, uint32_t posted, bool sleeps)
{
	struct nbar_port *port = g->port;
	bool kick = !sleeps && order_kick_take(&port->page->kick);
	const uint32_t to = kick ? g->cell : NBAR_RDMA_NO_CELL;

	if (order_down_read(&port->link.down) != NBLIB_UP)
		return;
	/* A sleeper does not push the post of another thread, whose value may not be there yet. */
	if (sleeps)
		push_now(port, &g->doorbell->wake_seq, sizeof(uint32_t), NBAR_RDMA_NO_CELL);
	else if (g->values)
		post_with_value(g, posted, to);
	else
		push_now(port, g->doorbell, sizeof(*g->doorbell), to);
}

void nblib_remote_push(struct nbar_port *port, const void *at, size_t n)
{
	if (order_down_read(&port->link.down) == NBLIB_UP)
		push_now(port, at, n, NBAR_RDMA_NO_CELL);
}

void nblib_remote_settle(struct nbar_port *port)
{
	struct nblib_link *l = &port->link;
	uint64_t mark = NBAR_RDMA_NO_MARK;
	uint32_t nwait = 0;

	if (!l->page)
		push_now(port, port->page, 0, NBAR_RDMA_NO_CELL);
	while ((!l->page || order_shared(&l->shared)) && asks_are_left(port) &&
	       wait_for_asks(l, &nwait))
		;
	while (l->page && l->rdma->arrived(l->page, &mark) == 0 && wait_now(l, &nwait))
		;
}

int nblib_remote_await(struct nbar_port *port, uint32_t seq)
{
	uint32_t nwait = 0;

	while (!order_settled(&port->page->settled, seq)) {
		if (nwait == AWAITS_MAX)
			shutdown(port->link.sock, SHUT_RDWR);
		if (!wait_now(&port->link, &nwait))
			return nblib_link_lost(&port->link);
	}
	return 0;
}
