/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.h - what the ranks of a communicator tell each other while they set it up.
 *
 * Messages, bytes and memory of a rank grow as the logarithm of the number of ranks, and as the
 * number of peers that the plan of its host has: no rank holds or sends a table of all ranks.
 */
#ifndef NBMPI_EXCHANGE_H
#define NBMPI_EXCHANGE_H

#include "comm.h"

#define NBMPI_NO_MEMORY INT32_MIN /* in place of an error code of the MPI: none has this */

/* How ranks exchange messages: nbmpi_ops.exchange, for one communicator and one set-up. */
struct nbmpi_channel {
	int (*exchange)(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n);
	void *mpi;
	uint32_t
		tag; /* even: a rank that receives from any other uses this one, all else tag + 1 */
};

/*
 * nbmpi_ops.sum by messages over a binomial tree. meet: NBMPI_WHY_none if that rank takes part, and
 * knows that this one does; else both leave each other out, and all others learn the reason.
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
 * Gives each leader the addresses of its peers, which are mutual. Called by all ranks; host: NULL
 * for a rank that leads none. A leader does not know which rank leads another host: rank h speaks
 * for host h. 0, an error code of the MPI, or NBMPI_NO_MEMORY.
 */
int nbmpi_exchange_addresses(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			     const struct nbmpi_host *host);

/*
 * Gives each leader a number of every host: all[h] is what the leader of host h passes as `number`.
 * index: the caller's host if it leads one, else NBAR_RANK_NONE. Memory of a leader, and of ranks
 * below nhost: as many numbers as there are hosts. Called by all ranks, with a collective between
 * this and any other exchange by at->tag. Returns as nbmpi_exchange_addresses.
 */
int nbmpi_exchange_numbers(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			   uint32_t index, uint32_t number, uint32_t *all);

#endif
