/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.c - the barrier among the threads of a process, alone or in front of a group.
 *
 * How threads meet is in team_kind.c. Here is who posts the start token of the group, and who
 * polls its completion word: all of them, or, to measure what that saves, the poster alone, who
 * then wakes the others. The memory is the caller's; nothing here is allocated or freed.
 */
#include <errno.h>

#include "internal.h"
#include "order.h"

/* Sets what a group or the environment has to say. */
static int begin(struct nbar_team *team, const struct nbar_team_attr *attr)
{
	struct nbar_group *group = attr->group;
	uint32_t epoch = 0;
	int err;

	/* Its threads would wait for a post that is refused. */
	if (group && group->attached)
		return nblib_fail(-EPERM,
				  "this process is only attached to the group, and a team posts on "
				  "its group: prepare the team in the process that opened the "
				  "group, or arrive by nbar_process_team_post");
	if (group) {
		epoch = (uint32_t)order_completion_read(&group->completion->word);
		if ((uint32_t)order_posted_read(&group->posted) != epoch)
			return nblib_fail(-EBUSY, "the group has a barrier under way: wait for it "
						  "before a team takes it over");
		team->wait = group->wait;
	} else {
		err = nblib_wait_default(&team->wait);
		if (err < 0)
			return err;
	}
	/* Whoever is waited for may need this processor. */
	if (team->size > nblib_cpus() || nblib_cpus() == 1)
		team->wait.spin_us = 0;
	team->group = group;
	team->local = attr->local != 0;
	nblib_kind_begin(team, epoch);
	return 0;
}

/* The fields that size and kind determine. */
static int describe(struct nbar_team *team, const char *kind, uint32_t size)
{
	*team = (struct nbar_team){ .size = size };
	if (size == 0)
		return nblib_fail(-EINVAL, "a team has at least one thread");
	if (size > NBAR_TEAM_MAX)
		return nblib_fail(-ERANGE, "a team of %u threads: it has at most %u", size,
				  NBAR_TEAM_MAX);
	return nblib_kind_parse(team, kind);
}

int nbar_team_size(const char *kind, uint32_t size, size_t *bytes)
{
	struct nbar_team team;
	int err = describe(&team, kind, size);
	uint64_t need;

	if (err < 0)
		return err;
	need = nblib_kind_bytes(&team);
	if (need > SIZE_MAX)
		return nblib_fail(-ERANGE,
				  "a team of %u threads of kind %s is too large for this "
				  "machine",
				  size, kind);
	*bytes = (size_t)need;
	return 0;
}

int nbar_team_setup(struct nbar_team *team, size_t length, const struct nbar_team_attr *attr)
{
	struct nbar_team made;
	int err = describe(&made, attr->kind, attr->size);

	if (err < 0)
		return err;
	if ((uintptr_t)team % _Alignof(struct nbar_team) != 0)
		return nblib_fail(-EINVAL, "the memory of a team must be aligned to %u bytes",
				  (unsigned)_Alignof(struct nbar_team));
	if (length < nblib_kind_bytes(&made))
		return nblib_fail(-ENOSPC,
				  "a team of %u threads of kind %s takes %llu bytes, and it got "
				  "%llu: ask nbar_team_size",
				  attr->size, attr->kind ? attr->kind : "sense-reverse",
				  (unsigned long long)nblib_kind_bytes(&made),
				  (unsigned long long)length);
	*team = made;
	return begin(team, attr);
}

int nbar_team_init(struct nbar_team *team, uint32_t size, struct nbar_group *group)
{
	const struct nbar_team_attr attr = { .size = size, .group = group };

	return nbar_team_setup(team, sizeof(*team), &attr);
}

int nbar_team_join(struct nbar_team *team)
{
	uint32_t me = order_team_join(&team->joined, team->size);

	if (me < team->size)
		return (int)me;
	return nblib_fail(-ENOSPC,
			  "all %u threads of the team have joined: it was prepared for no "
			  "more",
			  team->size);
}

static int no_such_thread(const struct nbar_team *team, uint32_t me)
{
	return nblib_fail(-ERANGE, "thread %u: a team of %u has threads 0 to %u", me, team->size,
			  team->size - 1);
}

static int barrier_alone(struct nbar_team *team, uint32_t me)
{
	uint32_t ticket;
	int last = nblib_kind_arrive(team, me, &ticket);

	if (team->kind == NBLIB_DISSEMINATION)
		return 0;
	if (last)
		nblib_kind_release(team, me, ticket);
	else
		nblib_kind_wait(team, me, ticket);
	return 0;
}

/* --- in front of a group --------------------------------------------------------------------- */

/* Tells those who wait for other threads of the team that the barrier of ticket fails. */
static int broken(struct nbar_team *team, uint32_t ticket, int err)
{
	order_team_break(&team->broken, ticket);
	return err;
}

static int group_error(const struct nbar_group *g)
{
	uint64_t word = order_completion_read(&g->completion->word);

	return word >> 32 ? nblib_group_failed(g, word) : nblib_link_lost(&g->port->link);
}

static int wait_nic(struct nbar_team *team, uint32_t ticket)
{
	/* Not nbar_wait: others have not posted that ticket, and the policy is ours. */
	if (nblib_wait_group(team->group, &team->wait, ticket, NBAR_FOREVER) == NBLIB_DONE)
		return 0;
	return broken(team, ticket, group_error(team->group));
}

static int barrier_group(struct nbar_team *team, uint32_t me)
{
	struct nbar_group *g = team->group;
	uint64_t word = order_completion_read(&g->completion->word);
	uint32_t ticket;
	int last, err;

	if (!g->runs)
		return nbar_post(g, NULL);
	if (word >> 32)
		return broken(team, (uint32_t)word + 1, group_error(g));
	if (order_team_broken(&team->broken))
		return group_error(g);
	last = nblib_kind_arrive(team, me, &ticket);
	if (last < 0)
		return group_error(g);
	if (last) {
		err = nbar_post(g, NULL);
		if (err < 0)
			return broken(team, ticket, err);
	}
	if (!team->local)
		return wait_nic(team, ticket);
	if (!last)
		return nblib_kind_wait(team, me, ticket) ? 0 : group_error(g);
	err = wait_nic(team, ticket);
	if (err == 0)
		nblib_kind_release(team, me, ticket);
	return err;
}

int nbar_team_barrier(struct nbar_team *team)
{
	if (team->kind != NBLIB_SENSE_REVERSE)
		return nblib_fail(-EINVAL, "threads of this kind of team have numbers: call "
					   "nbar_team_barrier_as");
	return team->group ? barrier_group(team, 0) : barrier_alone(team, 0);
}

int nbar_team_barrier_as(struct nbar_team *team, uint32_t me)
{
	if (me >= team->size)
		return no_such_thread(team, me);
	return team->group ? barrier_group(team, me) : barrier_alone(team, me);
}

/* --- in two halves --------------------------------------------------------------------------- */

static int check_half(const struct nbar_team *team, uint32_t me)
{
	if (me >= team->size)
		return no_such_thread(team, me);
	if (team->group)
		return nblib_fail(-EINVAL, "this team posts the barrier of a group itself: call "
					   "nbar_team_barrier_as");
	return 0;
}

int nbar_team_arrive(struct nbar_team *team, uint32_t me, uint32_t *ticket)
{
	int err = check_half(team, me);

	return err < 0 ? err : nblib_kind_arrive(team, me, ticket);
}

int nbar_team_release(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	int err = check_half(team, me);

	if (err == 0)
		nblib_kind_release(team, me, ticket);
	return err;
}

int nbar_team_wait(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	int err = check_half(team, me);

	if (err == 0)
		nblib_kind_wait(team, me, ticket);
	return err;
}
