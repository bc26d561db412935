/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post.c - posts tickets to the NIC; a thread posts tickets that have to wait for room.
 *
 * A NIC accepts NBAR_POSTED_MAX barriers of a group at once. A program may start more, and then
 * block in an MPI call that never calls the glue. So a thread posts the rest. This thread exists
 * while a ticket waits for room, and makes no call into MPI.
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

/* At most one allreduce of a communicator is under way: so the last value of each rank is free. */
static int post_value(struct nbmpi_comm *c)
{
	struct nbar_value *all;

	if (!c->memory)
		return nbar_post_value(c->group, c->value, NULL);
	all = nbmpi_memory_values(c);
	all[c->mate] = *c->value;
	return nbar_process_team_post_value(&c->memory->procs, c->group, c->mate, all, nbmpi_fold,
					    NULL);
}

static int post_barrier(struct nbmpi_comm *c)
{
	return c->memory ? nbar_process_team_post(&c->memory->procs, c->group, c->mate, NULL)
			 : nbar_post(c->group, NULL);
}

int nbmpi_post(struct nbmpi_comm *c)
{
	int rc = 0;

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
