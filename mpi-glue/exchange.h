/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.h - messages between the ranks of a communicator during its set-up.
 *
 * Messages, bytes and memory of a rank grow with the logarithm of the number of ranks, and with the
 * number of peers in the plan of its host. Only nbmpi_exchange_numbers, which plans from a profile
 * need, gives each rank a table of all ranks.
 */
#ifndef NBMPI_EXCHANGE_H
#define NBMPI_EXCHANGE_H

#include "comm.h"

/* How ranks exchange messages: nbmpi_ops.exchange, for one communicator and one set-up. */
struct nbmpi_channel {
	int (*exchange)(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n);
	void *mpi;
	uint32_t tag; /* even: for receives from any rank; all other messages use tag + 1 */
};

/*
 * Does nbmpi_ops.sum by messages over a binomial tree. meet: NBMPI_WHY_none if the other rank takes
 * part, and knows that this rank takes part. Otherwise both leave each other out, and all ranks
 * learn the reason. NULL: all ranks take part.
 */
int nbmpi_tree_sum(const struct nbmpi_channel *at, uint32_t rank, uint32_t size,
		   enum nbmpi_why (*meet)(void *mpi, uint32_t rank), struct nbmpi_sum *sum);

/* A host, for the rank that leads it. */
struct nbmpi_host {
	uint32_t index;
	struct nbar_endpoint mine;
	const uint32_t *peer; /* indices of the hosts whose addresses its NIC needs */
	uint32_t npeer;
	struct nbar_endpoint *address; /* the result: the addresses, in the order of peer[] */
};

/*
 * Exchange the addresses; all ranks call both functions. A leader does not know the leaders of
 * other hosts, so rank h speaks for host h. host: NULL for a rank that is not a leader.
 *
 * begin: the leaders tell these ranks how many peers each host has. *out: the memory that the rank
 * needs for the rest; NULL: not needed (rank >= nhost), or no memory. The caller frees it.
 * Then all ranks vote, because a rank without memory cannot take part. addresses: allocates
 * nothing, and gives each leader the addresses of its peers; peers are mutual.
 *
 * 0, or an error code of the MPI.
 */
struct nbmpi_speech;
int nbmpi_exchange_begin(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			 const struct nbmpi_host *host, struct nbmpi_speech **out);
int nbmpi_exchange_addresses(const struct nbmpi_channel *at, uint32_t rank,
			     const struct nbmpi_host *host, struct nbmpi_speech *speech);

/* Gives each rank one number from every rank, in order of rank. all: has room for twice as many.
 * Only for small communicators: memory and bytes grow with the number of ranks. A collective must
 * separate it from any other exchange with at->tag. 0, or an error code of the MPI. */
int nbmpi_exchange_numbers(const struct nbmpi_channel *at, uint32_t rank, uint32_t size,
			   uint32_t number, uint32_t *all);

#endif
