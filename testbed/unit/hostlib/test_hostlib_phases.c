/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_phases.c - teams in phases, against real NICs: a thread posts, then tests or
 * finishes.
 */
#include <errno.h>
#include <pthread.h>

#include "cluster.h"
#include "unit/nics.h"
#include "unit/unit.h"
#include "unit/hostlib/team.h"

#define NICS 3u

#define THREADS 3u
#define ROUNDS 300u

struct phases {
	struct nbar_team *team;
	uint32_t me;
	uint32_t *seen; /* of THREADS */
	int rc;
};

static void *phases_main(void *arg)
{
	struct phases *p = arg;
	uint32_t ticket;

	for (uint32_t i = 1; i <= ROUNDS && p->rc >= 0; i++) {
		__atomic_store_n(&p->seen[p->me], i, __ATOMIC_RELAXED);
		p->rc = nbar_team_post(p->team, p->me, &ticket);
		if (p->rc == 0 && (i + p->me) % 2)
			while ((p->rc = nbar_team_test(p->team, ticket)) == 0)
				breathe();
		else if (p->rc == 0)
			p->rc = nbar_team_wait(p->team, ticket);
		for (uint32_t t = 0; p->rc >= 0 && t < THREADS; t++)
			if (__atomic_load_n(&p->seen[t], __ATOMIC_RELAXED) - i > 1)
				p->rc = -EBADMSG;
	}
	return NULL;
}

static void run_phases(struct nbar_group *const g[2], uint32_t nteam)
{
	struct nbar_team team[2];
	uint32_t seen[2][THREADS] = { { 0 } };
	struct phases p[2 * THREADS];
	pthread_t thread[2 * THREADS];

	for (uint32_t i = 0; i < nteam * THREADS; i++) {
		if (i % THREADS == 0)
			require_ok(team_init(&team[i / THREADS], THREADS, g[i / THREADS]));
		p[i] = (struct phases){ &team[i / THREADS], i % THREADS, seen[i / THREADS], 0 };
	}
	for (uint32_t i = 0; i < nteam * THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, phases_main, &p[i]), 0);
	for (uint32_t i = 0; i < nteam * THREADS; i++) {
		pthread_join(thread[i], NULL);
		require(p[i].rc >= 0, "thread %u: %d", i, p[i].rc);
	}
}

static void a_team_posts_and_tests(void **state)
{
	struct nbar_group *const none[2] = { NULL };
	struct cluster c;

	run_phases(none, 1);
	cluster_start(&c, 2, NICS, "pairwise");
	run_phases(c.g, 2);
	cluster_end(&c);
}

static void a_team_in_phases_sees_a_failure(void **state)
{
	struct nbar_team team;
	struct cluster c;
	uint32_t ticket;
	int rc;

	cluster_start(&c, 2, NICS, "pairwise");
	require_ok(team_init(&team, 2, c.g[0]));
	require_ok(nbar_team_post(&team, 0, &ticket));
	assert_int_equal(nbar_team_test(&team, ticket), 0);
	nbar_group_close(c.g[1]);
	/* The last thread of the team may find the failure before or after its post. */
	rc = nbar_team_post(&team, 0, &ticket);
	while (rc == 0)
		rc = nbar_team_test(&team, ticket);
	assert_int_equal(rc, -ESHUTDOWN);
	assert_int_equal(nbar_team_wait(&team, 1), -ESHUTDOWN);
	cluster_end(&c);
}

static void only_one_kind_has_phases(void **state)
{
	const struct nbar_team_attr attr = { .size = 2, .kind = "mcs" };
	struct nbar_team *team;
	uint32_t ticket;
	size_t bytes;

	require_ok(nbar_team_size("mcs", 2, &bytes));
	team = aligned_alloc(128, bytes);
	require_ok(nbar_team_init(team, bytes, &attr));
	assert_int_equal(nbar_team_post(team, 0, &ticket), -EINVAL);
	assert_int_equal(nbar_team_test(team, 1), -EINVAL);
	assert_int_equal(nbar_team_wait(team, 1), -EINVAL);
	free(team);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_team_posts_and_tests),
		UNIT(a_team_in_phases_sees_a_failure),
		UNIT(only_one_kind_has_phases),
	};

	return run_with_nics(NICS, tests);
}
