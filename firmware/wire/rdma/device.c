/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - finds and opens the RDMA device that has an IP address.
 *
 * Called when a daemon starts, and when a remote host opens a port.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma.h"
#include "verbs/route.h"

#define GIDS_MAX 256

socklen_t rdma_name_size(const union rdma_name *n)
{
	return n->any.sa_family == AF_INET ? sizeof(n->in) : sizeof(n->in6);
}

int rdma_name_read(const char *text, union rdma_name *out, char why[NBAR_RDMA_TEXT])
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0, length;
	bool brackets = n > 2 && text[0] == '[' && text[n - 1] == ']';
	char ip[INET6_ADDRSTRLEN] = "", *end = NULL;
	unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;

	*out = (union rdma_name){ .in6 = { .sin6_family = AF_INET6 } };
	length = brackets ? n - 2 : n;
	if (length < sizeof(ip))
		snprintf(ip, sizeof(ip), "%.*s", (int)length, text + brackets);
	if (end && !*end && port > 0 && port <= UINT16_MAX) {
		out->in6.sin6_port = htons((uint16_t)port);
		if (brackets && inet_pton(AF_INET6, ip, &out->in6.sin6_addr) == 1)
			return 0;
		*out = (union rdma_name){ .in = { .sin_family = AF_INET,
						  .sin_port = htons((uint16_t)port) } };
		if (inet_pton(AF_INET, ip, &out->in.sin_addr) == 1)
			return 0;
	}
	snprintf(why, NBAR_RDMA_TEXT,
		 "%s: not an IP address and a port, as in 192.0.2.1:7100 or [2001:db8::1]:7100",
		 text);
	return -EINVAL;
}

/* Finds the GID in this device; RoCE v2 only. */
static bool has_gid(struct nbar_rdma *d, struct ibv_context *c)
{
	struct ibv_gid_entry entry[GIDS_MAX];
	ssize_t n = ibv_query_gid_table(c, entry, GIDS_MAX, 0);
	struct ibv_port_attr port;

	for (ssize_t i = 0; i < n; i++) {
		if (entry[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entry[i].gid.raw, d->gid, sizeof(d->gid)) != 0 ||
		    ibv_query_port(c, (uint8_t)entry[i].port_num, &port))
			continue;
		d->port = (uint8_t)entry[i].port_num;
		d->gid_index = (uint8_t)entry[i].gid_index;
		d->mtu = (uint8_t)port.active_mtu;
		return true;
	}
	return false;
}

static int device_find(struct nbar_rdma *d, char text[NBAR_RDMA_TEXT])
{
	struct ibv_device **list = verbs_devices();
	char ip[INET6_ADDRSTRLEN];
	int err = 0;

	nbar_rdma_gid(&d->name.any, d->gid);
	for (int i = 0; list && list[i] && !d->context; i++) {
		struct ibv_context *c = ibv_open_device(list[i]);

		if (!c)
			err = errno;
		else if (has_gid(d, c))
			d->context = c;
		else
			ibv_close_device(c);
	}
	if (d->context)
		return 0;
	inet_ntop(AF_INET6, d->gid, ip, sizeof(ip));
	snprintf(text, NBAR_RDMA_TEXT,
		 "no RDMA device (RoCE v2) has the address %s%s%s; see rdma "
		 "link, and the permissions of /dev/infiniband",
		 ip, err ? ": " : "", err ? strerror(err) : "");
	return -ENODEV;
}

int rdma_device_open(struct nbar_rdma *d, char text[NBAR_RDMA_TEXT])
{
	int rc;

	/* A program may fork: memory that the device writes must stay with the parent. */
	(void)ibv_fork_init();
	rc = device_find(d, text);
	if (rc < 0)
		return rc;
	d->channel = ibv_create_comp_channel(d->context);
	if (d->channel && fcntl(d->channel->fd, F_SETFL, O_NONBLOCK) == 0)
		return 0;
	rc = errno ? -errno : -EIO;
	snprintf(text, NBAR_RDMA_TEXT, "%s: %s", ibv_get_device_name(d->context->device),
		 strerror(-rc));
	rdma_device_close(d);
	return rc;
}

void rdma_device_close(struct nbar_rdma *d)
{
	if (d->channel)
		ibv_destroy_comp_channel(d->channel);
	if (d->context)
		ibv_close_device(d->context);
	d->channel = NULL;
	d->context = NULL;
}
