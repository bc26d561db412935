/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post.c - posts tickets to the NIC, and takes the results of allreduces; a thread posts tickets
 * that have to wait for room.
 *
 * A NIC accepts NBAR_POSTED_MAX barriers of a group at once, or NBAR_VALUES_AHEAD with values. A
 * program may start more, and then block in an MPI call that never calls the glue. So a thread
 * posts the rest. This thread exists while a ticket waits for room, and makes no call into MPI.
 *
 * The value of ticket t has the place of that of ticket t - NBAR_VALUES_AHEAD, in the page of the
 * NIC and in the memory of the host's ranks. So a rank takes the result of t - NBAR_VALUES_AHEAD
 * before it posts t: then no rank of the host needs the earlier value.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "comm_internal.h"

#define PAUSE_NS 200000

/* With nbmpi_self.lock. */
static struct {
	bool started; /* the thread must be joined */
	bool runs, stop;
	pthread_t id;
} thread;

void nbmpi_want(struct nbmpi_comm *c, struct nbmpi_request *r)
{
	r->ticket = ++c->wanted;
	if (!r->value)
		return;
	r->next = NULL;
	if (!c->queue)
		c->queue_end = &c->queue;
	*c->queue_end = r;
	c->queue_end = &r->next;
	if (!c->unposted)
		c->unposted = r;
}

void nbmpi_forget(struct nbmpi_comm *c, const struct nbmpi_request *r)
{
	struct nbmpi_request **at = &c->queue;

	/* As many steps as earlier allreduces are under way. */
	while (*at && *at != r)
		at = &(*at)->next;
	if (!*at)
		return;
	if (c->unposted == r)
		c->unposted = r->next;
	if (!r->next)
		c->queue_end = at;
	*at = r->next;
}

static int take_result(const struct nbmpi_comm *c, struct nbmpi_request *r)
{
	struct nbar_value result = { 0 };
	int rc = nbar_result(c->group, r->ticket, &result);

	/* Other processes can write the page, too. */
	if (rc == 0 && (result.op != r->value->op || result.type != r->value->type ||
			result.count != r->value->count))
		rc = -EPROTO;
	if (rc == 0)
		*r->value = result;
	r->done = rc == 0;
	return rc;
}

int nbmpi_take_results(struct nbmpi_comm *c)
{
	/* At most NBAR_VALUES_AHEAD. */
	while (c->queue && c->queue != c->unposted) {
		int rc = nbar_test(c->group, c->queue->ticket);

		if (rc == 1)
			rc = take_result(c, c->queue);
		else if (rc == 0)
			break;
		if (rc != 0)
			return rc;
		nbmpi_forget(c, c->queue);
	}
	return 0;
}

static int post_value(struct nbmpi_comm *c)
{
	struct nbmpi_request *r = c->unposted;
	struct nbar_value *all;
	int rc;

	if (r->ticket - c->queue->ticket >= NBAR_VALUES_AHEAD)
		return -EAGAIN;
	if (c->memory) {
		all = nbmpi_memory_values(c, r->ticket);
		all[c->mate] = *r->value;
		rc = nbar_process_team_post_value(&c->memory->procs, c->group, c->mate, all,
						  nbmpi_fold, NULL);
	} else {
		rc = nbar_post_value(c->group, r->value, NULL);
	}
	if (rc == 0)
		c->unposted = r->next;
	return rc;
}

static int post_barrier(struct nbmpi_comm *c)
{
	return c->memory ? nbar_process_team_post(&c->memory->procs, c->group, c->mate, NULL)
			 : nbar_post(c->group, NULL);
}

int nbmpi_post(struct nbmpi_comm *c)
{
	int rc = nbmpi_take_results(c);

	while (c->posted != c->wanted && rc == 0) {
		rc = c->kind == NBMPI_ALLREDUCES ? post_value(c) : post_barrier(c);
		if (rc == 0)
			c->posted++;
	}
	return rc;
}

/* With nbmpi_self.lock. False: no ticket waits for room. Does not report a failure, because this
 * thread makes no call into MPI: the ranks that wait for the barrier report it. */
static bool post_all(void)
{
	bool more = false;

	for (struct nbmpi_comm *c = nbmpi_self.comm; c; c = c->next) {
		if (pthread_mutex_trylock(&c->lock) != 0) {
			more = true;
			continue;
		}
		if (!c->error)
			more = nbmpi_post(c) == -EAGAIN || more;
		pthread_mutex_unlock(&c->lock);
	}
	return more;
}

static void *post_run(void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	(void)arg;
	pthread_mutex_lock(&nbmpi_self.lock);
	while (!thread.stop && post_all()) {
		pthread_mutex_unlock(&nbmpi_self.lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&nbmpi_self.lock);
	}
	thread.runs = false;
	pthread_mutex_unlock(&nbmpi_self.lock);
	return NULL;
}

void nbmpi_post_later(void)
{
	sigset_t all, before;

	pthread_mutex_lock(&nbmpi_self.lock);
	if (!thread.runs) {
		/* The previous thread has released the lock for the last time. */
		if (thread.started)
			pthread_join(thread.id, NULL);
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are the program's */
		/* If there is no thread, the functions that test and wait post the tickets. */
		thread.runs = thread.started =
			pthread_create(&thread.id, NULL, post_run, NULL) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_mutex_unlock(&nbmpi_self.lock);
}

void nbmpi_post_stop(void)
{
	pthread_mutex_lock(&nbmpi_self.lock);
	thread.stop = true;
	pthread_mutex_unlock(&nbmpi_self.lock);
	if (thread.started)
		pthread_join(thread.id, NULL);
	thread.started = thread.stop = false;
}
