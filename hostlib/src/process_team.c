/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process_team.c - the barrier among processes of a node, alone or in front of a group they share.
 *
 * Each process writes the ticket of its last barrier where the others can read it, so any number
 * of barriers may be under way. Who finds, having arrived, that all others have too, posts the
 * barrier of the group; without a group, those of a small process team just look at all tickets,
 * which lie in one cache line. The memory is the callers'; the others are trusted as far as they
 * share it.
 */
#include <errno.h>

#include "internal.h"
#include "order.h"

#define SMALL 16u /* tickets in a cache line */

_Static_assert(sizeof(struct nbar_process_team) == 384 + 4 * NBAR_PROCESS_TEAM_MAX,
	       "lines of their own");

int nbar_process_team_init(struct nbar_process_team *procs, uint32_t size)
{
	if (size == 0 || size > NBAR_PROCESS_TEAM_MAX)
		return nblib_fail(-ERANGE, "a process team of %u: it has 1 to %u processes", size,
				  NBAR_PROCESS_TEAM_MAX);
	*procs = (struct nbar_process_team){ .size = size };
	return 0;
}

/* Whether all have arrived. */
static bool all_arrived(const struct nbar_process_team *procs, uint32_t ticket)
{
	for (uint32_t i = 0; i < procs->size; i++)
		if (!nblib_reached(order_procs_read(&procs->arrived[i]), ticket))
			return false;
	return true;
}

bool nblib_procs_reached(const struct nbar_process_team *procs, uint32_t ticket)
{
	if (procs->size <= SMALL)
		return all_arrived(procs, ticket);
	return nblib_reached(order_procs_done(&procs->done), ticket);
}

/* Why nbar_process_team_post cannot go ahead with a group. */
static int group_refuses(struct nbar_group *g, uint32_t ticket)
{
	uint64_t word = order_completion_read(&g->completion->word);

	if (!g->runs)
		return nblib_fail(-ENOTCONN,
				  "the group is not connected: call "
				  "nbar_group_connect with the endpoint addresses of its members");
	if (word >> 32)
		return nblib_group_failed(g, word);
	if (order_down_read(&g->port->link.down) != NBLIB_UP)
		return nblib_link_lost(&g->port->link);
	if (ticket - (uint32_t)word <= NBAR_POSTED_MAX)
		return 0;
	return nblib_fail(-EAGAIN,
			  "%u barriers of the group are under way, more cannot be: wait for some",
			  NBAR_POSTED_MAX);
}

int nbar_process_team_post(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
			   uint32_t ticket)
{
	int err = g ? group_refuses(g, ticket) : 0;

	if (err < 0)
		return err;
	if (me >= procs->size)
		return nblib_fail(-ERANGE, "process %u: a process team of %u has processes 0 to %u",
				  me, procs->size, procs->size - 1);
	if (g)
		order_posted_write(&g->posted, ticket);
	order_procs_arrive(&procs->arrived[me], ticket);
	if (!all_arrived(procs, ticket))
		return 0;
	/* Others may find the same and do the same once more: that harms nothing, as nobody
	 * arrives at the next barrier before he is done with this one. */
	if (g) {
		order_post(&g->doorbell->posted, ticket);
		nblib_poll(g->port);
		return 0;
	}
	if (procs->size > SMALL)
		order_procs_release(&procs->done, ticket);
	if (order_procs_any_sleeps(&procs->sleepers))
		nblib_wake_procs(procs);
	return 0;
}

int nbar_process_team_test(struct nbar_process_team *procs, struct nbar_group *g, uint32_t ticket)
{
	return g ? nbar_test(g, ticket) : nblib_procs_reached(procs, ticket);
}

int nbar_process_team_wait(struct nbar_process_team *procs, struct nbar_group *g, uint32_t ticket,
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
	if (nblib_wait_procs(procs, policy, ticket, timeout_ns))
		return 0;
	return nblib_fail(-ETIME, "barrier %u of the process team is not complete yet: wait again",
			  ticket);
}
