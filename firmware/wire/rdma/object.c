/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object.c - libnbar-rdma.so, which remote hosts load, and the daemons that they attach to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma.h"

#define QUEUE 64 /* connections that wait for the daemon */

static int on_listen(const char *address, struct nbar_rdma **out, int *sock,
		     char text[NBAR_RDMA_TEXT])
{
	struct nbar_rdma *d = calloc(1, sizeof(*d));
	const int one = 1;
	int rc = d ? rdma_name_read(address, &d->name, text) : -ENOMEM;

	if (rc == 0)
		rc = rdma_device_open(d, text);
	if (rc < 0) {
		free(d);
		return rc;
	}
	*sock = socket(d->name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*sock >= 0)
		setsockopt(*sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (*sock < 0 || bind(*sock, &d->name.any, rdma_name_size(&d->name)) < 0 ||
	    listen(*sock, QUEUE) < 0) {
		rc = -errno;
		snprintf(text, NBAR_RDMA_TEXT, "%s: %s", address, strerror(-rc));
		if (*sock >= 0)
			close(*sock);
		rdma_device_close(d);
		free(d);
		return rc;
	}
	*out = d;
	return 0;
}

static void on_close(struct nbar_rdma *d)
{
	if (d->host)
		rdma_host_end(d);
	rdma_device_close(d);
	free(d);
}

static int on_join(struct nbar_rdma *d, struct nbar_page *page, void *arg, int asks,
		   struct nbar_rdma_link **out, struct nbar_rdma_end *mine,
		   char text[NBAR_RDMA_TEXT])
{
	return d->host ? rdma_host_join(d, page, arg, asks, out, mine, text)
		       : rdma_join(d, page, arg, out, mine, text);
}

static int on_link_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its)
{
	return l->device->host ? rdma_host_start(l, its) : rdma_start(l, its);
}

static int on_descriptor(const struct nbar_rdma *d)
{
	return d->channel->fd;
}

static void nic_on_heard(void *arg, uint32_t cell, void *more)
{
	void (*heard)(void *arg) = *(void (**)(void *))more;

	(void)cell;
	heard(arg);
}

static void nic_on_take(struct nbar_rdma *d, void (*heard)(void *arg))
{
	rdma_heard(d, nic_on_heard, &heard);
}

__attribute__((visibility("default"))) const struct nbar_rdma_ops nbar_rdma = {
	.version = NBAR_RDMA_VERSION,
	.listen = on_listen,
	.connect = rdma_connect,
	.close = on_close,
	.forked = rdma_host_forked,
	.join = on_join,
	.start = on_link_start,
	.leave = rdma_leave,
	.push = rdma_push,
	.arrived = rdma_arrived,
	.descriptor = on_descriptor,
	.take = nic_on_take,
};
