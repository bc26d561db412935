/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start.c - tells a NIC of a post, if the NIC does not look at this host's page: the programs of a
 * NIC in the kernel's network path, or a remote NIC.
 */
#include <sys/socket.h>

#include "internal.h"

void nblib_start(const struct nbar_group *g, uint32_t posted, bool sleeps)
{
	struct {
		struct nbar_start start;
		uint8_t value[sizeof(struct nbar_value)];
	} message;
	const struct nbar_port *port = g->port;
	size_t size = sizeof(message.start);

	if (port->link.remote) {
		nblib_remote_rang(g, posted, sleeps);
		return;
	}
	message.start = (struct nbar_start){
		.cell = g->cell, .posted = posted, .sleeps = sleeps, .values = g->values != NULL
	};
	if (g->values && !sleeps)
		size += nblib_value_posted(g, posted, message.value);
	/* The NIC also looks at the doorbell now and then. */
	if (send(port->start, &message, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		nblib_link_kick(&port->link);
}
