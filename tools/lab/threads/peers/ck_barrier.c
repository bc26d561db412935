/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ck_barrier.c - measures the barriers of Concurrency Kit.
 *
 * `nbar-lab threads` runs it. Usage: KIND THREADS ITERATIONS WARMUP LIMIT_MS. The barriers never
 * yield: with more threads than processors, a barrier takes milliseconds.
 */
#include <ck_barrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thread_loop.h"

static struct thread_loop loop;
static ck_barrier_centralized_t centralized = CK_BARRIER_CENTRALIZED_INITIALIZER;
static ck_barrier_combining_t combining;
static ck_barrier_combining_group_t root, leaf[THREAD_LOOP_MAX];
static ck_barrier_dissemination_t dissemination[THREAD_LOOP_MAX];
static ck_barrier_dissemination_flag_t *flags[THREAD_LOOP_MAX];
static ck_barrier_tournament_t tournament;
static ck_barrier_tournament_round_t *rounds[THREAD_LOOP_MAX];
static ck_barrier_mcs_t mcs[THREAD_LOOP_MAX];

/* The state of a thread, in its own cache lines. */
struct state {
	ck_barrier_centralized_state_t centralized;
	ck_barrier_combining_state_t combining;
	ck_barrier_dissemination_state_t dissemination;
	ck_barrier_tournament_state_t tournament;
	ck_barrier_mcs_state_t mcs;
	uint32_t me;
} __attribute__((aligned(128)));
static struct state state[THREAD_LOOP_MAX];

static void run_centralized(void *arg, uint32_t me)
{
	(void)arg;
	ck_barrier_centralized(&centralized, &state[me].centralized, loop.threads);
}

static void run_combining(void *arg, uint32_t me)
{
	(void)arg;
	ck_barrier_combining(&combining, &leaf[me / 2], &state[me].combining);
}

static void run_dissemination(void *arg, uint32_t me)
{
	(void)arg;
	ck_barrier_dissemination(dissemination, &state[me].dissemination);
}

static void run_tournament(void *arg, uint32_t me)
{
	(void)arg;
	ck_barrier_tournament(&tournament, &state[me].tournament);
}

static void run_mcs(void *arg, uint32_t me)
{
	(void)arg;
	ck_barrier_mcs(mcs, &state[me].mcs);
}

static void *lines(size_t bytes)
{
	void *memory = aligned_alloc(128, (bytes + 127) / 128 * 128);

	if (!memory) {
		perror("ck-barrier");
		exit(1);
	}
	memset(memory, 0, (bytes + 127) / 128 * 128);
	return memory;
}

static void begin_combining(void)
{
	ck_barrier_combining_init(&combining, &root);
	for (uint32_t i = 0; i < (loop.threads + 1) / 2; i++)
		ck_barrier_combining_group_init(&combining, &leaf[i],
						2 * i + 1 < loop.threads ? 2 : 1);
}

static void begin_dissemination(void)
{
	size_t bytes = ck_barrier_dissemination_size(loop.threads) * sizeof(**flags);

	for (uint32_t i = 0; i < loop.threads; i++)
		flags[i] = lines(bytes);
	ck_barrier_dissemination_init(dissemination, flags, loop.threads);
}

static void begin_tournament(void)
{
	size_t bytes = ck_barrier_tournament_size(loop.threads) * sizeof(**rounds);

	for (uint32_t i = 0; i < loop.threads; i++)
		rounds[i] = lines(bytes);
	ck_barrier_tournament_init(&tournament, rounds, loop.threads);
}

static void begin_mcs(void)
{
	ck_barrier_mcs_init(mcs, loop.threads);
}

static void begin_nothing(void)
{
}

static const struct kind {
	const char *name;
	void (*begin)(void);
	void (*run)(void *arg, uint32_t me);
} kinds[] = {
	{ "ck-centralized", begin_nothing, run_centralized },
	{ "ck-combining", begin_combining, run_combining },
	{ "ck-dissemination", begin_dissemination, run_dissemination },
	{ "ck-tournament", begin_tournament, run_tournament },
	{ "ck-mcs", begin_mcs, run_mcs },
};
static const struct kind *kind;

/* Subscribes the calling thread: the barrier gives it a number. */
static void ck_subscribe(struct state *s)
{
	const ck_barrier_combining_state_t fresh = { ~0u };

	s->combining = fresh;
	if (kind->run == run_dissemination)
		ck_barrier_dissemination_subscribe(dissemination, &s->dissemination);
	else if (kind->run == run_tournament)
		ck_barrier_tournament_subscribe(&tournament, &s->tournament);
	else if (kind->run == run_mcs)
		ck_barrier_mcs_subscribe(mcs, &s->mcs);
}

static void *thread_main(void *arg)
{
	struct state *s = arg;

	thread_loop_pin(&loop, s->me);
	thread_loop_run(&loop, s->me, kind->run, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id[THREAD_LOOP_MAX];
	int r;

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i];
	if (!kind) {
		fputs("usage: KIND THREADS ITERATIONS WARMUP LIMIT_MS\n", stderr);
		return 2;
	}
	r = thread_loop_parse(&loop, argv + 2);
	if (r)
		return r;
	kind->begin();
	for (uint32_t i = 0; i < loop.threads; i++) {
		state[i].me = i;
		ck_subscribe(&state[i]);
	}
	for (uint32_t i = 0; i < loop.threads; i++) {
		r = pthread_create(&id[i], NULL, thread_main, &state[i]);
		if (r) {
			fprintf(stderr, "thread %u: %s\n", i, strerror(r));
			return 1;
		}
	}
	for (uint32_t i = 0; i < loop.threads; i++)
		pthread_join(id[i], NULL);
	return thread_loop_print(&loop);
}
