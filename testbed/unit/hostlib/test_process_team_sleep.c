/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_process_team_sleep.c - stress test of sleeping in a process team without a group: no process
 * keeps sleeping when its barrier is complete.
 *
 * Threads act as processes. After a lost wake-up a thread sleeps for ever. So the main thread
 * watches: if all threads have reached a barrier, and a thread still waits after many looks, the
 * test fails. testbed/mc checks the same protocol in every order of its steps; this test meets only
 * some orders.
 */
#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit/unit.h"
#include "cluster.h"
#include "order.h"

#define LOOKS_MAX 100000u /* at the same barrier: 20 seconds at least */
#define RACERS 2u
#define STRIDE 500u /* barriers for which the others arrive in advance */

static struct nbar_process_team procs;

struct racer {
	uint32_t me, nlast; /* me arrives for itself and for nlast others, which never sleep */
	uint32_t rounds;
	uint32_t done; /* pairs with the load in look_on; both relaxed: only a count */
	uint32_t nracer;
	uint32_t *met;
	int bad;
	uint64_t seed;
	pthread_t id;
};

/* All threads begin a barrier together, within nanoseconds where they have a processor each, and
 * then arrive a random moment apart. Atomic accesses to `met` pair with each other; relaxed,
 * because `met` protects no data. */
static void begin_together(uint32_t *met, uint32_t all, struct rng *r)
{
	uint32_t goal = __atomic_fetch_add(met, 1, __ATOMIC_RELAXED) / all * all + all;

	for (uint32_t i = 1; (int32_t)(__atomic_load_n(met, __ATOMIC_RELAXED) - goal) < 0; i++)
		if (i % 4096 == 0)
			sched_yield();
	for (volatile uint32_t n = rng_below(r, 512); n > 0; n--)
		;
}

static void *race(void *arg)
{
	static const struct nbar_wait_policy asleep = { .block = 1 };
	struct racer *r = arg;
	struct rng rng = { r->seed };

	for (uint32_t t = 1; t <= r->rounds; t++) {
		for (uint32_t i = 0; i < r->nlast && t % STRIDE == 1; i++)
			for (uint32_t k = 0; k < STRIDE; k++)
				r->bad |=
					nbar_process_team_post_as(&procs, NULL, RACERS + i, t + k);
		begin_together(r->met, r->nracer, &rng);
		r->bad |= nbar_process_team_post_as(&procs, NULL, r->me, t);
		r->bad |= nbar_process_team_wait(&procs, NULL, t, &asleep, NBAR_FOREVER);
		__atomic_store_n(&r->done, t, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The lowest barrier that a thread has left. */
static uint32_t slowest(const struct racer *racer, uint32_t n)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t done = __atomic_load_n(&racer[i].done, __ATOMIC_RELAXED);

		least = done < least ? done : least;
	}
	return least;
}

/* Counts the barriers that a thread slept through, and wakes it, so that the test ends. */
static uint32_t look_on(struct racer *racer, uint32_t n, uint32_t rounds)
{
	uint32_t lost = 0, last = 0, same = 0;

	for (uint32_t at; (at = slowest(racer, n)) < rounds; breathe()) {
		same = at == last ? same + 1 : 0;
		last = at;
		if (same < LOOKS_MAX)
			continue;
		require(nbar_process_team_test(&procs, NULL, at + 1) == 1, "barrier %u hangs",
			at + 1);
		lost++;
		same = 0;
		order_procs_wake(&procs.wake);
		syscall(SYS_futex, &procs.wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	return lost;
}

static void run(uint32_t size, uint32_t nracer, uint32_t rounds)
{
	struct racer racer[20] = { 0 };
	uint64_t seed = unit_seed();
	uint32_t lost, met = 0;

	require_ok(nbar_process_team_init(&procs, size));
	for (uint32_t i = 0; i < nracer; i++) {
		racer[i].me = i;
		racer[i].nlast = i == 0 ? size - nracer : 0;
		racer[i].rounds = rounds;
		racer[i].nracer = nracer;
		racer[i].met = &met;
		racer[i].seed = seed + i;
		require(pthread_create(&racer[i].id, NULL, race, &racer[i]) == 0, "thread");
	}
	lost = look_on(racer, nracer, rounds);
	for (uint32_t i = 0; i < nracer; i++) {
		pthread_join(racer[i].id, NULL);
		require(racer[i].bad == 0, "thread %u of %u", i, nracer);
	}
	require(lost == 0, "size %u: %u of %u barriers slept through, seed %llu", size, lost,
		rounds, (unsigned long long)seed);
}

static uint32_t rounds_of(uint32_t usual)
{
	uint64_t wake_seq = unit_rounds();

	return wake_seq ? (uint32_t)wake_seq : unit_sanitized() ? usual / 20 : usual;
}

/* Two processes race. All other processes of the team have arrived in advance, so there are many
 * races per second. */
static void two_race(void **state)
{
	(void)state;
	run(17, RACERS, rounds_of(100000)); /* too many for one cache line */
	run(16, RACERS, rounds_of(20000));
}

static void all_race(void **state)
{
	(void)state;
	run(17, 17, rounds_of(1000));
	run(16, 16, rounds_of(1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_race),
		cmocka_unit_test(all_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
