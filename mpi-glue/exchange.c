/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.c - sums over all ranks, and addresses from peer to peer.
 *
 * Called by the set-up (join.c) in all ranks of a communicator at once. Knows no MPI, and no NIC:
 * an address is only bytes. Keeps no state.
 */
#include <stdlib.h>

#include "exchange.h"

#define CHILDREN_MAX 32u

/* --- sums ------------------------------------------------------------------------------------ */

/* The children of `rank` in the tree, in order: each stands for the ranks from itself up to the
 * next child. */
static uint32_t children_of(uint32_t rank, uint32_t size, uint32_t child[CHILDREN_MAX])
{
	uint64_t end = rank == 0 ? size : rank & -rank;
	uint32_t n = 0;

	for (uint64_t step = 1; step < end && rank + step < size; step *= 2)
		child[n++] = rank + (uint32_t)step;
	return n;
}

/* False: the rank is left out, and this rank votes no in its place. */
static bool takes_part(enum nbmpi_why why, uint32_t rank, struct nbmpi_sum *sum)
{
	uint64_t no = nbmpi_vote_no(why, rank);

	if (why == NBMPI_WHY_none)
		return true;
	sum->least = no < sum->least ? no : sum->least;
	return false;
}

int nbmpi_tree_sum(const struct nbmpi_channel *at, uint32_t rank, uint32_t size,
		   enum nbmpi_why (*meet)(void *mpi, uint32_t rank), struct nbmpi_sum *sum)
{
	uint32_t child[CHILDREN_MAX], all = children_of(rank, size, child), n = 0;
	uint32_t parent = rank & (rank - 1), own = sum->total, before;
	struct nbmpi_message message[CHILDREN_MAX];
	struct nbmpi_sum part[CHILDREN_MAX];
	bool top;
	int rc;

	for (uint32_t i = 0; i < all; i++)
		if (takes_part(meet(at->mpi, child[i]), rank, sum)) {
			message[n] =
				(struct nbmpi_message){ child[i], sizeof(part[n]), true, &part[n] };
			n++;
		}
	top = rank == 0 || !takes_part(meet(at->mpi, parent), rank, sum);
	sum->before = 0;
	rc = at->exchange(at->mpi, at->tag + 1, message, n);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		sum->least = part[i].least < sum->least ? part[i].least : sum->least;
		sum->total += part[i].total;
	}
	if (!top && rc == 0) {
		struct nbmpi_message with_parent = { parent, sizeof(*sum), false, sum };

		rc = at->exchange(at->mpi, at->tag + 1, &with_parent, 1);
		with_parent.in = true;
		if (rc == 0)
			rc = at->exchange(at->mpi, at->tag + 1, &with_parent, 1);
	}
	before = sum->before + own;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t below = part[i].total;

		part[i] = (struct nbmpi_sum){ sum->least, before, sum->total };
		before += below;
		message[i].in = false;
	}
	return rc == 0 ? at->exchange(at->mpi, at->tag + 1, message, n) : rc;
}

/* --- addresses ------------------------------------------------------------------------------- */

/* Sent by a leader to the rank that speaks for its host. */
struct card {
	struct nbar_endpoint address;
	uint32_t leader, npeer;
};

/* Rank h of the communicator speaks for host h: it gets the addresses of the host's peers from the
 * ranks that speak for these peers. */
static int speak(const struct nbmpi_channel *at, const struct card *card, const uint32_t *peer,
		 struct nbar_endpoint *address)
{
	uint32_t n = card->npeer;
	struct nbmpi_message *message = calloc(2 * (size_t)n + 1, sizeof(*message));
	int rc;

	if (!message)
		return NBMPI_NO_MEMORY;
	for (uint32_t i = 0; i < n; i++) {
		message[i] = (struct nbmpi_message){ peer[i], sizeof(*address), true, &address[i] };
		message[n + i] = (struct nbmpi_message){ peer[i], sizeof(*address), false,
							 (void *)(uintptr_t)&card->address };
	}
	rc = at->exchange(at->mpi, at->tag + 1, message, 2 * n);
	free(message);
	return rc;
}

/* The same for a host whose leader is another rank. */
static int speak_for_other(const struct nbmpi_channel *at)
{
	struct nbar_endpoint *address = NULL;
	struct nbmpi_message message;
	uint32_t *peer = NULL;
	struct card card;
	int rc;

	message = (struct nbmpi_message){ NBAR_RANK_NONE, sizeof(card), true, &card };
	rc = at->exchange(at->mpi, at->tag, &message, 1);
	if (rc != 0)
		return rc;
	peer = calloc(card.npeer + 1, sizeof(*peer));
	address = calloc(card.npeer + 1, sizeof(*address));
	rc = peer && address ? 0 : NBMPI_NO_MEMORY;
	message = (struct nbmpi_message){ card.leader, card.npeer * (uint32_t)sizeof(*peer), true,
					  peer };
	if (rc == 0)
		rc = at->exchange(at->mpi, at->tag + 1, &message, 1);
	if (rc == 0)
		rc = speak(at, &card, peer, address);
	message = (struct nbmpi_message){ card.leader, card.npeer * (uint32_t)sizeof(*address),
					  false, address };
	if (rc == 0)
		rc = at->exchange(at->mpi, at->tag + 1, &message, 1);
	free(peer);
	free(address);
	return rc;
}

int nbmpi_exchange_addresses(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			     const struct nbmpi_host *host)
{
	struct nbmpi_message message;
	struct card card;
	int rc = 0;

	if (host)
		card = (struct card){ host->mine, rank, host->npeer };
	if (host && host->index == rank)
		return speak(at, &card, host->peer, host->address);
	if (host) {
		message = (struct nbmpi_message){ host->index, sizeof(card), false, &card };
		rc = at->exchange(at->mpi, at->tag, &message, 1);
		message = (struct nbmpi_message){ host->index,
						  host->npeer * (uint32_t)sizeof(*host->peer),
						  false, (void *)(uintptr_t)host->peer };
		if (rc == 0)
			rc = at->exchange(at->mpi, at->tag + 1, &message, 1);
	}
	if (rc == 0 && rank < nhost)
		rc = speak_for_other(at);
	if (host && rc == 0) {
		message = (struct nbmpi_message){ host->index,
						  host->npeer * (uint32_t)sizeof(*host->address),
						  true, host->address };
		rc = at->exchange(at->mpi, at->tag + 1, &message, 1);
	}
	return rc;
}

/* --- numbers --------------------------------------------------------------------------------- */

/* Ranks below nhost gather all numbers: Bruck's allgather, in log nhost messages. */
static int gather_numbers(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			  uint32_t number, uint32_t *all)
{
	uint32_t *part = malloc(nhost * sizeof(*part)), have = 1;
	int rc = part ? 0 : NBMPI_NO_MEMORY;

	if (rc == 0)
		part[0] = number;
	while (rc == 0 && have < nhost) {
		uint32_t n = have < nhost - have ? have : nhost - have;
		uint32_t size = n * (uint32_t)sizeof(*part);
		struct nbmpi_message message[] = {
			{ (rank + nhost - have) % nhost, size, false, part },
			{ (rank + have) % nhost, size, true, part + have },
		};

		rc = at->exchange(at->mpi, at->tag + 1, message, 2);
		have += n;
	}
	for (uint32_t i = 0; rc == 0 && i < nhost; i++)
		all[(rank + i) % nhost] = part[i];
	free(part);
	return rc;
}

int nbmpi_exchange_numbers(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			   uint32_t index, uint32_t number, uint32_t *all)
{
	struct number {
		uint32_t leader, number;
	} mine = { rank, number }, spoken = mine;
	bool leads = index != NBAR_RANK_NONE, speaks = rank < nhost;
	struct nbmpi_message message[2];
	uint32_t n = 0, *table = all;
	int rc;

	if (leads && index != rank)
		message[n++] = (struct nbmpi_message){ index, sizeof(mine), false, &mine };
	if (speaks && index != rank)
		message[n++] =
			(struct nbmpi_message){ NBAR_RANK_NONE, sizeof(spoken), true, &spoken };
	rc = at->exchange(at->mpi, at->tag, message, n);
	if (rc == 0 && speaks && index != rank) {
		table = malloc(nhost * sizeof(*table));
		rc = table ? 0 : NBMPI_NO_MEMORY;
	}
	if (rc == 0 && speaks)
		rc = gather_numbers(at, rank, nhost, spoken.number, table);
	n = 0;
	if (speaks && index != rank)
		message[n++] =
			(struct nbmpi_message){ spoken.leader, nhost * (uint32_t)sizeof(*table),
						false, table };
	if (leads && index != rank)
		message[n++] =
			(struct nbmpi_message){ index, nhost * (uint32_t)sizeof(*all), true, all };
	if (rc == 0)
		rc = at->exchange(at->mpi, at->tag + 1, message, n);
	if (table != all)
		free(table);
	return rc;
}
