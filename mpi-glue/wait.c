/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - how a rank waits for a barrier: it tests, lets MPI make progress, and then spins, yields
 * or sleeps.
 *
 * While a rank waits here, its other operations must make progress (MPI's progress rule). So the
 * rank calls into the MPI at least every few milliseconds.
 */
#include <sched.h>
#include <time.h>

#include "comm_internal.h"
#include "nbar_host.h"
#include "nbar_pace.h"

/* Tests in a row by a rank that spins: a call into MPI would delay the next test. */
#define LOOKS 256u
/* Rounds before the first call into MPI by a rank that yields: a barrier is mostly complete after
 * the next pass, and a call into MPI costs as much as a pass. */
#define PASSES 4u
#define SLEEP_NS 50000u  /* the first sleep; each sleep is twice as long as the one before, ... */
#define SLEEP_DOUBLES 6u /* ... this many times: 3.2 ms at most */
#define CLOCK_ROUNDS 16u /* rounds between two looks at the clock */
/* A wait yields for this long, then it also naps before each yield. Threads that yield to each
 * other for long mislead the scheduler of Linux 6.6 and later: it may leave another thread without
 * a processor for seconds, and that thread may be in a pass of the NIC for which all wait. */
#define YIELD_NS 1000000u
#define NAP_NS 20000 /* and the slack of the kernel's timers: 50 us */
#define TELL_S 10.0  /* a wait that a rank reports; then each that is twice as long */

double nbmpi_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeps until the barrier completes, but not for long. */
static void sleep_a_little(struct nbmpi_comm *c, const struct nbmpi_request *r, uint32_t round)
{
	const struct nbar_wait_policy sleep = { .block = true };
	uint64_t ns = (uint64_t)SLEEP_NS << (round < SLEEP_DOUBLES ? round : SLEEP_DOUBLES);
	struct timespec t = { .tv_nsec = (long)ns };
	bool posted;

	pthread_mutex_lock(&c->lock);
	posted = (int32_t)(c->posted - r->ticket) >= 0;
	pthread_mutex_unlock(&c->lock);
	/* The next test shows the result. */
	if (posted && c->memory)
		nbar_process_team_wait(&c->memory->procs, c->group, r->ticket, &sleep, ns);
	else if (posted)
		nbar_wait(c->group, r->ticket, ns);
	else
		nanosleep(&t, NULL);
}

/* Whether others want the processor of this thread. */
static _Thread_local struct nbar_pace pace;

/* Asked once a round. */
static bool spins(void)
{
	enum nbmpi_wait wait = nbmpi_self.start.config.wait;

	return wait == NBMPI_WAIT_SPIN || (wait == NBMPI_WAIT_AUTO && nbar_pace_spins(&pace));
}

/* threads: ranks of this host that wait for each other. since: as in nbmpi_wait_yield. */
static void yield_processor(uint32_t threads, uint64_t *since)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	uint64_t before = nbar_now_ns();

	if (*since == 0)
		*since = before;
	if (before - *since >= YIELD_NS) {
		nanosleep(&nap, NULL);
		before = nbar_now_ns();
	}
	sched_yield();
	if (nbar_pace_yielded(&pace, nbar_now_ns() - before) &&
	    nbmpi_self.start.config.wait == NBMPI_WAIT_AUTO)
		pace.home = nbar_move(pace.returns ? pace.home : -1, threads);
}

void nbmpi_wait_yield(uint64_t *since)
{
	if (spins())
		*since = 0;
	else
		yield_processor(1, since);
}

void nbmpi_yield(void)
{
	uint64_t since = 0;

	nbmpi_wait_yield(&since);
}

int nbmpi_wait(struct nbmpi_request *r)
{
	bool sleeps = nbmpi_self.start.config.wait == NBMPI_WAIT_BLOCK;
	double since = 0, tell = TELL_S, waited;
	uint64_t yields_since = 0;

	for (uint32_t round = 0;; round++) {
		bool spin = spins();

		for (uint32_t i = 0; i < (spin ? LOOKS : 1); i++) {
			int rc = nbmpi_test(r);

			if (rc != 0)
				return rc;
		}
		if (spin || sleeps || round >= PASSES)
			nbmpi_self.start.ops->progress();
		if (sleeps)
			sleep_a_little(r->comm, r, round);
		else if (spin)
			yields_since = 0;
		else
			yield_processor(r->comm->nlocal, &yields_since);
		if (round % CLOCK_ROUNDS != CLOCK_ROUNDS - 1)
			continue;
		if (since == 0)
			since = nbmpi_now_s();
		waited = nbmpi_now_s() - since;
		if (waited >= tell) {
			nbmpi_log_missing(r->comm, waited);
			while (tell <= waited)
				tell *= 2;
		}
	}
}
