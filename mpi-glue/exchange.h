/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.h - messages between the ranks of a communicator during its set-up.
 *
 * Messages, bytes and memory of a rank grow with the logarithm of the number of ranks, and with the
 * number of peers in the plan of its host: no rank holds or sends a table of all ranks.
 */
#ifndef NBMPI_EXCHANGE_H
#define NBMPI_EXCHANGE_H

#include "comm.h"

#define NBMPI_NO_MEMORY INT32_MIN /* in place of an error code of the MPI: none has this */

/* How ranks exchange messages: nbmpi_ops.exchange, for one communicator and one set-up. */
struct nbmpi_channel {
	int (*exchange)(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n);
	void *mpi;
	uint32_t tag; /* even: for receives from any rank; all other messages use tag + 1 */
};

/*
 * nbmpi_ops.sum by messages over a binomial tree. meet: NBMPI_WHY_none if the other rank takes
 * part, and knows that this rank does. Otherwise both leave each other out, and all ranks learn the
 * reason.
 */
int nbmpi_tree_sum(const struct nbmpi_channel *at, uint32_t rank, uint32_t size,
		   enum nbmpi_why (*meet)(void *mpi, uint32_t rank), struct nbmpi_sum *sum);

/* A host, for the rank that leads it. */
struct nbmpi_host {
	uint32_t index;
	struct nbar_endpoint mine;
	const uint32_t
		*peer; /* indices of the hosts whose addresses its NIC needs, and npeer ... */
	uint32_t npeer;
	struct nbar_endpoint *address; /* ... of these, in the same order: the result */
};

/*
 * Gives each leader the addresses of its peers; peers are mutual. Called by all ranks; host: NULL
 * for a rank that is not a leader. A leader does not know the leaders of other hosts, so rank h
 * speaks for host h. 0, an error code of the MPI, or NBMPI_NO_MEMORY.
 */
int nbmpi_exchange_addresses(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			     const struct nbmpi_host *host);

/*
 * Gives each leader one number from every host: all[h] is the `number` of the leader of host h.
 * index: the host of the calling leader, else NBAR_RANK_NONE. Leaders, and ranks below nhost, need
 * memory for one number per host. Called by all ranks; a collective must separate it from any other
 * exchange with at->tag. Returns as nbmpi_exchange_addresses.
 */
int nbmpi_exchange_numbers(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			   uint32_t index, uint32_t number, uint32_t *all);

#endif
