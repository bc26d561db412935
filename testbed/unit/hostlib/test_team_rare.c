/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_team_rare.c - teams whose group fails between two steps of a thread, and calls that make no
 * sense. One thread makes all steps, so every run is the same.
 */
#include <errno.h>

#include "unit/unit.h"
#include "cluster.h"
#include "internal.h"
#include "order.h"
#include "unit/nics.h"
#include "unit/hostlib/team.h"

/* Before they sleep, two threads spin in their own loop. The loop ends, even if the barrier is
 * complete at once, or never completes. */
static void two_threads_spin_for_a_while(void **state)
{
	struct nbar_group aborted = { .aborted = 1 };
	struct nbar_team team;
	uint32_t ticket;

	require_ok(team_init(&team, 2, NULL));
	team.wait.spin_us = 20; /* also on one processor */
	assert_int_equal(nbar_team_arrive(&team, 0, &ticket), 0);
	assert_int_equal(ticket, 1);
	assert_int_equal(nbar_team_arrive(&team, 1, &ticket), 1);
	require_ok(nbar_team_release(&team, 1, ticket));
	require_ok(nbar_team_await(&team, 0, ticket));
	team.group = &aborted;
	assert_false(nblib_kind_wait(&team, 0, ticket + 1));
}

/* All have arrived, but only the release ends the barrier. In phases, nobody else releases. */
static void a_release_ends_the_barrier(void **state)
{
	struct nbar_group aborted = { .aborted = 1 };
	struct nbar_team team;
	uint32_t ticket = 0;

	for (uint32_t size = 1; size <= 6; size++) {
		require_ok(team_init(&team, size, NULL));
		team.wait.spin_us = 20;
		for (uint32_t i = 1; i <= size; i++)
			assert_int_equal(nbar_team_arrive(&team, 0, &ticket), i == size);
		assert_false(nblib_kind_reached(&team, ticket));
		team.group = &aborted; /* so that no thread waits for long */
		assert_false(nblib_kind_wait(&team, 0, ticket));
		team.group = NULL;
		require_ok(nbar_team_release(&team, 0, ticket));
		assert_true(nblib_kind_reached(&team, ticket));
		for (uint32_t i = 1; i <= size; i++) {
			require_ok(nbar_team_post(&team, 0, &ticket));
			assert_int_equal(nbar_team_test(&team, ticket), i == size);
		}
		assert_int_equal(nbar_team_wait(&team, ticket), 0);
		for (uint32_t i = 1; i <= size; i++)
			require_ok(nbar_team_post(&team, 0, NULL));
		assert_int_equal(nbar_team_test(&team, ticket + 1), 1);
	}
}

static struct nbar_team *team_new(const char *kind, uint32_t size)
{
	const struct nbar_team_attr attr = { .kind = kind, .size = size };
	struct nbar_team *team;
	size_t bytes;

	require_ok(nbar_team_size(kind, size, &bytes));
	team = aligned_alloc(_Alignof(struct nbar_team), bytes);
	assert_non_null(team);
	require_ok(nbar_team_init(team, bytes, &attr));
	return team;
}

/* A thread alone has met all others. */
static void a_team_of_one(void **state)
{
	static const char *const kinds[] = { "mcs", "tournament", "dissemination:1" };
	uint32_t ticket;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct nbar_team *team = team_new(kinds[k], 1);

		assert_int_equal(nbar_team_arrive(team, 0, &ticket), 1);
		require_ok(nbar_team_barrier(team, 0));
		assert_int_equal(team->released, 0); /* nobody waits for it */
		free(team);
	}
}

/* In a dissemination, a thread signals only threads that do not know of it. */
static void no_thread_signals_itself(void **state)
{
	struct nbar_team *team = team_new("dissemination:3", 2);
	uint64_t *line = (uint64_t *)(team + 1);
	uint32_t ticket;

	order_team_break(&team->broken, 1);
	assert_int_equal(nblib_kind_arrive(team, 0, &ticket), -ECANCELED);
	assert_int_equal(line[(team->lines + 1) * 16], 1);
	for (uint32_t way = 1; way <= 3; way++)
		assert_int_equal(line[way * 16], 0);
	free(team);
}

/* An abort first marks the group, then stops its barriers. A thread may begin to wait between these
 * steps. */
static void an_abort_ends_each_kind_of_wait(void **state)
{
	static const char *const kinds[] = { "mcs", "tournament", "dissemination:1" };
	struct cluster c;
	size_t bytes;

	cluster_start(&c, 1, 1, NULL);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const struct nbar_team_attr attr = { .kind = kinds[k], .size = 2, .group = c.g[0] };
		struct nbar_team *team;

		require_ok(nbar_team_size(kinds[k], 2, &bytes));
		team = aligned_alloc(_Alignof(struct nbar_team), bytes);
		assert_non_null(team);
		require_ok(nbar_team_init(team, bytes, &attr));
		c.g[0]->aborted = 1;
		assert_int_equal(nbar_team_barrier(team, 0), -ECANCELED);
		c.g[0]->aborted = 0;
		free(team);
	}
	cluster_end(&c);
}

/* One thread has seen the failure: the next thread does not begin to wait. */
static void a_team_that_is_broken_stays_so(void **state)
{
	struct nbar_team team;
	struct cluster c;
	uint32_t ticket = 0;

	cluster_start(&c, 1, 1, NULL);
	require_ok(team_init(&team, 2, c.g[0]));
	require_ok(nbar_team_post(&team, 0, &ticket));
	assert_int_equal(ticket, 1);
	assert_int_equal(nbar_team_test(&team, ticket), 0);
	order_team_break(&team.broken, ticket);
	assert_true(nbar_team_test(&team, ticket) < 0);
	assert_true(nbar_team_barrier(&team, 0) < 0);
	require_ok(team_init(&team, 2, c.g[0]));
	require_ok(nbar_team_post(&team, 0, &ticket));
	order_runs_write(&c.g[0]->runs, false);
	assert_true(nbar_team_test(&team, ticket) < 0);
	order_runs_write(&c.g[0]->runs, true);
	require_ok(team_init(&team, 2, c.g[0]));
	require_ok(nbar_team_post(&team, 0, &ticket));
	assert_int_equal(nbar_team_test(&team, ticket), 0);
	order_down_write(&c.port[0]->link.down, NBLIB_GONE);
	assert_int_equal(nbar_team_test(&team, ticket), -ENETDOWN);
	assert_true(order_team_broken(&team.broken) != 0);
	cluster_end(&c);
}

/* A thread that waits for a barrier that has failed waits no longer, whatever its ticket is. */
static void a_failed_barrier_ends_waits(void **state)
{
	const uint32_t ticket[] = { 0, 1, UINT32_C(0x80000000), UINT32_MAX };

	for (size_t i = 0; i < sizeof(ticket) / sizeof(ticket[0]); i++) {
		struct nbar_team team;
		uint64_t word = ticket[i] - 1;

		require_ok(team_init(&team, 2, NULL));
		order_team_break(&team.broken, ticket[i]);
		assert_false(nblib_wait_team(&team, &word, ticket[i]));
		assert_false(nblib_wait_team(&team, &word, ticket[i] + 1));
	}
}

/* The thread that waits for thread c in a tree (up), or wakes it. */
static uint32_t parent_of(const struct nbar_team *team, uint32_t c, bool up)
{
	if (team->kind == NBLIB_TOURNAMENT)
		return c & (c - 1);
	return (c - 1) / (up ? 4 : 2);
}

/* The flag that thread c sets for its parent (up), or that releases thread c. */
static uint64_t *flag_of(struct nbar_team *team, uint32_t c, bool up)
{
	uint64_t *line = (uint64_t *)(team + 1);

	return &line[(size_t)(c * team->lines + (up ? 1 : 2)) * 16];
}

/* All threads but c have arrived. Only the parent of c waits. */
static void expect_parent(struct nbar_team *team, uint32_t c)
{
	uint32_t ticket;

	for (uint32_t me = 0; me < team->size; me++) {
		bool is_parent = parent_of(team, c, true) == me;

		nblib_kind_begin(team, 0);
		for (uint32_t i = 0; i < team->size; i++)
			*flag_of(team, i, true) = i != c;
		require((nblib_kind_arrive(team, me, &ticket) < 0) == is_parent,
			"kind %u, %u threads: %u waits for %u", team->kind, team->size, me, c);
		nblib_kind_release(team, me, 1);
		is_parent = parent_of(team, c, false) == me;
		require(*flag_of(team, c, false) == is_parent, "kind %u, %u threads: %u wakes %u",
			team->kind, team->size, me, c);
	}
}

/* A thread that waited for more threads than its children would still make a barrier, a slow one.
 */
static void a_tree_has_its_form(void **state)
{
	static const char *const kinds[] = { "mcs", "tournament" };

	for (uint32_t i = 0; i < 2 * 36; i++) {
		struct nbar_team *team = team_new(kinds[i % 2], 1 + i / 2);

		order_team_break(&team->broken, 1); /* so that no thread waits for long */
		for (uint32_t c = 1; c < team->size; c++)
			expect_parent(team, c);
		free(team);
	}
}

/* Only the upper half of a completion word is a status. */
static void epochs_of_a_group_may_be_large(void **state)
{
	static struct nbar_completion completion;
	static struct nbar_doorbell doorbell;
	const uint32_t epoch = UINT32_C(0xfffffff0);
	static struct nbar_page page;
	struct nbar_port port = { .page = &page, .link = { .sock = -1 } };
	struct nbar_group g = {
		.port = &port,
		.completion = &completion,
		.doorbell = &doorbell,
		.posted = epoch,
		.connected = true,
		.runs = true,
	};
	struct nbar_team team;
	uint32_t ticket = 0;

	completion.word = epoch;
	require_ok(team_init(&team, 2, &g));
	assert_int_equal(team.released, epoch); /* 0 would count as a later barrier */
	assert_int_equal(nbar_team_post(&team, 2, &ticket), -ERANGE);
	require_ok(nbar_team_post(&team, 0, &ticket));
	assert_int_equal(ticket, epoch + 1);
	assert_int_equal(doorbell.posted, 0);
	require_ok(nbar_team_post(&team, 0, &ticket));
	assert_int_equal(doorbell.posted, epoch + 1);
	assert_int_equal(nbar_team_test(&team, ticket), 0);
	completion.word = epoch + 1;
	assert_int_equal(nbar_team_test(&team, ticket), 1);
	/* The next barrier has failed. */
	completion.word |= (uint64_t)NBAR_STATUS_SILENT << 32;
	assert_int_equal(nbar_team_post(&team, 0, &ticket), -EHOSTUNREACH);
	assert_int_equal((uint32_t)order_team_broken(&team.broken), epoch + 2);
	/* Whatever the number of the error: -EPERM is -1. */
	completion.word = epoch + 1;
	require_ok(team_init(&team, 1, &g));
	g.attached = true;
	assert_int_equal(nbar_team_barrier(&team, 0), -EPERM);
	g.attached = false;
	require_ok(team_init(&team, 1, &g));
	g.attached = true;
	assert_int_equal(nbar_team_post(&team, 0, &ticket), -EPERM);
}

static void what_a_team_cannot_do_is_told(void **state)
{
	struct nbar_team_attr attr = { .kind = "mcs", .size = 2 };
	struct nbar_process_team procs;
	struct nbar_team team;
	struct cluster c;
	uint32_t ticket;

	cluster_start(&c, 1, 1, NULL);
	assert_int_equal(nbar_team_init(&team, sizeof(team), &attr), -ENOSPC);
	assert_non_null(strstr(nbar_error(), "a team of 2 threads of kind mcs takes 1152 bytes, "
					     "and it got 384"));
	attr = (struct nbar_team_attr){ .size = 2 };
	assert_int_equal(nbar_team_init(&team, sizeof(team) - 1, &attr), -ENOSPC);
	assert_non_null(strstr(nbar_error(), "of kind sense-reverse"));
	attr.struct_size = 1;
	assert_int_equal(nbar_team_init(&team, sizeof(team), &attr), -EINVAL);
	/* In phases, all threads must poll. */
	attr = (struct nbar_team_attr){ .size = 2, .group = c.g[0], .local = 1 };
	require_ok(nbar_team_init(&team, sizeof(team), &attr));
	assert_int_equal(nbar_team_post(&team, 0, &ticket), -EINVAL);
	assert_int_equal(nbar_team_test(&team, 1), -EINVAL);
	assert_int_equal(nbar_team_wait(&team, 1), -EINVAL);
	/* The settings of a wait in the environment. */
	setenv("NBAR_WAIT", "sometimes", 1);
	assert_int_equal(team_init(&team, 2, NULL), -EINVAL);
	require_ok(nbar_process_team_init(&procs, 1));
	assert_int_equal(nbar_process_team_wait(&procs, NULL, 1, NULL, 0), -EINVAL);
	assert_non_null(strstr(nbar_error(), "NBAR_WAIT"));
	unsetenv("NBAR_WAIT");
	cluster_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(two_threads_spin_for_a_while),
		UNIT(a_release_ends_the_barrier),
		UNIT(a_team_of_one),
		UNIT(no_thread_signals_itself),
		UNIT(an_abort_ends_each_kind_of_wait),
		UNIT(a_team_that_is_broken_stays_so),
		UNIT(a_failed_barrier_ends_waits),
		UNIT(a_tree_has_its_form),
		UNIT(epochs_of_a_group_may_be_large),
		UNIT(what_a_team_cannot_do_is_told),
	};

	return run_with_nics(1, tests);
}
