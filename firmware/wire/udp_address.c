/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_address.c - the address that a NIC on "udp" advertises to its peers, if no option names
 * one: the default route decides, then the kind of the interface.
 *
 * Each host with containers has the same address on a bridge, such as 172.17.0.1, and no peer can
 * reach it. Sends no frame.
 */
#include "udp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef IPV6_PREFER_SRC_PUBLIC
#define IPV6_PREFER_SRC_PUBLIC 0x0002 /* of linux/in6.h, which does not go with netinet/in.h */
#endif

/* Best first. IPv4 goes before IPv6 of the same kind, so that hosts with both choose alike. */
enum choice {
	ROUTED_4,
	PLAIN_4,
	ROUTED_6,
	PLAIN_6,
	SECOND_4, /* of a bridge, or of a tunnel */
	SECOND_6,
	NEAR_4, /* link-local */
	NEAR_6,
	NONE
};

socklen_t udp_name_size(const union udp_name *n)
{
	return n->any.sa_family == AF_INET ? sizeof(n->in) : sizeof(n->in6);
}

static bool is_loopback(const union udp_name *n)
{
	if (n->any.sa_family == AF_INET)
		return ntohl(n->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&n->in6.sin6_addr);
}

static bool is_near(const union udp_name *n)
{
	if (n->any.sa_family == AF_INET)
		return ntohl(n->in.sin_addr.s_addr) >> 16 == 0xa9fe; /* 169.254.0.0/16 */
	return IN6_IS_ADDR_LINKLOCAL(&n->in6.sin6_addr);
}

static enum choice address_judge(const struct udp_local *l)
{
	bool is_6 = l->name.any.sa_family == AF_INET6;

	if (is_loopback(&l->name))
		return NONE;
	/* An address of the loopback interface may be that of the default route, where routers
	 * announce it. */
	if (l->routed && !is_near(&l->name))
		return is_6 ? ROUTED_6 : ROUTED_4;
	if (!(l->flags & IFF_UP) || !(l->flags & IFF_RUNNING) || (l->flags & IFF_LOOPBACK))
		return NONE;
	if (is_near(&l->name) && is_6)
		return l->name.in6.sin6_scope_id ? NEAR_6 : NONE;
	if (is_near(&l->name))
		return NEAR_4;
	if (l->bridge || (l->flags & IFF_POINTOPOINT))
		return is_6 ? SECOND_6 : SECOND_4;
	return is_6 ? PLAIN_6 : PLAIN_4;
}

static void address_explain(enum choice choice, const char *interface, char *why, size_t size)
{
	switch (choice) {
	case ROUTED_4:
	case ROUTED_6:
		snprintf(why, size, "%s, by which the default route goes", interface);
		return;
	case PLAIN_4:
	case PLAIN_6:
		snprintf(why, size, "%s, the first interface that runs: no default route",
			 interface);
		return;
	case SECOND_4:
	case SECOND_6:
		snprintf(why, size, "%s, a bridge or tunnel: no other interface has an address",
			 interface);
		return;
	case NEAR_4:
	case NEAR_6:
		snprintf(why, size, "link-local on %s: no interface has another address",
			 interface);
		return;
	case NONE:
		snprintf(why, size, "no network: other hosts cannot reach it");
		return;
	}
}

const struct udp_local *udp_address_choose(const struct udp_local *local, size_t n, char *why,
					   size_t size)
{
	const struct udp_local *best = NULL;
	enum choice choice = NONE;

	for (size_t i = 0; i < n; i++)
		if (address_judge(&local[i]) < choice) {
			best = &local[i];
			choice = address_judge(best);
		}
	address_explain(choice, best ? best->interface : "", why, size);
	return best;
}

/* True if the driver of the interface is that of bridges. The socket knows the network of this
 * process; /sys may show another one. */
static bool is_bridge(int fd, const char *interface)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request = { .ifr_data = (void *)&info };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	return ioctl(fd, SIOCETHTOOL, &request) == 0 && strcmp(info.driver, "bridge") == 0;
}

/* Finds the source address of packets by the default route: the kernel chooses it when a socket
 * connects to an address of documentation, where nobody is. No packet is sent. */
static bool find_routed(sa_family_t family, union udp_name *out)
{
	union udp_name far = { .any.sa_family = family };
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), public = IPV6_PREFER_SRC_PUBLIC;
	socklen_t size = sizeof(*out);
	bool found;

	if (family == AF_INET) {
		far.in.sin_port = htons(9);
		inet_pton(AF_INET, "203.0.113.1", &far.in.sin_addr);
	} else {
		far.in6.sin6_port = htons(9);
		inet_pton(AF_INET6, "2001:db8::1", &far.in6.sin6_addr);
		/* A temporary address ends before a long job does. */
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, &public, sizeof(public));
	}
	found = fd >= 0 && connect(fd, &far.any, udp_name_size(&far)) == 0 &&
		getsockname(fd, &out->any, &size) == 0;
	if (fd >= 0)
		close(fd);
	return found;
}

static bool same_ip(const union udp_name *a, const union udp_name *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

static bool is_ip(const struct ifaddrs *i)
{
	return i->ifa_addr &&
	       (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

/* Writes the addresses of the list to local[], in the order of the kernel. */
static void address_collect(const struct ifaddrs *list, struct udp_local *local)
{
	union udp_name routed[2];
	bool has[2] = { find_routed(AF_INET, &routed[0]), find_routed(AF_INET6, &routed[1]) };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* for questions alone */

	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct udp_local *l = local;

		if (!is_ip(i))
			continue;
		*l = (struct udp_local){ .flags = i->ifa_flags };
		snprintf(l->interface, sizeof(l->interface), "%s", i->ifa_name);
		l->name.any.sa_family = i->ifa_addr->sa_family;
		memcpy(&l->name, i->ifa_addr, udp_name_size(&l->name));
		l->bridge = is_bridge(fd, i->ifa_name);
		l->routed = (has[0] && same_ip(&routed[0], &l->name)) ||
			    (has[1] && same_ip(&routed[1], &l->name));
		local++;
	}
	if (fd >= 0)
		close(fd);
}

int udp_address_find(union udp_name *out, char *why, size_t size)
{
	const struct udp_local *best;
	struct udp_local *local;
	struct ifaddrs *list;
	size_t n = 0;

	if (getifaddrs(&list) < 0)
		return -errno;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		n += is_ip(i);
	local = calloc(n + 1, sizeof(*local));
	if (local)
		address_collect(list, local);
	freeifaddrs(list);
	if (!local)
		return -ENOMEM;
	best = udp_address_choose(local, n, why, size);
	*out = (union udp_name){ .in = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	if (best)
		*out = best->name;
	free(local);
	return 0;
}
