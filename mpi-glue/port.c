/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.c - the ports of a rank: its own, and those of other ranks of its host; and groups on them.
 *
 * Called by join.c, with nbmpi_self.lock. Sends no message of the MPI. If the NIC of our port ends
 * and is started again, the next group is opened on a new port.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comm_internal.h"

struct nbmpi_port {
	struct nbmpi_port *next;
	struct nbar_share share; /* share of some group on the port; 0: our own port */
	struct nbar_port *port;
	uint32_t ngroup; /* number of our groups on the port */
};

static void end(struct nbmpi_port *p)
{
	nbar_close(p->port);
	free(p);
}

/* Takes a port out of the list and closes it. */
static void leave(struct nbmpi_port **at)
{
	struct nbmpi_port *p = *at;

	*at = p->next;
	end(p);
}

static void port_put(struct nbmpi_port *p)
{
	p->next = nbmpi_self.ports;
	nbmpi_self.ports = p;
}

/* Closes the ports of other ranks that have no group, apart from one: each has a descriptor. */
static void leave_unused(const struct nbmpi_port *except)
{
	struct nbmpi_port **at = &nbmpi_self.ports;

	while (*at)
		if (*at != except && (*at)->ngroup == 0)
			leave(at);
		else
			at = &(*at)->next;
}

/* --- our own port ---------------------------------------------------------------------------- */

static enum nbmpi_why own_open(const char *nic)
{
	struct nbmpi_port *p = nbmpi_self.own;

	if (p)
		return NBMPI_WHY_none;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NBMPI_WHY_memory;
	if (nbar_open(nic, &p->port) != 0) {
		free(p);
		return NBMPI_WHY_nic;
	}
	nbmpi_self.own = p;
	return NBMPI_WHY_none;
}

/* The NIC of our port has ended. The port stays until its last group is closed. */
static void own_lost(void)
{
	struct nbmpi_port *p = nbmpi_self.own;

	nbmpi_self.own = NULL;
	if (p->ngroup == 0)
		end(p);
	else
		port_put(p);
}

enum nbmpi_why nbmpi_port_open_group(struct nbmpi_comm *c, const char *nic,
				     const struct nbar_group_attr *attr,
				     struct nbar_endpoint *endpoint)
{
	int rc = -ENETDOWN;

	/* If the NIC of the port has ended, another may run by now. */
	for (int i = 0; i < 2 && rc == -ENETDOWN; i++) {
		enum nbmpi_why why = own_open(nic);

		if (why != NBMPI_WHY_none)
			return why;
		rc = nbar_group_open(nbmpi_self.own->port, attr, &c->group, endpoint);
		if (rc == -ENETDOWN)
			own_lost();
	}
	if (rc != 0)
		return NBMPI_WHY_group;
	c->port = nbmpi_self.own;
	c->port->ngroup++;
	return NBMPI_WHY_none;
}

/* --- ports of other ranks --------------------------------------------------------------------- */

enum nbmpi_why nbmpi_port_attach_group(struct nbmpi_comm *c, const char *nic,
				       const struct nbar_share *share)
{
	struct nbmpi_port *p = nbmpi_self.ports;

	while (p && memcmp(p->share.secret, share->secret, sizeof(share->secret)) != 0)
		p = p->next;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return NBMPI_WHY_memory;
		if (nbar_attach(nic, share, &p->port) != 0) {
			free(p);
			return NBMPI_WHY_attach;
		}
		p->share = *share;
		port_put(p);
	}
	if (nbar_group_attach(p->port, share, &c->group) != 0) {
		leave_unused(NULL);
		return NBMPI_WHY_attach;
	}
	c->port = p;
	p->ngroup++;
	return NBMPI_WHY_none;
}

/* Keeps an unused port for the next group, but at most one. */
void nbmpi_port_close_group(struct nbmpi_comm *c)
{
	struct nbmpi_port *port = c->port;

	nbar_group_close(c->group);
	c->port = NULL;
	if (--port->ngroup == 0 && port != nbmpi_self.own)
		leave_unused(port);
}

void nbmpi_ports_close(void)
{
	while (nbmpi_self.ports)
		leave(&nbmpi_self.ports);
	if (nbmpi_self.own)
		end(nbmpi_self.own);
	nbmpi_self.own = NULL;
}
