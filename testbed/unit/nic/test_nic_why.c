/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_why.c - whole NICs over a simulated wire: which ranks a group waits for, and why.
 */
#include "unit/unit.h"
#include "nic_world.h"

#define ALL MEMBERS_MAX
#define SECOND (1000 * MS)
/* The retry budget here is a quarter of the usual budget, and the intervals of a long wait are a
 * quarter of the usual intervals. So a quarter of a second here stands for a second. */
#define SCALED_SECOND (SECOND / 4)

static const char *const kinds[] = { "pairwise", "dissemination:1", "dissemination:3",
				     "mcs",      "tournament",      "binomial",
				     "linear",   "tree:2",          "tree:1" };
#define NKIND (sizeof(kinds) / sizeof(kinds[0]))

static void post_others(struct world *w, uint32_t absent)
{
	for (uint32_t i = 0; i < w->size; i++)
		if (i != absent)
			post(w, i, 1);
}

/* True if a member names this rank for this reason, and no other rank. */
static bool names_only(const struct member *m, uint32_t rank, enum nbar_why kind)
{
	return m->nstragglers == 1 && m->straggler[0] == rank &&
	       NBAR_WHY_KIND(m->why[0]) == (uint32_t)kind;
}

/* Until then no member may name a rank that is not late. */
static void nobody_else_is_named(struct world *w, uint32_t late)
{
	for (uint32_t i = 0; i < w->size; i++)
		for (uint32_t k = 0; k < w->member[i].nstragglers; k++)
			assert_int_equal(w->member[i].straggler[k], late);
}

/* The figure of a second is simulated time: it depends on no machine. */
static void each_member_learns_why(const char *alg, uint32_t late, enum nbar_why kind)
{
	struct world *w = world_connected(ALL, alg);

	w->member[late].host = (uint8_t)kind;
	post_others(w, late);
	for (uint64_t end = w->now + SCALED_SECOND; w->now < end;) {
		pass_time(w, 5 * MS);
		nobody_else_is_named(w, late);
	}
	for (uint32_t i = 0; i < ALL; i++) {
		assert_int_equal(w->member[i].status, NBAR_STATUS_OK);
		if (i != late && !names_only(&w->member[i], late, kind))
			fail_msg("%s: rank %u does not name rank %u", alg, i, late);
	}
	post(w, late, 1);
	settle(w);
	for (uint32_t i = 0; i < ALL; i++) {
		assert_int_equal(w->member[i].completions, 1);
		assert_int_equal(w->member[i].nstragglers, 0);
	}
	world_close(w);
}

static void a_late_host_is_named_in_each_plan(void **state)
{
	for (uint32_t i = 0; i < NKIND; i++) {
		each_member_learns_why(kinds[i], 0, NBAR_WHY_HOST_LATE);
		each_member_learns_why(kinds[i], 13, NBAR_WHY_HOST_LATE);
		each_member_learns_why(kinds[i], ALL - 1, NBAR_WHY_HOST_LATE);
	}
}

static void a_stopped_and_an_ended_host_are_told_apart(void **state)
{
	for (uint32_t i = 0; i < NKIND; i++) {
		each_member_learns_why(kinds[i], 21, NBAR_WHY_HOST_STOPPED);
		each_member_learns_why(kinds[i], 6, NBAR_WHY_HOST_ENDED);
	}
}

/* A host stops while others know it as late: the new reason reaches them, too. */
static void a_reason_that_changes_is_followed(void **state)
{
	struct world *w = world_connected(ALL, "tree:1");

	post_others(w, ALL - 1);
	pass_time(w, SECOND);
	w->member[ALL - 1].host = NBAR_WHY_HOST_STOPPED;
	pass_time(w, SCALED_SECOND);
	for (uint32_t i = 0; i + 1 < ALL; i++)
		assert_true(names_only(&w->member[i], ALL - 1, NBAR_WHY_HOST_STOPPED));
	world_close(w);
}

static void the_age_is_that_of_the_first_question(void **state)
{
	struct world *w = world_connected(ALL, "tree:2");

	post_others(w, ALL - 1);
	pass_time(w, 30 * SECOND);
	for (uint32_t i = 0; i + 1 < ALL; i++) {
		uint64_t age = NBAR_WHY_NS(w->member[i].why[0]);

		assert_in_range(age, 29 * SECOND, 30 * SECOND);
	}
	world_close(w);
}

/* A host is late in three barriers, each time for another time: each age is that of its own
 * barrier, whatever the host did before. */
static void each_barrier_has_its_own_age(void **state)
{
	static const uint64_t late[] = { 20 * SECOND, 3 * SECOND, 9 * SECOND };
	struct world *w = world_connected(4, "tree:2");

	for (uint32_t e = 1; e <= 3; e++) {
		for (uint32_t i = 0; i < 3; i++)
			post(w, i, e);
		for (uint32_t look = 1; look <= 3; look++) {
			pass_time(w, late[e - 1] / 3);
			for (uint32_t i = 0; i < 3; i++) {
				uint64_t age = NBAR_WHY_NS(w->member[i].why[0]);

				assert_true(names_only(&w->member[i], 3, NBAR_WHY_HOST_LATE));
				assert_in_range(age, look * late[e - 1] / 3 - SECOND,
						look * late[e - 1] / 3);
			}
		}
		post(w, 3, e);
		settle(w);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(w->member[i].completions, e);
		pass_time(w, SECOND); /* between two barriers nobody is late */
	}
	world_close(w);
}

/* A host that computes for a day is late, and neither of another kind nor young. */
static void a_host_may_be_late_for_a_day(void **state)
{
	const uint64_t hour = 3600 * SECOND;
	struct world *w = world_connected(2, "pairwise");

	post_others(w, 1);
	pass_time(w, SECOND);
	w->now += 24 * hour;
	pass_time(w, 30 * SECOND);
	assert_true(names_only(&w->member[0], 1, NBAR_WHY_HOST_LATE));
	/* The largest age that a frame can carry is less than five hours. */
	assert_in_range(NBAR_WHY_NS(w->member[0].why[0]), 4 * hour, 25 * hour);
	world_close(w);
}

/* A NIC that does not answer is silent, not late; and members that wait for other members learn it,
 * too. */
static void a_silent_nic_is_not_a_late_host(void **state)
{
	struct world *w = world_connected(8, "tree:1");
	bool named = false;

	w->member[7].unplugged = true;
	post_others(w, 7);
	for (uint32_t i = 0; i < 100 && !w->member[6].status; i++) {
		pass_time(w, 5 * MS);
		for (uint32_t k = 0; k < 7; k++) {
			const struct member *m = &w->member[k];

			if (m->nstragglers == 0 || m->status)
				continue;
			assert_true(names_only(m, 7, NBAR_WHY_NIC_SILENT));
			named |= k == 0;
		}
	}
	assert_true(named);
	world_close(w);
}

/* The first answers name nobody: a member that only waits itself is not accused. */
static void a_member_that_is_only_asked_is_not_accused(void **state)
{
	struct world *w = world_connected(3, "tree:1");

	post(w, 0, 1);
	/* Rank 1 does not wait yet: its host is late, like that of rank 2. */
	pass_time(w, 3 * MS);
	assert_true(names_only(&w->member[0], 1, NBAR_WHY_HOST_LATE));
	post(w, 1, 1);
	pass_time(w, 100 * MS);
	assert_true(names_only(&w->member[0], 2, NBAR_WHY_HOST_LATE));
	assert_true(names_only(&w->member[1], 2, NBAR_WHY_HOST_LATE));
	world_close(w);
}

/* A NIC falls silent after some answers, long before the end of its window. */
static void a_nic_that_falls_silent_is_named_soon(void **state)
{
	struct world *w = world_connected(8, "tree:1");

	post_others(w, 7);
	pass_time(w, 300 * MS);
	assert_true(names_only(&w->member[0], 7, NBAR_WHY_HOST_LATE));
	w->member[7].unplugged = true;
	for (uint32_t i = 0; !names_only(&w->member[0], 7, NBAR_WHY_NIC_SILENT); i++) {
		require(i < 10000, "a silent NIC is not named");
		pass_time(w, MS / 10);
	}
	assert_int_equal(NBAR_WHY_NS(w->member[0].why[0]), 0);
	pass_time(w, SCALED_SECOND);
	for (uint32_t i = 0; i < 7; i++) {
		assert_true(names_only(&w->member[i], 7, NBAR_WHY_NIC_SILENT));
		/* Its silence is younger than its host is late. */
		assert_in_range(NBAR_WHY_NS(w->member[i].why[0]), SCALED_SECOND / 2, SCALED_SECOND);
	}
	w->member[7].unplugged = false;
	pass_time(w, 100 * MS);
	for (uint32_t i = 0; i < 7; i++) {
		assert_true(names_only(&w->member[i], 7, NBAR_WHY_HOST_LATE));
		assert_true(NBAR_WHY_NS(w->member[i].why[0]) > 300 * MS + SCALED_SECOND);
	}
	world_close(w);
}

/* A NIC falls silent in two barriers. In both it is named, and its silence is young. */
static void a_nic_may_fall_silent_again(void **state)
{
	struct world *w = world_connected(2, "pairwise");

	for (uint32_t e = 1; e <= 2; e++) {
		w->member[1].unplugged = true;
		post(w, 0, e);
		post(w, 1, e);
		for (uint32_t i = 0; !names_only(&w->member[0], 1, NBAR_WHY_NIC_SILENT); i++) {
			require(i < 10000, "a silent NIC is not named in barrier %u", e);
			pass_time(w, MS / 10);
		}
		assert_int_equal(NBAR_WHY_NS(w->member[0].why[0]), 0);
		w->member[1].unplugged = false;
		pass_time(w, 100 * MS);
		assert_int_equal(w->member[0].completions, e);
		assert_int_equal(w->member[0].nstragglers, 0);
	}
	world_close(w);
}

static void a_source_that_misses_some_questions_is_not_silent(void **state)
{
	struct world *w = world_connected(8, "tree:1");

	w->member[7].unplugged = true;
	post_others(w, 7);
	pass_time(w, 10 * MS);
	w->member[7].unplugged = false;
	for (uint32_t i = 0; i < 20; i++) {
		for (uint32_t k = 0; k < 7; k++)
			assert_true(w->member[k].nstragglers == 0 ||
				    names_only(&w->member[k], 7, NBAR_WHY_HOST_LATE));
		pass_time(w, 5 * MS);
	}
	assert_true(names_only(&w->member[0], 7, NBAR_WHY_HOST_LATE));
	world_close(w);
}

/* Two hosts are late, and one of them arrives. */
static void a_rank_that_arrives_is_forgotten(void **state)
{
	for (uint32_t kind = 0; kind < NKIND; kind++) {
		struct world *w = world_connected(ALL, kinds[kind]);
		const struct member *first = &w->member[5];

		for (uint32_t i = 0; i < ALL; i++)
			if (i != 5 && i != 9)
				post(w, i, 1);
		pass_time(w, SCALED_SECOND);
		post(w, 5, 1);
		for (uint32_t i = 0; i < 100; i++) {
			pass_time(w, 5 * MS);
			for (uint32_t k = 0; k < first->nstragglers; k++)
				assert_int_equal(first->straggler[k], 9);
		}
		for (uint32_t i = 0; i < ALL; i++)
			if (i != 9 && !names_only(&w->member[i], 9, NBAR_WHY_HOST_LATE))
				fail_msg("%s: rank %u does not name rank 9", kinds[kind], i);
		world_close(w);
	}
}

static void no_loss_and_nobody_late_sends_no_answer(void **state)
{
	struct world *w = world_connected(ALL, "dissemination:1");

	for (uint32_t e = 1; e <= 20; e++)
		post_all(w, e);
	assert_int_equal(counted(w, NBAR_COUNTER_pulls_sent), 0);
	assert_int_equal(counted(w, NBAR_COUNTER_laters_sent), 0);
	world_close(w);
}

/* One PULL brings two answers at most. */
static void answers_are_bounded_by_questions(void **state)
{
	struct world *w = world_connected(ALL, "tree:1");

	post_others(w, ALL - 1);
	for (uint32_t i = 0; i < 40; i++) {
		w->member[ALL - 1].host = i % 2 ? NBAR_WHY_HOST_STOPPED : NBAR_WHY_HOST_LATE;
		pass_time(w, 100 * MS);
	}
	assert_true(counted(w, NBAR_COUNTER_laters_sent) <=
		    2 * counted(w, NBAR_COUNTER_pulls_sent));
	world_close(w);
}

UNIT_MAIN(NULL, NULL, UNIT(a_late_host_is_named_in_each_plan),
	  UNIT(a_stopped_and_an_ended_host_are_told_apart), UNIT(a_reason_that_changes_is_followed),
	  UNIT(the_age_is_that_of_the_first_question), UNIT(each_barrier_has_its_own_age),
	  UNIT(a_host_may_be_late_for_a_day), UNIT(a_silent_nic_is_not_a_late_host),
	  UNIT(a_member_that_is_only_asked_is_not_accused),
	  UNIT(a_nic_that_falls_silent_is_named_soon), UNIT(a_nic_may_fall_silent_again),
	  UNIT(a_source_that_misses_some_questions_is_not_silent),
	  UNIT(a_rank_that_arrives_is_forgotten), UNIT(no_loss_and_nobody_late_sends_no_answer),
	  UNIT(answers_are_bounded_by_questions))
