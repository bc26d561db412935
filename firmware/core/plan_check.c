/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_check.c - checks plans from elsewhere. See plan.h.
 *
 * Called when a host uploads a plan. Must never trust a word of the plan before the check of that
 * word. Sorting finds duplicates, so a hostile order of the sends costs no more time than any other
 * order.
 */
#include "plan.h"
#include "sort.h"

static int check_head(const struct nbar_plan *p, size_t length, const char **why)
{
	if (length < sizeof(*p) || p->magic != NBAR_PLAN_MAGIC) {
		*why = "not a plan: it is too short or its magic number is wrong";
		return -NBFW_EINVAL;
	}
	if (p->size > NBAR_SIZE_MAX || p->nstep > NBAR_STEPS_MAX || p->nsend > NBAR_SENDS_MAX ||
	    p->nrecv > NBAR_SLOTS_MAX) {
		*why = "the plan has more ranks, steps, sends or slots than this NIC takes";
		return -NBFW_ENOSPC;
	}
	if (p->rank >= p->size || length != nbfw_plan_length(p)) {
		*why = "the rank is not below the size, or the length is not what the counts imply";
		return -NBFW_EINVAL;
	}
	return 0;
}

/* True if the ranges of the steps follow each other and cover all sends and slots. */
static bool steps_cover(const struct nbar_plan *p)
{
	const struct nbar_step *st = nbfw_plan_steps(p);
	uint32_t send = 0, slot = 0;

	for (uint32_t i = 0; i < p->nstep; i++) {
		if (st[i].first_send != send || st[i].nsend > p->nsend - send ||
		    st[i].first_slot != slot || st[i].nslot > p->nrecv - slot)
			return false;
		send += st[i].nsend;
		slot += st[i].nslot;
	}
	return send == p->nsend && slot == p->nrecv;
}

/* Sorts the words, so that equal words are neighbours. Returns how many repeat an earlier word. */
static uint32_t sort_repeats(uint64_t *key, uint32_t n)
{
	uint32_t repeats = 0;

	nbfw_sort(key, n);
	for (uint32_t i = 1; i < n; i++)
		repeats += key[i] == key[i - 1];
	return repeats;
}

static int check_sends(const struct nbar_plan *p, uint64_t *key, const char **why)
{
	const struct nbar_send *send = nbfw_plan_sends(p);

	for (uint32_t i = 0; i < p->nsend; i++) {
		if (send[i].dst >= p->size || send[i].dst == p->rank) {
			*why = "a send goes to a rank outside the group or to its own";
			return -NBFW_EINVAL;
		}
		if (send[i].slot >= NBAR_SLOTS_MAX) {
			*why = "a send goes to a slot that no plan can have";
			return -NBFW_EINVAL;
		}
		key[i] = (uint64_t)send[i].dst << 32 | send[i].slot;
	}
	if (sort_repeats(key, p->nsend)) {
		*why = "two sends go to the same slot of the same rank";
		return -NBFW_EINVAL;
	}
	return 0;
}

static int check_slots(const struct nbar_plan *p, const char **why)
{
	const struct nbar_recv *recv = nbfw_plan_recvs(p);

	for (uint32_t i = 0; i < p->nrecv; i++) {
		if (recv[i].src >= p->size || recv[i].src == p->rank) {
			*why = "a slot waits for a rank outside the group or for its own";
			return -NBFW_EINVAL;
		}
	}
	return 0;
}

static int check_peers(const struct nbar_plan *p, uint64_t *key, const char **why)
{
	const uint32_t n = p->nsend + p->nrecv;

	for (uint32_t i = 0; i < p->nsend; i++)
		key[i] = nbfw_plan_sends(p)[i].dst;
	for (uint32_t i = 0; i < p->nrecv; i++)
		key[p->nsend + i] = nbfw_plan_recvs(p)[i].src;
	if (n - sort_repeats(key, n) > NBAR_PEERS_MAX) {
		*why = "the plan talks to more peers than this NIC takes";
		return -NBFW_ENOSPC;
	}
	return 0;
}

/* A rank must both wait and signal. Otherwise it is in no barrier with the others, and nothing
 * limits its rate. */
static int check_takes_part(const struct nbar_plan *p, const char **why)
{
	if (p->size > 1 && p->nrecv == 0)
		*why = "the plan waits for no other rank of the group";
	else if (p->size > 1 && p->nsend == 0)
		*why = "the plan signals no other rank of the group";
	else
		return 0;
	return -NBFW_EINVAL;
}

int nbfw_plan_check(const void *block, size_t length, uint64_t *scratch, const char **why)
{
	const struct nbar_plan *p = block;
	int rc = check_head(p, length, why);

	if (rc == 0 && !steps_cover(p)) {
		*why = "the steps do not cover the sends and slots in order, each once";
		rc = -NBFW_EINVAL;
	}
	if (rc == 0)
		rc = check_takes_part(p, why);
	if (rc == 0)
		rc = check_sends(p, scratch, why);
	if (rc == 0)
		rc = check_slots(p, why);
	if (rc == 0)
		rc = check_peers(p, scratch, why);
	return rc;
}
