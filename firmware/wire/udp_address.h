/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_address.h - the address of a NIC on "udp" that no option names.
 *
 * Called when a NIC is opened. udp_address_choose is pure, so tests prepare the facts;
 * udp_address_find collects the facts of this host.
 */
#ifndef NBAR_UDP_ADDRESS_H
#define NBAR_UDP_ADDRESS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union udp_name {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* An address of this host. */
struct udp_local {
	char interface[IF_NAMESIZE];
	unsigned flags; /* IFF_* of the interface; without a carrier, IFF_RUNNING is not set */
	bool bridge;    /* the interface is a bridge, as those of containers are */
	bool routed;    /* packets by the default route have this source address */
	union udp_name name;
};

/* Returns the address that peers reach most probably, or NULL if other hosts can reach none. *why:
 * the reason, for people. */
const struct udp_local *udp_address_choose(const struct udp_local *local, size_t n, char *why,
					   size_t size);

/* Sets *out to that address of this host, with port 0, or to 127.0.0.1. 0, or a negative errno. */
int udp_address_find(union udp_name *out, char *why, size_t size);

/* Bytes of the name in its family. */
socklen_t udp_name_size(const union udp_name *n);

#endif
