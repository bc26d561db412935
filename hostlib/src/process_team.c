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

/* As nblib_can_post, for a process that may only be attached. */
static int group_refuses(struct nbar_group *g, uint32_t ticket, uint32_t most)
{
	uint64_t word = order_completion_read(&g->completion->word);

	if (!nblib_group_is_over(g, word) && order_runs(&g->runs) &&
	    order_down_read(&g->port->link.down) == NBLIB_UP && ticket - (uint32_t)word <= most)
		return 0;
	return nblib_procs_refused(g, word);
}

/* The values of a barrier, and how to fold them. */
struct values {
	const struct nbar_value *all;
	void (*fold)(struct nbar_value *to, const struct nbar_value *from);
};

/* All values are there. If they differ in op, type or count, the barrier gets a value that no NIC
 * takes: so the group fails, and all members learn it. */
static void procs_combine(const struct nbar_process_team *procs, struct nbar_group *g,
			  const struct values *v, uint32_t ticket)
{
	struct nbar_value sum = v->all[0];
	bool alike = nblib_value_check(g, &sum) == 0;

	for (uint32_t i = 1; i < procs->size && alike; i++) {
		const struct nbar_value *one = &v->all[i];

		alike = one->op == sum.op && one->type == sum.type && one->count == sum.count;
		if (alike)
			v->fold(&sum, one);
	}
	if (!alike)
		sum.op = 0;
	nblib_value_put(g, ticket, &sum);
}

static int procs_post(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
		      uint32_t ticket, const struct values *values)
{
	int err;

	if (me >= procs->size)
		return nblib_fail(-ERANGE, "process %u: a process team of %u has processes 0 to %u",
				  me, procs->size, procs->size - 1);
	err = g ? group_refuses(g, ticket, values ? NBAR_VALUES_AHEAD : NBAR_POSTED_MAX) : 0;
	if (err)
		return err;
	if (g)
		order_posted_write(&g->posted, ticket);
	order_procs_arrive(&procs->arrived[me], ticket);
	if (!nblib_procs_arrived(procs, ticket))
		return 0;
	/* Other processes may also see that all have arrived, and do what follows. This is
	 * harmless: no process arrives at the next barrier before it has finished this barrier. But
	 * only one may write the value, because the NIC writes the result in its place. */
	if (values && !order_procs_claim(&procs->done, ticket))
		return 0;
	if (values)
		procs_combine(procs, g, values, ticket);
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

static int procs_post_next(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
			   const struct values *values, uint32_t *ticket)
{
	/* Only this process writes the word. If me is out of range, procs_post ignores the ticket.
	 */
	uint32_t next = me < procs->size ? order_procs_read(&procs->arrived[me]) + 1 : 0;
	int err = procs_post(procs, g, me, next, values);

	if (err == 0 && ticket)
		*ticket = next;
	return err;
}

int nbar_process_team_post(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
			   uint32_t *ticket)
{
	return procs_post_next(procs, g, me, NULL, ticket);
}

int nbar_process_team_post_value(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
				 const struct nbar_value *all,
				 void (*fold)(struct nbar_value *to, const struct nbar_value *from),
				 uint32_t *ticket)
{
	const struct values values = { all, fold };
	int err = me < procs->size ? nblib_value_check(g, &all[me]) : 0;

	return err ? err : procs_post_next(procs, g, me, &values, ticket);
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
