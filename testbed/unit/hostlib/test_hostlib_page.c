/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_page.c - the reads and writes of the host library in a page, without a NIC.
 *
 * The test acts as the NIC: it writes the words that a NIC writes, and words that only a broken NIC
 * writes.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/unit.h"
#include "internal.h"
#include "unit/hostlib/team.h"
#include "unit/hostlib/stats.h"

#define CELL 5u

static struct nbar_page page;
static struct nbar_port port;
static struct nbar_group group;
static int daemon_end;

static int setup(void **state)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) < 0)
		return -1;
	daemon_end = sv[1];
	memset(&page, 0, sizeof(page));
	port = (struct nbar_port){ .link = { .sock = sv[0], .nic = "n0" }, .page = &page };
	group = (struct nbar_group){
		.port = &port,
		.doorbell = &page.doorbell[CELL],
		.completion = &page.completion[CELL],
		.connected = true,
		.runs = true,
		.cell = CELL,
		.rank = 1,
		.size = 64,
	};
	port.group[CELL] = &group;
	return 0;
}

static int teardown(void **state)
{
	close(port.link.sock);
	if (daemon_end >= 0)
		close(daemon_end);
	return 0;
}

static void complete(uint32_t epoch, uint32_t status)
{
	uint64_t word = (uint64_t)status << 32 | epoch;

	__atomic_store_n(&page.completion[CELL].word, word, __ATOMIC_RELEASE);
}

static void posting_writes_one_word(void **state)
{
	static struct nbar_page expected;
	uint32_t ticket;

	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(nbar_post(&group, &ticket), 0);
		assert_int_equal(ticket, i);
		expected.doorbell[CELL].posted = i;
		assert_memory_equal(&page, &expected, sizeof(page));
	}
	assert_int_equal(nbar_test(&group, 1), 0);
	assert_memory_equal(&page, &expected, sizeof(page));
}

static void a_status_is_told_in_words(void **state)
{
	static const struct {
		uint32_t status;
		int error;
		const char *text;
	} want[] = {
		{ NBAR_STATUS_SILENT, -EHOSTUNREACH, "does not answer" },
		{ NBAR_STATUS_HOST_DIED, -ECONNRESET, "ended without closing" },
		{ NBAR_STATUS_CLOSED, -ESHUTDOWN, "has closed it" },
		{ NBAR_STATUS_NIC_DOWN, -ENETDOWN, "was stopped" },
		{ NBAR_STATUS_ABORTED, -ECANCELED, "has aborted the group" },
		{ NBAR_STATUS_MISMATCH, -EBADMSG, "must post alike values" },
		{ NBAR_STATUS_END, -EPROTO, "does not know (7)" },
		{ UINT32_MAX, -EPROTO, "4294967295" },
	};

	for (uint32_t i = 1; i <= 6; i++)
		assert_int_equal(nbar_post(&group, NULL), 0);
	page.completion[CELL].failed_rank = 42;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint32_t who[2] = { 9, 9 };
		uint16_t why[2] = { 9, 9 };

		complete(5, want[i].status);
		assert_int_equal(nbar_test(&group, 5), 1);
		assert_int_equal(nbar_wait(&group, 5, NBAR_FOREVER), 0);
		assert_int_equal(nbar_test(&group, 6), want[i].error);
		assert_non_null(strstr(nbar_error(), want[i].text));
		assert_non_null(strstr(nbar_error(), "rank 42"));
		assert_non_null(strstr(nbar_error(), "barrier 6 "));
		assert_int_equal(nbar_wait(&group, 6, NBAR_FOREVER), want[i].error);
		assert_int_equal(nbar_post(&group, NULL), want[i].error);
		assert_int_equal(nbar_missing_why(&group, who, why, 2), 1);
		assert_int_equal(who[0], 42);
		assert_int_equal(who[1], 9);
		assert_int_equal(why[0], 0);
		assert_int_equal(why[1], 9);
		who[0] = 9;
		assert_int_equal(nbar_missing(&group, who, 1), 1);
		assert_int_equal(who[0], 42);
	}
	page.completion[CELL].failed_rank = 1; /* this rank: its own NIC has stopped */
	complete(5, NBAR_STATUS_NIC_DOWN);
	assert_int_equal(nbar_test(&group, 6), -ENETDOWN);
	assert_non_null(strstr(nbar_error(), "NIC n0 was stopped"));
}

static void epochs_wrap(void **state)
{
	const uint64_t start = (UINT64_C(7) << 32) - 3;
	struct group_stats stats;
	uint32_t ticket, who;

	group.posted = start;
	complete((uint32_t)start, 0);
	for (uint32_t i = 1; i <= 6; i++) {
		assert_int_equal(nbar_post(&group, &ticket), 0);
		assert_int_equal(ticket, (uint32_t)start + i);
		assert_int_equal(page.doorbell[CELL].posted, ticket);
		assert_int_equal(nbar_test(&group, ticket), 0);
		assert_int_equal(nbar_wait(&group, ticket, 0), -ETIME);
		assert_int_equal(nbar_test(&group, ticket + 1), -EINVAL);
		complete(ticket, 0);
		assert_int_equal(nbar_missing(&group, &who, 1), 0);
		assert_int_equal(nbar_test(&group, ticket), 1);
		assert_int_equal(nbar_test(&group, ticket - 1), 1);
		assert_int_equal(nbar_wait(&group, ticket, 0), 0);
	}
	stats = stats_of(&group);
	assert_int_equal(stats.posted, start + 6);
	assert_int_equal(stats.completed, start + 6);
	assert_int_equal(nbar_post(&group, NULL), 0);
	stats = stats_of(&group);
	assert_int_equal(stats.completed, start + 6);
}

static void a_list_of_late_ranks_is_bounded(void **state)
{
	uint32_t who[32] = { [2] = 9, [NBAR_STRAGGLERS_MAX] = 9 };

	for (uint32_t i = 0; i < NBAR_STRAGGLERS_MAX; i++)
		page.completion[CELL].straggler[i] = 100 + i;
	page.completion[CELL].nstragglers = 4000000000u;
	assert_int_equal(nbar_missing(&group, who, 32), 0); /* no barrier is under way */
	assert_int_equal(nbar_post(&group, NULL), 0);
	assert_int_equal(nbar_missing(&group, who, 2), NBAR_STRAGGLERS_MAX);
	assert_int_equal(who[1], 101);
	assert_int_equal(who[2], 9);
	assert_int_equal(nbar_missing(&group, who, 32), NBAR_STRAGGLERS_MAX);
	assert_int_equal(who[NBAR_STRAGGLERS_MAX - 1], 100 + NBAR_STRAGGLERS_MAX - 1);
	assert_int_equal(who[NBAR_STRAGGLERS_MAX], 9);
	assert_int_equal(nbar_wait(&group, 1, 1), -ETIME);
	assert_non_null(strstr(nbar_error(), "ranks 100, 101, "));
	assert_non_null(strstr(nbar_error(), "105 and 106 have not arrived"));
	page.completion[CELL].nstragglers = 1;
	assert_int_equal(nbar_wait(&group, 1, 1), -ETIME);
	assert_non_null(strstr(nbar_error(), "rank 100 has not arrived, as far as NIC n0 knows"));
	page.completion[CELL].nstragglers = 0;
	assert_int_equal(nbar_wait(&group, 1, 1), -ETIME);
	assert_non_null(strstr(nbar_error(), "does not know of anybody"));
}

/* A NIC that shows signs of life gives a list with reasons. A NIC of an earlier version has other
 * words there. */
static void reasons_are_told(void **state)
{
	struct nbar_completion *c = &page.completion[CELL];
	uint16_t why[NBAR_STRAGGLERS_MAX];
	uint32_t who[NBAR_STRAGGLERS_MAX];

	for (uint32_t i = 0; i < 5; i++) {
		c->straggler[i] = i;
		/* 256 << 4 units of 2^20 ns: 4.3 s */
		c->why[i] = (uint16_t)(i << 13 | 4 << 9 | 256);
	}
	c->nstragglers = 5;
	assert_int_equal(nbar_post(&group, NULL), 0);
	assert_int_equal(nbar_wait(&group, 1, 1), -ETIME);
	assert_non_null(strstr(nbar_error(), "ranks 0, 1, 2, 3 and 4 have not arrived"));
	assert_int_equal(nbar_missing_why(&group, who, why, NBAR_STRAGGLERS_MAX), 5);
	assert_int_equal(why[4], 0);
	page.life = 1;
	assert_int_equal(nbar_missing_why(&group, who, why, NBAR_STRAGGLERS_MAX), 5);
	assert_int_equal(NBAR_WHY_KIND(why[4]), NBAR_WHY_NIC_SILENT);
	assert_int_equal(nbar_wait(&group, 1, 1), -ETIME);
	assert_non_null(strstr(nbar_error(),
			       "ranks 0, 1 (late for 4.3 s), 2 (process stopped, late for 4.3 s), "
			       "3 (process ended, late for 4.3 s) and 4 (NIC silent for 4.3 s) "
			       "have not arrived"));
	c->why[0] = 0xffff;
	assert_int_equal(nbar_wait(&group, 1, 1), -ETIME);
	assert_non_null(strstr(nbar_error(), "ranks 0, 1 (late"));
}

/* The NIC of this host stands still. The test asserts no time: only what the waits saw counts. */
static void a_nic_that_does_not_run_is_told(void **state)
{
	bool told = false;

	page.life = 7;
	assert_int_equal(nbar_post(&group, NULL), 0);
	for (uint32_t i = 0; i < 600 && !told; i++) {
		assert_int_equal(nbar_wait(&group, 1, 50000000), -ETIME);
		told = strstr(nbar_error(), "NIC n0 of this host has not run for") != NULL;
	}
	assert_true(told);
	page.life = 8;
	for (uint32_t i = 0; i < 600 && told; i++) {
		assert_int_equal(nbar_wait(&group, 1, 20000000), -ETIME);
		told = strstr(nbar_error(), "does not know of anybody") == NULL;
	}
	assert_false(told);
}

/* nbar_barrier does not wait for ever for a NIC that does not run. */
static void waiting_without_limit_ends_when_the_nic_stands_still(void **state)
{
	page.life = 7;
	assert_int_equal(nbar_post(&group, NULL), 0);
	nblib_life_look(&group, nblib_now_ns());
	group.life_mute = NBLIB_MUTE_NS;
	assert_int_equal(nbar_wait(&group, 1, NBAR_FOREVER), -ETIME);
	assert_non_null(strstr(nbar_error(), "NIC n0 of this host has not run for 30"));
}

/* The end of the daemon explains why it shows no sign of life. */
static void a_daemon_that_has_ended_is_not_called_silent(void **state)
{
	page.life = 7;
	assert_int_equal(nbar_post(&group, NULL), 0);
	nblib_life_look(&group, nblib_now_ns());
	group.life_mute = NBLIB_MUTE_NS;
	close(daemon_end);
	daemon_end = -1;
	assert_int_equal(nbar_wait(&group, 1, NBAR_FOREVER), -ENETDOWN);
	assert_non_null(strstr(nbar_error(), "NIC n0 is gone"));
}

static void *wait_main(void *arg)
{
	return (void *)(intptr_t)nbar_wait(&group, (uint32_t)(uintptr_t)arg, NBAR_FOREVER);
}

/* The NIC runs again: the next wait without limit goes on, too. */
static void a_nic_that_goes_on_is_waited_for(void **state)
{
	pthread_t thread;
	void *rc;

	page.life = 7;
	assert_int_equal(nbar_post(&group, NULL), 0);
	nblib_life_look(&group, nblib_now_ns());
	group.life_mute = NBLIB_MUTE_NS;
	page.life = 8;
	require(pthread_create(&thread, NULL, wait_main, (void *)1) == 0, "thread");
	/* Waits until the thread has looked at the NIC. */
	for (uint32_t i = 0; i < 100000 && __atomic_load_n(&group.life, __ATOMIC_RELAXED) != 8; i++)
		usleep(100);
	complete(1, 0);
	pthread_join(thread, &rc);
	assert_ptr_equal(rc, NULL);
}

static void *team_main(void *arg)
{
	return (void *)(intptr_t)nbar_team_barrier(arg, 0);
}

/* No thread can wait for the barrier of a team again, so a team keeps waiting for a NIC that stands
 * still. */
static void a_team_waits_for_a_nic_that_stands_still(void **state)
{
	struct nbar_team team;
	pthread_t thread;
	void *rc;

	assert_int_equal(team_init(&team, 1, &group), 0);
	page.life = 7;
	nblib_life_look(&group, nblib_now_ns());
	group.life_mute = NBLIB_MUTE_NS;
	require(pthread_create(&thread, NULL, team_main, &team) == 0, "thread");
	/* Waits until the thread has looked and found that the NIC has stood still for too long. */
	for (uint32_t i = 0;
	     i < 100000 && __atomic_load_n(&group.life_mute, __ATOMIC_RELAXED) == NBLIB_MUTE_NS;
	     i++)
		usleep(100);
	complete(1, 0);
	pthread_join(thread, &rc);
	assert_ptr_equal(rc, NULL);
}

/* Threads look at a NIC in one order, but have read their clocks in another order. */
static void a_look_of_before_counts_nothing(void **state)
{
	uint64_t now = nblib_now_ns();

	page.life = 7;
	nblib_life_look(&group, now);
	for (uint32_t i = 0; i < 1000; i++)
		nblib_life_look(&group, i % 2 ? now : now - 1);
	assert_true(nblib_life_mute(&group) == 0);
	assert_true(group.life_looked == now);
	page.life = 8;
	nblib_life_look(&group, now); /* another thread's look at the same time */
	assert_int_equal(group.life, 8);
}

/* A look adds the time since the look before, but at most 200 ms: this process may have been
 * stopped. A NIC of an earlier version shows no sign of life, so its silence means nothing. */
static void looks_add_up(void **state)
{
	static const struct {
		uint32_t life;
		uint64_t now_ms, mute_ms;
	} look[] = {
		{ 1, 1000, 0 },          { 1, 1100, 100 },
		{ 1, 1300, 300 },        { 1, 9300, 500 },
		{ 2, 9400, 0 },          { 2, 9401, 1 },
		{ UINT32_MAX, 9500, 0 }, { UINT32_MAX, 9600, 100 },
		{ 0, 9700, 0 },          { 0, 9800, 0 },
	};

	for (size_t i = 0; i < sizeof(look) / sizeof(look[0]); i++) {
		page.life = look[i].life;
		nblib_life_look(&group, look[i].now_ms * 1000000);
		assert_int_equal(nblib_life_mute(&group), look[i].mute_ms * 1000000);
	}
}

/* A thread asks for a wake before it sleeps. If another event wakes the thread, it sleeps again. */
static void a_sleeper_asks(void **state)
{
	uint32_t wake_seq = 0;
	pthread_t thread;
	void *rc;

	group.wait = (struct nbar_wait_policy){ 0, 0, 1 };
	assert_int_equal(nbar_post(&group, NULL), 0);
	assert_int_equal(nbar_post(&group, NULL), 0);
	require(pthread_create(&thread, NULL, wait_main, (void *)2) == 0, "thread");
	for (uint32_t epoch = 1; epoch <= 2; epoch++) {
		while (__atomic_load_n(&page.doorbell[CELL].wake_seq, __ATOMIC_ACQUIRE) == wake_seq)
			usleep(100);
		wake_seq = __atomic_load_n(&page.doorbell[CELL].wake_seq, __ATOMIC_ACQUIRE);
		complete(epoch, 0);
	}
	pthread_join(thread, &rc);
	assert_ptr_equal(rc, NULL);
	assert_true(group.sleeps >= 1);
	assert_int_equal(group.yields, 0);
}

/* A daemon killed by SIGKILL wakes no thread and writes nothing; a waiting thread notices it
 * anyway. */
static void a_daemon_that_was_killed_is_noticed(void **state)
{
	static const struct nbar_wait_policy policy[] = {
		{ UINT32_MAX, 0, 0 },
		{ 0, UINT32_MAX, 0 },
		{ 0, 0, 1 },
		{ 20, 200, 1 },
	};

	for (size_t i = 0; i < sizeof(policy) / sizeof(policy[0]); i++) {
		pthread_t thread;
		void *rc;

		group.wait = policy[i];
		assert_int_equal(nbar_post(&group, NULL), 0);
		assert_int_equal(nbar_post(&group, NULL), 0);
		complete(1, 0);
		require(pthread_create(&thread, NULL, wait_main, (void *)2) == 0, "thread");
		usleep(1000);
		close(daemon_end);
		daemon_end = -1;
		pthread_join(thread, &rc);
		assert_int_equal((intptr_t)rc, -ENETDOWN);
		assert_int_equal(nbar_post(&group, NULL), -ENETDOWN);
		assert_non_null(strstr(nbar_error(), "NIC n0 is gone"));
		assert_int_equal(nbar_wait(&group, 1, NBAR_FOREVER), 0);
		assert_int_equal(nbar_test(&group, 2), -ENETDOWN);
		teardown(state);
		setup(state);
	}
}

static void testing_alone_notices_too(void **state)
{
	int rc = 0;

	assert_int_equal(nbar_post(&group, NULL), 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(nbar_test(&group, 1), 0);
	close(daemon_end);
	daemon_end = -1;
	for (uint32_t i = 0; i < 1000 && rc == 0; i++)
		rc = nbar_test(&group, 1);
	assert_int_equal(rc, -ENETDOWN);
}

/* A reply in the socket belongs to the thread that sent the request. The reply does not show
 * whether the daemon lives. */
static void a_reply_under_way_disturbs_nobody(void **state)
{
	char byte = 'x';

	assert_int_equal(send(daemon_end, &byte, 1, 0), 1);
	assert_false(nblib_link_look(&port.link));
	assert_int_equal(recv(port.link.sock, &byte, 1, MSG_DONTWAIT), 1);
	assert_false(nblib_link_look(&port.link));
	close(daemon_end);
	daemon_end = -1;
	assert_true(nblib_link_look(&port.link));
}

static void policies_come_from_the_environment(void **state)
{
	static const struct {
		const char *text;
		struct nbar_wait_policy policy;
	} good[] = {
		{ "", { 20, 200, 1 } },
		{ "spin", { UINT32_MAX, 0, 0 } },
		{ "yield", { 0, UINT32_MAX, 0 } },
		{ "block", { 0, 0, 1 } },
		{ "1,2,0", { 1, 2, 0 } },
		{ "3,4,1", { 3, 4, 1 } },
	};
	static const char *const bad[] = {
		"x", "1", "1,2", "1,2,3", "1,2,1x", "-1,2,1", "1,2,1,1"
	};
	struct nbar_wait_policy p;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		setenv("NBAR_WAIT", good[i].text, 1);
		assert_int_equal(nblib_wait_default(&p), 0);
		assert_memory_equal(&p, &good[i].policy, sizeof(p));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("NBAR_WAIT", bad[i], 1);
		assert_int_equal(nblib_wait_default(&p), -EINVAL);
		assert_non_null(strstr(nbar_error(), bad[i]));
	}
	unsetenv("NBAR_WAIT");
}

#define TEST(f) UNIT_IN(f, setup, teardown)

UNIT_MAIN(NULL, NULL, TEST(posting_writes_one_word), TEST(a_status_is_told_in_words),
	  TEST(epochs_wrap), TEST(a_list_of_late_ranks_is_bounded), TEST(reasons_are_told),
	  TEST(a_nic_that_does_not_run_is_told),
	  TEST(waiting_without_limit_ends_when_the_nic_stands_still),
	  TEST(a_daemon_that_has_ended_is_not_called_silent),
	  TEST(a_nic_that_goes_on_is_waited_for), TEST(a_team_waits_for_a_nic_that_stands_still),
	  TEST(a_look_of_before_counts_nothing), TEST(looks_add_up), TEST(a_sleeper_asks),
	  TEST(a_daemon_that_was_killed_is_noticed), TEST(testing_alone_notices_too),
	  TEST(a_reply_under_way_disturbs_nobody), TEST(policies_come_from_the_environment))
