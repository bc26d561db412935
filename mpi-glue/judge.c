/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - does a set-up pay, and are the offloaded barriers of a communicator as fast as those of
 * the MPI? If not, all ranks leave the barriers to the MPI.
 *
 * Called by barrier.c and join.c within a blocking barrier: so all ranks judge after the same
 * barrier, and vote by a few messages.
 */
#include <stdio.h>

#include "comm_internal.h"

#define NS_MAX (UINT64_MAX >> 2) /* a vote is smaller than 2^62 */
_Static_assert(NBMPI_TIMED_MOST >= NBMPI_PAYS, "as many barriers by NICs as by the MPI are timed");

void nbmpi_judge_note(struct nbmpi_judge *j, enum nbmpi_way way, double seconds)
{
	if (j->n[way] < NBMPI_TIMED_MOST)
		j->took[way][j->n[way]++] = seconds;
	else if (way == NBMPI_WAY_MPI)
		j->took[way][j->oldest++ % NBMPI_TIMED_MOST] = seconds;
}

/* The time at place i, from 0, of the times in ascending order. */
static double judge_ranked(const struct nbmpi_judge *j, enum nbmpi_way way, uint32_t i)
{
	double took[NBMPI_TIMED_MOST] = { 0 };

	for (uint32_t n = 0; n < j->n[way]; n++) {
		uint32_t at = n;

		for (; at > 0 && took[at - 1] > j->took[way][n]; at--)
			took[at] = took[at - 1];
		took[at] = j->took[way][n];
	}
	return took[i];
}

double nbmpi_judge_figure(const struct nbmpi_judge *j, enum nbmpi_way way, uint32_t size)
{
	if (j->n[way] == 0)
		return 0;
	return judge_ranked(j, way, (j->n[way] - 1) / size);
}

bool nbmpi_judge_is_due(const struct nbmpi_judge *j)
{
	return !j->closed && j->n[NBMPI_WAY_MPI] >= NBMPI_TIMED_LEAST &&
	       j->n[NBMPI_WAY_NBAR] >= j->n[NBMPI_WAY_MPI];
}

static bool slower(const uint64_t ns[NBMPI_WAYS])
{
	return (double)ns[NBMPI_WAY_NBAR] * 100 >
	       (double)ns[NBMPI_WAY_MPI] * (100 + NBMPI_SLOWER_PERCENT);
}

bool nbmpi_judge_slower(const struct nbmpi_cost *cost)
{
	return slower(cost->most) && slower(cost->least);
}

/* --- all ranks ------------------------------------------------------------------------------- */

static uint64_t ns_of(double seconds)
{
	return seconds > 0 ? (uint64_t)(1e9 * seconds) : 0;
}

void nbmpi_judge_give(const struct nbmpi_comm *c, struct nbmpi_sum *sum)
{
	for (enum nbmpi_way way = NBMPI_WAY_MPI; way < NBMPI_WAYS; way++) {
		sum->also[way] = ns_of(nbmpi_judge_figure(&c->judge, way, c->size));
		sum->also[NBMPI_WAYS + way] = NS_MAX - sum->also[way];
	}
}

bool nbmpi_judge_take(const struct nbmpi_comm *c, const struct nbmpi_sum *sum, char *cause,
		      size_t size)
{
	struct nbmpi_cost cost;

	for (enum nbmpi_way way = NBMPI_WAY_MPI; way < NBMPI_WAYS; way++) {
		cost.least[way] = sum->also[way];
		cost.most[way] = NS_MAX - sum->also[NBMPI_WAYS + way];
	}
	snprintf(
		cause, size,
		"%.1f us by nbar, %.1f us by the MPI: %sto keep those of nbar, set NBAR_MPI_WHERE or "
		"coll_nbar_where to nic",
		1e-3 * (double)cost.most[NBMPI_WAY_NBAR], 1e-3 * (double)cost.most[NBMPI_WAY_MPI],
		c->nhost > 1 ? "give each daemon a processor of its own; or, " : "");
	return nbmpi_judge_slower(&cost);
}

int nbmpi_judge_pays(struct nbmpi_comm *c, bool *pays)
{
	/* The median, and 0 before the first: those that were interrupted do not count. */
	double seconds = judge_ranked(&c->judge, NBMPI_WAY_MPI, c->judge.n[NBMPI_WAY_MPI] / 2);
	struct nbmpi_sum sum = { .least = ns_of(c->calls * seconds) };
	int rc;

	*pays = false;
	c->asks = c->calls < NBMPI_ASK ? NBMPI_ASK : 2 * c->calls;
	if (c->calls < NBMPI_ASK)
		return 0;
	sum.least = NBMPI_VOTE_YES | (sum.least < NBMPI_PAYS_NS ? sum.least : NBMPI_PAYS_NS);
	rc = nbmpi_self.start.ops->sum(c->mpi, &sum);
	/* If a rank cannot take part, the set-up says why. */
	*pays = sum.least < NBMPI_VOTE_YES || sum.least == (NBMPI_VOTE_YES | NBMPI_PAYS_NS);
	return rc;
}

/* The last barrier is complete at this rank, and with it all that were posted before. Requests of
 * the program may still refer to them. */
static void leave_nics(struct nbmpi_comm *c, enum nbmpi_why why)
{
	pthread_mutex_lock(&c->lock);
	c->round++;
	c->path = NBMPI_PLAIN;
	c->why = why;
	c->why_rank = NBAR_RANK_NONE;
	nbmpi_leave(c);
	pthread_mutex_unlock(&c->lock);
}

int nbmpi_judge_comm(struct nbmpi_comm *c)
{
	struct nbmpi_sum sum = { .least = NBMPI_VOTE_YES };
	char cause[256];
	int rc;

	nbmpi_judge_give(c, &sum);
	rc = nbmpi_self.start.ops->sum(c->mpi, &sum);
	c->judge.closed = true;
	if (rc != 0) {
		pthread_mutex_lock(&c->lock);
		c->error = NBMPI_FAILED;
		c->code = rc;
		pthread_mutex_unlock(&c->lock);
		return NBMPI_MPI_FAILED;
	}
	if (!nbmpi_judge_take(c, &sum, cause, sizeof(cause)))
		return 0;
	leave_nics(c, NBMPI_WHY_slow);
	nbmpi_log_path(c, cause);
	return 0;
}
