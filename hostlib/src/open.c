/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open.c - ports: open, map the page, close; and their state after a fork.
 *
 * Called when a program begins and ends. Trusts the contents of the page, but checks that the
 * memory from the NIC is a page.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "order.h"

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nbar_port *ports;

static void fork_prepare(void)
{
	pthread_mutex_lock(&ports_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&ports_lock);
}

/*
 * A port stays with the parent. The child must not hold the port's socket, or the NIC would not see
 * the death of the parent. The child must not write to the port's page either: an empty page takes
 * its place.
 */
static void fork_child(void)
{
	for (struct nbar_port *p = ports; p; p = p->next) {
		order_down_write(&p->link.down, NBLIB_FORKED);
		p->link.host = NULL; /* this NIC belongs to the parent */
		nblib_link_close(&p->link);
		mmap(p->page, sizeof(*p->page), PROT_READ | PROT_WRITE,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p->results)
			mmap(p->results, sizeof(*p->results), PROT_READ | PROT_WRITE,
			     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p->has_start && p->start >= 0)
			close(p->start);
		p->has_start = false;
	}
	pthread_mutex_unlock(&ports_lock);
}

static void watch_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void remember(struct nbar_port *port)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&ports_lock);
	port->next = ports;
	ports = port;
	pthread_mutex_unlock(&ports_lock);
}

static void forget(struct nbar_port *port)
{
	struct nbar_port **at = &ports;

	pthread_mutex_lock(&ports_lock);
	while (*at && *at != port)
		at = &(*at)->next;
	if (*at)
		*at = port->next;
	pthread_mutex_unlock(&ports_lock);
}

static int map_page(struct nbar_port *port, uint32_t page_size, int fd)
{
	const char *nic = port->link.nic;
	struct stat st;
	uint32_t version;
	int seals;

	if (fd < 0)
		return nblib_fail(-EPROTO, "NIC %s: it passed no memory for the port", nic);
	if (page_size != sizeof(*port->page) || fstat(fd, &st) != 0 ||
	    st.st_size < (off_t)sizeof(*port->page))
		return nblib_fail(-EPROTO,
				  "NIC %s: its page has %u bytes, this program knows one of %zu: "
				  "install the same nbar for both, and start the %s again",
				  nic, page_size, sizeof(*port->page),
				  nblib_link_server(&port->link));
	/* If the memory could shrink, SIGBUS could kill this process later. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals == -1 || !(seals & F_SEAL_SHRINK))
		return nblib_fail(-EPROTO, "NIC %s: the memory it passed is not sealed", nic);
	port->page = mmap(NULL, sizeof(*port->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (port->page == MAP_FAILED)
		return nblib_fail(-errno, "NIC %s: cannot map its page: %s", nic, strerror(errno));
	version = port->page->version;
	if (port->page->magic == NBAR_ABI_MAGIC && version == NBAR_ABI_VERSION)
		return 0;
	munmap(port->page, sizeof(*port->page));
	return nblib_fail(-EPROTO,
			  "NIC %s: its page is of version %u, this program knows version %u: "
			  "install the same nbar for both, and start the %s again",
			  nic, version, NBAR_ABI_VERSION, nblib_link_server(&port->link));
}

/* Maps the results that a NIC in the kernel's network path has beside the page. They are a map
 * of the kernel, which cannot shrink, unlike any file that another process could pass. */
static int map_results(struct nbar_port *port, int fd, int start)
{
	static const char wanted[] = "anon_inode:bpf-map";
	char path[32], is[sizeof(wanted)];
	void *at;

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (start < 0 || readlink(path, is, sizeof(is)) != sizeof(wanted) - 1 ||
	    memcmp(is, wanted, sizeof(wanted) - 1) != 0)
		return nblib_fail(-EPROTO,
				  "NIC %s: it passed no map of the kernel; is /proc mounted?",
				  port->link.nic);
	at = mmap(NULL, sizeof(*port->results), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return nblib_fail(-errno, "NIC %s: cannot map its completions: %s", port->link.nic,
				  strerror(errno));
	port->results = at;
	port->start = start;
	port->has_start = true;
	return 0;
}

/* Opens a connection and requests a page. *port_wanted is part of the request. share: NULL for a
 * new port. */
static int port_begin(const char *nic, enum nbar_op op, void *request, size_t size,
		      const struct nbar_share *share, uint32_t *port_wanted, struct nbar_port **out)
{
	struct nbar_rep_port_open reply;
	int fd[] = { -1, -1, -1 }, err;
	struct nblib_call call = {
		.op = op,
		.body = { { request, size } },
		.fixed = { &reply, sizeof(reply) },
		.fd = fd,
		.nfd = 3,
	};
	struct nbar_port *port = calloc(1, sizeof(*port));

	if (!port)
		return nblib_fail(-ENOMEM, "no memory for a port");
	port->start = -1;
	err = nblib_link_open(&port->link, nic, share ? share->socket_id : NBLIB_SOCKET_ID_MAKE,
			      port_wanted);
	if (err)
		goto fail;
	err = nblib_link_call(&port->link, &call);
	if (err == 0) {
		port->number = reply.port;
		memcpy(port->secret, reply.secret, sizeof(port->secret));
		memcpy(port->link.nic, reply.nic, sizeof(reply.nic) - 1);
		if (port->link.remote && share) {
			err = fd[0] = nblib_remote_share(&port->link, share);
			port->has_start = true;
		}
		if (port->link.remote && !share)
			err = nblib_remote_page(port);
		else if (err >= 0)
			err = map_page(port, reply.page_size, fd[0]);
		if (err == 0 && !port->link.remote) {
			err = map_results(port, fd[1], fd[2]);
			if (err)
				munmap(port->page, sizeof(*port->page));
		}
	}
	for (uint32_t i = 0; i < (port->has_start ? 2 : 3); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (err)
		goto fail;
	remember(port);
	*out = port;
	return 0;
fail:
	nblib_link_close(&port->link);
	free(port);
	return err;
}

int nbar_open(const char *nic, struct nbar_port **out)
{
	struct nbar_req_port_open request = { .port = NBAR_PORT_ANY };

	return port_begin(nic, NBAR_OP_PORT_OPEN, &request, sizeof(request), NULL, &request.port,
			  out);
}

int nbar_attach(const char *nic, const struct nbar_share *share, struct nbar_port **out)
{
	struct nbar_req_port_attach request = {
		.port = share->port,
		.secret = { share->secret[0], share->secret[1] },
	};
	uint32_t named;

	if (share->struct_size && share->struct_size != sizeof(*share))
		return nblib_fail(
			-EPROTO,
			"the share is of another version (%u bytes, not %zu): install the "
			"same nbar for both processes",
			share->struct_size, sizeof(*share));
	if (share->socket_id > NBAR_HOSTNIC_SOCKET_IDS)
		return nblib_fail(-EINVAL, "socket id %u: a share has 0 to %u", share->socket_id,
				  NBAR_HOSTNIC_SOCKET_IDS);
	return port_begin(nic, NBAR_OP_PORT_ATTACH, &request, sizeof(request), share, &named, out);
}

void nbar_close(struct nbar_port *port)
{
	if (!port)
		return;
	for (uint32_t cell = 0; cell < NBAR_GROUPS_MAX; cell++)
		nbar_group_close(port->group[cell]);
	forget(port);
	nblib_link_end(&port->link);
	munmap(port->page, sizeof(*port->page));
	if (port->results)
		munmap(port->results, sizeof(*port->results));
	if (port->has_start && port->start >= 0)
		close(port->start);
	free(port);
}
