/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - opens a port of an RDMA device for the wire "verbs", and reports errors.
 *
 * Called when a NIC is opened and closed; verbs_qp_start also by the control thread. This file
 * makes everything that a datagram needs later.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "log.h"
#include "route.h"
#include "verbs.h"

#define GIDS_MAX 256

/* Reads a whole number in [low, high]. Without the option, returns `otherwise`. Negative:
 * reported. */
static int device_number(const struct verbs_wire *w, const char *key, const char *text, int low,
			 int high, int otherwise)
{
	char *end;
	long n;

	if (!text)
		return otherwise;
	n = strtol(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && n >= low && n <= high)
		return (int)n;
	log_error("nic %s: %s=%s: it goes from %d to %d", w->nic, key, text, low, high);
	return -EINVAL;
}

static const char *port_state(const struct ibv_port_attr *p)
{
	return ibv_port_state_str(p->state);
}

/* Returns the wanted port, or the first active port. 0: no active port; negative: reported. */
static int device_port_choose(const struct verbs_wire *w, struct ibv_context *c, const char *wanted)
{
	const char *device = ibv_get_device_name(c->device);
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int first = 1, last, n;

	if (ibv_query_device(c, &attr))
		return 0;
	last = attr.phys_port_cnt;
	if (wanted) {
		first = device_number(w, "port", wanted, 1, last, 1);
		if (first < 0)
			return first;
		last = first;
	}
	for (n = first; n <= last; n++)
		if (ibv_query_port(c, (uint8_t)n, &port) == 0 && port.state == IBV_PORT_ACTIVE)
			return n;
	if (!wanted)
		return 0;
	log_error(
		"nic %s: port %d of %s is %s; bring its link up (ip link set INTERFACE up, or the "
		"subnet manager), and see rdma link",
		w->nic, first, device, port_state(&port));
	return -ENETDOWN;
}

static void no_device(const struct verbs_wire *w, struct ibv_device **list, int n,
		      const char *wanted)
{
	char names[256] = "none";
	size_t used = 0;

	for (int i = 0; i < n && used < sizeof(names) - IBV_SYSFS_NAME_MAX - 1; i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " " : "",
					 ibv_get_device_name(list[i]));
	if (wanted)
		log_error("nic %s: device=%s: there is no such RDMA device; there is: %s", w->nic,
			  wanted, names);
	else if (n == 0)
		log_error("nic %s: this machine has no RDMA device; load its driver, or make one: "
			  "rdma link add rxe0 type rxe netdev INTERFACE",
			  w->nic);
	else
		log_error(
			"nic %s: no RDMA device has a port that is up (%s); bring one up, and see "
			"rdma link",
			w->nic, names);
}

/* Opens the device and sets context and port. */
static int device_choose(struct verbs_wire *w, const char *device, const char *port)
{
	struct ibv_device **list = verbs_devices();
	int n = 0, found = 0;

	while (list && list[n])
		n++;
	for (int i = 0; i < n && found == 0; i++) {
		if (device && strcmp(device, ibv_get_device_name(list[i])) != 0)
			continue;
		w->context = ibv_open_device(list[i]);
		if (!w->context && device) {
			found = -errno;
			log_error("nic %s: device=%s: %s; see the permissions of /dev/infiniband",
				  w->nic, device, strerror(errno));
		}
		if (!w->context)
			continue;
		found = device_port_choose(w, w->context, port ? port : device ? "1" : NULL);
		if (found > 0)
			continue;
		ibv_close_device(w->context);
		w->context = NULL;
	}
	if (found == 0) {
		no_device(w, list, n, device);
		found = -ENODEV;
	}
	if (found < 0)
		return found;
	w->port = (uint8_t)found;
	return 0;
}

/* Ranks a GID if the user names none: RoCE v2 with the IPv4 address of the interface is best. */
static int gid_rank(const struct ibv_gid_entry *e)
{
	static const uint8_t v4[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	if (e->gid_type == IBV_GID_TYPE_ROCE_V1)
		return 1;
	if (e->gid_type == IBV_GID_TYPE_IB)
		return 5;
	if (memcmp(e->gid.raw, v4, sizeof(v4)) == 0)
		return 4;
	return e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80 ? 2 : 3;
}

static int gid_choose(struct verbs_wire *w, const char *wanted)
{
	struct ibv_gid_entry entry[GIDS_MAX], *best = NULL;
	ssize_t n = ibv_query_gid_table(w->context, entry, GIDS_MAX, 0);
	int index = device_number(w, "gid", wanted, 0, 255, -1), last = -1;

	if (wanted && index < 0)
		return index;
	for (ssize_t i = 0; i < n; i++) {
		if (entry[i].port_num != w->port)
			continue;
		last = (int)entry[i].gid_index > last ? (int)entry[i].gid_index : last;
		if (wanted ? (int)entry[i].gid_index == index
			   : !best || gid_rank(&entry[i]) > gid_rank(best))
			best = &entry[i];
	}
	if (!best) {
		log_error("nic %s: gid=%s: port %u of %s has no such GID, its last is %d; see "
			  "ibv_devinfo -v, and give the interface an address",
			  w->nic, wanted ? wanted : "(any)", w->port,
			  ibv_get_device_name(w->context->device), last);
		return -EADDRNOTAVAIL;
	}
	w->gid_index = (uint8_t)best->gid_index;
	w->self.gid_type = (uint8_t)(1 + best->gid_type);
	memcpy(w->self.gid, best->gid.raw, sizeof(w->self.gid));
	return 0;
}

/* Returns the path MTU: the MTU of the port, or a smaller MTU. */
static int mtu_choose(struct verbs_wire *w, const char *wanted)
{
	struct ibv_port_attr port;
	int bytes, mtu = IBV_MTU_256;

	if (ibv_query_port(w->context, w->port, &port))
		return verbs_error(w, "a path", errno);
	w->self.link = port.link_layer;
	w->self.lid = port.lid;
	bytes = device_number(w, "mtu", wanted, 256, 128 << port.active_mtu,
			      128 << port.active_mtu);
	if (bytes < 0)
		return bytes;
	while (128 << mtu < bytes)
		mtu++;
	if (128 << mtu != bytes) {
		log_error("nic %s: mtu=%s: it is 256, 512, 1024, 2048 or 4096", w->nic, wanted);
		return -EINVAL;
	}
	w->self.mtu = (uint8_t)mtu;
	if (bytes < (int)NBFW_FRAME_MAX)
		w->base.no_values =
			"its MTU is 256 bytes; raise that of the port, or give all NICs "
			"another mtu=";
	return 0;
}

/* Makes the memory, the queues and the queue pair of datagrams. */
static int make_all(struct verbs_wire *w)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = {
			.max_send_wr = VERBS_SENDS,
			.max_recv_wr = VERBS_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = w->send_inline ? VERBS_INLINE : 0,
		},
	};

	w->out.inlined = init.cap.max_inline_data;
	w->pd = ibv_alloc_pd(w->context);
	if (!w->pd)
		return verbs_error(w, "a protection domain", errno);
	w->room = aligned_alloc(4096, VERBS_RECVS * VERBS_ROOM);
	if (!w->room)
		return -ENOMEM;
	memset(w->room, 0, VERBS_RECVS * VERBS_ROOM);
	w->mr = ibv_reg_mr(w->pd, w->room, VERBS_RECVS * VERBS_ROOM, IBV_ACCESS_LOCAL_WRITE);
	if (!w->mr || verbs_out_make(w, &w->out, VERBS_SENDS, VERBS_OUT) < 0)
		return verbs_error(w, "a memory region", errno);
	init.recv_cq = w->recv_cq = ibv_create_cq(w->context, VERBS_RECVS, NULL, NULL, 0);
	init.send_cq = w->send_cq =
		ibv_create_cq(w->context, VERBS_SENDS * VERBS_CQ_TIMES, NULL, NULL, 0);
	if (!w->recv_cq || !w->send_cq)
		return verbs_error(w, "a completion queue", errno);
	w->qp = ibv_create_qp(w->pd, &init);
	if (!w->qp)
		return verbs_error(
			w,
			w->send_inline ? "a queue pair with inline sends (inline=no does without)"
				       : "a queue pair",
			errno);
	w->self.qpn = w->qp->qp_num;
	return verbs_qp_start(w) < 0 ? verbs_error(w, "the queue pair ready", errno) : 0;
}

static int inline_choose(struct verbs_wire *w, const char *text)
{
	w->send_inline = !text || strcmp(text, "yes") == 0;
	if (w->send_inline || strcmp(text, "no") == 0)
		return 0;
	log_error("nic %s: inline=%s: it is yes or no", w->nic, text);
	return -EINVAL;
}

int verbs_device_open(struct verbs_wire *w, wire_option *option, void *args)
{
	char ip[INET6_ADDRSTRLEN];
	int rc = verbs_mode_read(w, option(args, "mode"));
	int sl = device_number(w, "sl", option(args, "sl"), 0, 15, 0);

	if (rc < 0 || sl < 0 || inline_choose(w, option(args, "inline")) < 0)
		return -EINVAL;
	w->sl = (uint8_t)sl;
	/* A program with an in-process NIC may fork: memory that the device writes must stay with
	 * the parent. */
	(void)ibv_fork_init();
	w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->wake_fd < 0 || getrandom(&w->self.id, sizeof(w->self.id), 0) != sizeof(w->self.id))
		return -EIO;
	rc = device_choose(w, option(args, "device"), option(args, "port"));
	if (rc == 0)
		rc = verbs_mode_resolve(w);
	if (rc == 0)
		rc = gid_choose(w, option(args, "gid"));
	if (rc == 0)
		rc = mtu_choose(w, option(args, "mtu"));
	if (rc == 0)
		rc = make_all(w);
	if (rc < 0)
		return rc;
	memcpy(w->base.addr.byte, &w->self, sizeof(w->self));
	inet_ntop(AF_INET6, w->self.gid, ip, sizeof(ip));
	snprintf(w->base.text, sizeof(w->base.text), "%s/%u:%u %s", ip, w->port, w->self.qpn,
		 verbs_mode_name(w));
	return 0;
}

void verbs_device_close(struct verbs_wire *w)
{
	if (w->qp)
		ibv_destroy_qp(w->qp);
	if (w->send_cq)
		ibv_destroy_cq(w->send_cq);
	if (w->recv_cq)
		ibv_destroy_cq(w->recv_cq);
	if (w->mr)
		ibv_dereg_mr(w->mr);
	verbs_out_free(&w->out);
	free(w->room);
	if (w->pd)
		ibv_dealloc_pd(w->pd);
	if (w->context)
		ibv_close_device(w->context);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
}
