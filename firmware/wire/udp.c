/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp.c - frames in UDP datagrams, by plain sockets: for machines on which no other wire runs.
 *
 * Called by the polling thread. Never blocks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "udp.h"

#define RECEIVE_BUFFER (16 << 20) /* bytes; the kernel may give less */
/* A frame to a neighbour that does not answer ARP waits in the kernel for 3 s, and in the send
 * buffer: frames to one such neighbour can fill it. So frames to NICs that were not heard in the
 * last HEARD_NS may fill half of it, and are dropped beyond. A neighbour that was heard later than
 * that still has its entry in the kernel's table. */
#define HEARD_NS UINT64_C(2000000000)
/* Up to seven eighths, a NIC that was not heard gets a few frames in this time: if few neighbours
 * are dead, two NICs can still begin to hear each other. */
#define QUIET_NS UINT64_C(4000000000)
#define QUIET_FRAMES 4u

/* Packs an address: IP version (4 or 6), 0, port (2 bytes), IP address (4 or 16 bytes), all in
 * network byte order. */
static void addr_pack(const union udp_name *n, struct nbnic_addr *out)
{
	*out = (struct nbnic_addr){ { 0 } };
	out->byte[0] = n->any.sa_family == AF_INET ? 4 : 6;
	if (n->any.sa_family == AF_INET) {
		memcpy(out->byte + 2, &n->in.sin_port, 2);
		memcpy(out->byte + 4, &n->in.sin_addr, 4);
	} else {
		memcpy(out->byte + 2, &n->in6.sin6_port, 2);
		memcpy(out->byte + 4, &n->in6.sin6_addr, 16);
	}
}

/* Returns the length of the name; 0: this socket cannot send to the address. */
static socklen_t addr_unpack(const struct udp_wire *w, const struct nbnic_addr *a,
			     union udp_name *out)
{
	memset(out, 0, sizeof(*out));
	if (a->byte[0] == 4 && w->family == AF_INET) {
		out->in.sin_family = AF_INET;
		memcpy(&out->in.sin_port, a->byte + 2, 2);
		memcpy(&out->in.sin_addr, a->byte + 4, 4);
		return sizeof(out->in);
	}
	if (a->byte[0] == 6 && w->family == AF_INET6) {
		out->in6.sin6_family = AF_INET6;
		memcpy(&out->in6.sin6_port, a->byte + 2, 2);
		memcpy(&out->in6.sin6_addr, a->byte + 4, 16);
		if (IN6_IS_ADDR_LINKLOCAL(&out->in6.sin6_addr))
			out->in6.sin6_scope_id = w->scope;
		return sizeof(out->in6);
	}
	return 0;
}

/* Checks the range, because getaddrinfo takes 65537 for 1. */
static bool port_valid(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && *end == '\0' && n <= 65535;
}

/* Reads "ADDRESS" or, if port is not NULL, "ADDRESS:PORT"; an IPv6 address with or without
 * brackets. */
static int name_parse(const char *text, const char *port, union udp_name *out, socklen_t *length)
{
	const struct addrinfo hint = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_DGRAM,
	};
	struct addrinfo *info;
	char host[64];
	int n = (int)(port ? port - text : (ptrdiff_t)strlen(text));

	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= (int)sizeof(host) || (port && !port_valid(port + 1)))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", n, text);
	if (getaddrinfo(host, port ? port + 1 : NULL, &hint, &info))
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, info->ai_addr, info->ai_addrlen);
	*length = info->ai_addrlen;
	freeaddrinfo(info);
	return 0;
}

static bool is_wildcard(const union udp_name *n)
{
	if (n->any.sa_family == AF_INET)
		return n->in.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&n->in6.sin6_addr);
}

static void name_show(const union udp_name *n, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN], zone[IF_NAMESIZE] = "";

	if (n->any.sa_family == AF_INET) {
		snprintf(text, size, "%s:%u", inet_ntop(AF_INET, &n->in.sin_addr, ip, sizeof(ip)),
			 ntohs(n->in.sin_port));
		return;
	}
	if (n->in6.sin6_scope_id)
		if_indextoname(n->in6.sin6_scope_id, zone);
	snprintf(text, size, "[%s%s%s]:%u", inet_ntop(AF_INET6, &n->in6.sin6_addr, ip, sizeof(ip)),
		 zone[0] ? "%" : "", zone, ntohs(n->in6.sin6_port));
}

/* Reads bind= and address=, or takes an address of this host. *told: the address for peers, if
 * address= names one; else its family is 0. */
static int names_read(struct udp_wire *w, const char *nic, const char *bind_to, const char *address,
		      union udp_name *self, union udp_name *told)
{
	const char *port = bind_to ? strrchr(bind_to, ':') : NULL;
	socklen_t length;
	int rc;

	*told = (union udp_name){ .any.sa_family = AF_UNSPEC };
	if (address && (name_parse(address, NULL, told, &length) < 0 || is_wildcard(told))) {
		log_error("nic %s: address=%s is not the address of a machine, for example "
			  "address=192.0.2.1",
			  nic, address);
		return -EINVAL;
	}
	if (bind_to && (!port || name_parse(bind_to, port, self, &length) < 0)) {
		log_error("nic %s: bind=%s is not ADDRESS:PORT, for example bind=192.0.2.1:7000 or "
			  "bind=[2001:db8::1]:7000",
			  nic, bind_to);
		return -EINVAL;
	}
	if (address && bind_to && told->any.sa_family != self->any.sa_family) {
		log_error("nic %s: one of address=%s and bind=%s is of IPv4, the other of IPv6",
			  nic, address, bind_to);
		return -EINVAL;
	}
	if (bind_to && !address && is_wildcard(self)) {
		log_error(
			"nic %s: bind=%s is every address of this machine; say which one peers are to "
			"send to, for example address=192.0.2.1",
			nic, bind_to);
		return -EINVAL;
	}
	snprintf(w->base.why, sizeof(w->base.why), "as %s= says", address ? "address" : "bind");
	if (!bind_to && address)
		*self = (union udp_name){ .any.sa_family = told->any.sa_family };
	if (bind_to || address)
		return 0;
	rc = udp_address_find(self, w->base.why, sizeof(w->base.why));
	if (rc < 0)
		log_error(
			"nic %s: cannot list the addresses of this host: %s; name one, for example "
			"bind=192.0.2.1:0",
			nic, strerror(-rc));
	return rc;
}

/* Replaces the IP address, and keeps the port. */
static void ip_set(union udp_name *n, const union udp_name *ip)
{
	union udp_name both = *ip;

	both.in.sin_port = n->in.sin_port; /* at the same place in IPv4 and IPv6 */
	*n = both;
}
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "a port has one place");

/* Binds the socket. Frames must leave from the address that peers know. So a NIC on a wildcard
 * binds to that address, unless the address belongs to a translator on the way to the peers. */
static int socket_bind(int fd, const union udp_name *self, const union udp_name *told)
{
	union udp_name name = *self;

	if (told->any.sa_family != AF_UNSPEC && is_wildcard(self)) {
		ip_set(&name, told);
		if (bind(fd, &name.any, udp_name_size(&name)) == 0)
			return 0;
		if (errno != EADDRNOTAVAIL)
			return errno;
		name = *self;
	}
	return bind(fd, &name.any, udp_name_size(&name)) == 0 ? 0 : errno;
}

/* Binds the socket and finds the address for peers. */
static int udp_bind(struct udp_wire *w, const char *nic, const char *bind_to, const char *address)
{
	union udp_name self, told;
	socklen_t length = sizeof(self);
	int one = 1, buffer = RECEIVE_BUFFER, rc;
	char text[sizeof(w->base.text)];

	rc = names_read(w, nic, bind_to, address, &self, &told);
	if (rc < 0)
		return rc;
	w->family = self.any.sa_family;
	w->fd = socket(w->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (w->fd >= 0 && w->family == AF_INET6)
		(void)setsockopt(w->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	rc = w->fd < 0 ? errno : socket_bind(w->fd, &self, &told);
	if (rc == 0 && getsockname(w->fd, &self.any, &length) < 0)
		rc = errno;
	if (rc != 0) {
		name_show(&self, text, sizeof(text));
		log_error("nic %s: bind=%s: %s", nic, bind_to ? bind_to : text, strerror(rc));
		return -rc;
	}
	/* Exceeds the limit net.core.rmem_max if this process is permitted to do so. */
	if (setsockopt(w->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) < 0)
		(void)setsockopt(w->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	(void)setsockopt(w->fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof(one));
	(void)getsockopt(w->fd, SOL_SOCKET, SO_SNDBUF, &w->silent_max, &(socklen_t){ sizeof(int) });
	w->silent_max /= 2;
	if (address)
		ip_set(&self, &told);
	if (w->family == AF_INET6)
		w->scope = self.in6.sin6_scope_id;
	addr_pack(&self, &w->base.addr);
	name_show(&self, w->base.text, sizeof(w->base.text));
	return 0;
}

static void udp_close(struct wire_base *base)
{
	struct udp_wire *w = (struct udp_wire *)base;

	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

static void udp_forked(struct wire_base *base)
{
	close(((struct udp_wire *)base)->fd);
}

int udp_begin(struct udp_wire *w, const char *nic, wire_option *option, void *args)
{
	int rc;

	if (getrandom(&w->seed, sizeof(w->seed), 0) != sizeof(w->seed))
		w->seed = (uintptr_t)w;
	rc = udp_bind(w, nic, option(args, "bind"), option(args, "address"));
	for (uint32_t i = 0; i < UDP_BURST; i++) {
		w->iov[i] = (struct iovec){ .iov_base = w->frame[i], .iov_len = UDP_ROOM };
		w->msg[i].msg_hdr.msg_iov = &w->iov[i];
		w->msg[i].msg_hdr.msg_iovlen = 1;
		w->msg[i].msg_hdr.msg_name = &w->from[i];
		w->msg[i].msg_hdr.msg_control = w->control[i];
	}
	return rc;
}

static int udp_open(const char *nic, wire_option *option, void *args, struct wire_base **out)
{
	struct udp_wire *w = calloc(1, sizeof(*w));
	int rc;

	if (!w) {
		log_error("nic %s: no memory for a wire", nic);
		return -ENOMEM;
	}
	w->fd = -1;
	rc = udp_begin(w, nic, option, args);
	if (rc < 0)
		udp_close(&w->base);
	else
		*out = &w->base;
	return rc;
}

/* With a datagram, the kernel tells how many datagrams the receive queue has dropped since the
 * socket was made, modulo 2^32. It tells nothing while this number is 0. */
static void count_drops(struct udp_wire *w, struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	uint32_t dropped;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
		return;
	memcpy(&dropped, CMSG_DATA(c), sizeof(dropped));
	w->base.drops += dropped - w->dropped;
	w->dropped = dropped;
}

/* Where the NIC with this address is in the table. *name: what distinguishes it there. */
static struct udp_heard *heard_at(struct udp_wire *w, const struct nbnic_addr *a, uint64_t *name)
{
	uint64_t word, hash = w->seed;

	for (uint32_t i = 0; i < NBNIC_ADDR_NAME; i += sizeof(word)) {
		memcpy(&word, a->byte + i, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	*name = hash;
	return &w->heard[hash % UDP_HEARD_MAX];
}

static void note_heard(struct udp_wire *w, const struct nbnic_addr *from)
{
	uint64_t name;
	struct udp_heard *h = heard_at(w, from, &name);

	h->name = name;
	h->time = w->now;
}

/* True if this NIC was heard lately, or if the send buffer has room for silent NICs. */
static bool has_room(struct udp_wire *w, const struct nbnic_addr *to)
{
	uint64_t name;
	struct udp_heard *h = heard_at(w, to, &name);
	int bytes;

	if ((h->name == name && w->now - h->time <= HEARD_NS) ||
	    ioctl(w->fd, SIOCOUTQ, &bytes) < 0 || bytes < w->silent_max)
		return true;
	if (w->now - h->quiet_at > QUIET_NS) {
		h->quiet_at = w->now;
		h->quiet = 0;
	}
	return bytes < w->silent_max / 4 * 7 && h->quiet++ < QUIET_FRAMES;
}

/* Takes the datagrams of one system call. */
static unsigned take_burst(struct udp_wire *w, struct nbnic *nic, uint64_t now, unsigned most)
{
	struct nbnic_addr from;
	struct nbfw_token t;
	int n;

	for (unsigned i = 0; i < most; i++) {
		w->msg[i].msg_hdr.msg_namelen = sizeof(w->from[i]);
		w->msg[i].msg_hdr.msg_controllen = sizeof(w->control[i]);
	}
	n = recvmmsg(w->fd, w->msg, most, MSG_DONTWAIT, NULL);
	if (n > 0)
		count_drops(w, &w->msg[n - 1].msg_hdr);
	for (int i = 0; i < n; i++) {
		addr_pack(&w->from[i], &from);
		if (wire_frame_unpack(&w->base, nic, &from, w->frame[i], w->msg[i].msg_len, &t)) {
			note_heard(w, &from);
			nbnic_receive(nic, &from, &t, now);
		}
	}
	return n > 0 ? (unsigned)n : 0;
}

/* Takes bursts until the socket is empty or the budget is used. */
static unsigned udp_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct udp_wire *w = (struct udp_wire *)base;
	unsigned n = 0, most, got;

	w->now = now;
	do {
		most = budget - n < UDP_BURST ? budget - n : UDP_BURST;
		got = take_burst(w, nic, now, most);
		n += got;
	} while (got == most && n < budget);
	return n;
}

static bool udp_transmit(struct wire_base *base, const struct nbnic_addr *to,
			 const struct nbfw_token *t)
{
	struct udp_wire *w = (struct udp_wire *)base;
	uint8_t frame[WIRE_FRAME_MAX];
	uint32_t size = wire_frame_pack(base, to, t, frame);
	union udp_name name;
	socklen_t length = addr_unpack(w, to, &name);

	if (length > 0 && !has_room(w, to))
		length = 0;
	if (length > 0 && sendto(w->fd, frame, size, MSG_DONTWAIT, &name.any, length) >= 0)
		return true;
	if (length > 0 && (errno == EAGAIN || errno == ENOBUFS)) {
		w->base.refused++;
		return false;
	}
	w->base.errors++;
	return true;
}

static int udp_wakes(const struct wire_base *base)
{
	return ((const struct udp_wire *)base)->fd;
}

static void udp_show(const struct wire_base *base, const struct nbnic_addr *a, char *text,
		     size_t size)
{
	union udp_name name;

	text[0] = '\0';
	if (addr_unpack((const struct udp_wire *)base, a, &name) > 0)
		name_show(&name, text, size);
}

const struct wire_ops wire_udp_ops = {
	.values = true,
	.quota = 1, /* each frame is a system call */
	.open = udp_open,
	.close = udp_close,
	.poll = udp_poll,
	.transmit = udp_transmit,
	.peer_begin = wire_auth_peer_begin,
	.peer_end = wire_auth_peer_end,
	.wakes = udp_wakes,
	.show = udp_show,
	.forked = udp_forked,
};
