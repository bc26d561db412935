/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that waits yields while others want its processor, and spins while nobody does; after
 * many late yields it tries another processor. A fake scheduler says how long each yield takes. */
#include "unit/unit.h"
#include "nbar_pace.h"

#define ROUNDS 10000u

/* Runs rounds of a wait in which each yield takes ns, and returns how many rounds yielded. */
static uint32_t yields_in(struct nbar_pace *p, uint32_t rounds, uint64_t ns)
{
	uint32_t yields = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		if (nbar_pace_spins(p))
			continue;
		yields++;
		nbar_pace_yielded(p, ns);
	}
	return yields;
}

/* Alone: a thread spins, and looks each 16 rounds, whatever a yield takes: 0.1 us without a look at
 * the scheduler, 1.2 us in a guest, 1.9 us on an old machine. */
static void alone_it_spins(void **state)
{
	const uint64_t prompt[] = { 0, 100, 300, 1200, 1900 };

	for (uint32_t i = 0; i < 5; i++) {
		struct nbar_pace p = { 0 };

		assert_in_range(yields_in(&p, ROUNDS, prompt[i]), 1, ROUNDS / 17 + 6);
		assert_true(nbar_pace_is_alone(&p));
	}
}

/* Another thread runs in each yield: the thread never spins. */
static void among_others_it_yields(void **state)
{
	const uint64_t late[] = { 2100, 9000, 4000000 };

	for (uint32_t i = 0; i < 3; i++) {
		struct nbar_pace p = { 0 };

		assert_int_equal(yields_in(&p, ROUNDS, late[i]), ROUNDS);
		assert_false(nbar_pace_is_alone(&p));
	}
}

/* On a fast machine, a switch to another thread and back takes less than a yield does elsewhere. */
static void late_is_relative(void **state)
{
	struct nbar_pace p = { 0 };

	yields_in(&p, ROUNDS, 350);
	assert_in_range(yields_in(&p, ROUNDS, 1200), ROUNDS - NBAR_PACE_BURST_MAX, ROUNDS);
	/* A clock with a coarse grain says 0 sometimes. */
	p = (struct nbar_pace){ 0 };
	yields_in(&p, 1, 0);
	assert_in_range(yields_in(&p, ROUNDS, 550), 1, ROUNDS / 17 + 6);
}

/* Others come and go: the thread follows within a few rounds. */
static void it_follows(void **state)
{
	struct nbar_pace p = { 0 };

	for (uint32_t i = 0; i < 100; i++) {
		yields_in(&p, 1000, 1200);
		assert_true(nbar_pace_is_alone(&p));
		assert_in_range(yields_in(&p, 1000, 9000), 1000 - NBAR_PACE_BURST_MAX, 1000);
		assert_false(nbar_pace_is_alone(&p));
		yields_in(&p, NBAR_PACE_PATIENCE_MAX, 1200);
		assert_true(nbar_pace_is_alone(&p));
	}
}

/* A scheduler does not change threads at each yield: even if it does so at one yield of eight, the
 * thread soon stops spinning. */
static void it_learns_that_some_are_prompt(void **state)
{
	struct nbar_pace p = { 0 };
	uint32_t spins = 0, yields = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (nbar_pace_spins(&p))
			spins++;
		else
			nbar_pace_yielded(&p, yields++ % 8 == 7 ? 100000 : 1200);
	}
	assert_in_range(spins, 1, ROUNDS / 100);
}

/* An interrupt makes one yield of a hundred late: the thread still spins nearly always. */
static void it_forgets_a_chance(void **state)
{
	struct nbar_pace p = { 0 };
	uint32_t yields = 0;

	for (uint32_t i = 0; i < ROUNDS; i++)
		if (!nbar_pace_spins(&p))
			nbar_pace_yielded(&p, yields++ % 100 == 99 ? 50000 : 1200);
	assert_in_range(yields, 1, ROUNDS / 10);
}

/* Counts the tries of n late yields, and how many of them ended with a return. */
static uint32_t tries_in(struct nbar_pace *p, uint32_t n, uint32_t *returns)
{
	uint32_t tries = 0;

	for (uint32_t i = 0; i < n; i++)
		if (nbar_pace_yielded(p, 5000 + i % 7)) {
			tries += !p->returns;
			*returns += p->returns;
		}
	return tries;
}

/* Yields are late everywhere: the thread returns at its next yield, and tries ever less often. */
static void it_returns_where_others_run_too(void **state)
{
	struct nbar_pace p = { 0 };
	uint32_t returns = 0;

	for (uint32_t step = 0; step <= NBAR_PACE_TRY_STEPS + 2; step++) {
		uint32_t power = step < NBAR_PACE_TRY_STEPS ? step : NBAR_PACE_TRY_STEPS;
		uint32_t n = NBAR_PACE_TRY_LATE << 2 * power, at = 0;

		while (tries_in(&p, 1, &returns) == 0)
			at++;
		assert_in_range(at, n - 1, 2 * n);
		assert_int_equal(returns, step);
	}
}

/* An idle processor: after a few prompt yields the thread stays there. */
static void it_stays_where_it_is_alone(void **state)
{
	for (uint32_t prompt = 0; prompt <= NBAR_PACE_PATIENCE_MIN; prompt++) {
		struct nbar_pace p = { 0 };
		uint32_t returns = 0;

		(void)state;
		while (tries_in(&p, 1, &returns) == 0)
			;
		for (uint32_t i = 0; i < prompt; i++)
			assert_false(nbar_pace_yielded(&p, 1000));
		assert_int_equal(nbar_pace_yielded(&p, 5000), prompt < NBAR_PACE_PATIENCE_MIN);
		assert_int_equal(p.returns, prompt < NBAR_PACE_PATIENCE_MIN);
	}
}

/* Prompt yields never move a thread. */
static void alone_it_stays(void **state)
{
	struct nbar_pace p = { 0 };

	for (uint32_t i = 0; i < 100 * ROUNDS; i++)
		if (!nbar_pace_spins(&p))
			assert_false(nbar_pace_yielded(&p, 1200));
}

/* Threads on processors; a yield is late if another thread of the processor runs. */
struct place {
	struct nbar_pace pace;
	uint32_t cpu, tries;
};

static void yields_there(struct place *all, uint32_t n, struct place *of, uint32_t cpus)
{
	uint32_t others = 0;
	uint64_t noise = of->pace.stays * 31 + (uint64_t)(of - all) * 17;

	for (uint32_t i = 0; i < n; i++)
		others += all + i != of && all[i].cpu == of->cpu;
	if (nbar_pace_spins(&of->pace) ||
	    !nbar_pace_yielded(&of->pace, 1200 + 1500 * others + noise % 97))
		return;
	of->tries += !of->pace.returns;
	if (of->pace.returns) {
		of->cpu = (uint32_t)of->pace.home;
	} else {
		of->pace.home = (int)of->cpu;
		of->cpu = (of->cpu + 1) % cpus;
	}
}

/* All threads begin on one processor of two. Two threads part, and stay apart; four times as many
 * as processors move seldom. */
static void threads_of_one_processor_part(void **state)
{
	for (uint32_t n = 2; n <= 8; n *= 4) {
		struct place all[8] = { 0 };
		uint32_t tries = 0;

		(void)state;
		for (uint32_t i = 0; i < 100 * NBAR_PACE_TRY_LATE; i++)
			for (uint32_t k = 0; k < n; k++)
				yields_there(all, n, &all[k], 2);
		for (uint32_t k = 0; k < n; k++)
			tries += all[k].tries;
		if (n == 2)
			assert_int_not_equal(all[0].cpu, all[1].cpu);
		assert_in_range(tries, 1, n == 2 ? 3 : 4 * n);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(alone_it_spins), UNIT(among_others_it_yields), UNIT(late_is_relative),
	  UNIT(it_follows), UNIT(it_learns_that_some_are_prompt), UNIT(it_forgets_a_chance),
	  UNIT(it_returns_where_others_run_too), UNIT(it_stays_where_it_is_alone),
	  UNIT(alone_it_stays), UNIT(threads_of_one_processor_part))
