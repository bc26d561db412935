/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_post.c - more nonblocking barriers than a NIC accepts at once: a thread posts the rest,
 * also while the rank makes no call; and if there is no thread, the tests post them.
 */
#include <errno.h>
#include <signal.h>

#include "ranks.h"

#define MANY (NBAR_POSTED_MAX + 300u)

static bool no_thread, tests_only;

/* Starts many barriers. The last rank starts its barriers when the others have started theirs. */
static void start_many(struct ranks_comm *c, struct nbmpi_request *r)
{
	expect(ranks_set_up(c) == 0, "the set-up");
	if (ranks_me == ranks->size - 1)
		ranks_await(0, ranks->size - 1);
	else if (no_thread)
		faults_always("pthread_create", EAGAIN);
	for (uint32_t i = 0; i < MANY; i++)
		expect(nbmpi_ibarrier(c->nbar, &r[i]) == 0, "request %u", i);
	if (ranks_me != ranks->size - 1)
		expect((faults_end() != NULL) == no_thread, "a thread is made once");
	ranks_signal(0);
}

static bool all_posted(struct nbmpi_comm *c)
{
	bool all;

	pthread_mutex_lock(&c->lock);
	all = c->posted == c->wanted;
	pthread_mutex_unlock(&c->lock);
	return all;
}

static void many(void)
{
	static struct nbmpi_request r[MANY];
	struct ranks_comm c, other;
	sigset_t blocked;
	int rc = 0;

	ranks_open(&other, 1, 0, ranks->size);
	ranks_open(&c, 0, 0, ranks->size);
	start_many(&c, r);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	expect(!sigismember(&blocked, SIGUSR1), "the thread's signals are not the program's");
	/* A thread finds the communicator locked, and comes again. */
	pthread_mutex_lock(&c.nbar->lock);
	usleep(5000);
	pthread_mutex_unlock(&c.nbar->lock);
	while (!no_thread && !tests_only && !all_posted(c.nbar))
		usleep(100);
	for (uint32_t i = 0; i < MANY; i++) {
		while ((rc = nbmpi_test(&r[i])) == 0)
			nbmpi_yield();
		expect(rc == 1, "request %u: %d", i, rc);
	}
	expect(all_posted(c.nbar) && c.nbar->nrequest == 0, "%u requests are left",
	       c.nbar->nrequest);
	expect(ranks_barrier(&c) == 0, "a barrier after all of them");
}

static void a_thread_posts(void **state)
{
	no_thread = tests_only = false;
	ranks_begin(2, 1);
	ranks_run(many);
	ranks_begin(2, 2);
	ranks_run(many);
	ranks_begin(4, 2);
	ranks_run(many);
}

static void tests_post(void **state)
{
	no_thread = true;
	ranks_begin(2, 1);
	ranks_run(many);
	ranks_begin(4, 2);
	ranks_run(many);
	no_thread = false;
	tests_only = true;
	ranks_begin(2, 1);
	ranks_run(many);
}

/* A blocking barrier waits for room, too. */
static void blocking(void)
{
	static struct nbmpi_request r[MANY];
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	start_many(&c, r);
	expect(ranks_barrier(&c) == 0, "a barrier behind all of them");
	for (uint32_t i = 0; i < MANY; i++)
		while (nbmpi_test(&r[i]) == 0)
			nbmpi_yield(); /* the thread has the lock */
}

static void a_blocking_barrier_waits_for_room(void **state)
{
	for (int wait = NBMPI_WAIT_AUTO; wait <= NBMPI_WAIT_BLOCK; wait++)
		for (int i = 0; i < 2; i++) {
			no_thread = i;
			ranks_begin(2, 1);
			ranks->config.wait = (enum nbmpi_wait)wait;
			ranks_run(blocking);
		}
}

/* One barrier more than there is room for: the rank sleeps, although its barrier is not posted. */
static void one_too_many(void)
{
	static struct nbmpi_request r[NBAR_POSTED_MAX];
	const uint32_t *progress = &ranks->rank[0].progress;
	struct ranks_comm c;
	uint32_t before;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	if (ranks_me == 0)
		ranks_signal(0);
	else
		ranks_await(0, 1);
	before = __atomic_load_n(progress, __ATOMIC_RELAXED);
	while (ranks_me == 1 && __atomic_load_n(progress, __ATOMIC_RELAXED) - before < 5)
		usleep(100);
	faults_always("pthread_create", EAGAIN);
	for (uint32_t i = 0; i < NBAR_POSTED_MAX; i++)
		expect(nbmpi_ibarrier(c.nbar, &r[i]) == 0, "request %u", i);
	expect(ranks_barrier(&c) == 0, "a barrier behind all of them");
	/* Each sleep is twice as long as the one before. */
	expect(ranks_me == 1 || (calls.sleeps >= 4 && calls.slept_ns >= 15 * UINT64_C(50000)),
	       "%u sleeps", calls.sleeps);
	for (uint32_t i = 0; i < NBAR_POSTED_MAX; i++)
		expect(nbmpi_test(&r[i]) == 1, "request %u", i);
}

static void a_barrier_that_is_not_posted(void **state)
{
	ranks_begin(2, 1);
	ranks->config.wait = NBMPI_WAIT_BLOCK;
	ranks_run(one_too_many);
}

/* Waits until the thread has nothing to do, and starts the next one. */
static void again(void)
{
	static struct nbmpi_request r[MANY];
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	makers_wait = true;
	for (uint32_t round = 1; round <= 2; round++) {
		if (ranks_me == 1)
			ranks_await(0, round);
		for (uint32_t i = 0; i < MANY; i++)
			expect(nbmpi_ibarrier(c.nbar, &r[i]) == 0, "request %u", i);
		if (ranks_me == 0)
			ranks_signal(0);
		while (!all_posted(c.nbar))
			usleep(100);
		for (uint32_t i = 0; i < MANY; i++)
			while (nbmpi_test(&r[i]) == 0)
				nbmpi_yield();
		usleep(2000); /* mostly enough for the thread to end */
	}
	expect(slept_early == 0,
	       "a thread looks at the communicators while its maker has the lock");
}

static void the_thread_comes_back(void **state)
{
	ranks_begin(2, 1);
	ranks_run(again);
}

/* The thread is stopped while barriers wait for room: rank 1 never starts its own. */
static void stop_early(void)
{
	struct nbmpi_request r;
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	for (uint32_t i = 0; ranks_me == 0 && i < MANY; i++)
		expect(nbmpi_ibarrier(c.nbar, &r) == 0, "request %u", i);
	nbmpi_post_stop();
	expect(!all_posted(c.nbar) || ranks_me == 1, "there was room");
	ranks_signal(0);
	ranks_await(0, 2);
}

static void the_thread_ends_at_stop(void **state)
{
	ranks_begin(2, 1);
	ranks_run(stop_early);
}

/* The group fails while tickets wait for room: posting shows it. */
static void fail_while_waiting(void)
{
	static struct nbmpi_request r[MANY];
	struct ranks_comm c;
	int rc;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	if (ranks_me == 1) {
		ranks_await(0, 1);
		return;
	}
	if (no_thread)
		faults_always("pthread_create", EAGAIN);
	for (uint32_t i = 0; i < MANY; i++)
		expect(nbmpi_ibarrier(c.nbar, &r[i]) == 0, "request %u", i);
	faults_end();
	ranks_signal(0);
	for (uint32_t i = MANY; i-- > 0;) {
		while ((rc = nbmpi_test(&r[i])) == 0)
			nbmpi_yield();
		expect(rc == NBMPI_FAILED && r[i].code == MPI_TEXT, "request %u: %d", i, rc);
	}
	expect(c.nbar->failed == 1, "%u", (unsigned)c.nbar->failed);
}

static void a_failure_while_tickets_wait(void **state)
{
	for (int i = 0; i < 2; i++) {
		no_thread = i;
		ranks_begin(2, 1);
		ranks_run(fail_while_waiting);
		require(strstr(ranks->rank[0].error, "missing: rank 1"), "%s",
			ranks->rank[0].error);
	}
}

static int post_error; /* of nbar_post; 0: none */
int __real_nbar_post(struct nbar_group *g, uint32_t *ticket);
int __wrap_nbar_post(struct nbar_group *g, uint32_t *ticket)
{
	return post_error ? post_error : __real_nbar_post(g, ticket);
}

/* The library refuses a barrier: at once, or when a test posts it. */
static void post_fails(void)
{
	static struct nbmpi_request r[MANY];
	struct ranks_comm c;
	uint32_t n = 0;
	int rc = 0;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	/* Rank 1 begins no barrier, so none completes: those after NBAR_POSTED_MAX wait. */
	if (ranks_me == 1) {
		ranks_await(0, 1);
		return;
	}
	faults_always("pthread_create", EAGAIN);
	while (tests_only && n < MANY)
		expect(nbmpi_ibarrier(c.nbar, &r[n++]) == 0, "request %u", n);
	faults_end();
	post_error = -ENETDOWN;
	if (tests_only) {
		rc = nbmpi_test(&r[MANY - 1]);
		expect(rc == NBMPI_FAILED && r[MANY - 1].code == MPI_TEXT, "%d", rc);
		expect(c.nbar->nrequest == MANY - 1, "%u", c.nbar->nrequest);
	} else {
		expect(nbmpi_ibarrier(c.nbar, &r[0]) == NBMPI_FAILED, "a nonblocking barrier");
		expect(c.nbar->nrequest == 0 && c.nbar->offloaded == 0, "it counts");
	}
	expect(nbmpi_barrier(c.nbar) == NBMPI_FAILED, "a barrier");
	expect(nbmpi_comm_code(c.nbar) == MPI_TEXT && c.nbar->failed == 1, "it is counted once");
	post_error = 0;
	ranks_signal(0);
}

static void a_post_fails(void **state)
{
	for (int i = 0; i < 2; i++) {
		tests_only = i;
		ranks_begin(2, 1);
		ranks_run(post_fails);
		require(strstr(ranks->rank[0].error,
			       "nbar: barrier over 2 ranks failed; missing: "),
			"%s", ranks->rank[0].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_thread_posts),
		UNIT(tests_post),
		UNIT(a_blocking_barrier_waits_for_room),
		UNIT(a_barrier_that_is_not_posted),
		UNIT(the_thread_comes_back),
		UNIT(the_thread_ends_at_stop),
		UNIT(a_failure_while_tickets_wait),
		UNIT(a_post_fails),
	};

	return run_with_ranks(2, tests);
}
