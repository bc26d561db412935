/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_team.c - teams of threads, alone and with a group. test_team_kinds.c tests each kind alone.
 *
 * The oracle: no thread leaves barrier i before all threads have entered it. The oracle reads plain
 * memory, so ThreadSanitizer reports it if the team does not order the accesses.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "unit/unit.h"
#include "cluster.h"
#include "unit/nics.h"
#include "unit/hostlib/team.h"
#include "unit/hostlib/stats.h"

#define NICS 4u
#define THREADS 16u

struct oracle {
	uint32_t nthread;
	uint64_t entered[2][CLUSTER_MAX * THREADS]; /* by parity of the barrier, then by thread */
};

struct thread {
	struct nbar_team *team;
	struct oracle *oracle;
	uint32_t me, size;
	uint64_t rounds, bad;
	pthread_t id;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	for (uint64_t i = 1; i <= t->rounds; i++) {
		uint64_t *entered = t->oracle->entered[i % 2];

		entered[t->me] = i;
		/* Without lines, a number counts for nothing. */
		t->bad += nbar_team_barrier(t->team, t->team->lines ? t->me % t->size : 0) != 0;
		for (uint32_t n = 0; n < t->oracle->nthread; n++)
			t->bad += entered[n] != i;
	}
	return NULL;
}

/* Runs nteam teams of `size` threads each, all with one oracle. */
static void run_teams(struct nbar_team **team, uint32_t nteam, uint32_t size, uint64_t rounds)
{
	static struct oracle oracle;
	static struct thread thread[CLUSTER_MAX * THREADS];

	memset(&oracle, 0, sizeof(oracle));
	oracle.nthread = nteam * size;
	for (uint32_t n = 0; n < oracle.nthread; n++) {
		thread[n] = (struct thread){
			.team = team[n / size],
			.oracle = &oracle,
			.me = n,
			.size = size,
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

static void run_team(struct nbar_team *team, uint32_t size, uint64_t rounds)
{
	run_teams(&team, 1, size, rounds);
}

static void alone(void **state)
{
	struct nbar_team team;

	for (uint32_t size = 1; size <= 8; size++) {
		require_ok(team_init(&team, size, NULL));
		run_team(&team, size, 1000);
	}
}

static void more_threads_than_processors(void **state)
{
	struct nbar_team team;

	require_ok(team_init(&team, THREADS, NULL));
	run_team(&team, THREADS, 300);
	/* Runs again with another wait policy. */
	team.wait.spin_us = 5;
	run_team(&team, THREADS, 300);
}

static void sleepers_are_woken(void **state)
{
	struct nbar_team team;

	for (uint32_t size = 2; size <= 6; size += 2) {
		require_ok(team_init(&team, size, NULL));
		team.wait = (struct nbar_wait_policy){ 0, 0, 1 };
		run_team(&team, size, 1000);
	}
}

static void epochs_wrap(void **state)
{
	struct nbar_team team;

	for (uint32_t size = 3; size <= 6; size += 3) {
		for (int block = 0; block <= 1; block++) {
			require_ok(team_init(&team, size, NULL));
			team.wait.yield_us = block ? 0 : 200;
			team.arrived += UINT32_MAX - 100, team.released = UINT32_MAX - 100;
			run_team(&team, size, 300);
			assert_int_equal((uint32_t)team.arrived, 199);
		}
	}
}

static const char *const kinds[] = { "sense-reverse", "mcs", "tournament", "dissemination:1",
				     "dissemination:3" };
#define NKIND (sizeof(kinds) / sizeof(kinds[0]))

/* Each member of a group has a team. */
static void run_group(const char *kind, bool local, uint32_t members, uint32_t size,
		      const struct nbar_wait_policy *policy, uint64_t rounds)
{
	struct nbar_team *team[CLUSTER_MAX];
	struct cluster c;

	cluster_start(&c, members, NICS, NULL);
	for (uint32_t r = 0; r < members; r++) {
		struct nbar_team_attr attr = { .size = size, .kind = kind, .local = local };
		size_t bytes;

		if (policy)
			nbar_group_set_wait(c.g[r], policy);
		attr.group = c.g[r];
		require_ok(nbar_team_size(kind, size, &bytes));
		team[r] = aligned_alloc(_Alignof(struct nbar_team), bytes);
		require_ok(nbar_team_init(team[r], bytes, &attr));
	}
	run_teams(team, members, size, rounds);
	for (uint32_t r = 0; r < members; r++) {
		struct group_stats stats;

		stats = stats_of(c.g[r]);
		assert_int_equal(stats.posted, rounds);
		assert_int_equal(stats.completed, rounds);
		free(team[r]);
	}
	cluster_end(&c);
}

static void with_a_group(void **state)
{
	for (uint32_t size = 1; size <= 8; size++)
		for (size_t k = 0; k < NKIND; k++)
			run_group(kinds[k], false, 1 + size % 4, size, NULL, 200);
	run_group("sense-reverse", false, 8, 4, NULL, 100);
}

static void with_a_group_and_a_local_release(void **state)
{
	for (uint32_t size = 1; size <= 6; size++)
		for (size_t k = 0; k < NKIND; k++)
			run_group(kinds[k], true, 1 + size % 3, size, NULL, 200);
}

/* Runs NBAR_ROUNDS barriers, or 20. */
static void with_a_group_for_long(void **state)
{
	const uint32_t sizes[] = { 2, 3, 4, 8, 16 };
	uint64_t rounds = unit_rounds() ? unit_rounds() : 20;

	for (size_t k = 0; k < NKIND; k++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			run_group(kinds[k], false, 2, sizes[s], NULL, rounds);
}

static void with_a_group_asleep(void **state)
{
	const struct nbar_wait_policy block = { 0, 0, 1 };

	for (int local = 0; local <= 1; local++) {
		for (size_t k = 0; k < NKIND; k++) {
			run_group(kinds[k], local, 2, 3, &block, 200);
			run_group(kinds[k], local, 4, 2, &block, 100);
		}
	}
}

static void bad_teams_are_refused(void **state)
{
	struct nbar_team team;
	struct cluster c;
	uint32_t ticket;

	assert_int_equal(team_init(&team, 0, NULL), -EINVAL);
	setenv("NBAR_WAIT", "quickly", 1);
	assert_int_equal(team_init(&team, 1, NULL), -EINVAL);
	assert_non_null(strstr(nbar_error(), "quickly"));
	unsetenv("NBAR_WAIT");
	cluster_start(&c, 2, 2, NULL);
	require_ok(nbar_post(c.g[0], &ticket));
	assert_int_equal(team_init(&team, 2, c.g[0]), -EBUSY);
	require_ok(nbar_barrier(c.g[1]));
	require_ok(nbar_wait(c.g[0], ticket, NBAR_FOREVER));
	require_ok(team_init(&team, 2, c.g[0]));
	cluster_end(&c);
}

struct failing {
	struct nbar_team *team;
	uint32_t me;
	pthread_t id;
	pid_t tid; /* its thread id, set just before it enters */
	int rc;
};

static void *failing_main(void *arg)
{
	struct failing *f = arg;

	__atomic_store_n(&f->tid, gettid(), __ATOMIC_RELEASE);
	f->rc = nbar_team_barrier(f->team, f->me);
	return NULL;
}

/* Waits until a thread sleeps in the barrier. Its policy is to sleep at once. */
static void await_asleep(const struct failing *f)
{
	char path[64], state = 0;

	for (uint32_t i = 0; i < 100000 && state != 'S'; i++) {
		pid_t tid = __atomic_load_n(&f->tid, __ATOMIC_ACQUIRE);
		FILE *stat = NULL;

		breathe();
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
		if (tid != 0)
			stat = fopen(path, "r");
		if (stat && fscanf(stat, "%*d %*s %c", &state) != 1)
			state = 0;
		if (stat)
			fclose(stat);
	}
	require(state == 'S', "thread %u does not sleep in the barrier", f->me);
}

/* Threads below `before` are in the barrier when the group fails, the others come later. */
static void fail_group(const char *kind, bool local, uint32_t size, uint32_t before)
{
	const struct nbar_wait_policy block = { 0, 0, 1 };
	struct nbar_team_attr attr = { .size = size, .kind = kind, .local = local };
	struct failing thread[8];
	struct nbar_team *team;
	struct cluster c;
	size_t bytes;

	cluster_start(&c, 2, 2, NULL);
	nbar_group_set_wait(c.g[0], &block);
	attr.group = c.g[0];
	require_ok(nbar_team_size(kind, size, &bytes));
	team = aligned_alloc(_Alignof(struct nbar_team), bytes);
	require_ok(nbar_team_init(team, bytes, &attr));
	for (uint32_t i = 0; i < size; i++) {
		for (uint32_t k = 0; i == before && k < before; k++)
			await_asleep(&thread[k]);
		if (i == before)
			nbar_group_close(c.g[1]);
		thread[i] = (struct failing){ .team = team, .me = i };
		require(pthread_create(&thread[i].id, NULL, failing_main, &thread[i]) == 0,
			"thread");
	}
	for (uint32_t k = 0; before == size && k < before; k++)
		await_asleep(&thread[k]);
	if (before == size)
		nbar_group_close(c.g[1]);
	for (uint32_t i = 0; i < size; i++) {
		pthread_join(thread[i].id, NULL);
		require(thread[i].rc == -ESHUTDOWN, "%s: thread %u of %u: %d", kind, i, size,
			thread[i].rc);
	}
	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(nbar_team_barrier(team, i), -ESHUTDOWN);
	assert_non_null(strstr(nbar_error(), "closed"));
	free(team);
	cluster_end(&c);
}

/* Every thread gets the error: the waiting threads, those that come later, and the last one. */
static void a_failure_reaches_every_thread(void **state)
{
	struct nbar_team team;
	struct cluster c;

	for (int local = 0; local <= 1; local++)
		for (size_t k = 0; k < NKIND; k++)
			for (uint32_t before = 0; before <= 6; before += 2)
				fail_group(kinds[k], local, 6, before);

	cluster_open(&c, 2, 2, NULL);
	require_ok(team_init(&team, 3, c.g[0]));
	assert_int_equal(nbar_team_barrier(&team, 0), -ENOTCONN);
	cluster_end(&c);
}

/* A team posts on its group. A process that is only attached to the group may not post. */
static void an_attached_group_is_refused(void **state)
{
	struct nbar_team_attr attr = { .size = 2, .local = 1 };
	struct nbar_share share;
	struct nbar_port *port;
	struct nbar_team team;
	struct cluster c;

	cluster_start(&c, 1, 1, NULL);
	nbar_group_share(c.g[0], &share);
	require_ok(nbar_attach("n0", &share, &port));
	require_ok(nbar_group_attach(port, &share, &attr.group));
	assert_int_equal(team_init(&team, 2, attr.group), -EPERM);
	assert_non_null(strstr(nbar_error(), "only attached"));
	assert_int_equal(nbar_team_init(&team, sizeof(team), &attr), -EPERM);
	require_ok(team_init(&team, 1, c.g[0]));
	require_ok(nbar_team_barrier(&team, 0));
	nbar_close(port);
	cluster_end(&c);
}

/* A team with a group posts by itself, so its halves cannot be called. */
static void halves_are_refused(void **state)
{
	struct nbar_team team;
	struct cluster c;
	uint32_t ticket;

	cluster_start(&c, 1, 1, NULL);
	require_ok(team_init(&team, 1, c.g[0]));
	assert_int_equal(nbar_team_arrive(&team, 0, &ticket), -EINVAL);
	assert_int_equal(nbar_team_release(&team, 0, 1), -EINVAL);
	assert_int_equal(nbar_team_await(&team, 0, 1), -EINVAL);
	require_ok(nbar_team_barrier(&team, 0));
	cluster_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(alone),
		UNIT(more_threads_than_processors),
		UNIT(sleepers_are_woken),
		UNIT(epochs_wrap),
		UNIT(with_a_group),
		UNIT(with_a_group_and_a_local_release),
		UNIT(with_a_group_for_long),
		UNIT(with_a_group_asleep),
		UNIT(bad_teams_are_refused),
		UNIT(a_failure_reaches_every_thread),
		UNIT(an_attached_group_is_refused),
		UNIT(halves_are_refused),
	};

	return run_with_nics(NICS, tests);
}
