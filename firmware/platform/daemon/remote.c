/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote.c - see remote.h. libnbar-rdma.so does the work; this file knows which port a connection
 * belongs to.
 *
 * If a connection fails, its control socket is shut down: then the thread of the user closes the
 * port, as if the host had ended.
 */
#include "remote.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "mirror.h"
#include "nbar_rdma.h"
#include "nicd.h"
#include "page.h"

_Static_assert(REMOTE_TEXT == NBAR_RDMA_TEXT, "one text");
_Static_assert(NBAR_RDMA_NO_CELL == UINT32_MAX, "as platform.h says");

struct remote {
	const struct nbar_rdma_ops *ops;
	struct nbar_rdma *device;
	const struct wire_auth *auth;
	int sock;
	pthread_mutex_t lock; /* keeps a port while its kick is taken */
};

struct remote_port {
	struct nicd_nic *nic;
	struct nbar_rdma_link *link;
	uint32_t port;
	int sock;
	bool lost;
};

int remote_open(struct nicd *d, const char *address, const struct wire_auth *auth)
{
	void *library = dlopen(NBAR_RDMA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const struct nbar_rdma_ops *ops = library ? dlsym(library, NBAR_RDMA_SYMBOL) : NULL;
	char text[NBAR_RDMA_TEXT] = "no memory";
	struct remote *r;
	int rc = -ENOMEM;

	if (!ops || ops->version != NBAR_RDMA_VERSION) {
		log_error("--attach %s: %s; install the Debian package nbar-nicd-verbs, or "
			  "libibverbs-dev and build nbar again",
			  address, ops ? NBAR_RDMA_LIBRARY " is of another version" : dlerror());
		return -EINVAL;
	}
	r = calloc(1, sizeof(*r));
	if (r) {
		r->ops = ops;
		r->auth = auth;
		rc = ops->listen(address, &r->device, &r->sock, text);
	}
	if (rc < 0) {
		log_error("--attach %s: %s", address, text);
		free(r);
		return rc;
	}
	pthread_mutex_init(&r->lock, NULL);
	d->remote = r;
	return 0;
}

void remote_close(struct nicd *d)
{
	if (!d->remote)
		return;
	close(d->remote->sock);
	d->remote->ops->close(d->remote->device);
	pthread_mutex_destroy(&d->remote->lock);
	free(d->remote);
	d->remote = NULL;
}

const struct wire_auth *remote_auth(const struct remote *r)
{
	return r->auth->hash ? r->auth : NULL;
}

int remote_socket(const struct remote *r)
{
	return r->sock;
}

int remote_join(struct nicd_nic *n, uint32_t port, int sock, const struct nbar_rdma_end *its,
		struct nbar_rdma_end *mine, char text[REMOTE_TEXT])
{
	const struct remote *r = n->nicd->remote;
	struct remote_port *p = calloc(1, sizeof(*p));
	int rc = -ENOMEM;

	if (!nbar_rdma_gid_is_of(its->gid, sock)) {
		snprintf(
			text, REMOTE_TEXT,
			"the RDMA device of this host has another address than its TCP connection: "
			"let no router or NAT change the address");
		free(p);
		return -EPERM;
	}
	snprintf(text, REMOTE_TEXT, "no memory");
	if (!p)
		return rc;
	*p = (struct remote_port){ .nic = n, .port = port, .sock = sock };
	rc = r->ops->join(r->device, n->device.port[port]->page, p, -1, &p->link, mine, text);
	if (rc == 0) {
		n->remote[port] = p;
		rc = r->ops->start(p->link, its);
		if (rc == 0)
			return 0;
		snprintf(text, REMOTE_TEXT, "the device refuses a connection to that host");
		remote_leave(n, port);
		return rc;
	}
	free(p);
	return rc;
}

void remote_leave(struct nicd_nic *n, uint32_t port)
{
	struct remote *r = n->nicd->remote;
	struct remote_port *p = n->remote[port];

	if (!p)
		return;
	pthread_mutex_lock(&r->lock);
	n->remote[port] = NULL;
	r->ops->leave(p->link);
	pthread_mutex_unlock(&r->lock);
	free(p);
}

bool remote_push(void *ctx, uint32_t port, const void *at, size_t n, uint32_t cell)
{
	const struct nicd_nic *nic = ctx;
	struct remote_port *p = nic->remote[port];
	int rc = nic->nicd->remote->ops->push(p->link, at, n, cell);

	if (rc == -ENOTCONN && !p->lost) {
		p->lost = true;
		shutdown(p->sock, SHUT_RDWR);
	}
	return rc == 0;
}

int remote_descriptor(const struct remote *r)
{
	return r->ops->descriptor(r->device);
}

static void on_kick(void *arg)
{
	const struct remote_port *p = arg;
	struct nbnic_port *port = p->nic->device.port[p->port];

	if (port && port->mirror)
		nbnic_mirror_kicked(port);
}

void remote_take(struct remote *r)
{
	/* The lock is held while a connection is ended, which takes the device milliseconds: a pass
	 * does not wait for that. The descriptor stays readable, so a later pass takes the kicks.
	 */
	if (pthread_mutex_trylock(&r->lock) != 0)
		return;
	r->ops->take(r->device, on_kick);
	pthread_mutex_unlock(&r->lock);
}
