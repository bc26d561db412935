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

/* Tests in a row, if every rank has a processor: a call into MPI would delay the next test. */
#define LOOKS 256u
/* Rounds before the first call into MPI, if some ranks share a processor: a barrier is mostly
 * complete after the next pass, and a call into MPI costs as much as a pass. */
#define PASSES 4u
#define SPINS 25u          /* rounds before "auto" yields, if every rank has a processor */
#define SLEEP_NS 50000u    /* the first sleep; each sleep is twice as long as the one before, ... */
#define SLEEP_DOUBLES 6u   /* ... this many times: 3.2 ms at most */
#define CLOCK_ROUNDS 1024u /* rounds between two looks at the clock */
#define SLEEP_ROUNDS 16u   /* rounds between two looks, if the rank sleeps in each round */
#define TELL_S 10.0

double nbmpi_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeps until the barrier completes, but at most ns. */
static void sleep_a_little(struct nbmpi_comm *c, const struct nbmpi_request *r, uint64_t ns)
{
	const struct nbar_wait_policy sleep = { .block = true };
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

/* Any thread may call it, and the others may see the change late. Relaxed: it orders nothing. */
void nbmpi_crowded(void)
{
	__atomic_store_n(&nbmpi_self.start.crowded, true, __ATOMIC_RELAXED);
}

static bool crowded(void)
{
	return __atomic_load_n(&nbmpi_self.start.crowded, __ATOMIC_RELAXED);
}

void nbmpi_yield(uint32_t round)
{
	switch (nbmpi_self.start.config.wait) {
	case NBMPI_WAIT_SPIN:
		break;
	case NBMPI_WAIT_AUTO:
		if (round >= SPINS || crowded())
			sched_yield();
		break;
	case NBMPI_WAIT_YIELD:
	case NBMPI_WAIT_BLOCK:
		sched_yield();
		break;
	}
}

/* Called between two tests: yields, sleeps, or does nothing. */
static void idle(const struct nbmpi_request *r, uint32_t round)
{
	uint32_t doubles = round < SLEEP_DOUBLES ? round : SLEEP_DOUBLES;

	if (nbmpi_self.start.config.wait == NBMPI_WAIT_BLOCK)
		sleep_a_little(r->comm, r, (uint64_t)SLEEP_NS << doubles);
	else
		nbmpi_yield(round);
}

int nbmpi_wait(struct nbmpi_request *r)
{
	enum nbmpi_wait wait = nbmpi_self.start.config.wait;
	uint32_t looks = crowded() || wait >= NBMPI_WAIT_YIELD ? 1 : LOOKS;
	uint32_t before_mpi = looks == 1 && wait != NBMPI_WAIT_BLOCK ? PASSES : 0;
	uint32_t rounds = wait == NBMPI_WAIT_BLOCK ? SLEEP_ROUNDS : CLOCK_ROUNDS;
	double since = 0, told = TELL_S;

	for (uint32_t round = 0;; round++) {
		for (uint32_t i = 0; i < looks; i++) {
			int rc = nbmpi_test(r);

			if (rc != 0)
				return rc;
		}
		if (round >= before_mpi)
			nbmpi_self.start.ops->progress();
		idle(r, round);
		if (round % rounds != rounds - 1)
			continue;
		if (since == 0)
			since = nbmpi_now_s();
		if (nbmpi_now_s() - since >= told) {
			nbmpi_log_missing(r->comm, told);
			told *= 2;
		}
	}
}
