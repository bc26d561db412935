/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * barrier.c - barriers of a communicator: offloaded or fallback. All ranks set it up once, then
 * they post and test.
 *
 * Called by the glue of an MPI for every barrier. Without a failure, an offloaded barrier costs an
 * uncontended lock, a store, and reads of a word. The glue calls collectives of the communicator
 * only within a blocking barrier: so the program determines the order of collectives, and a
 * nonblocking barrier never waits for another rank.
 */
#include <errno.h>

#include "comm_internal.h"

#define VAIN 64u /* unsuccessful tests between two looks at the MPI and the clock */
#define LOOK_AFTER_S 0.2

/* --- with the communicator's lock ------------------------------------------------------------ */

/*
 * No NIC can detect that a rank has revoked the communicator, nor, if all ranks are on one host,
 * that a rank has ended. The ranks look for both after some unsuccessful tests. 0, or failed.
 */
static int look_after(struct nbmpi_comm *c, uint32_t ticket)
{
	const struct nbmpi_ops *ops = nbmpi_self.start.ops;
	const struct nbmpi_mate *mate;
	int code;
	double now;

	if (++c->vain % VAIN != 0)
		return 0;
	code = ops->revoked ? ops->revoked(c->mpi) : 0;
	if (code)
		return nbmpi_fail_code(c, code);
	if (c->group)
		return 0;
	now = nbmpi_now_s();
	if (now - c->looked_after < LOOK_AFTER_S)
		return 0;
	c->looked_after = now;
	mate = nbmpi_mate_ended(c);
	/* The rank may have ended normally, because this barrier was its last and is complete. */
	if (!mate || nbar_process_team_test(&c->memory->procs, NULL, ticket) == 1)
		return 0;
	return nbmpi_fail_ended(c, nbmpi_mate_blame(c, mate));
}

/* Tests a posted ticket. A complete barrier stays complete, even if a later one has failed. */
static int look_at_posted(struct nbmpi_comm *c, uint32_t ticket)
{
	int rc = c->memory ? nbar_process_team_test(&c->memory->procs, c->group, ticket)
			   : nbar_test(c->group, ticket);

	if (rc == 1)
		return 1;
	if (c->error)
		return c->error;
	if (rc != 0)
		return nbmpi_fail(c, rc);
	return look_after(c, ticket);
}

/* The allreduce is complete, and with it all that were posted before. */
static int look_at_result(struct nbmpi_comm *c, const struct nbmpi_request *r)
{
	int rc = nbmpi_take_results(c);

	if (r->done)
		return 1;
	return c->error ? c->error : nbmpi_fail(c, rc);
}

/* Looks at a barrier once. 1: done; 0: not yet; negative: failed. */
static int barrier_look(struct nbmpi_comm *c, const struct nbmpi_request *r)
{
	const uint32_t ticket = r->ticket;
	int rc;

	if (r->done || (!r->value && r->round != c->round))
		return 1;
	if ((int32_t)(c->posted - ticket) >= 0) {
		rc = look_at_posted(c, ticket);
		return rc == 1 && r->value ? look_at_result(c, r) : rc;
	}
	if (c->error)
		return c->error;
	rc = nbmpi_post(c);
	if ((int32_t)(c->posted - ticket) >= 0)
		return 0; /* the next look tests it, whatever happened to later ones */
	if (rc != 0 && rc != -EAGAIN)
		return nbmpi_fail(c, rc);
	/* The program may wait for this one alone, so it finds out why those before do not end. */
	rc = look_at_posted(c, c->posted);
	return rc < 0 ? rc : 0;
}

/* Counts a barrier that the MPI runs itself. */
static int fallback(struct nbmpi_comm *c, enum nbmpi_why why)
{
	nbmpi_bump(&c->fallback[why]);
	return NBMPI_BY_MPI;
}

static int barrier_start(struct nbmpi_comm *c, struct nbar_value *value, struct nbmpi_request *r)
{
	int rc;

	if (c->error)
		return c->error;
	*r = (struct nbmpi_request){ .comm = c, .round = c->round, .value = value };
	nbmpi_want(c, r);
	rc = nbmpi_post(c);
	if (rc == -EAGAIN) {
		nbmpi_post_later();
	} else if (rc != 0) {
		nbmpi_forget(c, r);
		return nbmpi_fail(c, rc);
	}
	nbmpi_bump(&c->offloaded);
	c->nrequest++;
	return 0;
}

/* --- barriers -------------------------------------------------------------------------------- */

int nbmpi_iallreduce(struct nbmpi_comm *c, struct nbar_value *value, struct nbmpi_request *out)
{
	int rc;

	if (c->path == NBMPI_PLAIN)
		return fallback(c, c->why);
	if (c->path == NBMPI_OPENING) {
		if (c->error)
			return c->error;
		c->calls++;
		return fallback(c, NBMPI_WHY_opening);
	}
	/* All ranks call it with the same type and count, so all decide alike. */
	if (!nbmpi_value_is_fast(c, value))
		return fallback(c, NBMPI_WHY_value);
	pthread_mutex_lock(&c->lock);
	rc = barrier_start(c, value, out);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

int nbmpi_ibarrier(struct nbmpi_comm *c, struct nbmpi_request *out)
{
	return nbmpi_iallreduce(c, NULL, out);
}

/* The judge wants to know how long the next barrier takes. */
static bool is_timed(const struct nbmpi_comm *c)
{
	return !c->judge.closed;
}

static int barrier_run(struct nbmpi_comm *c, struct nbar_value *value)
{
	struct nbmpi_request r;
	double since = is_timed(c) ? nbmpi_now_s() : 0;
	int rc = nbmpi_iallreduce(c, value, &r);

	if (rc == NBMPI_BY_MPI)
		c->since = since;
	if (rc != 0)
		return rc;
	rc = nbmpi_wait(&r);
	if (rc < 0)
		return rc;
	nbmpi_self.start.ops->receive();
	if (c->judge.closed)
		return 0;
	nbmpi_judge_note(&c->judge, NBMPI_WAY_NBAR, nbmpi_now_s() - since);
	return nbmpi_judge_is_due(&c->judge) ? nbmpi_judge_comm(c) : 0;
}

int nbmpi_barrier(struct nbmpi_comm *c)
{
	int rc;

	/* All members have called the same number of barriers before, so all decide alike. */
	if (c->path != NBMPI_OPENING || c->calls < c->asks || c->error)
		return barrier_run(c, NULL);
	c->calls++;
	fallback(c, NBMPI_WHY_opening);
	rc = nbmpi_set_up(c);
	c->since = nbmpi_now_s();
	/* Ranks without this set-up are in the MPI's own barrier: so all ranks call it. */
	return rc == 0 && c->path != NBMPI_OFFLOADED ? NBMPI_BY_MPI : rc;
}

int nbmpi_allreduce(struct nbmpi_comm *c, struct nbar_value *value)
{
	int rc = 0;

	/* As in nbmpi_barrier; but the votes of a set-up are not the allreduce. */
	if (c->path == NBMPI_OPENING && c->calls >= c->asks && !c->error) {
		c->value = value;
		rc = nbmpi_set_up(c);
		c->value = NULL;
	}
	return rc == 0 ? barrier_run(c, value) : rc;
}

void nbmpi_barrier_by_mpi(struct nbmpi_comm *c)
{
	if (c->path == NBMPI_OPENING && is_timed(c))
		nbmpi_judge_note(&c->judge, NBMPI_WAY_MPI, nbmpi_now_s() - c->since);
}

int nbmpi_test(struct nbmpi_request *r)
{
	struct nbmpi_comm *c = r->comm;
	bool last = false;
	int rc;

	if (pthread_mutex_trylock(&c->lock) != 0)
		return 0;
	rc = barrier_look(c, r);
	r->code = c->code;
	r->orphan = c->closed;
	if (rc < 0 && r->value)
		nbmpi_forget(c, r);
	if (rc != 0)
		last = --c->nrequest == 0 && c->closed;
	pthread_mutex_unlock(&c->lock);
	if (last)
		nbmpi_comm_free(c);
	return rc;
}
