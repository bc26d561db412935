/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process_team.c - the barrier among processes of a node, alone or in front of a shared group.
 *
 * Each process writes the ticket of its last barrier where the others can read it, so any number
 * of barriers may be under way. After its own arrival, a process checks the other tickets. If all
 * processes have arrived, this process posts the barrier of the group. Without a group, the
 * processes of a small process team only read all tickets, which lie in one cache line. The callers
 * provide the memory. A process trusts the others with the contents of this memory only.
 */
#include <errno.h>

#include "internal.h"
#include "order.h"

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

static int group_refuses(struct nbar_group *g, uint32_t ticket)
{
	uint64_t word = order_completion_read(&g->completion->word);

	if (!nblib_group_is_over(g, word) && order_runs(&g->runs) &&
	    order_down_read(&g->port->link.down) == NBLIB_UP &&
	    ticket - (uint32_t)word <= NBAR_POSTED_MAX)
		return 0;
	return nblib_post_refused(g, word);
}

int nblib_procs_post(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
		     uint32_t ticket)
{
	int err;

	if (me >= procs->size)
		return nblib_fail(-ERANGE, "process %u: a process team of %u has processes 0 to %u",
				  me, procs->size, procs->size - 1);
	err = g ? group_refuses(g, ticket) : 0;
	if (err)
		return err;
	if (g)
		order_posted_write(&g->posted, ticket);
	order_procs_arrive(&procs->arrived[me], ticket);
	if (!nblib_procs_arrived(procs, ticket))
		return 0;
	/* Other processes may also see that all have arrived, and do what follows. This is
	 * harmless: no process arrives at the next barrier before it has finished this barrier. */
	if (g) {
		order_post(&g->doorbell->posted, ticket);
		nblib_rang(g, ticket, false);
		return 0;
	}
	if (procs->size > NBLIB_PROCS_SMALL)
		order_procs_release(&procs->done, ticket);
	if (order_procs_any_sleeps(&procs->sleepers))
		nblib_wake_procs(procs);
	return 0;
}

int nbar_process_team_post(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
			   uint32_t *ticket)
{
	/* Only this process writes the word. If me is out of range, nblib_procs_post ignores the
	 * ticket. */
	uint32_t next = me < procs->size ? order_procs_read(&procs->arrived[me]) + 1 : 0;
	int err = nblib_procs_post(procs, g, me, next);

	if (err == 0 && ticket)
		*ticket = next;
	return err;
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
		if (err)
			return err;
		policy = &wait;
	}
	if (nblib_wait_procs(procs, policy, ticket, timeout_ns))
		return 0;
	return nblib_fail(-ETIME, "barrier %u of the process team is not complete yet: wait again",
			  ticket);
}
