/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h - the place of a process: each process publishes its place once; equal hosts show which
 * processes share a host.
 *
 * Two processes are on one host if they can share memory and use the same NIC: same kernel, same
 * namespaces, same NIC. Containers of one machine with a NIC each are hosts of their own.
 */
#ifndef NBMPI_NODE_H
#define NBMPI_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* What a process tells the others when MPI starts. Plain bytes, compared as such. */
struct nbmpi_node {
	uint64_t boot[2]; /* the kernel: all of one boot share memory and clock */
	uint64_t host[2]; /* within the kernel: namespaces, host's name, NIC */
	uint64_t has_nic; /* 0: the run directory has no socket of the NIC */
	uint64_t terms;   /* must be equal at all members: version, settings */
};

/* Describes this process. rank: in its world, for the NIC's name. */
void nbmpi_node_self(const struct nbmpi_config *config, uint32_t rank, struct nbmpi_node *out);

/* Says what to do if this process has no NIC; "" if it has a NIC. */
const char *nbmpi_node_lacks_nic(void);

static inline bool nbmpi_node_same(const struct nbmpi_node *a, const struct nbmpi_node *b)
{
	return a->boot[0] == b->boot[0] && a->boot[1] == b->boot[1] && a->host[0] == b->host[0] &&
	       a->host[1] == b->host[1];
}

/* Returns a number of the host: processes of one host get the same number. Never 0. */
static inline uint64_t nbmpi_node_host(const struct nbmpi_node *node)
{
	return (node->boot[0] ^ node->host[0]) | 1;
}

/* Numbers hosts from 0, in the order of their lowest ranks, and returns the number of each rank's
 * host. host: as nbmpi_ops.host. The caller frees the result. NULL: no memory. */
uint32_t *nbmpi_hosts_number(uint64_t (*host)(void *arg, uint32_t rank), void *arg, uint32_t size);

#endif
