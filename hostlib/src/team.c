/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.c - the barrier among the threads of a process, alone or in front of a group.
 *
 * Sense-reverse: threads count down, the last one to arrive sets the count for the next barrier
 * and releases it, by the start token of the group or by the team's own completion word. The epoch
 * in that word is the sense, so no thread keeps any. The memory is the caller's; nothing here is
 * allocated or freed.
 */
#include <errno.h>

#include "internal.h"
#include "order.h"

/*
 * Where the completion word lies. On the line of the count, the last thread has it when it has
 * counted: one transfer between cores less, which halves the time of two threads. But those who
 * poll it are in the way of those who still count, the more the larger the team.
 */
#define NEAR_MAX 4u

_Static_assert(sizeof(struct nbar_team) == 384, "three pairs of cache lines");

int nbar_team_init(struct nbar_team *team, uint32_t size, struct nbar_group *group)
{
	struct nbar_wait_policy wait;
	int err;

	if (size == 0)
		return nblib_fail(-EINVAL, "a team has at least one thread");
	if (group) {
		uint64_t word = order_completion_read(&group->completion->word);

		if ((uint32_t)order_posted_read(&group->posted) != (uint32_t)word)
			return nblib_fail(-EBUSY, "the group has a barrier under way: wait for it "
						  "before a team takes it over");
		wait = group->wait;
	} else {
		err = nblib_wait_default(&wait);
		if (err < 0)
			return err;
	}
	/* Whoever is waited for may need this processor. */
	if (size > nblib_cpus() || nblib_cpus() == 1)
		wait.spin_us = 0;
	*team = (struct nbar_team){ .count = size, .size = size, .group = group, .wait = wait };
	return 0;
}

static int barrier_alone(struct nbar_team *team)
{
	uint64_t *word = team->size <= NEAR_MAX ? &team->near_word : &team->far_word;
	uint32_t ticket = (uint32_t)order_completion_read(word) + 1;

	if (!order_team_arrive(&team->count)) {
		if (!nblib_reached(order_completion_read(word), ticket))
			nblib_wait_team(word, &team->wait, ticket);
		return 0;
	}
	order_team_reset(&team->count, team->size);
	if (order_team_release(word, ticket) & NBLIB_TEAM_SLEEPS)
		nblib_wake_team(word);
	return 0;
}

static int barrier_group(struct nbar_team *team, struct nbar_group *g)
{
	uint64_t word = order_completion_read(&g->completion->word);
	uint32_t ticket = (uint32_t)word + 1;
	int err = 0;

	/* Not nbar_wait: the ticket is posted by the last thread only, and the policy is ours. */
	if (!g->runs || word >> 32)
		return nbar_post(g, NULL);
	if (order_team_arrive(&team->count)) {
		order_team_reset(&team->count, team->size);
		err = nbar_post(g, NULL);
		if (err < 0)
			return err;
	}
	switch (nblib_wait_group(g, &team->wait, ticket, NBAR_FOREVER)) {
	case NBLIB_DONE:
		return 0;
	case NBLIB_FAILED:
		return nblib_group_failed(g, order_completion_read(&g->completion->word));
	case NBLIB_LOST:
	case NBLIB_TIMEOUT:
		break;
	}
	return nblib_link_lost(&g->port->link);
}

int nbar_team_barrier(struct nbar_team *team)
{
	return team->group ? barrier_group(team, team->group) : barrier_alone(team);
}
