/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * barrier.c - barriers of a communicator: decided once and together, then post and test.
 *
 * Called by the glue of an MPI for every barrier. While all goes well an offloaded barrier is a
 * lock that nobody else holds, a store, and a word to look at. Collectives of the communicator are
 * started only where the user calls a barrier, never later: the order of collectives on a
 * communicator belongs to the user.
 */
#include <errno.h>
#include <stdlib.h>

#include "comm_internal.h"

/*
 * A rank that starts barriers ahead of the others cannot know yet how the vote ends, and may not
 * wait for them. So among nonblocking barriers a vote is taken at every EVERYth call and takes
 * effect EVERY calls later: only who has so many under way on a new communicator ever waits.
 */
#define EVERY 8u

#define VAIN 64u /* looks in vain between two looks at the clock */
#define LOOK_AFTER_S 0.2

/* --- with the communicator's lock ------------------------------------------------------------ */

static int mpi_failed(struct nbmpi_comm *c, int code)
{
	c->code = code;
	c->error = NBMPI_MPI_FAILED;
	return c->error;
}

/* Posts what is wanted, as far as there is room. 0, or the library's error. */
static int post_some(struct nbmpi_comm *c)
{
	bool behind = false;
	int rc = 0;

	while (c->posted != c->wanted && rc == 0) {
		rc = c->memory ? nbar_crew_post(&c->memory->crew, c->group, c->mate, c->posted + 1)
			       : nbar_post(c->group, NULL);
		behind = rc == -EAGAIN;
		if (rc == 0)
			c->posted++;
	}
	if (behind != c->behind) {
		c->behind = behind;
		__atomic_fetch_add(&nbmpi_self.nbehind, behind ? 1 : -1, __ATOMIC_RELAXED);
	}
	return behind ? 0 : rc;
}

static int post(struct nbmpi_comm *c)
{
	int rc = post_some(c);

	return rc < 0 ? nbmpi_fail(c, rc) : 0;
}

void nbmpi_progress(void)
{
	/* Hardly ever: so many barriers under way. */
	if (__atomic_load_n(&nbmpi_self.nbehind, __ATOMIC_RELAXED) == 0 ||
	    pthread_mutex_trylock(&nbmpi_self.lock) != 0)
		return;
	for (struct nbmpi_comm *c = nbmpi_self.comm; c; c = c->next) {
		if (pthread_mutex_trylock(&c->lock) != 0)
			continue;
		/* A failure is for those to find who wait for it: no call into MPI from here. */
		if (c->behind && !c->error)
			post_some(c);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&nbmpi_self.lock);
}

static int start_gather(struct nbmpi_comm *c)
{
	int code;

	nbmpi_record_make(c);
	c->records = malloc(c->size * sizeof(*c->records));
	if (!c->records) {
		c->code =
			nbmpi_self.start.ops->error("nbar: no memory for the records of its ranks");
		return c->error = NBMPI_FAILED;
	}
	code = nbmpi_self.start.ops->gather(c->mpi, &c->mine, c->records, sizeof(c->mine),
					    &c->gather);
	return code ? mpi_failed(c, code) : 0;
}

static int start_vote(struct nbmpi_comm *c)
{
	int code;

	c->sent_vote = c->my_vote;
	c->nvote++;
	code = nbmpi_self.start.ops->minimum(c->mpi, &c->sent_vote, &c->votes, &c->vote);
	return code ? mpi_failed(c, code) : 0;
}

/* Goes on with whatever is under way. */
static int advance(struct nbmpi_comm *c)
{
	bool done = false;
	int code;

	if (c->error)
		return c->error;
	if (c->gather) {
		code = nbmpi_self.start.ops->test(&c->gather, &done);
		if (code)
			return mpi_failed(c, code);
		if (done) {
			c->gather = NULL;
			c->gathered = true;
			nbmpi_join(c);
		}
	}
	if (c->vote) {
		code = nbmpi_self.start.ops->test(&c->vote, &done);
		if (code)
			return mpi_failed(c, code);
		if (done) {
			c->vote = NULL;
			c->nvoted++;
		}
	}
	return post(c);
}

/* The votes are counted: decides, unless someone asked for another vote. */
static void settle(struct nbmpi_comm *c)
{
	if (c->votes == NBMPI_VOTE_LATER)
		return;
	if (c->votes == NBMPI_VOTE_YES) {
		nbmpi_joined(c);
		c->path = NBMPI_OFFLOADED;
	} else {
		nbmpi_leave(c);
		c->why = (enum nbmpi_why)(uint32_t)c->votes;
		c->why_rank = (uint32_t)(c->votes >> 32);
		c->path = NBMPI_PLAIN;
	}
	nbmpi_tell_path(c);
}

/*
 * Ranks of one host that have no NIC between them: nobody but they can tell that one has ended.
 * They look after each other when they have looked in vain for a while. 0, or failed.
 */
static int look_after(struct nbmpi_comm *c, uint32_t ticket)
{
	const struct nbmpi_mate *mate;
	double now;

	if (++c->vain % VAIN != 0)
		return 0;
	now = nbmpi_now_s();
	if (now - c->looked_after < LOOK_AFTER_S)
		return 0;
	c->looked_after = now;
	mate = nbmpi_mate_ended(c);
	/* It may have ended because this barrier, its last, is complete. */
	if (!mate || nbar_crew_test(&c->memory->crew, NULL, ticket) == 1)
		return 0;
	return nbmpi_fail_ended(c, mate);
}

/* A ticket that is posted. Complete is complete, also when a later one has failed. */
static int look_at_ticket(struct nbmpi_comm *c, uint32_t ticket)
{
	int rc = c->memory ? nbar_crew_test(&c->memory->crew, c->group, ticket)
			   : nbar_test(c->group, ticket);

	if (rc == 1)
		return 1;
	if (c->error)
		return c->error;
	if (rc < 0)
		return nbmpi_fail(c, rc);
	return c->group ? 0 : look_after(c, ticket);
}

/* 1: done; 0: not yet; negative: failed. */
static int look(struct nbmpi_comm *c, const struct nbmpi_request *r)
{
	if (r->kind == NBMPI_TICKET && (int32_t)(c->posted - r->ticket) >= 0)
		return look_at_ticket(c, r->ticket);
	if (c->error)
		return c->error;
	switch (r->kind) {
	case NBMPI_GATHER:
		return c->gathered;
	case NBMPI_VOTE:
		return (int32_t)(c->nvoted - r->ticket) >= 0;
	case NBMPI_TICKET:
		break;
	}
	return 0;
}

int nbmpi_test(struct nbmpi_request *r)
{
	struct nbmpi_comm *c = r->comm;
	bool last = false;
	int rc;

	if (pthread_mutex_trylock(&c->lock) != 0)
		return 0;
	rc = look(c, r);
	if (rc == 0)
		rc = advance(c); /* what comes of it, the next look tells */
	r->code = c->code;
	r->orphan = c->closed;
	if (rc != 0)
		last = --c->nrequest == 0 && c->closed;
	pthread_mutex_unlock(&c->lock);
	if (last)
		nbmpi_comm_free(c);
	return rc;
}

/* Counts a barrier that the MPI runs itself. */
static int by_mpi(struct nbmpi_comm *c, enum nbmpi_why why)
{
	nbmpi_bump(&c->by_mpi[why]);
	return NBMPI_BY_MPI;
}

static void begin(struct nbmpi_comm *c, struct nbmpi_request *r, enum nbmpi_kind kind,
		  uint32_t ticket)
{
	*r = (struct nbmpi_request){ .comm = c, .kind = kind, .ticket = ticket };
	c->nrequest++;
}

/* A barrier of a communicator that is decided. */
static int start(struct nbmpi_comm *c, struct nbmpi_request *r)
{
	int rc;

	if (c->error)
		return c->error;
	if (c->path == NBMPI_PLAIN)
		return by_mpi(c, c->why);
	nbmpi_bump(&c->offloaded);
	c->wanted++;
	rc = post(c);
	if (rc == 0)
		begin(c, r, NBMPI_TICKET, c->wanted);
	return rc;
}

/* Waits for part of the set-up, without the lock. */
static int wait_for(struct nbmpi_comm *c, enum nbmpi_kind kind, uint32_t ticket)
{
	struct nbmpi_request r;

	begin(c, &r, kind, ticket);
	pthread_mutex_unlock(&c->lock);
	int rc = nbmpi_wait(&r);

	pthread_mutex_lock(&c->lock);
	return rc < 0 ? rc : 0;
}

/* A blocking barrier settles it: here all may wait for all. */
static int open_now(struct nbmpi_comm *c)
{
	int rc = 0;

	by_mpi(c, NBMPI_WHY_opening);
	if (c->calls++ == 0)
		rc = start_gather(c);
	if (rc == 0)
		rc = wait_for(c, NBMPI_GATHER, 0);
	if (rc == 0)
		rc = wait_for(c, NBMPI_VOTE, c->nvote);
	if (rc == 0)
		rc = start_vote(c);
	if (rc == 0)
		rc = wait_for(c, NBMPI_VOTE, c->nvote);
	if (rc == 0)
		settle(c);
	return rc;
}

/* A nonblocking one takes the next step, if this call is the turn for one. */
static int open_step(struct nbmpi_comm *c, struct nbmpi_request *r)
{
	uint32_t turn = c->calls++;
	int rc;

	if (turn % EVERY != 0)
		return by_mpi(c, NBMPI_WHY_opening);
	if (turn > EVERY) {
		rc = wait_for(c, NBMPI_VOTE, c->nvote);
		if (rc < 0)
			return rc;
		settle(c);
		if (c->path != NBMPI_OPENING)
			return start(c, r);
	}
	by_mpi(c, NBMPI_WHY_opening);
	rc = turn == 0 ? start_gather(c) : start_vote(c);
	if (rc == 0)
		begin(c, r, turn == 0 ? NBMPI_GATHER : NBMPI_VOTE, c->nvote);
	return rc;
}

/* --- barriers -------------------------------------------------------------------------------- */

int nbmpi_barrier(struct nbmpi_comm *c)
{
	struct nbmpi_request r = { .comm = NULL };
	int rc;

	pthread_mutex_lock(&c->lock);
	if (c->path != NBMPI_OPENING)
		rc = start(c, &r);
	else
		rc = c->error ? c->error : open_now(c);
	pthread_mutex_unlock(&c->lock);
	if (rc != 0 || !r.comm)
		return rc;
	rc = nbmpi_wait(&r);
	return rc < 0 ? rc : 0;
}

int nbmpi_ibarrier(struct nbmpi_comm *c, struct nbmpi_request *out)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	if (c->path != NBMPI_OPENING)
		rc = start(c, out);
	else
		rc = c->error ? c->error : open_step(c, out);
	pthread_mutex_unlock(&c->lock);
	return rc;
}
