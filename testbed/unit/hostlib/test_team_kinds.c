/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_team_kinds.c - every kind of thread barrier by itself: order, late threads, sleep, wrap,
 * refusals.
 *
 * The oracle: no thread leaves barrier i before all threads have entered it. The oracle reads plain
 * memory, so ThreadSanitizer reports it if the team does not order the accesses.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "unit/unit.h"
#include "nbar_extra.h"
#include "nbar_host.h"

#define THREADS 64u
#define LEAST 10000u /* barriers that a run completes even on a busy machine */

static const char *const kinds[] = { "sense-reverse",   "mcs",
				     "tournament",      "dissemination:1",
				     "dissemination:2", "dissemination:3",
				     "dissemination:5", "dissemination:16" };
#define NKIND (sizeof(kinds) / sizeof(kinds[0]))

struct run {
	struct nbar_team *team;
	uint32_t size, late;    /* late: the thread that comes late; size: none */
	uint64_t rounds, least; /* least: rounds that always run */
	uint64_t until;         /* ns; from this time on the run may end, after `least` rounds */
	uint64_t done;          /* rounds of thread 0 */
	bool over[2];           /* by parity: thread 0 ends the run */
	bool split;
	uint64_t alone;               /* split: a word that one thread at a time writes */
	uint64_t entered[2][THREADS]; /* by parity of the barrier, then by thread */
};

struct thread {
	struct run *run;
	uint32_t me;
	uint64_t bad;
	pthread_t id;
};

/* A barrier in two halves, with work between them. */
static int halves(struct run *run, uint32_t me, uint64_t i)
{
	uint32_t ticket;
	int last = nbar_team_arrive(run->team, me, &ticket);

	if (last < 0)
		return last;
	if (!last)
		return nbar_team_await(run->team, me, ticket);
	for (uint32_t n = 0; n < run->size; n++)
		if (run->entered[i % 2][n] != i)
			return -EINVAL;
	run->alone = i;
	return nbar_team_release(run->team, me, ticket);
}

static void *thread_main(void *arg)
{
	const struct timespec a_while = { 0, 1000000 };
	struct thread *t = arg;
	struct run *run = t->run;

	for (uint64_t i = 1; i <= run->rounds; i++) {
		uint64_t *entered = run->entered[i % 2];

		if (t->me == run->late)
			nanosleep(&a_while, NULL);
		if (t->me == 0)
			run->over[i % 2] =
				i % 64 == 0 && i >= run->least && nbar_now_ns() > run->until;
		entered[t->me] = i;
		if (run->split) {
			t->bad += halves(run, t->me, i) != 0;
			t->bad += run->alone != i;
			t->bad += nbar_team_barrier(run->team, t->me) != 0;
		} else {
			t->bad += nbar_team_barrier(run->team, t->me) != 0;
		}
		for (uint32_t n = 0; n < run->size; n++)
			t->bad += entered[n] != i;
		if (t->me == 0)
			run->done = i;
		if (run->over[i % 2])
			break;
	}
	return NULL;
}

static struct nbar_team *team_new(const char *kind, uint32_t size)
{
	const struct nbar_team_attr attr = { .size = size, .kind = kind };
	struct nbar_team *team;
	size_t bytes;

	require(nbar_team_size(kind, size, &bytes) == 0, "%s", nbar_error());
	team = aligned_alloc(_Alignof(struct nbar_team), bytes);
	assert_non_null(team);
	memset(team, 0xa5, bytes);
	require(nbar_team_init(team, bytes, &attr) == 0, "%s", nbar_error());
	return team;
}

static void run_threads(struct run *run, const char *kind)
{
	struct thread thread[THREADS];

	run->until = unit_rounds() ? UINT64_MAX : nbar_now_ns() + UINT64_C(1000000000);
	for (uint32_t n = 0; n < run->size; n++) {
		thread[n] = (struct thread){ .run = run, .me = n };
		require(pthread_create(&thread[n].id, NULL, thread_main, &thread[n]) == 0,
			"thread %u", n);
	}
	for (uint32_t n = 0; n < run->size; n++) {
		pthread_join(thread[n].id, NULL);
		require(thread[n].bad == 0, "%s: thread %u of %u: %u bad", kind, n, run->size,
			(unsigned)thread[n].bad);
	}
}

static void run_kind(const char *kind, uint32_t size, uint64_t rounds)
{
	struct run run = { .size = size, .late = size, .rounds = rounds };

	run.least = rounds < LEAST ? rounds : LEAST;
	run.team = team_new(kind, size);
	run_threads(&run, kind);
	free(run.team);
	if (run.done < rounds)
		printf("# %s, %u threads: %llu barriers of %llu in the time there was\n", kind,
		       size, (unsigned long long)run.done, (unsigned long long)rounds);
}

static void every_size(void **state)
{
	for (size_t k = 0; k < NKIND; k++) {
		for (uint32_t size = 1; size <= 17; size++)
			run_kind(kinds[k], size, unit_sanitized() ? 100 : 1000);
		run_kind(kinds[k], 32, unit_sanitized() ? 10 : 200);
		run_kind(kinds[k], 64, unit_sanitized() ? 5 : 100);
	}
}

/* On an idle machine this takes seconds. On a busy machine a run ends when its time is over, after
 * LEAST barriers or more, and prints their number. With NBAR_ROUNDS every run completes all
 * barriers. */
static void many_barriers(void **state)
{
	const uint32_t sizes[] = { 2, 3, 4, 8, 16 };
	uint64_t rounds = unit_rounds() ? unit_rounds() : unit_sanitized() ? 2000 : 100000;

	for (size_t k = 0; k < NKIND; k++)
		for (size_t s = 0; s < (unit_rounds() ? 5 : 3); s++)
			run_kind(kinds[k], sizes[s], rounds);
}

static void all_wait_for_the_late_one(void **state)
{
	const uint32_t sizes[] = { 2, 3, 5, 8, 13 };

	for (size_t k = 0; k < NKIND; k++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			struct run run = { .size = sizes[s], .rounds = 2 };

			run.team = team_new(kinds[k], run.size);
			for (run.late = 0; run.late < run.size; run.late++)
				run_threads(&run, kinds[k]);
			free(run.team);
		}
	}
}

static void sleepers_are_woken(void **state)
{
	/* All threads sleep at once; then again, with one thread late. */
	const uint32_t sizes[] = { 2, 3, 6, 16 };

	for (size_t k = 0; k < NKIND; k++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			struct run run = { .size = sizes[s], .late = sizes[s] };

			run.rounds = unit_sanitized() ? 200 : 2000;
			run.team = team_new(kinds[k], run.size);
			run.team->wait = (struct nbar_wait_policy){ 0, 0, 1 };
			run_threads(&run, kinds[k]);
			run.rounds = 5;
			for (run.late = 0; run.late < run.size; run.late += 3)
				run_threads(&run, kinds[k]);
			free(run.team);
		}
	}
}

static void epochs_wrap(void **state)
{
	for (size_t k = 0; k < NKIND; k++) {
		for (uint32_t size = 3; size <= 6; size += 3) {
			struct run run = { .size = size, .late = size, .rounds = 300 };
			uint64_t *line;

			run.team = team_new(kinds[k], size);
			run.team->arrived += UINT32_MAX - 100;
			run.team->released += UINT32_MAX - 100;
			line = (uint64_t *)(run.team + 1);
			for (uint32_t n = 0; n < size * run.team->lines; n++)
				line[n * 16] = UINT32_MAX - 100;
			run_threads(&run, kinds[k]);
			free(run.team);
		}
	}
}

static void in_two_halves(void **state)
{
	for (size_t k = 0; k < NKIND; k++) {
		for (uint32_t size = 1; size <= 9; size++) {
			struct run run = { .size = size, .late = size, .split = true };

			run.rounds = 200;
			run.team = team_new(kinds[k], size);
			run_threads(&run, kinds[k]);
			free(run.team);
		}
	}
}

static void memory_is_what_it_says(void **state)
{
	for (size_t k = 0; k < NKIND; k++) {
		for (uint32_t size = 1; size <= 17; size++) {
			const struct nbar_team_attr attr = { .size = size, .kind = kinds[k] };
			struct run run = { .size = size, .late = size, .rounds = 3 };
			unsigned char *memory;
			size_t bytes;

			require(nbar_team_size(kinds[k], size, &bytes) == 0, "%s", nbar_error());
			memory = aligned_alloc(128, bytes + 128);
			memset(memory, 0xa5, bytes + 128);
			run.team = (struct nbar_team *)memory;
			require(nbar_team_init(run.team, bytes, &attr) == 0, "%s", nbar_error());
			run_threads(&run, kinds[k]);
			for (size_t i = bytes; i < bytes + 128; i++)
				require(memory[i] == 0xa5, "%s of %u writes beyond its end",
					kinds[k], size);
			if (bytes > sizeof(struct nbar_team)) {
				assert_int_equal(nbar_team_init(run.team, bytes - 1, &attr),
						 -ENOSPC);
				assert_non_null(strstr(nbar_error(), kinds[k]));
			}
			free(memory);
		}
	}
}

/* A dissemination:N of (N + 1)^k threads has k rounds, and N flags of 128 bytes for each. */
static void a_power_needs_no_round_more(void **state)
{
	for (uint32_t ways = 1; ways <= NBAR_TEAM_WAYS_MAX; ways++) {
		uint32_t size = 1;

		for (uint32_t rounds = 0; size <= NBAR_TEAM_MAX; rounds++, size *= ways + 1) {
			size_t bytes, least = sizeof(struct nbar_team);
			char kind[32];

			snprintf(kind, sizeof(kind), "dissemination:%u", ways);
			assert_int_equal(nbar_team_size(kind, size, &bytes), 0);
			assert_int_equal(bytes, least + 128 * size * (1 + rounds * ways));
		}
	}
}

static void setup_refused(int err, uint32_t size, const char *kind, const char *word)
{
	const struct nbar_team_attr attr = { .size = size, .kind = kind };
	static struct nbar_team team[64];
	size_t bytes = 77;

	assert_int_equal(nbar_team_init(team, sizeof(team), &attr), err);
	require(strstr(nbar_error(), word) != NULL, "\"%s\" does not say \"%s\"", nbar_error(),
		word);
	assert_int_equal(nbar_team_size(kind, size, &bytes), err);
	assert_int_equal(bytes, 77);
}

static void bad_teams_are_refused(void **state)
{
	const struct nbar_team_attr attr = { .size = 4, .kind = "mcs" };
	struct nbar_team *team;
	uint32_t ticket;

	setup_refused(-EINVAL, 0, "mcs", "at least one");
	setup_refused(-ERANGE, NBAR_TEAM_MAX + 1, "mcs", "65537");
	setup_refused(-EINVAL, 4, "senseless", "senseless");
	setup_refused(-EINVAL, 4, "", "must be");
	setup_refused(-EINVAL, 4, "mcs:2", "mcs:2");
	setup_refused(-EINVAL, 4, "dissemination", "dissemination:1");
	setup_refused(-EINVAL, 4, "dissemination:", "dissemination:1");
	setup_refused(-EINVAL, 4, "dissemination;2", "dissemination:1");
	setup_refused(-EINVAL, 4, "dissemination:0", "dissemination:1");
	setup_refused(-EINVAL, 4, "dissemination:01", "dissemination:1");
	setup_refused(-EINVAL, 4, "dissemination:17", "dissemination:16");
	setup_refused(-EINVAL, 4, "dissemination:2x", "dissemination:2x");
	setup_refused(-EINVAL, 4, "dissemination:4294967297", "dissemination:1");

	team = team_new("mcs", 4);
	assert_int_equal(nbar_team_init((struct nbar_team *)((char *)team + 64), 4096, &attr),
			 -EINVAL);
	assert_non_null(strstr(nbar_error(), "128"));
	/* A number beyond the size is refused. */
	assert_int_equal(nbar_team_barrier(team, 4), -ERANGE);
	assert_int_equal(nbar_team_barrier(team, 5), -ERANGE);
	assert_string_equal(nbar_error(), "thread 5: a team of 4 has threads 0 to 3");
	assert_int_equal(nbar_team_arrive(team, 4, &ticket), -ERANGE);
	assert_int_equal(nbar_team_release(team, 4, 1), -ERANGE);
	assert_int_equal(nbar_team_await(team, 4, 1), -ERANGE);
	free(team);
}

UNIT_MAIN(NULL, NULL, UNIT(every_size), UNIT(many_barriers), UNIT(all_wait_for_the_late_one),
	  UNIT(sleepers_are_woken), UNIT(epochs_wrap), UNIT(in_two_halves),
	  UNIT(memory_is_what_it_says), UNIT(a_power_needs_no_round_more),
	  UNIT(bad_teams_are_refused))
