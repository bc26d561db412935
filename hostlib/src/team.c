/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.c - the barrier among the threads of a process, alone or in front of a group.
 *
 * team_kind.c has the ways in which threads meet. This file selects the thread that posts the start
 * token of the group, and the threads that poll its completion word: all threads, or (to measure
 * the difference) only the thread that posted, which then releases the others. The caller provides
 * the memory; nothing here allocates or frees any.
 */
#include <errno.h>

#include "internal.h"
#include "order.h"

/* Takes the settings from the group or from the environment. */
static int team_begin(struct nbar_team *team, const struct nbar_team_attr *attr)
{
	struct nbar_group *group = attr->group;
	uint32_t epoch = 0;
	int err;

	/* The library would refuse the post, and the threads would wait for ever. */
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
		if (err)
			return err;
	}
	team->group = group;
	team->local = attr->local != 0;
	nblib_kind_begin(team, epoch);
	return 0;
}

/* Sets the fields that size and kind determine. */
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

	if (err)
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

int nbar_team_init(struct nbar_team *team, size_t length, const struct nbar_team_attr *attr)
{
	const size_t least = offsetof(struct nbar_team_attr, local) + sizeof(attr->local);
	struct nbar_team_attr ours;
	struct nbar_team made;
	int err = nblib_struct_read("nbar_team_attr", &ours, sizeof(ours), least, attr,
				    attr->struct_size);

	if (err == 0)
		err = describe(&made, ours.kind, ours.size);
	if (err)
		return err;
	if ((uintptr_t)team % _Alignof(struct nbar_team) != 0)
		return nblib_fail(-EINVAL, "the memory of a team must be aligned to %u bytes",
				  (unsigned)_Alignof(struct nbar_team));
	if (length < nblib_kind_bytes(&made))
		return nblib_fail(-ENOSPC,
				  "a team of %u threads of kind %s takes %llu bytes, and it got "
				  "%llu: ask nbar_team_size",
				  ours.size, ours.kind ? ours.kind : "sense-reverse",
				  (unsigned long long)nblib_kind_bytes(&made),
				  (unsigned long long)length);
	*team = made;
	return team_begin(team, &ours);
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

/* Tells threads that wait for other threads of the team that the barrier of ticket has failed. */
static int team_broken(struct nbar_team *team, uint32_t ticket, int err)
{
	order_team_break(&team->broken, ticket);
	return err;
}

static int group_error(struct nbar_group *g)
{
	return nblib_group_failed(g, order_completion_read(&g->completion->word));
}

static int wait_nic(struct nbar_team *team, uint32_t ticket)
{
	enum nblib_end end;

	/* Not nbar_wait: this thread may not have posted the ticket, and the team has its own
	 * policy. After -ETIME the thread waits again, because a stopped NIC may continue, and a
	 * thread cannot wait for a team's barrier a second time. */
	do
		end = nblib_wait_group(team->group, &team->wait, ticket, NBAR_FOREVER);
	while (end == NBLIB_MUTE);
	if (end == NBLIB_DONE)
		return 0;
	return team_broken(team, ticket, group_error(team->group));
}

/* Arrives. If all threads have arrived, posts and returns 1; else returns 0, or an error. */
static int post_group(struct nbar_team *team, uint32_t me, uint32_t *ticket)
{
	struct nbar_group *g = team->group;
	uint64_t word = order_completion_read(&g->completion->word);
	int last, err;

	if (!order_runs(&g->runs))
		return nbar_post(g, NULL);
	if (word >> 32)
		return team_broken(team, (uint32_t)word + 1, group_error(g));
	if (order_team_broken(&team->broken))
		return group_error(g);
	last = nblib_kind_arrive(team, me, ticket);
	if (last < 0)
		return group_error(g);
	if (last) {
		err = nbar_post(g, NULL);
		if (err)
			return team_broken(team, *ticket, err);
	}
	return last;
}

static int barrier_group(struct nbar_team *team, uint32_t me)
{
	struct nbar_group *g = team->group;
	uint32_t ticket;
	int err, last = post_group(team, me, &ticket);

	if (last < 0)
		return last;
	if (!team->local)
		return wait_nic(team, ticket);
	if (!last)
		return nblib_kind_wait(team, me, ticket) ? 0 : group_error(g);
	err = wait_nic(team, ticket);
	if (err == 0)
		nblib_kind_release(team, me, ticket);
	return err;
}

int nbar_team_barrier(struct nbar_team *team, uint32_t me)
{
	if (me >= team->size)
		return no_such_thread(team, me);
	return team->group ? barrier_group(team, me) : barrier_alone(team, me);
}

/* --- in phases ------------------------------------------------------------------------------- */

static int check_phases(const struct nbar_team *team)
{
	if (team->kind == NBLIB_SENSE_REVERSE && !team->local)
		return 0;
	return nblib_fail(-EINVAL, "only a team of kind sense-reverse can post, test and wait, and "
				   "only if its attribute local is 0: call nbar_team_barrier");
}

int nbar_team_post(struct nbar_team *team, uint32_t me, uint32_t *ticket)
{
	int last = check_phases(team);
	uint32_t mine;

	if (last)
		return last;
	if (me >= team->size)
		return no_such_thread(team, me);
	last = team->group ? post_group(team, me, &mine) : nblib_kind_arrive(team, me, &mine);
	if (last < 0)
		return last;
	if (last > 0 && !team->group)
		nblib_kind_release(team, me, mine);
	if (ticket)
		*ticket = mine;
	return 0;
}

int nbar_team_test(struct nbar_team *team, uint32_t ticket)
{
	struct nbar_group *g = team->group;
	int rc = check_phases(team);

	if (rc)
		return rc;
	if (!g || nblib_kind_reached(team, ticket))
		return nblib_kind_reached(team, ticket);
	if (nblib_reached(order_posted_read(&g->posted), ticket)) {
		rc = nbar_test(g, ticket);
		return rc < 0 ? team_broken(team, ticket, rc) : rc;
	}
	if (order_team_broken(&team->broken) || !order_runs(&g->runs) ||
	    order_down_read(&g->port->link.down) != NBLIB_UP)
		return team_broken(team, ticket, group_error(g));
	return 0;
}

int nbar_team_wait(struct nbar_team *team, uint32_t ticket)
{
	int rc = check_phases(team);

	if (rc)
		return rc;
	if (team->group)
		return wait_nic(team, ticket);
	nblib_kind_wait(team, 0, ticket);
	return 0;
}

/* --- in two halves --------------------------------------------------------------------------- */

static int check_half(const struct nbar_team *team, uint32_t me)
{
	if (me >= team->size)
		return no_such_thread(team, me);
	if (team->group)
		return nblib_fail(-EINVAL, "this team posts the barrier of a group itself: call "
					   "nbar_team_barrier");
	return 0;
}

int nbar_team_arrive(struct nbar_team *team, uint32_t me, uint32_t *ticket)
{
	int err = check_half(team, me);

	return err ? err : nblib_kind_arrive(team, me, ticket);
}

int nbar_team_release(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	int err = check_half(team, me);

	if (err == 0)
		nblib_kind_release(team, me, ticket);
	return err;
}

int nbar_team_await(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	int err = check_half(team, me);

	if (err == 0)
		nblib_kind_wait(team, me, ticket);
	return err;
}
