/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_judge.c - barriers by NICs that are slower than those of the MPI: the verdict, from
 * durations; ranks that set up together when it pays, and give their NICs up together, with a clock
 * of the test.
 */
#include "ranks.h"

#define MORE 30u /* barriers after the set-up */

/* The NIC of this rank does not start barriers any more. */
static bool dead;
static double post_takes; /* s: the start of a barrier by a NIC, by the clock of the test */
int __real_nbar_post(struct nbar_group *g, uint32_t *ticket);
int __wrap_nbar_post(struct nbar_group *g, uint32_t *ticket)
{
	clock_advance(post_takes);
	return dead ? 0 : __real_nbar_post(g, ticket);
}

int __real_nbar_process_team_post(struct nbar_process_team *procs, struct nbar_group *g,
				  uint32_t me, uint32_t *ticket);
int __wrap_nbar_process_team_post(struct nbar_process_team *procs, struct nbar_group *g,
				  uint32_t me, uint32_t *ticket)
{
	clock_advance(post_takes);
	return dead ? 0 : __real_nbar_process_team_post(procs, g, me, ticket);
}

/* --- durations in, verdict out -----------------------------------------------------------------
 */

static bool slower(uint64_t slowest_mpi, uint64_t slowest_nbar, uint64_t fastest_mpi,
		   uint64_t fastest_nbar)
{
	const struct nbmpi_cost cost = { { slowest_mpi, slowest_nbar },
					 { fastest_mpi, fastest_nbar } };

	return nbmpi_judge_slower(&cost);
}

static void a_fifth_is_too_much(void **state)
{
	assert_false(slower(1000, 1000, 1000, 1000));
	assert_false(slower(1000, 1200, 1000, 1200));
	assert_true(slower(1000, 1201, 1000, 1201));
	assert_false(
		slower(1000, 1201, 1000, 1200)); /* the slowest may have waited for a late rank */
	assert_false(slower(1000, 1200, 1000, 1201));
	assert_false(slower(1000, 100, 1000, 100));
	assert_false(slower(0, 0, 0, 0));
	assert_true(slower(0, 1, 0, 1));
	/* No overflow: 2^61 ns. */
	assert_true(slower(UINT64_C(1) << 60, UINT64_C(1) << 61, 1, 2));
	assert_false(slower(UINT64_C(1) << 61, UINT64_C(1) << 60, 1, 2));
}

static void the_shortest_barriers_count(void **state)
{
	struct nbmpi_judge j = { .closed = false };

	nbmpi_judge_note(&j, NBMPI_WAY_MPI, 3);
	nbmpi_judge_note(&j, NBMPI_WAY_MPI, 2);
	nbmpi_judge_note(&j, NBMPI_WAY_MPI, 4);
	assert_true(nbmpi_judge_figure(&j, NBMPI_WAY_MPI, 2) == 3.0);
	assert_true(nbmpi_judge_figure(&j, NBMPI_WAY_MPI, 3) == 2.0);
	assert_true(nbmpi_judge_figure(&j, NBMPI_WAY_MPI, 1000) == 2.0);
	for (uint32_t i = 0; i < 3; i++)
		nbmpi_judge_note(&j, NBMPI_WAY_NBAR, 5 + i);
	assert_false(nbmpi_judge_is_due(&j)); /* too few by the MPI */
	nbmpi_judge_note(&j, NBMPI_WAY_MPI, 4);
	assert_false(nbmpi_judge_is_due(&j)); /* fewer by NICs than by the MPI */
	nbmpi_judge_note(&j, NBMPI_WAY_NBAR, 5);
	assert_true(nbmpi_judge_is_due(&j));
	nbmpi_judge_note(&j, NBMPI_WAY_NBAR, 5);
	assert_true(nbmpi_judge_is_due(&j));
	j.closed = true;
	assert_false(nbmpi_judge_is_due(&j));
}

/* Ranks arrive in random order: by pigeonhole, the least figure of all ranks contains no wait for a
 * late rank. */
static void waits_for_late_ranks_drop_out(void **state)
{
	for (uint32_t size = 2; size <= 20; size++) {
		double least = 1000;

		for (uint32_t rank = 0; rank < size; rank++) {
			struct nbmpi_judge j = { .closed = false };

			for (uint32_t i = 0; i < NBMPI_TIMED_MOST; i++)
				nbmpi_judge_note(&j, NBMPI_WAY_MPI,
						 i * 7919 % size == rank ? 1 + 0.1 * i
									 : 100 + rank);
			double figure = nbmpi_judge_figure(&j, NBMPI_WAY_MPI, size);
			least = figure < least ? figure : least;
		}
		require(least >= 1 && least < 2, "%u ranks: %f", size, least);
	}
}

static void more_are_not_needed(void **state)
{
	struct nbmpi_judge j = { .closed = false };

	for (uint32_t i = 0; i < 2 * NBMPI_TIMED_MOST; i++)
		nbmpi_judge_note(&j, NBMPI_WAY_NBAR, 100 - i);
	assert_int_equal(j.n[NBMPI_WAY_NBAR], NBMPI_TIMED_MOST);
	assert_true(nbmpi_judge_figure(&j, NBMPI_WAY_NBAR, 100) == 93.0);
	assert_true(nbmpi_judge_figure(&j, NBMPI_WAY_NBAR, 1) == 100.0);
}

/* The first barriers of a program take long: connections are made, and ranks begin late. */
static void the_latest_of_the_mpi_count(void **state)
{
	struct nbmpi_judge j = { .closed = false };

	for (uint32_t i = 0; i < 5 * NBMPI_TIMED_MOST; i++)
		nbmpi_judge_note(&j, NBMPI_WAY_MPI, 1000 - i);
	assert_int_equal(j.n[NBMPI_WAY_MPI], NBMPI_TIMED_MOST);
	assert_true(nbmpi_judge_figure(&j, NBMPI_WAY_MPI, 100) == 961.0);
	assert_true(nbmpi_judge_figure(&j, NBMPI_WAY_MPI, 1) == 968.0);
	for (uint32_t i = 0; i < NBMPI_TIMED_MOST; i++)
		nbmpi_judge_note(&j, NBMPI_WAY_NBAR, 1200);
	assert_true(nbmpi_judge_is_due(&j));
}

/* --- ranks -------------------------------------------------------------------------------------
 */

static double progress_takes; /* after the set-up */
static uint32_t timed;        /* blocking barriers before the set-up; the others are nonblocking */

/* Barriers before a set-up whose barriers by the MPI have taken long enough. */
static uint32_t before(void)
{
	bool asks = ranks->config.where == NBMPI_WHERE_AUTO && ranks->each < ranks->size;

	return asks ? NBMPI_ASK : NBMPI_PAYS;
}

/* Runs barriers; note 0: those by NICs or within the host, note 1: those that the MPI runs because
 * it is faster. */
static void barriers(void)
{
	struct nbmpi_counters n;
	struct nbmpi_request r[2];
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t i = timed; i < before(); i++)
		expect(nbmpi_ibarrier(c.nbar, &r[0]) == NBMPI_BY_MPI, "barrier %u", i);
	for (uint32_t i = 0; i < timed; i++)
		expect(ranks_barrier(&c) == NBMPI_BY_MPI, "barrier %u", i);
	expect(ranks_barrier(&c) == (post_takes > 0 ? NBMPI_BY_MPI : 0), "the set-up");
	ranks_progress_takes = progress_takes;
	if (post_takes > 0) {
		expect(nbmpi_comm_fallbacks(c.nbar) && !c.nbar->group, "nothing is left");
		return;
	}
	/* At the verdict, requests of the program are under way. */
	for (uint32_t i = 0; i < 2; i++)
		expect(nbmpi_ibarrier(c.nbar, &r[i]) == 0, "request %u", i);
	for (uint32_t i = 0; i < MORE; i++)
		expect(ranks_barrier(&c) >= 0, "barrier %u", i);
	for (uint32_t i = 0; i < 2; i++)
		expect(nbmpi_test(&r[i]) == 1, "request %u", i);
	nbmpi_counters_read(&n);
	ranks->rank[ranks_me].note[0] = n.by_nic + n.by_host;
	ranks->rank[ranks_me].note[1] = n.why[NBMPI_WHY_slow];
	nbmpi_comm_close(c.nbar);
}

/* Runs ranks that take this long for a barrier of the MPI, and for a call into it, which each
 * barrier by a NIC makes once at least: in s. */
static void judged(uint32_t size, uint32_t each, double mpi, double progress)
{
	ranks_begin(size, each);
	ranks->config.where = NBMPI_WHERE_AUTO;
	ranks->barrier_takes = mpi;
	progress_takes = progress;
	post_takes = 0;
	timed = NBMPI_TIMED_MOST;
}

static void require_offloaded(uint64_t by_nbar, uint64_t by_mpi)
{
	for (uint32_t r = 0; r < ranks->size; r++)
		require(ranks->rank[r].note[0] == by_nbar && ranks->rank[r].note[1] == by_mpi,
			"rank %u: %u and %u: %s", r, (unsigned)ranks->rank[r].note[0],
			(unsigned)ranks->rank[r].note[1], ranks->rank[r].said);
}

static void slow_nics_are_given_up(void **state)
{
	static const uint32_t shape[][2] = { { 2, 1 }, { 4, 1 }, { 4, 2 }, { 3, 3 } };

	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		judged(shape[i][0], shape[i][1], 1, 2);
		ranks_run(barriers);
		require_offloaded(2 + NBMPI_TIMED_MOST, MORE - NBMPI_TIMED_MOST);
		require(strstr(ranks->rank[0].said,
			       " ranks: fallback to MPI's barrier: the NICs were slower: "),
			"%s", ranks->rank[0].said);
		const char *by_mpi = strstr(ranks->rank[0].said, " us by nbar, ");
		double us = by_mpi ? strtod(by_mpi + strlen(" us by nbar, "), NULL) : 0;

		require(us >= 1e6 && us < 1.9e6 &&
				strstr(ranks->rank[0].said,
				       shape[i][0] == shape[i][1]
					       ? " us by the MPI: to keep those of nbar"
					       : " us by the MPI: give each daemon a processor"),
			"%s", ranks->rank[0].said);
		require(!strstr(ranks->rank[1].said, "faster:"), "%s", ranks->rank[1].said);
	}
}

/* The barriers within the set-up show it already. */
static void slow_nics_are_not_begun_with(void **state)
{
	for (uint32_t each = 1; each <= 2; each++) {
		judged(4, each, 0.01, 0);
		post_takes = 0.1;
		ranks_run(barriers);
		require(strstr(ranks->rank[0].said, "the NICs were slower: 1"), "%s",
			ranks->rank[0].said);
	}
}

static void fast_nics_are_kept(void **state)
{
	judged(4, 2, 1000, 0.001);
	ranks_run(barriers);
	require_offloaded(2 + MORE, 0);
	require(!strstr(ranks->rank[0].said, "faster"), "%s", ranks->rank[0].said);
}

static void a_setting_overrules(void **state)
{
	judged(2, 1, 1, 2);
	ranks->config.where = NBMPI_WHERE_NIC;
	ranks_run(barriers);
	require_offloaded(2 + MORE, 0);
}

/* As many barriers by NICs are timed as by the MPI; four at least. */
static void as_many_are_timed(void **state)
{
	judged(2, 1, 1, 2);
	timed = NBMPI_TIMED_LEAST;
	ranks_run(barriers);
	require_offloaded(2 + NBMPI_TIMED_LEAST, MORE - NBMPI_TIMED_LEAST);
	judged(2, 1, 1, 2);
	timed = NBMPI_TIMED_LEAST - 1;
	ranks_run(barriers);
	require_offloaded(2 + MORE, 0);
}

/* The MPI fails in one of the calls of the vote. */
static uint32_t failing;

static void fails_in_the_vote(void)
{
	struct ranks_comm c;
	int rc = 0;

	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t i = 0; i < NBMPI_ASK; i++)
		expect(ranks_barrier(&c) == NBMPI_BY_MPI, "barrier %u", i);
	expect(ranks_barrier(&c) == 0, "the set-up");
	for (uint32_t i = 0; i < NBMPI_TIMED_MOST - 1; i++)
		expect(ranks_barrier(&c) == 0, "barrier %u", i);
	if (ranks_me == 0)
		ranks_mpi_fails(failing);
	rc = nbmpi_barrier(c.nbar);
	ranks->rank[ranks_me].note[0] = (uint64_t)(rc == 0);
	expect(rc == 0 || (rc == NBMPI_MPI_FAILED && nbmpi_comm_code(c.nbar) == MPI_BROKEN), "%d",
	       rc);
	nbmpi_comm_close(c.nbar);
}

static void the_mpi_may_fail(void **state)
{
	for (failing = 1; failing <= 2; failing++) {
		judged(2, 1, 1, 2);
		ranks_run(fails_in_the_vote);
		require(ranks->rank[0].note[0] == 0, "call %u of the vote", failing);
	}
}

/* --- when a set-up pays -------------------------------------------------------------------------
 */

static uint64_t others_least; /* of the other ranks' votes */
static uint32_t sums;

static int sum_with_others(void *mpi, struct nbmpi_sum *sum)
{
	sums++;
	if (others_least < sum->least)
		sum->least = others_least;
	return 0;
}

static bool pays(struct nbmpi_comm *c, uint32_t calls, double spent, uint64_t others)
{
	bool out = true;

	c->calls = calls;
	c->judge.n[NBMPI_WAY_MPI] = 0;
	for (uint32_t i = 0; i < NBMPI_TIMED_MOST; i++) /* some are interrupted */
		nbmpi_judge_note(&c->judge, NBMPI_WAY_MPI, i % 3 ? spent / calls : 1000);
	others_least = others;
	assert_int_equal(nbmpi_judge_pays(c, &out), 0);
	return out;
}

static void all_ranks_must_have_spent_enough(void **state)
{
	static const struct nbmpi_ops ops = { .sum = sum_with_others };
	const struct nbmpi_start start = { .ops = &ops };
	const uint64_t most = NBMPI_VOTE_YES | NBMPI_PAYS_NS;
	struct nbmpi_comm c = { .size = 2 };

	nbmpi_start(&start);
	assert_false(pays(&c, NBMPI_PAYS + 1, 1000, UINT64_MAX));
	assert_int_equal(c.asks, NBMPI_ASK);
	assert_int_equal(sums, 0); /* too few barriers for a message */
	assert_false(pays(&c, NBMPI_ASK - 1, 1000, UINT64_MAX));
	assert_int_equal(sums, 0);
	assert_false(pays(&c, NBMPI_ASK, 0.0499, UINT64_MAX));
	assert_int_equal(c.asks, 2 * NBMPI_ASK);
	assert_true(pays(&c, NBMPI_ASK, 0.0501, UINT64_MAX));
	assert_true(pays(&c, 1000, 1e9, most));
	assert_false(pays(&c, 1000, 1e9, most - 1));
	assert_int_equal(c.asks, 2000);
	/* A rank that cannot take part: the set-up says why. */
	assert_true(pays(&c, 1000, 0, nbmpi_vote_no(NBMPI_WHY_terms, 1)));
}

/* Runs barriers until the set-up; note 0: their number. */
static void set_up_in_time(void)
{
	struct ranks_comm c;
	uint32_t n = 0;

	yield_takes = 1; /* the clock of the test alone */
	ranks_open(&c, 0, 0, ranks->size);
	for (; c.nbar->path == NBMPI_OPENING && n < 1000; n++) {
		/* Rank 1 waits for the others in each barrier. */
		for (uint32_t i = 0; ranks_me == 1 && i < c.nbar->judge.n[NBMPI_WAY_MPI]; i++)
			c.nbar->judge.took[NBMPI_WAY_MPI][i] = 1;
		ranks_barrier(&c);
	}
	ranks->rank[ranks_me].note[0] = n;
	nbmpi_comm_close(c.nbar);
}

static void a_set_up_waits_until_it_pays(void **state)
{
	static const struct {
		uint32_t each;
		enum nbmpi_where where;
		double takes;
		uint32_t calls;
	} of[] = {
		{ 1, NBMPI_WHERE_AUTO, 0.0015, 67 }, /* asked at 33: 49.5 ms */
		{ 1, NBMPI_WHERE_AUTO, 0.0016, 33 },
		{ 2, NBMPI_WHERE_AUTO, 0.01, 33 },
		{ 1, NBMPI_WHERE_NIC, 0, 9 },
		{ 4, NBMPI_WHERE_AUTO, 0, 9 }, /* without NICs */
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		judged(4, of[i].each, of[i].takes, 0);
		ranks->config.where = of[i].where;
		ranks_run(set_up_in_time);
		for (uint32_t r = 0; r < 4; r++)
			require(ranks->rank[r].note[0] == of[i].calls, "case %zu: %u", i,
				(unsigned)ranks->rank[r].note[0]);
	}
}

static void fails_when_it_asks(void)
{
	struct ranks_comm c;
	int rc;

	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t i = 0; i < NBMPI_ASK; i++)
		expect(ranks_barrier(&c) == NBMPI_BY_MPI, "barrier %u", i);
	if (ranks_me == 0)
		ranks_mpi_fails(1);
	rc = nbmpi_barrier(c.nbar);
	expect(rc == NBMPI_MPI_FAILED && nbmpi_comm_code(c.nbar) == MPI_BROKEN, "%d", rc);
	nbmpi_comm_close(c.nbar);
}

static void the_mpi_may_fail_when_they_ask(void **state)
{
	judged(2, 1, 0, 0);
	ranks_run(fails_when_it_asks);
}

/* --- the trial in the set-up --------------------------------------------------------------------
 */

/* Nobody takes rank 1's frames or posts: as if its NIC had died after it was connected. */
static void tries_in_vain(void)
{
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t i = 0; i < NBMPI_PAYS; i++)
		expect(ranks_barrier(&c) == NBMPI_BY_MPI, "barrier %u", i);
	dead = ranks_me == 1;
	ranks_progress_takes = 1; /* 8 s pass soon */
	expect(ranks_barrier(&c) == NBMPI_BY_MPI, "the set-up");
	expect(nbmpi_comm_fallbacks(c.nbar) && !c.nbar->group, "nothing is left");
	expect(ranks_barrier(&c) == NBMPI_BY_MPI, "the next barrier");
	nbmpi_comm_close(c.nbar);
}

static void a_nic_dies_in_the_set_up(void **state)
{
	for (uint32_t each = 1; each <= 2; each++) {
		ranks_begin(2 * each, each);
		ranks_run(tries_in_vain);
		/* The rank that knows the cause says it. */
		require(strstr(ranks->rank[1].said, "rank 1: the NICs could not be connected: ") ||
				strstr(ranks->rank[0].said, "a first barrier was not complete "
							    "after 8 s"),
			"%s%s", ranks->rank[0].said, ranks->rank[1].said);
	}
}

/* All ranks stand still for longer than a trial may take, as with their machine. */
static void stands_still(void)
{
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t i = 0; i < NBMPI_PAYS; i++)
		expect(ranks_barrier(&c) == NBMPI_BY_MPI, "barrier %u", i);
	post_takes = 60;
	expect(ranks_barrier(&c) == 0, "the set-up");
	nbmpi_comm_close(c.nbar);
}

static void a_pause_of_the_machine_is_no_failure(void **state)
{
	for (uint32_t each = 1; each <= 2; each++) {
		ranks_begin(2 * each, each);
		ranks_run(stands_still);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_fifth_is_too_much),
		UNIT(the_shortest_barriers_count),
		UNIT(waits_for_late_ranks_drop_out),
		UNIT(more_are_not_needed),
		UNIT(the_latest_of_the_mpi_count),
		UNIT(slow_nics_are_given_up),
		UNIT(slow_nics_are_not_begun_with),
		UNIT(fast_nics_are_kept),
		UNIT(a_setting_overrules),
		UNIT(as_many_are_timed),
		UNIT(the_mpi_may_fail),
		UNIT(all_ranks_must_have_spent_enough),
		UNIT(a_set_up_waits_until_it_pays),
		UNIT(the_mpi_may_fail_when_they_ask),
		UNIT(a_nic_dies_in_the_set_up),
		UNIT(a_pause_of_the_machine_is_no_failure),
	};

	return run_with_ranks(4, tests);
}
