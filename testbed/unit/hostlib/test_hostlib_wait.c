/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_wait.c - how a thread waits: when it yields, sleeps and looks at its NIC.
 *
 * Linked with --wrap for the clock and for each call that sleeps. The clock is the test's, so no
 * result depends on the machine: a sleep lasts exactly as long as the library asked for, and
 * nothing else takes time, but each look at the clock may.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <time.h>

#include "unit/unit.h"
#include "internal.h"
#include "nbar_host.h"
#include "unit/moves.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define CELL 3u
#define TAKEN_MAX 64u
#define NO_SOCKET (-2)

static struct nbar_page page;
static struct nbar_port port;
static struct nbar_group group;

static struct {
	uint64_t now, step; /* ns; each look at the clock takes `step` */
	uint64_t yield;     /* ns that a yield takes */
	void (*yielded)(void);
	uint32_t looks;  /* at the control socket */
	uint32_t passes; /* of an in-process NIC */
	uint32_t nsleep;
	uint64_t sleep[TAKEN_MAX]; /* ns of each sleep */
	int op;                    /* of the last futex call */
	void (*wake)(void);        /* called in the next sleep on a futex */
	void (*look)(void);        /* called in each look */
} fake;

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	fake.now += fake.step;
	*out = (struct timespec){
		.tv_sec = (time_t)(fake.now / (1000 * MS)),
		.tv_nsec = (long)(fake.now % (1000 * MS)),
	};
	return 0;
}

static void slept(const struct timespec *t)
{
	uint64_t ns = t ? (uint64_t)t->tv_sec * 1000 * MS + (uint64_t)t->tv_nsec : NBAR_FOREVER;

	assert_true(fake.nsleep < TAKEN_MAX);
	fake.sleep[fake.nsleep++] = ns;
	if (t)
		fake.now += ns;
}

int __wrap_sched_yield(void)
{
	fake.now += fake.yield;
	if (fake.yielded)
		fake.yielded();
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	slept(t);
	return 0;
}

/* The library makes only calls of futexes in this way. */
long __wrap_syscall(long number, ...)
{
	va_list rest;

	va_start(rest, number);
	const uint32_t *word = va_arg(rest, const uint32_t *);
	const int op = va_arg(rest, int);
	const uint32_t value = va_arg(rest, uint32_t);
	const bool wakes = op == FUTEX_WAKE || op == FUTEX_WAKE_PRIVATE;
	const struct timespec *t = wakes ? NULL : va_arg(rest, const struct timespec *);

	va_end(rest);
	void (*wake)(void) = fake.wake;

	assert_int_equal(number, SYS_futex);
	fake.op = op;
	if (wakes) {
		assert_int_equal(value, INT_MAX);
		return 0;
	}
	assert_int_equal(value, *word);
	slept(t);
	fake.wake = NULL;
	if (wake)
		wake();
	else
		assert_non_null(t); /* else this sleep never ends */
	return 0;
}

/* A link that is lost is shut down. No group here has a descriptor for events. */
int __wrap_shutdown(int fd, int how)
{
	assert_int_equal(fd, NO_SOCKET);
	return -1;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	assert_int_equal(timeout, 0);
	fake.looks++;
	if (fake.look)
		fake.look();
	return 0;
}

static void count_pass(struct nbar_hostnic *nic)
{
	fake.passes++;
}

static int wait_for(struct nbar_wait_policy policy, uint64_t timeout_ns)
{
	group.wait = policy;
	return nbar_wait(&group, 1, timeout_ns);
}

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memset(&page, 0, sizeof(page));
	port = (struct nbar_port){ .link = { .sock = NO_SOCKET, .nic = "n0" }, .page = &page };
	group = (struct nbar_group){
		.port = &port,
		.doorbell = &page.doorbell[CELL],
		.completion = &page.completion[CELL],
		.connected = true,
		.runs = true,
		.posted = 1,
		.events = -1,
		.cell = CELL,
		.size = 2,
	};
	/* Nobody else wants the processor of this thread: a yield takes 1 us. */
	fake.step = 1 * US;
	assert_int_equal(wait_for((struct nbar_wait_policy){ 0, 200, 1 }, 200 * US), -ETIME);
	memset(&fake, 0, sizeof(fake));
	group.yields = 0;
	return 0;
}

static void complete(void)
{
	page.completion[CELL].word = 1;
}

/* --- a group --------------------------------------------------------------------------------- */

/* A thread that spins makes a system call to look at its NIC each 10 ms, not more often. */
static void looks_are_10_ms_apart(void **state)
{
	fake.step = MS;
	assert_int_equal(wait_for((struct nbar_wait_policy){ UINT32_MAX, 0, 0 }, 95 * MS), -ETIME);
	assert_int_equal(fake.looks, 9);
	assert_int_equal(fake.nsleep, 0);
	assert_int_equal(group.yields, 0);
}

/* A thread that only tests looks at its NIC at each 256th test. */
static void one_of_256_tests_looks(void **state)
{
	for (uint32_t i = 0; i < 512; i++)
		assert_int_equal(nbar_test(&group, 1), 0);
	assert_int_equal(fake.looks, 2);
}

/* A sleep on a group ends after 200 ms at the latest: a NIC that was killed wakes no thread. */
static void a_sleep_is_bounded(void **state)
{
	assert_int_equal(wait_for((struct nbar_wait_policy){ 0, 0, 1 }, 420 * MS), -ETIME);
	assert_int_equal(fake.nsleep, 3);
	assert_int_equal(fake.sleep[0], 200 * MS);
	assert_int_equal(fake.sleep[1], 200 * MS);
	assert_int_equal(fake.sleep[2], 20 * MS);
	assert_int_equal(fake.op, FUTEX_WAIT);
	assert_int_equal(fake.looks, 3);
	assert_int_equal(group.sleeps, 3);
	assert_int_equal(page.doorbell[CELL].wake_seq, 3);
	fake.wake = complete;
	assert_int_equal(wait_for((struct nbar_wait_policy){ 0, 0, 1 }, NBAR_FOREVER), 0);
	assert_int_equal(fake.nsleep, 4);
}

static void lose_nic(void)
{
	port.link.down = NBLIB_GONE;
}

/* A program that waits again and again, for a shorter time than a sleep or than 10 ms, also hears
 * that its NIC has ended, or does not run. */
static void short_waits_look(void **state)
{
	const struct nbar_wait_policy block = { 0, 0, 1 };

	page.life = 7;
	group.life = 7;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(wait_for(block, 100 * MS), -ETIME);
	assert_int_equal(fake.looks, 4);
	assert_int_equal(group.life_mute, 400 * MS);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(wait_for(block, 4 * MS), -ETIME);
	assert_int_equal(fake.looks, 4 + 4);
	fake.wake = lose_nic;
	assert_int_equal(wait_for(block, 100 * MS), -ENETDOWN);
}

/* The barrier completes while the thread looks at its NIC: then the thread does not sleep. */
static void a_thread_looks_once_more_before_it_sleeps(void **state)
{
	fake.look = complete;
	assert_int_equal(wait_for((struct nbar_wait_policy){ 0, 0, 1 }, 420 * MS), 0);
	assert_int_equal(fake.looks, 1);
	assert_int_equal(fake.nsleep, 1); /* before the look */
}

/* A round of tests takes 1 us here, and a yield 2 us. */
static void a_policy_is_followed(void **state)
{
	const struct nbar_wait_policy policy = { 100, 200, 1 };

	fake.step = 1 * US;
	assert_int_equal(wait_for(policy, 400 * US), -ETIME);
	assert_in_range(group.yields, 100, 100 + 8);
	assert_int_equal(fake.nsleep, 1);
	assert_in_range(fake.sleep[0], 95 * US, 100 * US);
}

static struct nbar_team team;
static struct nbar_process_team procs;

static void the_team_breaks(void)
{
	if (fake.now >= 240 * US)
		team.broken = UINT64_C(1) << 32 | 1;
}

static void the_team_breaks_late(void)
{
	if (fake.now >= 30000 * MS)
		team.broken = UINT64_C(1) << 32 | 1;
}

/* Somebody else wants this processor, so that each yield takes 9 us more: groups, teams and process
 * teams do not spin, unless the policy says "always". */
static void others_want_the_processor(void **state)
{
	const struct nbar_wait_policy policy = { 100, 140, 1 };
	uint64_t word = 0;

	fake.step = 1 * US;
	fake.yield = 9 * US;
	wait_for(policy, 400 * US);
	group.yields = 0;
	assert_int_equal(wait_for(policy, 240 * US), -ETIME);
	assert_int_equal(group.yields, 22); /* 9 us, and two looks at the clock */
	fake.yielded = the_team_breaks;
	fake.now = 0;
	team.wait = (struct nbar_wait_policy){ 1000, 0, 1 };
	assert_false(nblib_wait_team(&team, &word, 1));
	assert_in_range(fake.now, 240 * US, 253 * US);
	fake.yielded = NULL;
	fake.now = 0;
	assert_int_equal(nbar_process_team_init(&procs, 2), 0);
	assert_false(nblib_wait_procs(&procs, &team.wait, 1, 240 * US));
	assert_in_range(fake.now, 240 * US, 253 * US);
	group.yields = 0;
	assert_int_equal(wait_for((struct nbar_wait_policy){ UINT32_MAX, 0, 1 }, 240 * US), -ETIME);
	assert_int_equal(group.yields, 0);
}

/* Moves while `size` processes wait for each other for 30 s. Each yield is late. */
static uint32_t moves_of(uint32_t size, const struct nbar_wait_policy *policy)
{
	assert_int_equal(nbar_process_team_init(&procs, size), 0);
	fake.yield = 9 * US;
	fake.now = 0;
	assert_false(nblib_wait_procs(&procs, policy, 1, 30000 * MS));
	return moves_end();
}

/* They try the other processor, if it has room for all of them. The policy says whether they may.
 */
static void those_who_wait_try_another_processor(void **state)
{
	const struct nbar_wait_policy spin = { 40000000, 0, 0 }, yield = { 0, 40000000, 0 };

	assert_in_range(moves_of(2, &spin), 6, 30);
	assert_int_equal(moves_of(3, &spin), 0);
	assert_int_equal(moves_of(2, &yield), 0);
	moves.refused = true;
	assert_int_equal(moves_of(2, &spin), 0);
	moves.refused = false;
	/* The user has bound the thread to some of its processors. */
	moves.pinned = true;
	assert_in_range(moves_of(2, &spin), 6, 30);
	moves.pinned = false;
	/* A member of a group has nobody to part from. */
	fake.now = 0;
	assert_int_equal(wait_for(spin, 9000 * MS), -ETIME);
	assert_int_equal(moves_end(), 0);
	/* Threads of a team. */
	fake.yielded = the_team_breaks_late;
	fake.now = 0;
	team.broken = 0;
	team.size = 2;
	team.wait = spin;
	assert_false(nblib_wait_team(&team, &(uint64_t){ 0 }, 1));
	assert_in_range(moves_end(), 2, 30);
	fake.yielded = NULL;
	team.broken = 0;
}

/* A NIC without a sign of life for 30 s ends a wait without limit. The first look is after a sleep.
 */
static void a_silent_nic_ends_a_wait(void **state)
{
	page.life = 7;
	group.life = 7;
	group.life_mute = NBLIB_MUTE_NS - 200 * MS;
	assert_int_equal(wait_for((struct nbar_wait_policy){ 0, 0, 1 }, NBAR_FOREVER), -ETIME);
	assert_int_equal(fake.nsleep, 1);
	assert_int_equal(fake.looks, 1);
}

static void abort_group(void)
{
	assert_int_equal(nbar_group_abort(&group), 0);
	assert_int_equal(fake.op, FUTEX_WAKE);
	port.link.down = NBLIB_UP;
}

/* Another thread aborts the group: it wakes the sleeper, which does not wait for the NIC. */
static void an_abort_ends_a_wait(void **state)
{
	fake.wake = abort_group;
	assert_int_equal(wait_for((struct nbar_wait_policy){ 0, 0, 1 }, NBAR_FOREVER), -ECANCELED);
	assert_int_equal(fake.nsleep, 1);
}

static void set_in_process(void)
{
	static const struct nbar_hostnic_ops ops = { .poll = count_pass };

	port.link.in_process = true;
	port.link.host = (struct nbar_hostnic *)&fake;
	port.link.ops = &ops;
}

/* Between passes of an in-process NIC the thread naps: each nap is twice as long as the last, up to
 * 1 ms, and never longer than the time that is left. */
static void naps_grow(void **state)
{
	uint64_t sum = 0;

	set_in_process();
	assert_int_equal(wait_for((struct nbar_wait_policy){ 0, 0, 1 }, 5 * MS), -ETIME);
	assert_int_equal(fake.nsleep, 11);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(fake.sleep[i], (UINT64_C(10) << i) * US);
	for (uint32_t i = 7; i < 10; i++)
		assert_int_equal(fake.sleep[i], MS);
	for (uint32_t i = 0; i < fake.nsleep; i++)
		sum += fake.sleep[i];
	assert_int_equal(sum, 5 * MS);
	assert_int_equal(group.sleeps, 11);
	assert_in_range(fake.passes, 11, 13);
	assert_int_equal(fake.looks, 0); /* it has no daemon */
	/* A thread that spins runs 4 passes between two looks at the clock. */
	fake.passes = 0;
	fake.step = 10 * US;
	assert_int_equal(wait_for((struct nbar_wait_policy){ 10, 0, 1 }, 10 * US), -ETIME);
	assert_int_equal(fake.passes, 10);
	assert_int_equal(fake.nsleep, 11);
}

static void *cancelled_main(void *arg)
{
	pthread_cancel(pthread_self());
	wait_for((struct nbar_wait_policy){ UINT32_MAX, 0, 0 }, 95 * MS);
	return arg;
}

/* A thread that waits for an in-process NIC can be cancelled, as a thread that waits for a daemon.
 */
static void a_wait_can_be_cancelled(void **state)
{
	pthread_t thread;
	void *rc;

	if (unit_sanitized())
		skip(); /* ASan does not follow how a cancelled thread leaves its frames */
	set_in_process();
	fake.step = MS;
	assert_int_equal(wait_for((struct nbar_wait_policy){ UINT32_MAX, 0, 0 }, 95 * MS), -ETIME);
	assert_int_equal(pthread_create(&thread, NULL, cancelled_main, NULL), 0);
	pthread_join(thread, &rc);
	assert_ptr_equal(rc, PTHREAD_CANCELED);
}

/* --- teams ----------------------------------------------------------------------------------- */

static uint64_t team_word;

static void release(void)
{
	assert_int_equal(fake.op, FUTEX_WAIT_PRIVATE);
	assert_true(team_word & NBLIB_TEAM_SLEEPS);
	team_word = 1;
}

/* Threads of a team sleep until they are woken; in front of a group, for 200 ms at a time. The
 * failure of a later barrier does not end the wait. */
static void a_thread_of_a_team_sleeps(void **state)
{
	struct nbar_team team = { .size = 2, .wait = { 0, 0, 1 } };

	order_team_break(&team.broken, 2);
	for (uint32_t i = 0; i < 2; i++) {
		team_word = 0;
		fake.wake = release;
		assert_true(nblib_wait_team(&team, &team_word, 1));
		assert_int_equal(fake.nsleep, i + 1);
		assert_true(fake.sleep[i] == (i == 0 ? NBAR_FOREVER : 200 * MS));
		team.group = &group;
	}
}

/* It spins for 100 us, and yields for 200 us, before it sleeps. */
static void a_thread_of_a_team_follows_its_policy(void **state)
{
	struct nbar_team team = { .size = 2, .wait = { 100, 200, 1 } };

	team_word = 0;
	fake.step = 50 * US;
	fake.wake = release;
	assert_true(nblib_wait_team(&team, &team_word, 1));
	assert_int_equal(fake.nsleep, 1);
	/* Looks at the clock: at the start, after two rounds, before and after two yields, and
	 * after the sleep. */
	assert_int_equal(fake.now, 8 * fake.step);
}

/* True if the library has sent a KICK to this socket, and nothing else. */
static bool kicked(int sock)
{
	struct nbar_request q[2];
	ssize_t n = recv(sock, q, sizeof(q), MSG_DONTWAIT);

	if (n < 0)
		return false;
	assert_int_equal(n, sizeof(q[0]));
	assert_int_equal(q[0].op, NBAR_OP_KICK);
	assert_int_equal(q[0].length, n);
	assert_int_equal(q[0].magic, NBAR_ABI_MAGIC);
	assert_int_equal(q[0].version, NBAR_ABI_VERSION);
	assert_true(recv(sock, q, sizeof(q), MSG_DONTWAIT) < 0);
	return true;
}

/* A host kicks a NIC that sleeps, after each post of any kind; else it makes no call. */
static void a_post_kicks_a_sleeping_nic(void **state)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 0 };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	port.link.sock = pair[0];
	for (uint32_t sleeps = 0; sleeps < 2; sleeps++) {
		page.kick = sleeps;
		assert_int_equal(nbar_post(&group, NULL), 0);
		assert_int_equal(kicked(pair[1]), sleeps);
		assert_int_equal(nbar_process_team_init(&procs, 1), 0);
		group.attached = true;
		procs.arrived[0] = (uint32_t)group.posted;
		assert_int_equal(nbar_process_team_post(&procs, &group, 0, NULL), 0);
		group.attached = false;
		assert_int_equal(kicked(pair[1]), sleeps);
		group.is_signal = true;
		group.npeer = 1;
		assert_int_equal(nbar_signal_send(&group, 0, word), 0);
		assert_int_equal(kicked(pair[1]), sleeps);
		group.is_signal = false;
		assert_int_equal(page.kick, sleeps);
	}
	/* Nobody reads: no post waits for the NIC. */
	for (uint32_t i = 0; i < 2000; i++) {
		page.completion[CELL].word = group.posted;
		assert_int_equal(nbar_post(&group, NULL), 0);
	}
	close(pair[0]);
	close(pair[1]);
	port.link.sock = NO_SOCKET;
}

static void last_arrives(void)
{
	assert_int_equal(procs.sleepers, 1);
	assert_int_equal(nbar_process_team_post(&procs, NULL, 1, NULL), 0);
	assert_int_equal(fake.op, FUTEX_WAKE);
	assert_int_equal(procs.wake, 1);
}

/* A futex call takes longer than a barrier of processes that are awake. */
static void processes_awake_make_no_call(void **state)
{
	fake.op = -1;
	assert_int_equal(nbar_process_team_init(&procs, 2), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(nbar_process_team_post(&procs, NULL, i, NULL), 0);
	assert_int_equal(fake.op, -1);
	assert_int_equal(procs.wake, 0);
}

static void a_process_of_a_team_sleeps(void **state)
{
	const struct nbar_wait_policy block = { 0, 0, 1 }, yield = { 0, 15, 1 };
	uint32_t ticket;

	assert_int_equal(nbar_process_team_init(&procs, 2), 0);
	assert_int_equal(nbar_process_team_post(&procs, NULL, 0, &ticket), 0);
	assert_int_equal(nbar_process_team_wait(&procs, NULL, ticket, &block, 70 * MS), -ETIME);
	assert_int_equal(fake.nsleep, 1);
	assert_int_equal(fake.sleep[0], 70 * MS);
	assert_int_equal(fake.op, FUTEX_WAIT);
	assert_int_equal(procs.sleepers, 0);
	fake.wake = last_arrives;
	assert_int_equal(nbar_process_team_wait(&procs, NULL, ticket, &block, NBAR_FOREVER), 0);
	assert_int_equal(fake.nsleep, 2);
	assert_true(fake.sleep[1] == NBAR_FOREVER);
	assert_int_equal(procs.sleepers, 0);
	/* After a yield, a sleep lasts for the rest of the time. */
	fake.step = 10 * US;
	assert_int_equal(nbar_process_team_post(&procs, NULL, 0, &ticket), 0);
	assert_int_equal(nbar_process_team_wait(&procs, NULL, ticket, &yield, 70 * MS), -ETIME);
	assert_int_equal(fake.nsleep, 3);
	assert_int_equal(fake.sleep[2], 70 * MS - 20 * US);
}

/* Somebody binds the thread while it moves. */
static void a_mask_that_somebody_sets_stays(void **state)
{
	moves.pinned = true;
	moves.other = MOVES_C;
	moves.cpu = MOVES_A;
	assert_int_equal(nbar_move(-1, 2), MOVES_A);
	assert_true(CPU_COUNT(&moves.mask) == 1 && CPU_ISSET(MOVES_C, &moves.mask));
	moves.other = 0;
	moves.is_set = moves.pinned = false;
	assert_int_equal(moves_end(), 1);
	assert_int_equal(nbar_move(MOVES_A, 2), MOVES_B);
	assert_int_equal(moves_end(), 1);
}

#define WAIT(test) cmocka_unit_test_setup(test, setup)
UNIT_MAIN(NULL, NULL, WAIT(looks_are_10_ms_apart), WAIT(one_of_256_tests_looks),
	  WAIT(short_waits_look), WAIT(a_sleep_is_bounded),
	  WAIT(a_thread_looks_once_more_before_it_sleeps), WAIT(a_policy_is_followed),
	  WAIT(those_who_wait_try_another_processor), WAIT(a_mask_that_somebody_sets_stays),
	  WAIT(others_want_the_processor), WAIT(a_post_kicks_a_sleeping_nic),
	  WAIT(a_silent_nic_ends_a_wait), WAIT(an_abort_ends_a_wait), WAIT(naps_grow),
	  WAIT(a_wait_can_be_cancelled), WAIT(a_thread_of_a_team_sleeps),
	  WAIT(a_thread_of_a_team_follows_its_policy), WAIT(processes_awake_make_no_call),
	  WAIT(a_process_of_a_team_sleeps))
