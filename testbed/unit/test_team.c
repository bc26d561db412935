/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_team.c - the thread stage, alone and in front of a group.
 *
 * The oracle: nobody is in barrier i + 1 before all have entered i. What it looks at is plain
 * memory, so that ThreadSanitizer proves that a team orders it.
 */
#include <errno.h>
#include <pthread.h>

#include "unit.h"
#include "cluster.h"
#include "inproc.h"

#define NICS 4u
#define THREADS 16u

static struct inproc *nics;

struct oracle {
	uint32_t nthread;
	uint64_t entered[2][CLUSTER_MAX * THREADS]; /* by parity of the barrier, then by thread */
};

struct thread {
	struct nbar_team *team;
	struct oracle *oracle;
	uint32_t me;
	uint64_t rounds, bad;
	pthread_t id;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	for (uint64_t i = 1; i <= t->rounds; i++) {
		uint64_t *entered = t->oracle->entered[i % 2];

		entered[t->me] = i;
		if (nbar_team_barrier(t->team) != 0)
			t->bad++;
		for (uint32_t n = 0; n < t->oracle->nthread; n++)
			t->bad += entered[n] != i;
	}
	return NULL;
}

/* nteam teams of size threads, all under one oracle. */
static void run_teams(struct nbar_team *team, uint32_t nteam, uint32_t size, uint64_t rounds)
{
	static struct oracle oracle;
	static struct thread thread[CLUSTER_MAX * THREADS];

	memset(&oracle, 0, sizeof(oracle));
	oracle.nthread = nteam * size;
	for (uint32_t n = 0; n < oracle.nthread; n++) {
		thread[n] = (struct thread){
			.team = &team[n / size],
			.oracle = &oracle,
			.me = n,
			.rounds = rounds,
		};
		require(pthread_create(&thread[n].id, NULL, thread_main, &thread[n]) == 0,
			"thread %u", n);
	}
	for (uint32_t n = 0; n < oracle.nthread; n++) {
		pthread_join(thread[n].id, NULL);
		require(thread[n].bad == 0, "thread %u of %u: %u bad", n, oracle.nthread,
			(unsigned)thread[n].bad);
	}
}

static void alone(void **state)
{
	struct nbar_team team;

	(void)state;
	for (uint32_t size = 1; size <= 8; size++) {
		require_ok(nbar_team_init(&team, size, NULL));
		run_teams(&team, 1, size, 1000);
	}
}

static void more_threads_than_processors(void **state)
{
	struct nbar_team team;

	(void)state;
	require_ok(nbar_team_init(&team, THREADS, NULL));
	run_teams(&team, 1, THREADS, 300);
	/* Also when nobody told it so. */
	team.wait.spin_us = 5;
	run_teams(&team, 1, THREADS, 300);
}

static void sleepers_are_woken(void **state)
{
	struct nbar_team team;

	(void)state;
	for (uint32_t size = 2; size <= 6; size += 2) {
		require_ok(nbar_team_init(&team, size, NULL));
		team.wait = (struct nbar_wait_policy){ 0, 0, 1 };
		run_teams(&team, 1, size, 1000);
	}
}

static void epochs_wrap(void **state)
{
	struct nbar_team team;

	(void)state;
	for (uint32_t size = 3; size <= 6; size += 3) {
		for (int block = 0; block <= 1; block++) {
			require_ok(nbar_team_init(&team, size, NULL));
			team.wait.yield_us = block ? 0 : 200;
			team.near_word = team.far_word = UINT32_MAX - 100;
			run_teams(&team, 1, size, 300);
			assert_int_equal((uint32_t)(team.near_word + team.far_word), 98);
		}
	}
}

/* One team a member. */
static void run_group(uint32_t members, uint32_t size, const struct nbar_wait_policy *policy,
		      uint64_t rounds)
{
	struct nbar_team team[CLUSTER_MAX];
	struct cluster c;

	cluster_start(&c, members, NICS, NULL);
	for (uint32_t r = 0; r < members; r++) {
		if (policy)
			nbar_group_set_wait(c.g[r], policy);
		require_ok(nbar_team_init(&team[r], size, c.g[r]));
	}
	run_teams(team, members, size, rounds);
	for (uint32_t r = 0; r < members; r++) {
		struct nbar_group_stats stats;

		nbar_group_get_stats(c.g[r], &stats);
		assert_int_equal(stats.posted, rounds);
		assert_int_equal(stats.completed, rounds);
	}
	cluster_end(&c);
}

static void with_a_group(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= 8; size++)
		run_group(1 + size % 4, size, NULL, 200);
	run_group(8, 4, NULL, 100);
}

static void with_a_group_asleep(void **state)
{
	const struct nbar_wait_policy block = { 0, 0, 1 };

	(void)state;
	run_group(2, 3, &block, 300);
	run_group(4, 2, &block, 300);
}

static void bad_teams_are_refused(void **state)
{
	struct nbar_team team;
	struct cluster c;
	uint32_t ticket;

	(void)state;
	assert_int_equal(nbar_team_init(&team, 0, NULL), -EINVAL);
	setenv("NBAR_WAIT", "quickly", 1);
	assert_int_equal(nbar_team_init(&team, 1, NULL), -EINVAL);
	assert_non_null(strstr(nbar_error(), "quickly"));
	unsetenv("NBAR_WAIT");
	cluster_start(&c, 2, 2, NULL);
	require_ok(nbar_post(c.g[0], &ticket));
	assert_int_equal(nbar_team_init(&team, 2, c.g[0]), -EBUSY);
	require_ok(nbar_barrier(c.g[1]));
	require_ok(nbar_wait(c.g[0], ticket, NBAR_FOREVER));
	require_ok(nbar_team_init(&team, 2, c.g[0]));
	cluster_end(&c);
}

static void *failing_main(void *arg)
{
	return (void *)(intptr_t)nbar_team_barrier(arg);
}

/* Every thread gets the error: those who wait, those who come later, and the last one. */
static void a_failure_reaches_every_thread(void **state)
{
	struct nbar_team team;
	struct cluster c;
	pthread_t thread[3];
	void *rc;

	(void)state;
	cluster_start(&c, 2, 2, NULL);
	require_ok(nbar_team_init(&team, 3, c.g[0]));
	for (uint32_t i = 0; i < 3; i++)
		require(pthread_create(&thread[i], NULL, failing_main, &team) == 0, "thread");
	nbar_group_close(c.g[1]);
	for (uint32_t i = 0; i < 3; i++) {
		pthread_join(thread[i], &rc);
		assert_int_equal((intptr_t)rc, -ESHUTDOWN);
	}
	assert_int_equal(nbar_team_barrier(&team), -ESHUTDOWN);
	cluster_end(&c);

	cluster_open(&c, 2, 2, NULL);
	require_ok(nbar_team_init(&team, 3, c.g[0]));
	assert_int_equal(nbar_team_barrier(&team), -ENOTCONN);
	cluster_end(&c);
}

static int start(void **state)
{
	(void)state;
	nics = inproc_start(NICS, NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	inproc_stop(nics);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone),
		cmocka_unit_test(more_threads_than_processors),
		cmocka_unit_test(sleepers_are_woken),
		cmocka_unit_test(epochs_wrap),
		cmocka_unit_test(with_a_group),
		cmocka_unit_test(with_a_group_asleep),
		cmocka_unit_test(bad_teams_are_refused),
		cmocka_unit_test(a_failure_reaches_every_thread),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
