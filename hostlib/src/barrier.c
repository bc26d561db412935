/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * barrier.c - post, test, wait: the fast path.
 *
 * A post is one store, and a test is one load. While no error occurs, they make no system call,
 * take no lock and allocate nothing. This file does not know what the NICs do in between.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "order.h"

#define TESTS_A_LOOK 256u /* a thread checks the socket after this many unsuccessful tests */

int nblib_group_failed(struct nbar_group *g, uint64_t word)
{
	uint32_t rank = order_failed_rank_read(&g->completion->failed_rank);
	uint32_t epoch = (uint32_t)word + 1;
	const char *nic = g->port->link.nic;

	if (order_aborted(&g->aborted))
		return nblib_fail(-ECANCELED,
				  "barrier %u of the group failed: this process has aborted the "
				  "group: close it",
				  epoch);
	switch ((enum nbar_status)(word >> 32)) {
	case NBAR_STATUS_SILENT:
		return nblib_fail(
			-EHOSTUNREACH,
			"barrier %u of the group failed: the NIC of rank %u%s does not answer: "
			"look whether its %s runs and the wire to it is up",
			epoch, rank, nblib_silent_address(g, rank),
			g->port->link.host ? "process" : "daemon");
	case NBAR_STATUS_HOST_DIED:
		return nblib_fail(-ECONNRESET,
				  "barrier %u of the group failed: the process of rank %u ended "
				  "without closing it: look there for what went wrong",
				  epoch, rank);
	case NBAR_STATUS_CLOSED:
		return nblib_fail(-ESHUTDOWN,
				  "barrier %u of the group failed: rank %u has closed it: all "
				  "members must call the same number of barriers, and no NIC may "
				  "stop for longer than the retry budget",
				  epoch, rank);
	case NBAR_STATUS_NIC_DOWN:
		if (rank == g->rank)
			return nblib_fail(-ENETDOWN,
					  "barrier %u of the group failed: NIC %s was stopped, or "
					  "its device has failed: start its %s again, then open "
					  "ports and groups anew",
					  epoch, nic, nblib_link_server(&g->port->link));
		return nblib_fail(-ENETDOWN,
				  "barrier %u of the group failed: the NIC of rank %u was stopped, "
				  "or its device has failed",
				  epoch, rank);
	case NBAR_STATUS_ABORTED:
		return nblib_fail(-ECANCELED,
				  "barrier %u of the group failed: rank %u has aborted the group: "
				  "look there for what went wrong",
				  epoch, rank);
	case NBAR_STATUS_MISMATCH:
		return nblib_fail(
			-EBADMSG,
			"barrier %u of the group failed: the value of rank %u has another "
			"op, type or count than others, or it has none: all members must "
			"post alike values",
			epoch, rank);
	case NBAR_STATUS_OK:
		return nblib_link_lost(&g->port->link);
	case NBAR_STATUS_END:
		break;
	}
	return nblib_fail(
		-EPROTO,
		"barrier %u of the group failed, rank %u: NIC %s gives a reason that this "
		"program does not know (%u): install the same nbar for both",
		epoch, rank, nic, (uint32_t)(word >> 32));
}

int nblib_procs_refused(struct nbar_group *g, uint64_t word)
{
	if (nblib_group_is_over(g, word))
		return nblib_group_failed(g, word);
	if (!order_runs(&g->runs))
		return nblib_fail(-ENOTCONN,
				  "the group is not connected: call "
				  "nbar_group_connect with the endpoint addresses of its members");
	if (order_down_read(&g->port->link.down) != NBLIB_UP)
		return nblib_link_lost(&g->port->link);
	return nblib_fail(-EAGAIN,
			  "%u barriers of the group are under way, more cannot be: wait for some",
			  (uint32_t)order_posted_read(&g->posted) - (uint32_t)word);
}

int nblib_post_refused(struct nbar_group *g, uint64_t word)
{
	if (g->is_signal)
		return nblib_fail(-EINVAL, "a \"signal\" group has no barriers: use "
					   "nbar_signal_send and nbar_signal_recv");
	if (g->attached)
		return nblib_fail(-EPERM, "this process is only attached to the group: its "
					  "processes arrive together, by nbar_process_team_post");
	return nblib_procs_refused(g, word);
}

int nbar_post(struct nbar_group *g, uint32_t *ticket)
{
	uint64_t word = order_completion_read(&g->completion->word);
	uint64_t posted = order_posted_read(&g->posted);

	if (!nblib_can_post(g, word, (uint32_t)posted + 1, NBAR_POSTED_MAX))
		return nblib_post_refused(g, word);
	order_posted_write(&g->posted, posted + 1);
	if (ticket)
		*ticket = (uint32_t)(posted + 1);
	order_post(&g->doorbell->posted, (uint32_t)(posted + 1));
	nblib_rang(g, (uint32_t)(posted + 1), false);
	return 0;
}

/* Tests a ticket that is not complete: an error if it can never complete, else 0 or 1. */
static int test_again(struct nbar_group *g, uint64_t word, uint32_t ticket)
{
	static _Thread_local uint32_t in_vain;
	struct nblib_link *link = &g->port->link;

	if (nblib_group_is_over(g, word))
		return nblib_group_failed(g, word);
	if (!nblib_reached(order_posted_read(&g->posted), ticket))
		return nblib_fail(-EINVAL, "barrier %u of the group has not been posted", ticket);
	if (order_down_read(&link->down) == NBLIB_UP) {
		if (link->host || ++in_vain % TESTS_A_LOOK != 0)
			return 0;
		nblib_life_look(g, nblib_now_ns());
		if (!nblib_link_look(link))
			return 0;
	}
	/* The barrier may have completed just before the daemon ended. */
	word = order_completion_read(&g->completion->word);
	if (nblib_reached(word, ticket))
		return 1;
	return nblib_group_failed(g, word);
}

int nbar_test(struct nbar_group *g, uint32_t ticket)
{
	uint64_t word = order_completion_read(&g->completion->word);

	if (nblib_reached(word, ticket))
		return 1;
	if (g->port->link.host) {
		nblib_poll(g->port);
		word = order_completion_read(&g->completion->word);
		if (nblib_reached(word, ticket))
			return 1;
	}
	return test_again(g, word, ticket);
}

int nblib_group_wait(struct nbar_group *g, uint32_t ticket, const struct nbar_wait_policy *policy,
		     uint64_t timeout_ns)
{
	uint64_t word = order_completion_read(&g->completion->word);

	if (nblib_reached(word, ticket))
		return 0;
	if (nblib_group_is_over(g, word))
		return nblib_group_failed(g, word);
	if (!nblib_reached(order_posted_read(&g->posted), ticket))
		return nblib_fail(-EINVAL, "barrier %u of the group has not been posted", ticket);
	switch (nblib_wait_group(g, policy, ticket, timeout_ns)) {
	case NBLIB_DONE:
		return 0;
	case NBLIB_FAILED:
		return nblib_group_failed(g, order_completion_read(&g->completion->word));
	case NBLIB_LOST:
		return nblib_link_lost(&g->port->link);
	case NBLIB_TIMEOUT:
	case NBLIB_MUTE:
		break;
	}
	return nblib_why_late(g, ticket);
}

int nbar_wait(struct nbar_group *g, uint32_t ticket, uint64_t timeout_ns)
{
	return nblib_group_wait(g, ticket, &g->wait, timeout_ns);
}

int nbar_barrier(struct nbar_group *g)
{
	uint32_t ticket;
	int err = nbar_post(g, &ticket);

	return err ? err : nbar_wait(g, ticket, NBAR_FOREVER);
}
