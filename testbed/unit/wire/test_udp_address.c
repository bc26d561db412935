/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_address.c - which address a NIC on "udp" takes, from prepared facts of a host: bridges
 * of containers, IPv6 only, several interfaces, zones, no network; and from the facts of this host.
 */
#include "unit/unit.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "udp_address.h"

#define RUNS (IFF_UP | IFF_RUNNING | IFF_BROADCAST)
#define BRIDGE (1u << 30)
#define ROUTED (1u << 31)
#define LOCALS_MAX 6u

/* An address in the order of the kernel; the list ends with an address that is NULL. */
struct fact {
	const char *interface, *address; /* with % and the number of its zone */
	unsigned flags;                  /* IFF_*, BRIDGE, ROUTED */
};

struct host {
	const char *what;
	struct fact fact[LOCALS_MAX];
	const char *chosen; /* NULL: none */
	const char *why;    /* part of the reason */
};

#define LO                                                          \
	{ "lo", "127.0.0.1", IFF_UP | IFF_RUNNING | IFF_LOOPBACK }, \
	{                                                           \
		"lo", "::1", IFF_UP | IFF_RUNNING | IFF_LOOPBACK    \
	}

static const struct host hosts[] = {
	{ "one interface with a default route",
	  { LO, { "eth0", "10.0.0.1", RUNS | ROUTED } },
	  "10.0.0.1",
	  "eth0, by which the default route goes" },
	{ "one interface, no default route",
	  { LO, { "eth0", "10.0.0.1", RUNS } },
	  "10.0.0.1",
	  "eth0, the first interface that runs: no default route" },
	{ "a bridge of containers that runs, before eth0",
	  { LO, { "docker0", "172.17.0.1", RUNS | BRIDGE }, { "eth0", "10.0.0.1", RUNS | ROUTED } },
	  "10.0.0.1",
	  "eth0" },
	{ "a bridge that runs, before eth0, and no default route",
	  { LO, { "docker0", "172.17.0.1", RUNS | BRIDGE }, { "eth0", "10.0.0.1", RUNS } },
	  "10.0.0.1",
	  "eth0" },
	{ "a bridge without a carrier, and no other address",
	  { LO, { "docker0", "172.17.0.1", IFF_UP | IFF_BROADCAST | BRIDGE } },
	  NULL,
	  "no network" },
	{ "the host's own interface is a port of a bridge",
	  { LO, { "br0", "10.0.0.1", RUNS | BRIDGE | ROUTED } },
	  "10.0.0.1",
	  "br0, by which the default route goes" },
	{ "such a bridge, without a default route",
	  { LO, { "br0", "10.0.0.1", RUNS | BRIDGE }, { "eth0", "fe80::1%2", RUNS } },
	  "10.0.0.1",
	  "br0, a bridge or tunnel" },
	{ "the second interface has the default route",
	  { LO, { "eth0", "192.168.1.9", RUNS }, { "eth1", "10.0.0.1", RUNS | ROUTED } },
	  "10.0.0.1",
	  "eth1" },
	{ "two interfaces without a default route: the first",
	  { LO, { "eth0", "10.0.0.1", RUNS }, { "eth1", "192.168.1.9", RUNS } },
	  "10.0.0.1",
	  "eth0" },
	{ "the second address of an interface has the default route",
	  { LO, { "eth0", "192.168.1.9", RUNS }, { "eth0", "10.0.0.1", RUNS | ROUTED } },
	  "10.0.0.1",
	  "eth0" },
	{ "the first interface has no carrier",
	  { LO, { "eth0", "10.0.0.1", IFF_UP | IFF_BROADCAST }, { "eth1", "10.0.1.1", RUNS } },
	  "10.0.1.1",
	  "eth1" },
	{ "the first interface is down",
	  { LO, { "eth0", "10.0.0.1", IFF_BROADCAST }, { "eth1", "10.0.1.1", RUNS } },
	  "10.0.1.1",
	  "eth1" },
	{ "a tunnel before eth0",
	  { LO,
	    { "tun0", "10.8.0.1", IFF_UP | IFF_RUNNING | IFF_POINTOPOINT },
	    { "eth0", "10.0.0.1", RUNS } },
	  "10.0.0.1",
	  "eth0" },
	{ "only a tunnel",
	  { LO, { "wg0", "10.8.0.1", IFF_UP | IFF_RUNNING | IFF_POINTOPOINT } },
	  "10.8.0.1",
	  "wg0, a bridge or tunnel" },
	{ "the address of the default route is announced from the loopback interface",
	  { { "lo", "127.0.0.1", IFF_UP | IFF_RUNNING | IFF_LOOPBACK },
	    { "lo", "10.0.0.1", IFF_UP | IFF_RUNNING | IFF_LOOPBACK | ROUTED },
	    { "eth0", "169.254.0.9", RUNS } },
	  "10.0.0.1",
	  "lo, by which" },
	{ "an address of the loopback interface without a default route",
	  { LO, { "lo", "10.0.0.1", IFF_UP | IFF_RUNNING | IFF_LOOPBACK } },
	  NULL,
	  "no network" },
	{ "IPv6 only",
	  { LO,
	    { "eth0", "fe80::1%2", RUNS },
	    { "eth0", "fd00::1", RUNS },
	    { "eth0", "2001:db8:1::1", RUNS | ROUTED } },
	  "2001:db8:1::1",
	  "eth0, by which the default route goes" },
	{ "IPv6 only, no default route",
	  { LO, { "eth0", "fe80::1%2", RUNS }, { "eth0", "fd00::1", RUNS } },
	  "fd00::1",
	  "eth0, the first" },
	{ "IPv6 only, and a bridge of containers with IPv4",
	  { LO,
	    { "docker0", "172.17.0.1", RUNS | BRIDGE },
	    { "docker0", "fd01::1", RUNS | BRIDGE },
	    { "eth0", "fd00::1", RUNS } },
	  "fd00::1",
	  "eth0" },
	{ "IPv4 and IPv6: IPv4",
	  { LO, { "eth0", "2001:db8:1::1", RUNS | ROUTED }, { "eth0", "10.0.0.1", RUNS | ROUTED } },
	  "10.0.0.1",
	  "eth0" },
	{ "IPv4 and IPv6, and only IPv6 has a default route: IPv4, as hosts without a route take",
	  { LO, { "eth0", "2001:db8:1::1", RUNS | ROUTED }, { "eth0", "10.0.0.1", RUNS } },
	  "10.0.0.1",
	  "eth0" },
	{ "link-local only: IPv4 before IPv6",
	  { LO, { "eth0", "fe80::1%2", RUNS }, { "eth0", "169.254.3.4", RUNS | ROUTED } },
	  "169.254.3.4",
	  "link-local on eth0" },
	{ "a link-local address with its zone, the second interface's",
	  { LO, { "eth0", "fe80::1%2", IFF_UP }, { "eth1", "fe80::2%3", RUNS } },
	  "fe80::2%3",
	  "link-local on eth1" },
	{ "a link-local address without a zone",
	  { LO, { "eth0", "fe80::1", RUNS } },
	  NULL,
	  "no network" },
	{ "only the loopback interface", { LO }, NULL, "no network" },
	{ "no interface", { { NULL, NULL, 0 } }, NULL, "no network" },
};

static void local_set(struct udp_local *l, const struct fact *f)
{
	char address[INET6_ADDRSTRLEN];
	const char *zone = strchr(f->address, '%');

	*l = (struct udp_local){
		.flags = f->flags & ~(BRIDGE | ROUTED),
		.bridge = f->flags & BRIDGE,
		.routed = f->flags & ROUTED,
	};
	snprintf(l->interface, sizeof(l->interface), "%s", f->interface);
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(f->address, "%"), f->address);
	if (inet_pton(AF_INET, address, &l->name.in.sin_addr) == 1) {
		l->name.in.sin_family = AF_INET;
		return;
	}
	assert_int_equal(inet_pton(AF_INET6, address, &l->name.in6.sin6_addr), 1);
	l->name.in6.sin6_family = AF_INET6;
	l->name.in6.sin6_scope_id = zone ? (uint32_t)atoi(zone + 1) : 0;
}

static void chooses(void **state)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		const struct host *h = &hosts[i];
		const struct udp_local *chosen, *wanted = NULL;
		struct udp_local local[LOCALS_MAX];
		char why[96] = "";
		size_t n = 0;

		for (; n < LOCALS_MAX && h->fact[n].address; n++) {
			local_set(&local[n], &h->fact[n]);
			if (h->chosen && strcmp(h->fact[n].address, h->chosen) == 0)
				wanted = &local[n];
		}
		assert_true(!h->chosen == !wanted);
		chosen = udp_address_choose(local, n, why, sizeof(why));
		if (chosen != wanted || !strstr(why, h->why))
			fail_msg("%s: address %td, \"%s\"", h->what, chosen ? chosen - local : -1,
				 why);
	}
}

/* Whatever network this host has, a NIC gets an address of it, and a reason. */
static void finds(void **state)
{
	char why[96] = "";
	union udp_name name;
	int fd;

	assert_int_equal(udp_address_find(&name, why, sizeof(why)), 0);
	assert_string_not_equal(why, "");
	assert_int_equal(name.in.sin_port, 0);
	fd = socket(name.any.sa_family, SOCK_DGRAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &name.any, udp_name_size(&name)), 0);
	close(fd);
}

UNIT_MAIN(NULL, NULL, UNIT(chooses), UNIT(finds))
