/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that waits yields while others want its processor, and spins while nobody does. A fake
 * scheduler says how long each yield takes. */
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
	for (uint32_t i = 0; i < ROUNDS; i++)
		if (!nbar_pace_spins(&p))
			nbar_pace_yielded(&p, yields++ % 100 == 99 ? 50000 : 1200);
	assert_in_range(yields, 1, ROUNDS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_it_spins),
		cmocka_unit_test(among_others_it_yields),
		cmocka_unit_test(late_is_relative),
		cmocka_unit_test(it_follows),
		cmocka_unit_test(it_learns_that_some_are_prompt),
		cmocka_unit_test(it_forgets_a_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
