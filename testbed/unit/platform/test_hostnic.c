/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostnic.c - in-process NICs: barriers, late hosts, and ends of all
 * kinds.
 */
#include "members.h"
#include "unit/hostlib/stats.h"

/* A checked barrier: no member leaves before all have entered. */
static int barrier(uint32_t i)
{
	int rc;

	__atomic_store_n(&shared->entered[rank], i, __ATOMIC_RELEASE);
	rc = nbar_barrier(group);
	for (uint32_t r = 0; rc == 0 && r < size; r++) {
		uint32_t e = __atomic_load_n(&shared->entered[r], __ATOMIC_ACQUIRE);

		want(e == i || e == i + 1, "left barrier %u, rank %u was in %u", i, r, e);
	}
	return rc;
}

/* --- barriers ------------------------------------------------------------------------------ */

static void many(void)
{
	join(ANY);
	for (uint32_t i = 1; i <= BARRIERS; i++)
		want_ok(barrier(i));
	leave();
}

static void barriers_of_processes(void **state)
{
	for (uint32_t n = 1; n <= RANKS_MAX; n++)
		members(n, many, 0);
}

static void block_policy(void)
{
	const struct nbar_wait_policy block = { .block = 1 };
	struct group_stats stats;
	uint32_t ticket;

	join(QUICK);
	nbar_group_set_wait(group, &block);
	for (uint32_t i = 1; i <= 10; i++) {
		if (rank == i % size)
			nap_ms(20);
		want_ok(barrier(i));
	}
	stats = stats_of(group);
	want(stats.sleeps > 0, "nobody has slept");
	if (rank == 0) {
		want_ok(nbar_post(group, &ticket));
		want_error(nbar_wait(group, ticket, 50000000), -ETIME, "rank");
	}
	meet(&shared->done);
	want_ok(rank == 0 ? nbar_wait(group, ticket, NBAR_FOREVER) : nbar_barrier(group));
	nbar_close(port);
}

static void waiting_sleeps_and_times_out(void **state)
{
	members(3, block_policy, 0);
}

/* For longer than the retry budget no host calls the library. The NICs answer anyway. */
static void computes_long(void)
{
	uint32_t late[NBAR_STRAGGLERS_MAX], ticket;

	join(ANY ",budget-ms=1500");
	if (rank == 1) {
		nap_ms(6000);
		want_ok(nbar_barrier(group));
	} else {
		want_ok(nbar_post(group, &ticket));
		nap_ms(3000);
		want_error(nbar_wait(group, ticket, 1000000), -ETIME, "rank 1 (late for ");
		want(nbar_missing(group, late, NBAR_STRAGGLERS_MAX) == 1 && late[0] == 1, "%u",
		     late[0]);
		want_ok(nbar_wait(group, ticket, NBAR_FOREVER));
	}
	leave();
}

static void late_host_is_not_dead(void **state)
{
	members(3, computes_long, 0);
}

/* No thread polls, but the barrier still goes on. */
static void posts_and_computes(void)
{
	struct group_stats stats = { .posted = 0 };

	join(ANY);
	want_ok(nbar_post(group, NULL));
	while (stats.completed == 0) {
		nap_ms(5);
		stats = stats_of(group);
	}
	leave();
}

static void posted_barrier_goes_on_by_itself(void **state)
{
	members(5, posts_and_computes, 0);
}

/* --- ends ---------------------------------------------------------------------------------- */

/* A member that gets no processor for the retry budget counts as dead, too. */
static void one_is_killed(void)
{
	join(QUICK);
	for (uint32_t i = 1; i <= 20; i++)
		want_ok(barrier(i));
	if (rank == 1)
		raise(SIGKILL);
	want_error(nbar_barrier(group), -EHOSTUNREACH,
		   ") does not answer: look whether its process runs");
	assert_non_null(strstr(nbar_error(), "the NIC of rank 1 (127.0.0.1:"));
	nbar_close(port);
}

static void killed_process_is_named(void **state)
{
	members(4, one_is_killed, 1 << 1);
}

static void one_exits(void)
{
	join(ANY);
	want_ok(barrier(1));
	if (rank == 2)
		exit(0);
	want_error(nbar_barrier(group), -ECONNRESET, "the process of rank 2 ended");
	nbar_close(port);
}

static void exit_without_close_is_told_at_once(void **state)
{
	members(3, one_exits, 0);
}

static void one_closes(void)
{
	uint32_t ticket;

	join(ANY);
	want_ok(barrier(1));
	if (rank == 0) {
		want_ok(nbar_post(group, &ticket));
		nbar_close(port);
		meet(&shared->done);
		return;
	}
	if (rank == 1)
		want_error(nbar_barrier(group), -ESHUTDOWN, "rank 0 has closed it");
	meet(&shared->done);
	nbar_close(port);
}

static void close_with_a_barrier_posted(void **state)
{
	members(3, one_closes, 0);
}

/* A member that has closed keeps answering: the others may have missed its last token. */
static void last_barrier_and_close(void)
{
	join(ANY);
	for (uint32_t i = 1; i <= 5; i++)
		want_ok(barrier(i));
	nbar_close(port);
}

static void closing_lingers(void **state)
{
	for (int i = 0; i < 10; i++)
		members(4, last_barrier_and_close, 0);
}

static void open_in_child(void)
{
	struct nbar_port *own __attribute__((unused));
	char said[sizeof(shared->said[0])];
	uint32_t ticket;
	int status;
	pid_t pid;

	join(ANY);
	want_ok(barrier(1));
	pid = fork();
	if (pid == 0) {
		want_error(nbar_post(group, &ticket), -ENETDOWN, "before a fork");
		want_error(nbar_test(group, 1000), -EINVAL, "not been posted");
		nbar_close(port);
#ifndef __SANITIZE_THREAD__ /* it does not follow threads of such a child */
		want_ok(nbar_open(ANY, &own));
		nbar_close(own);
#endif
		exit(0);
	}
	want(waitpid(pid, &status, 0) == pid, "no child");
	snprintf(said, sizeof(said), "%s", shared->said[rank]);
	want(status == 0, "the child: %.250s", said);
	want_ok(barrier(2));
	leave();
}

static void child_of_a_fork_has_no_part(void **state)
{
	members(2, open_in_child, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(barriers_of_processes),       UNIT(waiting_sleeps_and_times_out),
		UNIT(late_host_is_not_dead),       UNIT(posted_barrier_goes_on_by_itself),
		UNIT(killed_process_is_named),     UNIT(exit_without_close_is_told_at_once),
		UNIT(close_with_a_barrier_posted), UNIT(closing_lingers),
		UNIT(child_of_a_fork_has_no_part),
	};

	members_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
