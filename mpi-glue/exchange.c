/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.c - sums over all ranks, and addresses from peer to peer.
 *
 * Called by the set-up (join.c) in all ranks of a communicator at once. Knows no MPI, and no NIC:
 * an address is only bytes. Keeps no state.
 */
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

#define CHILDREN_MAX 32u

/* --- sums ------------------------------------------------------------------------------------ */

/* Gives the children of `rank` in the tree, in order. A child stands for the ranks from itself up
 * to the next child. */
static uint32_t children_of(uint32_t rank, uint32_t size, uint32_t child[CHILDREN_MAX])
{
	uint64_t end = rank == 0 ? size : rank & -rank;
	uint32_t n = 0;

	for (uint64_t step = 1; step < end && rank + step < size; step *= 2)
		child[n++] = rank + (uint32_t)step;
	return n;
}

/* False: the rank is left out, and this rank votes against in its place. */
static bool takes_part(const struct nbmpi_channel *at,
		       enum nbmpi_why (*meet)(void *mpi, uint32_t rank), uint32_t rank,
		       struct nbmpi_sum *sum)
{
	enum nbmpi_why why = meet ? meet(at->mpi, rank) : NBMPI_WHY_none;
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
		if (takes_part(at, meet, child[i], sum)) {
			message[n] = (struct nbmpi_message){ child[i], sizeof(part[n]), true,
							     &part[n], NULL };
			n++;
		}
	top = rank == 0 || !takes_part(at, meet, parent, sum);
	sum->before = 0;
	rc = at->exchange(at->mpi, at->tag + 1, message, n);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		sum->least = part[i].least < sum->least ? part[i].least : sum->least;
		for (uint32_t k = 0; k < sizeof(sum->also) / sizeof(sum->also[0]); k++)
			if (part[i].also[k] < sum->also[k])
				sum->also[k] = part[i].also[k];
		sum->total += part[i].total;
	}
	if (!top && rc == 0) {
		struct nbmpi_message with_parent = { parent, sizeof(*sum), false, sum, NULL };

		rc = at->exchange(at->mpi, at->tag + 1, &with_parent, 1);
		with_parent.in = true;
		if (rc == 0)
			rc = at->exchange(at->mpi, at->tag + 1, &with_parent, 1);
	}
	before = sum->before + own;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t below = part[i].total;

		part[i] = *sum;
		part[i].before = before;
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

/* What the rank that speaks for a host needs: its peers, their addresses, and messages. */
struct nbmpi_speech {
	struct card card;
	uint32_t *peer;
	struct nbar_endpoint *address;
	struct nbmpi_message message[];
};

static struct nbmpi_speech *speech_new(const struct card *card)
{
	size_t n = card->npeer;
	size_t size = 2 * n * sizeof(struct nbmpi_message) + n * sizeof(struct nbar_endpoint);
	struct nbmpi_speech *s = calloc(1, sizeof(*s) + size + n * sizeof(uint32_t));

	if (!s)
		return NULL;
	s->card = *card;
	s->address = (struct nbar_endpoint *)(s->message + 2 * n);
	s->peer = (uint32_t *)(s->address + n);
	return s;
}

int nbmpi_exchange_begin(const struct nbmpi_channel *at, uint32_t rank, uint32_t nhost,
			 const struct nbmpi_host *host, struct nbmpi_speech **out)
{
	bool own = host && host->index == rank;
	struct nbmpi_message message[2];
	struct card mine, card;
	uint32_t n = 0;
	int rc;

	if (host)
		mine = card = (struct card){ host->mine, rank, host->npeer };
	if (host && !own)
		message[n++] =
			(struct nbmpi_message){ host->index, sizeof(mine), false, &mine, NULL };
	if (rank < nhost && !own)
		message[n++] =
			(struct nbmpi_message){ NBAR_RANK_NONE, sizeof(card), true, &card, NULL };
	rc = at->exchange(at->mpi, at->tag, message, n);
	*out = rc == 0 && rank < nhost ? speech_new(&card) : NULL;
	return rc;
}

/* Rank h of the communicator speaks for host h: rank h gets the addresses of the host's peers from
 * the ranks that speak for these peers. */
static int exchange_speak(const struct nbmpi_channel *at, struct nbmpi_speech *s)
{
	uint32_t n = s->card.npeer, size = sizeof(*s->address);

	for (uint32_t i = 0; i < n; i++) {
		s->message[i] =
			(struct nbmpi_message){ s->peer[i], size, true, &s->address[i], NULL };
		s->message[n + i] =
			(struct nbmpi_message){ s->peer[i], size, false, &s->card.address, NULL };
	}
	return at->exchange(at->mpi, at->tag + 1, s->message, 2 * n);
}

/* Passes a message between a leader and the rank that speaks for its host. */
static int pass(const struct nbmpi_channel *at, uint32_t rank, bool in, void *data, size_t size)
{
	struct nbmpi_message message = { rank, (uint32_t)size, in, data, NULL };

	return at->exchange(at->mpi, at->tag + 1, &message, 1);
}

int nbmpi_exchange_addresses(const struct nbmpi_channel *at, uint32_t rank,
			     const struct nbmpi_host *host, struct nbmpi_speech *s)
{
	bool own = s && s->card.leader == rank;
	int rc = 0;

	if (own)
		memcpy(s->peer, host->peer, host->npeer * sizeof(*host->peer));
	else if (host)
		rc = pass(at, host->index, false, (void *)(uintptr_t)host->peer,
			  host->npeer * sizeof(*host->peer));
	if (rc == 0 && s && !own)
		rc = pass(at, s->card.leader, true, s->peer, s->card.npeer * sizeof(*s->peer));
	if (rc == 0 && s)
		rc = exchange_speak(at, s);
	if (rc == 0 && s && !own)
		rc = pass(at, s->card.leader, false, s->address,
			  s->card.npeer * sizeof(*s->address));
	if (rc != 0 || !host)
		return rc;
	if (!own)
		return pass(at, host->index, true, host->address,
			    host->npeer * sizeof(*host->address));
	memcpy(host->address, s->address, host->npeer * sizeof(*host->address));
	return 0;
}

/* --- numbers --------------------------------------------------------------------------------- */

/* Bruck's allgather, in log size messages. */
int nbmpi_exchange_numbers(const struct nbmpi_channel *at, uint32_t rank, uint32_t size,
			   uint32_t number, uint32_t *all)
{
	uint32_t *part = all + size, have = 1;
	int rc = 0;

	part[0] = number;
	while (rc == 0 && have < size) {
		uint32_t n = have < size - have ? have : size - have;
		uint32_t bytes = n * (uint32_t)sizeof(*part);
		struct nbmpi_message message[] = {
			{ (rank + size - have) % size, bytes, false, part, NULL },
			{ (rank + have) % size, bytes, true, part + have, NULL },
		};

		rc = at->exchange(at->mpi, at->tag + 1, message, 2);
		have += n;
	}
	for (uint32_t i = 0; i < size; i++)
		all[(rank + i) % size] = part[i];
	return rc;
}
