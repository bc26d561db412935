/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crew.c - the barrier among processes of a node, alone or in front of a group they share.
 *
 * As a team (team.c), but split in phases, so several barriers may be under way: each has its own
 * count, the last process to arrive empties it and posts the barrier, and all look at the
 * completion word themselves. The memory is the callers'; the others are trusted as far as they
 * share it.
 */
#include <errno.h>

#include "internal.h"
#include "order.h"

#define NEAR_MAX 4u /* as in team.c */

_Static_assert(sizeof(struct nbar_crew) == 384, "three pairs of cache lines");
_Static_assert((NBAR_CREW_POSTED_MAX & (NBAR_CREW_POSTED_MAX - 1)) == 0, "tickets wrap");

int nbar_crew_init(struct nbar_crew *crew, uint32_t size)
{
	if (size == 0)
		return nblib_fail(-EINVAL, "a crew has at least one process");
	*crew = (struct nbar_crew){ .size = size };
	return 0;
}

static uint64_t *word_of(struct nbar_crew *crew, struct nbar_group *g)
{
	if (g)
		return &g->completion->word;
	return crew->size <= NEAR_MAX ? &crew->near_word : &crew->far_word;
}

/* Why nbar_crew_post cannot go ahead with a group. */
static int group_down(struct nbar_group *g, uint64_t word)
{
	if (!g->runs)
		return nblib_fail(-ENOTCONN, "the group is not connected: call "
					     "nbar_group_connect with the blobs of its members");
	if (word >> 32)
		return nblib_group_failed(g, word);
	return order_down_read(&g->port->link.down) == NBLIB_UP ? 0
								: nblib_link_lost(&g->port->link);
}

int nbar_crew_post(struct nbar_crew *crew, struct nbar_group *g, uint32_t ticket)
{
	uint64_t *at = word_of(crew, g), word = order_completion_read(at);
	uint32_t *arrived = &crew->arrived[ticket % NBAR_CREW_POSTED_MAX];
	int err = g ? group_down(g, word) : 0;

	if (err < 0)
		return err;
	if (ticket - (uint32_t)word > NBAR_CREW_POSTED_MAX)
		return nblib_fail(-EAGAIN,
				  "%u barriers of the crew are under way, more cannot be: wait for "
				  "some",
				  NBAR_CREW_POSTED_MAX);
	if (g)
		order_posted_write(&g->posted, ticket);
	if (!order_crew_arrive(arrived, crew->size))
		return 0;
	order_crew_reset(arrived);
	if (g)
		order_post(&g->doorbell->posted, ticket);
	else if (order_team_release(at, ticket) & NBLIB_TEAM_SLEEPS)
		nblib_wake_team(at, NBLIB_PROCESSES);
	return 0;
}

int nbar_crew_test(struct nbar_crew *crew, struct nbar_group *g, uint32_t ticket)
{
	if (g)
		return nbar_test(g, ticket);
	return nblib_reached(order_completion_read(word_of(crew, g)), ticket);
}

int nbar_crew_wait(struct nbar_crew *crew, struct nbar_group *g, uint32_t ticket,
		   const struct nbar_wait_policy *policy, uint64_t timeout_ns)
{
	struct nbar_wait_policy wait;
	int err;

	if (g)
		return nblib_group_wait(g, ticket, policy ? policy : &g->wait, timeout_ns);
	if (!policy) {
		err = nblib_wait_default(&wait);
		if (err < 0)
			return err;
		policy = &wait;
	}
	if (nblib_wait_team(word_of(crew, g), policy, ticket, NBLIB_PROCESSES, timeout_ns))
		return 0;
	return nblib_fail(-ETIME, "barrier %u of the crew is not complete yet: wait again", ticket);
}
