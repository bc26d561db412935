/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spare.c - makes a smaller group from the remaining members, without a new exchange by the
 * program.
 *
 * Called when a group has failed. Beside each group that may fail, there is a "signal" group of the
 * same members, connected in advance. Through it the remaining members send each other the endpoint
 * addresses of the new group. Messages may be lost: a member that misses an address asks for it
 * again. Uses only the public API.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define PART_WORDS (NBAR_SIGNAL_WORDS - 1)
#define PARTS (sizeof(struct nbar_endpoint) / (4 * PART_WORDS)) /* messages an address */
#define ALL_PARTS ((1u << PARTS) - 1)
#define ASK PARTS       /* in place of the number of a part: a request for the address */
#define PART_BITS 4u    /* of word[0]; above: which list of failed ranks it is about */
#define ASK_NS 1000000L /* between two requests to the same member */
#define TAKEN_MAX 4096u /* messages between two looks at the clock */
#define ASKED_MAX 64u   /* members that one round asks */

_Static_assert(PARTS * 4 * PART_WORDS == sizeof(struct nbar_endpoint), "whole parts");
_Static_assert(ASK < 1u << PART_BITS, "the number of a part fits");

struct nbar_spare {
	struct nbar_port *port;
	struct nbar_group *signals;
	struct nbar_group_attr attr;
};

/* A shrink under way. Ranks are those of the spare, unless a comment says "new". */
struct shrink {
	struct nbar_spare *spare;
	uint32_t list;                  /* digest of the failed ranks */
	uint32_t nonce;                 /* of this call: answers to an earlier one do not count */
	uint32_t size;                  /* of the new group */
	uint32_t *old_rank;             /* by new rank */
	uint32_t *new_rank;             /* by old rank; NBAR_RANK_NONE: it has failed */
	uint8_t *parts;                 /* by new rank: a bit for each part that came */
	struct nbar_endpoint *endpoint; /* by new rank */
	struct nbar_group *group;
	const uint32_t *need; /* new ranks */
	uint32_t nneed;
};

int nbar_spare_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		    struct nbar_spare **out, struct nbar_endpoint *endpoint)
{
	struct nbar_spare *s = calloc(1, sizeof(*s));
	struct nbar_group_attr of_signals;
	int err = -ENOMEM;

	if (!s)
		return nblib_fail(err, "no memory for a spare");
	err = nblib_struct_read("nbar_group_attr", &s->attr, sizeof(s->attr), NBLIB_ATTR_LEAST,
				attr, attr->struct_size);
	s->port = port;
	s->attr.struct_size = sizeof(s->attr);
	of_signals = s->attr;
	of_signals.alg = "signal";
	of_signals.plan = NULL; /* a custom plan does not fit a group of another size */
	of_signals.plan_length = 0;
	if (err == 0)
		err = nbar_group_open(port, &of_signals, &s->signals, endpoint);
	if (err < 0) {
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

int nbar_spare_connect(struct nbar_spare *s, const struct nbar_endpoint *endpoints)
{
	return nbar_group_connect(s->signals, endpoints);
}

void nbar_spare_close(struct nbar_spare *s)
{
	if (!s)
		return;
	nbar_group_close(s->signals);
	free(s);
}

/* Sends a message to a member; if there is no room for it, it is lost. */
static int send_word(struct shrink *k, uint32_t old_rank, uint32_t head, const void *data)
{
	uint32_t own = k->spare->attr.rank, word[NBAR_SIGNAL_WORDS] = { head };
	int err;

	if (data)
		memcpy(&word[1], data, 4 * PART_WORDS);
	err = nbar_signal_send(k->spare->signals, old_rank - (old_rank > own), word);
	return err == -EAGAIN ? 0 : err;
}

/* nonce: of the request that this answers. */
static int send_address(struct shrink *k, uint32_t old_rank, uint32_t nonce)
{
	const uint8_t *byte = k->endpoint[k->new_rank[k->spare->attr.rank]].byte;
	int err = 0;

	for (uint32_t part = 0; part < PARTS && err == 0; part++)
		err = send_word(k, old_rank, (k->list ^ nonce) | part,
				byte + part * 4 * PART_WORDS);
	return err;
}

/* Takes or answers a message of a member. Ignores a message about another list of failed ranks. */
static int take_message(struct shrink *k, const struct nbar_signal_in *in)
{
	uint32_t part = in->word[0] & ((1u << PART_BITS) - 1);
	uint32_t head = in->word[0] ^ part;
	uint32_t from = in->src < k->spare->attr.size ? k->new_rank[in->src] : NBAR_RANK_NONE;

	if (in->group != k->spare->signals || from == NBAR_RANK_NONE)
		return 0;
	if (part == ASK && head == k->list)
		return send_address(k, in->src, in->word[1] & ~((1u << PART_BITS) - 1));
	if (part < PARTS && head == (k->list ^ k->nonce) && k->parts[from] != ALL_PARTS) {
		memcpy(k->endpoint[from].byte + part * 4 * PART_WORDS, &in->word[1],
		       4 * PART_WORDS);
		k->parts[from] |= (uint8_t)(1u << part);
	}
	return 0;
}

static int take_messages(struct shrink *k)
{
	struct nbar_signal_in in;
	int err = 0;

	for (uint32_t i = 0; i < TAKEN_MAX && err == 0; i++) {
		int rc = nbar_signal_recv(k->spare->port, &in);

		if (rc <= 0)
			return rc;
		err = take_message(k, &in);
	}
	return err;
}

/* Asks some members for missing addresses; *missing: new rank of one of them, or NBAR_RANK_NONE. */
static int ask(struct shrink *k, uint32_t *missing)
{
	const uint32_t nonce[PART_WORDS] = { k->nonce };
	uint32_t requests = 0;
	int err = 0;

	*missing = NBAR_RANK_NONE;
	for (uint32_t i = 0; i < k->nneed && requests < ASKED_MAX && err == 0; i++) {
		if (k->parts[k->need[i]] == ALL_PARTS)
			continue;
		*missing = k->need[i];
		requests++;
		err = send_word(k, k->old_rank[k->need[i]], k->list | ASK, nonce);
	}
	return err;
}

/* Serves the other members for a while. -ETIME: the time is over. */
static int serve(struct shrink *k, const struct timespec *start, uint64_t timeout_ns)
{
	const struct timespec nap = { .tv_nsec = ASK_NS };
	struct timespec now;
	int err = take_messages(k);

	nanosleep(&nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t ns = (uint64_t)(now.tv_sec - start->tv_sec) * UINT64_C(1000000000) +
		      (uint64_t)now.tv_nsec - (uint64_t)start->tv_nsec;

	return err < 0 ? err : ns >= timeout_ns ? -ETIME : 0;
}

static int connect_new(struct shrink *k, const struct timespec *start, uint64_t timeout_ns)
{
	uint32_t missing, ticket;
	int err;

	while ((err = ask(k, &missing)) == 0 && missing != NBAR_RANK_NONE) {
		err = serve(k, start, timeout_ns);
		if (err == -ETIME)
			return nblib_fail(
				err,
				"rank %u has not sent its address: has it failed, or does "
				"it name other failed ranks? Agree on them, and call again",
				k->old_rank[missing]);
		if (err < 0)
			return err;
	}
	if (err == 0)
		err = nbar_group_connect(k->group, k->endpoint);
	if (err == 0)
		err = nbar_post(k->group, &ticket);
	if (err < 0)
		return err;
	/* Until all have connected, a member may still ask for our address. */
	while ((err = nbar_test(k->group, ticket)) == 0) {
		err = serve(k, start, timeout_ns);
		if (err == -ETIME)
			return nblib_fail(err, "not all that are left have connected: agree on the "
					       "failed ranks, and call again");
		if (err < 0)
			return err;
	}
	return err < 0 ? err : 0;
}

/* Sets the ranks and the digest, FNV-1a of the failed ranks in order. */
static int number_ranks(struct shrink *k, const uint32_t *failed, uint32_t nfailed)
{
	const struct nbar_group_attr *attr = &k->spare->attr;
	uint32_t hash = UINT32_C(2166136261);

	for (uint32_t i = 0; i < nfailed; i++) {
		if (failed[i] >= attr->size || failed[i] == attr->rank)
			return nblib_fail(-EINVAL,
					  "rank %u cannot be one of the failed: the group "
					  "has %u, and this is %u",
					  failed[i], attr->size, attr->rank);
		k->new_rank[failed[i]] = NBAR_RANK_NONE;
	}
	for (uint32_t rank = 0; rank < attr->size; rank++) {
		if (k->new_rank[rank] == NBAR_RANK_NONE) {
			hash = (hash ^ rank) * UINT32_C(16777619);
			continue;
		}
		k->old_rank[k->size] = rank;
		k->new_rank[rank] = k->size++;
	}
	k->list = hash & ~((1u << PART_BITS) - 1);
	return 0;
}

static int shrink(struct shrink *k, uint64_t timeout_ns)
{
	struct nbar_group_attr attr = k->spare->attr;
	struct timespec start;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &start);
	attr.rank = k->new_rank[attr.rank];
	attr.size = k->size;
	attr.tag ^= k->list;
	err = nbar_group_open(k->spare->port, &attr, &k->group, &k->endpoint[attr.rank]);
	if (err < 0)
		return err;
	k->nonce = UINT32_C(2166136261);
	for (size_t i = 0; i < sizeof(k->endpoint->byte); i++)
		k->nonce = (k->nonce ^ k->endpoint[attr.rank].byte[i]) * UINT32_C(16777619);
	k->nonce &= ~((1u << PART_BITS) - 1);
	k->nneed = (uint32_t)nbar_group_peers(k->group, &k->need);
	err = connect_new(k, &start, timeout_ns);
	if (err < 0)
		nbar_group_close(k->group);
	return err;
}

int nbar_spare_shrink(struct nbar_spare *s, const uint32_t *failed, uint32_t nfailed,
		      uint64_t timeout_ns, struct nbar_group **out)
{
	uint32_t size = s->attr.size;
	struct shrink k = {
		.spare = s,
		.old_rank = calloc(size, sizeof(*k.old_rank)),
		.new_rank = calloc(size, sizeof(*k.new_rank)),
		.parts = calloc(size, sizeof(*k.parts)),
		.endpoint = calloc(size, sizeof(*k.endpoint)),
	};
	int err = -ENOMEM;

	if (k.old_rank && k.new_rank && k.parts && k.endpoint) {
		err = number_ranks(&k, failed, nfailed);
		if (err == 0)
			err = shrink(&k, timeout_ns);
	} else {
		nblib_fail(err, "no memory for a group of %u", size);
	}
	free(k.old_rank);
	free(k.new_rank);
	free(k.parts);
	free(k.endpoint);
	if (err == 0)
		*out = k.group;
	return err;
}
