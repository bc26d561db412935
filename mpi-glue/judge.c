/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - are the offloaded barriers of a communicator as fast as those of the MPI? If not, all
 * ranks leave the barriers to the MPI.
 *
 * Called by barrier.c within a blocking barrier: so all ranks judge after the same barrier, and
 * vote by a few messages, once for each communicator.
 */
#include <stdio.h>

#include "comm_internal.h"

#define NS_MAX (UINT64_MAX >> 2) /* a vote is smaller than 2^62 */
_Static_assert(NBMPI_TIMED_MOST >= NBMPI_PAYS, "as many barriers by NICs as by the MPI are timed");

void nbmpi_judge_note(struct nbmpi_judge *j, enum nbmpi_way way, double seconds)
{
	double *took = j->took[way];
	uint32_t i = j->n[way];

	if (i == NBMPI_TIMED_MOST)
		return;
	for (; i > 0 && took[i - 1] > seconds; i--)
		took[i] = took[i - 1];
	took[i] = seconds;
	j->n[way]++;
}

double nbmpi_judge_figure(const struct nbmpi_judge *j, enum nbmpi_way way, uint32_t size)
{
	return j->took[way][(j->n[way] - 1) / size];
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

/* Combines the figures of all ranks. 0, or an error code of the MPI. */
static int gather(struct nbmpi_comm *c, struct nbmpi_cost *cost)
{
	int rc = 0;

	for (enum nbmpi_way way = NBMPI_WAY_MPI; way < NBMPI_WAYS && rc == 0; way++) {
		uint64_t mine = ns_of(nbmpi_judge_figure(&c->judge, way, c->size));
		struct nbmpi_sum least = { .least = mine }, most = { .least = NS_MAX - mine };

		rc = nbmpi_self.start.ops->sum(c->mpi, &least);
		if (rc == 0)
			rc = nbmpi_self.start.ops->sum(c->mpi, &most);
		cost->least[way] = least.least;
		cost->most[way] = NS_MAX - most.least;
	}
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
	struct nbmpi_cost cost;
	char cause[256];
	int rc = gather(c, &cost);

	c->judge.closed = true;
	if (rc != 0) {
		pthread_mutex_lock(&c->lock);
		c->error = NBMPI_FAILED;
		c->code = rc;
		pthread_mutex_unlock(&c->lock);
		return NBMPI_MPI_FAILED;
	}
	snprintf(
		cause, sizeof(cause),
		"%.1f us by nbar, %.1f us by the MPI: %sto keep those of nbar, set NBAR_MPI_WHERE or "
		"coll_nbar_where to nic",
		1e-3 * (double)cost.most[NBMPI_WAY_NBAR], 1e-3 * (double)cost.most[NBMPI_WAY_MPI],
		c->nhost > 1 ? "give each daemon a processor of its own; or, " : "");
	if (!nbmpi_judge_slower(&cost))
		return 0;
	leave_nics(c, NBMPI_WHY_slow);
	nbmpi_log_path(c, cause);
	return 0;
}
