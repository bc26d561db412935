/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib.c - the host library against real NICs, in one process.
 *
 * The data that a barrier protects is in plain memory, so ThreadSanitizer checks the fences.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/unit.h"
#include "cluster.h"
#include "unit/nics.h"
#include "unit/hostlib/stats.h"

#define NICS 4u

/* --- barriers ------------------------------------------------------------------------------ */

static void completes_when_all_have_arrived(void **state)
{
	for (uint32_t size = 1; size <= 9; size++) {
		struct cluster c;
		uint32_t ticket[CLUSTER_MAX];

		cluster_start(&c, size, NICS, size % 2 ? "pairwise" : "dissemination:2");
		for (uint32_t i = 0; i < 20; i++) {
			for (uint32_t r = 0; r < size; r++) {
				uint32_t late = (i + r) % size;

				for (uint32_t q = 0; r > 0 && q < size; q++)
					require(nbar_test(c.g[q], i + 1) <= 0, "size %u round %u",
						size, i);
				require_ok(nbar_post(c.g[late], &ticket[late]));
			}
			for (uint32_t r = 0; r < size; r++) {
				require(ticket[r] == i + 1, "ticket %u", ticket[r]);
				require_ok(nbar_wait(c.g[r], ticket[r], NBAR_FOREVER));
				require(nbar_test(c.g[r], ticket[r]) == 1, "%s", nbar_error());
			}
		}
		cluster_end(&c);
	}
}

/* Threads as members: each writes its own plain word, and after the barrier reads all others. */
struct member {
	struct nbar_group *g;
	uint32_t rank, size;
	uint64_t rounds, bad;
	uint64_t (*seen)[CLUSTER_MAX]; /* by parity of the round, then by rank */
};

static void *member_main(void *arg)
{
	struct member *m = arg;

	for (uint64_t i = 1; i <= m->rounds; i++) {
		m->seen[i % 2][m->rank] = i;
		if (nbar_barrier(m->g) != 0)
			m->bad++;
		for (uint32_t r = 0; r < m->size; r++)
			m->bad += m->seen[i % 2][r] != i;
	}
	return NULL;
}

static void run_members(uint32_t size, const char *alg, const struct nbar_wait_policy *policy,
			uint64_t rounds)
{
	static uint64_t seen[2][CLUSTER_MAX];
	struct cluster c;
	struct member m[CLUSTER_MAX];
	pthread_t thread[CLUSTER_MAX];

	cluster_start(&c, size, NICS, alg);
	memset(seen, 0, sizeof(seen));
	for (uint32_t r = 0; r < size; r++) {
		if (policy)
			nbar_group_set_wait(c.g[r], policy);
		m[r] = (struct member){ c.g[r], r, size, rounds, 0, seen };
		require(pthread_create(&thread[r], NULL, member_main, &m[r]) == 0, "thread %u", r);
	}
	for (uint32_t r = 0; r < size; r++) {
		struct group_stats stats;

		pthread_join(thread[r], NULL);
		stats = stats_of(c.g[r]);
		require(m[r].bad == 0, "rank %u: %u bad", r, (unsigned)m[r].bad);
		require(stats.posted == rounds && stats.completed == rounds, "rank %u: %u of %u", r,
			(unsigned)stats.completed, (unsigned)stats.posted);
	}
	cluster_end(&c);
}

static void orders_memory(void **state)
{
	const struct nbar_wait_policy spin = { 50, 1000, 0 }, yield = { 0, 0, 0 },
				      block = { 0, 0, 1 };

	run_members(2, "dissemination", NULL, 2000);
	run_members(5, "pairwise", &spin, 300);
	run_members(8, "dissemination:3", &yield, 500);
	run_members(6, "pairwise", &block, 500);
}

static void loses_nothing_on_a_bad_wire(void **state)
{
	inproc_set_loss(nics, 10);
	run_members(6, "dissemination", NULL, 40);
	inproc_set_loss(nics, 0);
}

static void several_under_way(void **state)
{
	struct cluster c;

	cluster_start(&c, 3, NICS, "dissemination");
	for (uint32_t i = 0; i < NBAR_POSTED_MAX; i++)
		require_ok(nbar_post(c.g[0], NULL));
	assert_int_equal(nbar_post(c.g[0], NULL), -EAGAIN);
	assert_non_null(strstr(nbar_error(), "1024"));
	for (uint32_t i = 1; i <= NBAR_POSTED_MAX; i++) {
		require_ok(nbar_post(c.g[1], NULL));
		require_ok(nbar_post(c.g[2], NULL));
		require_ok(nbar_wait(c.g[0], i, NBAR_FOREVER));
		if (i < NBAR_POSTED_MAX)
			require(nbar_test(c.g[0], i + 1) == 0, "barrier %u", i + 1);
	}
	require_ok(nbar_post(c.g[0], NULL));
	cluster_end(&c);
}

/* --- waiting ------------------------------------------------------------------------------- */

static void a_timeout_names_the_missing_ranks(void **state)
{
	struct cluster c;
	uint32_t who[4] = { 9, 9, 9, 9 }, ticket, n = 0;

	cluster_start(&c, 4, NICS, "dissemination:3");
	assert_int_equal(nbar_missing(c.g[0], who, 4), 0);
	require_ok(nbar_post(c.g[0], &ticket));
	require_ok(nbar_post(c.g[1], NULL));
	assert_int_equal(nbar_wait(c.g[0], ticket, 0), -ETIME);
	for (uint32_t tries = 0; tries < 20000 && n != 2; tries++) {
		assert_int_equal(nbar_wait(c.g[0], ticket, 1000000), -ETIME);
		n = (uint32_t)nbar_missing(c.g[0], who, 4);
	}
	assert_int_equal(n, 2);
	assert_int_equal(who[0] + who[1], 5);
	assert_int_equal(who[2], 9);
	assert_int_equal(nbar_missing(c.g[0], who, 1), 2);
	assert_int_equal(nbar_wait(c.g[0], ticket, 1), -ETIME);
	assert_non_null(strstr(nbar_error(), "ranks "));
	assert_non_null(strstr(nbar_error(), "have not arrived, as far as NIC n0 knows"));
	require_ok(nbar_post(c.g[2], NULL));
	require_ok(nbar_post(c.g[3], NULL));
	require_ok(nbar_wait(c.g[0], ticket, NBAR_FOREVER));
	assert_int_equal(nbar_missing(c.g[0], who, 4), 0);
	cluster_end(&c);
}

static void a_ticket_that_was_not_posted_is_refused(void **state)
{
	struct cluster c;

	cluster_start(&c, 2, NICS, NULL);
	assert_int_equal(nbar_wait(c.g[0], 1, NBAR_FOREVER), -EINVAL);
	assert_int_equal(nbar_test(c.g[0], 1), -EINVAL);
	cluster_end(&c);
}

static void *barrier_main(void *arg)
{
	return (void *)(intptr_t)nbar_barrier(arg);
}

/* The NIC wakes a thread that sleeps, because the thread asks for it. A thread that does not sleep
 * never asks. */
static void sleeps_until_the_nic_wakes(void **state)
{
	const struct nbar_wait_policy block = { 0, 0, 1 };
	struct nbar_rep_nic_stat before, after;
	struct group_stats stats;
	struct cluster c;

	cluster_start(&c, 2, 2, NULL);
	nbar_group_set_wait(c.g[0], &block);
	for (uint32_t i = 1; i <= 20; i++) {
		pthread_t thread;
		void *rc;

		require_ok(nbar_nic_stat("n0", &before));
		stats = stats_of(c.g[0]);
		uint64_t sleeps = stats.sleeps;

		require(pthread_create(&thread, NULL, barrier_main, c.g[0]) == 0, "thread");
		do {
			breathe();
			stats = stats_of(c.g[0]);
		} while (stats.posted != i);
		require_ok(nbar_barrier(c.g[1]));
		pthread_join(thread, &rc);
		assert_ptr_equal(rc, NULL);
		stats = stats_of(c.g[0]);
		require_ok(nbar_nic_stat("n0", &after));
		if (stats.sleeps > sleeps)
			assert_true(after.counter[NBAR_COUNTER_wakes] >
				    before.counter[NBAR_COUNTER_wakes]);
	}
	stats = stats_of(c.g[0]);
	assert_true(stats.sleeps > 0);
	assert_int_equal(stats.yields, 0);
	cluster_end(&c);
}

static void a_thread_that_never_sleeps_asks_for_no_wake(void **state)
{
	const struct nbar_wait_policy yield = { 0, 0, 0 };
	struct nbar_rep_nic_stat before, after;

	require_ok(nbar_nic_stat("n0", &before));
	run_members(4, NULL, &yield, 200);
	require_ok(nbar_nic_stat("n0", &after));
	assert_int_equal(after.counter[NBAR_COUNTER_wakes], before.counter[NBAR_COUNTER_wakes]);
	assert_int_equal(after.counter[NBAR_COUNTER_barriers_completed] -
				 before.counter[NBAR_COUNTER_barriers_completed],
			 200);
}

/* --- failures ------------------------------------------------------------------------------ */

static void a_member_that_closes_is_named(void **state)
{
	struct cluster c;
	uint32_t ticket, who = 9;

	cluster_start(&c, 3, NICS, "dissemination:2");
	for (uint32_t r = 0; r < 3; r++)
		require_ok(nbar_post(c.g[r], &ticket));
	for (uint32_t r = 0; r < 3; r++)
		require_ok(nbar_wait(c.g[r], ticket, NBAR_FOREVER));
	require_ok(nbar_post(c.g[0], &ticket));
	nbar_group_close(c.g[1]);
	assert_int_equal(nbar_wait(c.g[0], ticket, NBAR_FOREVER), -ESHUTDOWN);
	assert_non_null(strstr(nbar_error(), "rank 1 "));
	assert_int_equal(nbar_test(c.g[0], ticket), -ESHUTDOWN);
	assert_int_equal(nbar_test(c.g[0], ticket - 1), 1);
	assert_int_equal(nbar_post(c.g[0], NULL), -ESHUTDOWN);
	assert_int_equal(nbar_missing(c.g[0], &who, 1), 1);
	assert_int_equal(who, 1);
	assert_int_equal(nbar_barrier(c.g[2]), -ESHUTDOWN);
	cluster_end(&c);
}

/* The child of a fork is rank 1: it opens a group, exchanges endpoint addresses with the parent,
 * runs one barrier, and stays. */
static void child_main(int in, int out)
{
	struct nbar_group_attr attr = { .rank = 1, .size = 2 };
	struct nbar_endpoint endpoint[2];
	struct nbar_port *port;
	struct nbar_group *g;

	if (nbar_open("n1", &port) == 0 && nbar_group_open(port, &attr, &g, &endpoint[1]) == 0 &&
	    write(out, &endpoint[1], sizeof(endpoint[1])) == sizeof(endpoint[1]) &&
	    read(in, &endpoint[0], sizeof(endpoint[0])) == sizeof(endpoint[0]) &&
	    nbar_group_connect(g, endpoint) == 0 && nbar_barrier(g) == 0)
		for (;;)
			pause();
	_exit(1);
}

static void a_member_that_dies_is_named(void **state)
{
	struct nbar_group_attr attr = { .rank = 0, .size = 2 };
	struct nbar_endpoint endpoint[2];
	struct nbar_port *port;
	struct nbar_group *g;
	int to[2], from[2];
	uint32_t ticket;
	pid_t child;

	assert_true(pipe(to) == 0 && pipe(from) == 0);
	child = fork();
	if (child == 0)
		child_main(to[0], from[1]);
	require_ok(nbar_open("n0", &port));
	require_ok(nbar_group_open(port, &attr, &g, &endpoint[0]));
	assert_int_equal(write(to[1], &endpoint[0], sizeof(endpoint[0])), sizeof(endpoint[0]));
	assert_int_equal(read(from[0], &endpoint[1], sizeof(endpoint[1])), sizeof(endpoint[1]));
	require_ok(nbar_group_connect(g, endpoint));
	require_ok(nbar_barrier(g));
	require_ok(nbar_post(g, &ticket));
	assert_int_equal(nbar_test(g, ticket), 0);
	kill(child, SIGKILL);
	assert_int_equal(nbar_wait(g, ticket, NBAR_FOREVER), -ECONNRESET);
	assert_non_null(strstr(nbar_error(), "rank 1 "));
	waitpid(child, NULL, 0);
	nbar_close(port);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

static void a_nic_that_is_stopped_ends_waits(void **state)
{
	struct inproc *own;
	struct nbar_port *port;
	struct cluster c;
	pthread_t thread;
	void *rc;

	own = inproc_start(2, NULL);
	cluster_start(&c, 2, 2, NULL);
	require(pthread_create(&thread, NULL, barrier_main, c.g[0]) == 0, "thread");
	breathe();
	inproc_stop(own);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, -ENETDOWN);
	assert_int_equal(nbar_post(c.g[1], NULL), -ENETDOWN);
	assert_non_null(strstr(nbar_error(), "was stopped"));
	assert_int_equal(nbar_open("n0", &port), -ENOENT);
	cluster_end(&c);
	setenv("NBAR_RUN_DIR", inproc_run_dir(nics), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(completes_when_all_have_arrived),
		UNIT(orders_memory),
		UNIT(loses_nothing_on_a_bad_wire),
		UNIT(several_under_way),
		UNIT(a_timeout_names_the_missing_ranks),
		UNIT(a_ticket_that_was_not_posted_is_refused),
		UNIT(sleeps_until_the_nic_wakes),
		UNIT(a_thread_that_never_sleeps_asks_for_no_wake),
		UNIT(a_member_that_closes_is_named),
		UNIT(a_member_that_dies_is_named),
		UNIT(a_nic_that_is_stopped_ends_waits),
	};

	return run_with_nics(NICS, tests);
}
