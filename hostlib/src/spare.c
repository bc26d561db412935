/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spare.c - makes a smaller group from the remaining members, without a new exchange by the
 * program.
 *
 * Called when a group has failed. Each group that may fail has a "signal" group of the same
 * members, connected in advance. Through this "signal" group, the remaining members send each other
 * the endpoint addresses of the new group. Messages may be lost: a member that misses an address
 * asks for it again. Uses only the public API.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define PART_WORDS (NBAR_SIGNAL_WORDS - 1)
#define PARTS (sizeof(struct nbar_endpoint) / (4 * PART_WORDS)) /* messages for an address */
#define ALL_PARTS ((1u << PARTS) - 1)
#define ASK PARTS       /* in place of the number of a part: a request for the address */
#define PART_BITS 4u    /* low bits of word[0]; the high bits: digest of the failed ranks */
#define ASK_NS 1000000L /* between two requests to the same member */
#define TAKEN_MAX 4096u /* messages between two looks at the clock */
#define ASKED_MAX 64u   /* members that one round asks */

_Static_assert(PARTS * 4 * PART_WORDS == sizeof(struct nbar_endpoint), "whole parts");
_Static_assert(ASK < 1u << PART_BITS, "the number of a part fits");

struct nbar_spare {
	struct nbar_port *port;
	struct nbar_group *signals;
	struct nbar_group_attr attr;
	struct shrink *unfinished; /* left by a call that returned -ETIME; or NULL */
};

/* A shrink under way. Ranks are those of the spare, unless a comment says "new". */
struct shrink {
	struct nbar_spare *spare;
	struct nbar_group *group;
	const uint32_t *need; /* new ranks */
	uint32_t nneed;
	uint32_t list;      /* digest of the failed ranks */
	uint32_t nonce;     /* of this group: answers about an earlier group do not count */
	uint32_t size;      /* of the new group */
	uint32_t ticket;    /* of its first barrier; 0: not posted yet */
	bool time_over;     /* the next call with the same failed ranks continues */
	bool connecting;    /* this member has all addresses */
	uint32_t *old_rank; /* by new rank */
	uint32_t *new_rank; /* by old rank; NBAR_RANK_NONE: it has failed */
	uint8_t *parts;     /* by new rank: a bit for each part that came */
	struct nbar_endpoint endpoint[]; /* by new rank */
};

/* A step of the digest FNV-1a. */
static uint32_t mix(uint32_t hash, uint32_t value)
{
	return (hash ^ value) * UINT32_C(16777619);
}

static void shrink_end(struct shrink *k)
{
	if (k)
		nbar_group_close(k->group);
	free(k);
}

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
	if (err) {
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
	shrink_end(s->unfinished);
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

/* Answers a request: sends our address. nonce: that of the request. */
static int send_address(struct shrink *k, uint32_t old_rank, uint32_t nonce)
{
	const uint8_t *byte = k->endpoint[k->new_rank[k->spare->attr.rank]].byte;
	int err = 0;

	for (uint32_t part = 0; part < PARTS && err == 0; part++)
		err = send_word(k, old_rank, (k->list ^ nonce) | part,
				byte + part * 4 * PART_WORDS);
	return err;
}

/* Takes a part of an address, or answers a request. Ignores a member that has another list of
 * failed ranks. */
static int take_message(struct shrink *k, const struct nbar_signal_in *in)
{
	uint32_t part = in->word[0] & ((1u << PART_BITS) - 1);
	uint32_t head = in->word[0] ^ part;
	uint32_t from = in->src < k->spare->attr.size ? k->new_rank[in->src] : NBAR_RANK_NONE;

	if (in->group != k->spare->signals || from == NBAR_RANK_NONE ||
	    in->src == k->spare->attr.rank)
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

/* Asks some members for missing addresses. *missing: the new rank of one such member, or
 * NBAR_RANK_NONE. */
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

/* Serves the other members for a while. missing: as set by ask. -ETIME: the time is over. */
static int serve(struct shrink *k, const struct timespec *start, uint64_t timeout_ns,
		 uint32_t missing)
{
	const struct timespec nap = { .tv_nsec = ASK_NS };
	struct timespec now;
	int err = take_messages(k);

	nanosleep(&nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t ns = (uint64_t)(now.tv_sec - start->tv_sec) * UINT64_C(1000000000) +
		      (uint64_t)now.tv_nsec - (uint64_t)start->tv_nsec;

	if (err || ns < timeout_ns)
		return err;
	k->time_over = true;
	if (missing == NBAR_RANK_NONE)
		return nblib_fail(-ETIME, "not all that are left have connected: call again, or, "
					  "if more have failed, agree on all of them before");
	return nblib_fail(-ETIME,
			  "rank %u has not sent its address: has it failed, or does it name other "
			  "failed ranks? Agree on them, and call again",
			  k->old_rank[missing]);
}

static int connect_new(struct shrink *k, uint64_t timeout_ns)
{
	struct timespec start;
	uint32_t missing;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	k->time_over = false;
	while (err == 0 && !k->connecting) {
		err = ask(k, &missing);
		if (err == 0 && missing != NBAR_RANK_NONE) {
			err = serve(k, &start, timeout_ns, missing);
			continue;
		}
		if (err == 0)
			err = nbar_group_connect_start(k->group, k->endpoint);
		k->connecting = err == 0;
	}
	while (err == 0 && k->ticket == 0) {
		err = nbar_group_connect_test(k->group);
		if (err == 1)
			err = nbar_post(k->group, &k->ticket);
		else if (err == 0)
			err = serve(k, &start, timeout_ns, NBAR_RANK_NONE);
	}
	/* A member may still ask for our address until all members have connected. */
	while (err == 0 && (err = nbar_test(k->group, k->ticket)) == 0)
		err = serve(k, &start, timeout_ns, NBAR_RANK_NONE);
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
			hash = mix(hash, rank);
			continue;
		}
		k->old_rank[k->size] = rank;
		k->new_rank[rank] = k->size++;
	}
	k->list = hash & ~((1u << PART_BITS) - 1);
	return 0;
}

static struct shrink *shrink_new(struct nbar_spare *s)
{
	size_t n = s->attr.size;
	struct shrink *k = calloc(1, sizeof(*k) + n * (sizeof(*k->endpoint) + sizeof(*k->old_rank) +
						       sizeof(*k->new_rank) + sizeof(*k->parts)));

	if (!k)
		return NULL;
	k->spare = s;
	k->old_rank = (uint32_t *)&k->endpoint[n];
	k->new_rank = k->old_rank + n;
	k->parts = (uint8_t *)(k->new_rank + n);
	return k;
}

static int open_new(struct shrink *k)
{
	struct nbar_group_attr attr = k->spare->attr;
	int err;

	attr.rank = k->new_rank[attr.rank];
	attr.size = k->size;
	attr.tag ^= k->list;
	err = nbar_group_open(k->spare->port, &attr, &k->group, &k->endpoint[attr.rank]);
	if (err)
		return err;
	/* The nonce starts at 0, not at the basis of FNV-1a: only this member computes it. */
	for (size_t i = 0; i < sizeof(k->endpoint->byte); i++)
		k->nonce = mix(k->nonce, k->endpoint[attr.rank].byte[i]);
	k->nonce &= ~((1u << PART_BITS) - 1);
	k->nneed = (uint32_t)nbar_group_peers(k->group, &k->need);
	return 0;
}

/*
 * Returns the shrink to work on, and ends the other: the unfinished shrink of an earlier call if it
 * has the same failed ranks, else the new one. An unfinished group must not be replaced: other
 * members may have completed its first barrier and left their calls.
 */
static struct shrink *go_on(struct nbar_spare *s, struct shrink *k)
{
	struct shrink *before = s->unfinished;

	s->unfinished = NULL;
	if (!before || memcmp(before->new_rank, k->new_rank, s->attr.size * sizeof(*k->new_rank))) {
		shrink_end(before);
		return k;
	}
	shrink_end(k);
	return before;
}

int nbar_spare_shrink(struct nbar_spare *s, const uint32_t *failed, uint32_t nfailed,
		      uint64_t timeout_ns, struct nbar_group **out)
{
	struct shrink *k = shrink_new(s);
	int err;

	if (!k)
		return nblib_fail(-ENOMEM, "no memory for a group of %u", s->attr.size);
	err = number_ranks(k, failed, nfailed);
	if (err == 0) {
		k = go_on(s, k);
		err = k->group ? 0 : open_new(k);
	}
	if (err == 0)
		err = connect_new(k, timeout_ns);
	if (k->time_over) {
		s->unfinished = k;
		return err;
	}
	if (err == 0)
		*out = k->group;
	if (err == 0)
		k->group = NULL;
	shrink_end(k);
	return err;
}
