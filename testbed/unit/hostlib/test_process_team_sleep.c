/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_process_team_sleep.c - no process of a process team without a group keeps sleeping when its
 * barrier is complete.
 *
 * One process waits, and one is the last to arrive. Either process is stopped after each of its
 * instructions in turn (ptrace), the other then runs, and the first goes on. So the test meets
 * every order with one change of process, in each run. The futex is simulated: a process that would
 * sleep stops instead, and only a wake that comes later lets it go on. testbed/mc checks the same
 * protocol with more changes, and on weaker memories.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/unit.h"
#include "cluster.h"
#include "internal.h"

#define STEPS_MAX 200000u /* instructions of one call of the library */
#define ASLEEP SIGUSR1    /* a traced process stops with it where it would sleep */
#define TICKET 1u

/* Memory that the test shares with its children. */
static struct shared {
	struct nbar_process_team procs;
	uint32_t expected; /* by the process that would sleep: the value of its futex */
	uint32_t wakes;
	uint32_t woken; /* by the last wake: how many sleepers it may wake */
} * shared;

static pid_t arriver;   /* a stopped child that has still to arrive, or 0 */
static bool waits_here; /* this process waits, and the arriver is stopped */
static bool lost;       /* it would have slept for ever */

/* The kernel looks at the futex and puts the process to sleep in one step. So it is this process
 * that looks, while the other is stopped. */
static bool would_sleep(void)
{
	return shared->procs.wake == shared->expected;
}

/* Lets a stopped child go on until it sleeps or ends. */
static bool child_sleeps(pid_t child)
{
	int status = 0;

	do {
		assert_int_equal(ptrace(PTRACE_CONT, child, 0, 0), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status)) {
			require(WEXITSTATUS(status) == 0, "status %x", status);
			return false;
		}
		require(WIFSTOPPED(status) && WSTOPSIG(status) == ASLEEP, "status %x", status);
	} while (!would_sleep());
	return true;
}

/* This process would sleep: now the other one goes on, and must wake it. */
static void sleeps_here(void)
{
	uint32_t wakes = shared->wakes;

	if (arriver) {
		pid_t child = arriver;

		arriver = 0;
		assert_false(child_sleeps(child));
	}
	lost = shared->wakes == wakes;
	if (lost) /* let the call return, so that the test can report it */
		shared->procs.arrived[0] = shared->procs.done = TICKET;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	va_list args;
	uint32_t *word, value;
	int op;

	va_start(args, number);
	word = va_arg(args, uint32_t *);
	op = va_arg(args, int);
	value = va_arg(args, uint32_t);
	va_end(args);
	if (number != SYS_futex || word != &shared->procs.wake)
		return -1;
	if (op == FUTEX_WAKE) {
		shared->wakes++;
		shared->woken = value;
		return 0;
	}
	shared->expected = value;
	if (!waits_here)
		return __real_syscall(SYS_kill, getpid(), ASLEEP);
	if (would_sleep())
		sleeps_here();
	return 0;
}

/* A clock of few instructions: the test follows each. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	*out = (struct timespec){ .tv_sec = 1 };
	return 0;
}

static int waits(void)
{
	static const struct nbar_wait_policy asleep = { .block = 1 };

	return nbar_process_team_wait(&shared->procs, NULL, TICKET, &asleep, NBAR_FOREVER);
}

static int last_arrives(void)
{
	return nbar_process_team_post(&shared->procs, NULL, 0, NULL);
}

/* A team of which all have arrived but process 0. */
static void prepare(uint32_t size)
{
	memset(shared, 0, sizeof(*shared));
	require_ok(nbar_process_team_init(&shared->procs, size));
	for (uint32_t i = 1; i < size; i++)
		require_ok(nbar_process_team_post(&shared->procs, NULL, i, NULL));
	arriver = 0;
	waits_here = lost = false;
}

/* Starts a traced process that stops before the call. */
static pid_t start(int (*call)(void))
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(2);
		raise(SIGSTOP);
		_exit(call() != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	require(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "status %x", status);
	/* It ends with this process, even if a test fails. */
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL), 0);
	return child;
}

enum end { STOPPED, SLEEPS, ENDED };

/* Lets a child execute n instructions, or fewer, if it then would sleep or ends. */
static enum end step(pid_t child, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		int status = 0;

		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, 0, 0), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status)) {
			require(WEXITSTATUS(status) == 0, "status %x", status);
			return ENDED;
		}
		if (WIFSTOPPED(status) && WSTOPSIG(status) == ASLEEP && would_sleep())
			return SLEEPS;
		require(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "status %x", status);
	}
	return STOPPED;
}

/* The waiting process is stopped after n instructions. Returns where. */
static enum end waiter_stops(uint32_t size, uint32_t n)
{
	pid_t child;
	enum end at;

	prepare(size);
	child = start(waits);
	at = step(child, n);
	require(at != ENDED, "size %u: a wait ends though one process has not arrived", size);
	require_ok(last_arrives());
	require(at != SLEEPS || shared->wakes > 0, "size %u: nobody wakes the sleeper", size);
	require(!child_sleeps(child),
		"size %u: a process stops after %u instructions, and then sleeps "
		"though all have arrived",
		size, n);
	require(shared->procs.sleepers == 0, "size %u: %u sleepers", size, shared->procs.sleepers);
	return at;
}

/* The arriving process is stopped after n instructions. */
static enum end arriver_stops(uint32_t size, uint32_t n)
{
	enum end at;

	prepare(size);
	arriver = start(last_arrives);
	at = step(arriver, n);
	require(at != SLEEPS, "size %u: the last process sleeps", size);
	if (at == ENDED)
		arriver = 0;
	waits_here = true;
	require_ok(waits());
	require(!lost,
		"size %u: the last process stops after %u instructions, and then wakes "
		"nobody",
		size, n);
	if (arriver)
		require(!child_sleeps(arriver), "size %u: the last process sleeps", size);
	require(shared->procs.sleepers == 0, "size %u: %u sleepers", size, shared->procs.sleepers);
	return at;
}

static const uint32_t sizes[] = { 16, 17 }; /* up to 16: in one cache line */

static void waiter_is_stopped(void **state)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = 0;

		while (waiter_stops(sizes[i], n) == STOPPED) {
			n++;
			require(n < STEPS_MAX, "%u instructions, and no sleep", n);
		}
		require(n > 10, "only %u instructions", n);
	}
}

static void last_is_stopped(void **state)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = 0;

		while (arriver_stops(sizes[i], n) == STOPPED) {
			n++;
			require(n < STEPS_MAX, "%u instructions, and no end", n);
		}
		require(n > 10, "only %u instructions", n);
	}
}

/* Several sleep: one wake is for all. */
static void all_are_woken(void **state)
{
	pid_t child[3];

	prepare(17);
	for (size_t i = 0; i < 3; i++) {
		child[i] = start(waits);
		assert_true(child_sleeps(child[i]));
		assert_int_equal(shared->procs.sleepers, i + 1);
	}
	require_ok(last_arrives());
	assert_true(shared->wakes == 1 && shared->woken == INT_MAX);
	for (size_t i = 0; i < 3; i++)
		assert_false(child_sleeps(child[i]));
	assert_int_equal(shared->procs.sleepers, 0);
}

/* Nobody sleeps: the last process calls no kernel. */
static void nobody_to_wake(void **state)
{
	prepare(2);
	require_ok(last_arrives());
	require_ok(waits());
	assert_int_equal(shared->wakes, 0);
}

/* Where processes may not be traced, there is nothing to test. */
static bool may_trace(void)
{
	pid_t child;
	int status = 0;

	if (unit_counted() || unit_sanitized()) {
		printf("1..1\nok 1 - processes that wait # SKIP instrumented code has too many steps\n");
		return false;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		abort();
	child = fork();
	if (child == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0);
	waitpid(child, &status, 0);
	if (status != 0)
		printf("1..1\nok 1 - processes that wait # SKIP this machine permits no ptrace\n");
	return status == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(waiter_is_stopped),
		UNIT(last_is_stopped),
		UNIT(all_are_woken),
		UNIT(nobody_to_wake),
	};

	return may_trace() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
