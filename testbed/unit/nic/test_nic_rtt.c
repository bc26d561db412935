/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_rtt.c - timers that follow the measured round trip after a loss, and only then: the cost
 * of a lost token, and what counts as a round trip. Time is simulated.
 */
#include "unit/nic/rtt_pair.h"
#include "unit/unit.h"

/* The first lost token costs pull_ns, later ones some three round trips. */
static void test_a_lost_token_costs_three_round_trips(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	uint64_t clean = rtt_barrier(w, 0), lost;

	rtt_lose_tokens = 1;
	lost = rtt_barrier(w, 0);
	assert_in_range(lost, NBNIC_PULL_NS_DEFAULT, NBNIC_PULL_NS_DEFAULT * 3 / 2 + 2 * RTT);
	rtt_lose_tokens = 1;
	lost = rtt_barrier(w, 0);
	assert_in_range(lost - clean, RTT, 4 * RTT); /* one sample: the deviation is half of it */
	rtt_teach(w, 20);
	for (uint32_t i = 0; i < 10; i++) {
		rtt_lose_tokens = 1;
		lost = rtt_barrier(w, 0);
		assert_in_range(lost - clean, RTT, 3 * RTT);
	}
	net_free(w);
}

/* A barrier that loses no frame sends no extra frame, before and after other barriers with losses.
 */
static void test_not_one_extra_frame(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);

	for (uint32_t i = 0; i < 200; i++)
		rtt_barrier(w, i % 2 ? 0 : NBNIC_PULL_NS_DEFAULT - 3 * DELAY);
	assert_int_equal(rtt_frames(w), 2 * 200);
	assert_int_equal(g->first, NBNIC_PULL_NS_DEFAULT);
	rtt_teach(w, 20);
	uint64_t before = rtt_frames(w);

	for (uint32_t i = 0; i < 200; i++)
		rtt_barrier(w, 0);
	assert_int_equal(rtt_frames(w) - before, 2 * 200);
	net_free(w);
}

/* The token was on its way when the PULL for it went out. The token arrives before the answer, and
 * is not taken for the answer. */
static void test_a_token_that_was_on_its_way(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	uint64_t first, rtt;

	rtt_teach(w, 20);
	first = g->first;
	rtt = g->rtt.smooth;
	rtt_barrier(w, first - DELAY / 2);
	assert_int_equal(rtt_counted(w, NBAR_COUNTER_laters_sent), 0);
	assert_int_equal(g->first, first + first / 16);
	assert_int_equal(g->rtt.smooth, rtt);
	net_free(w);
}

/* After a lost PULL, the next PULL follows after the same interval, not after twice the interval.
 */
static void test_a_lost_pull_is_repeated_soon(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);

	rtt_teach(w, 20);
	rtt_lose_tokens = 1;
	rtt_lose_pulls = 4;
	assert_in_range(rtt_barrier(w, 0), (5 * 2 + 1) * RTT, (5 * 2 + 4) * RTT);
	assert_int_equal(rtt_lose_pulls, 0);
	net_free(w);
}

/* An answer repeats the time of its PULL: the round trip is measured right after a second PULL. */
static void test_the_answer_to_a_second_pull(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);

	rtt_lose_tokens = rtt_lose_pulls = 1;
	rtt_barrier(w, 0);
	assert_in_range(g->rtt.smooth, RTT - 128, RTT + 2 * NET_STEP);
	assert_in_range(g->first, 3 * g->rtt.smooth - 2, 3 * g->rtt.smooth);
	net_free(w);
}

/* If round trips vary, the interval has four deviations more. If they are long, pull_ns is the
 * limit. */
static void test_the_interval_has_limits(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);

	rtt_teach(w, 20);
	w->delay = 4 * DELAY;
	for (uint32_t i = 0; i < 10; i++)
		rtt_teach(w, 1);
	assert_in_range(g->rtt.smooth + 4 * g->rtt.off, 5 * RTT, 20 * RTT);
	assert_true(g->first > 4 * RTT && g->first <= NBNIC_PULL_NS_DEFAULT);
	w->delay = 0;
	for (uint32_t i = 0; i < 60; i++) {
		rtt_teach(w, 1);
		assert_in_range(g->first, NBNIC_PULL_NS_LEAST, NBNIC_PULL_NS_DEFAULT);
	}
	assert_in_range(g->first, NBNIC_PULL_NS_LEAST, 2 * NBNIC_PULL_NS_LEAST);
	net_free(w);
}

/* An answer that comes before the step has sent a PULL does not count. */
static void test_an_answer_without_a_question(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	const struct nbnic_addr from = { { 1 } };
	uint64_t rtt;

	rtt_teach(w, 20);
	rtt = g->rtt.smooth;
	net_post(w, 0, 0, 0, 21);
	assert_true(w->now < w->n[0].nic.doubt_end);
	const struct nbfw_token t = { .type = NBFW_TOKEN,
				      .handle = g->handle,
				      .cookie = g->cookie,
				      .src = 1,
				      .epoch = 21,
				      .info = 1,
				      .sender = g->peer[0].handle };

	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].host[0][0].completions, 21);
	assert_int_equal(g->rtt.smooth, rtt);
	net_free(w);
}

/* An answer counts only if it comes from the source of a slot that this step lacks. */
static void test_other_answers_do_not_count(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	const struct nbnic_addr from = { { 1 } };

	rtt_teach(w, 20);
	net_post(w, 0, 0, 0, 21);
	net_pass(w, g->first + 2 * NET_STEP);
	assert_true(g->rtt.asked);
	assert_int_equal(g->state->tries, 0);
	const struct nbfw_token right = { .type = NBFW_TOKEN,
					  .handle = g->handle,
					  .cookie = g->cookie,
					  .src = 1,
					  .epoch = 21,
					  .info = 1,
					  .sender = g->peer[0].handle };
	struct nbfw_token wrong[] = { right, right, right, right };
	uint64_t rtt = g->rtt.smooth, first = g->first;

	wrong[0].src = 0;
	wrong[1].epoch = 20;
	wrong[2].slot = 1;
	wrong[3].type = NBFW_ABORT; /* without a cause: refused */
	for (uint32_t i = 0; i < 4; i++)
		nbnic_receive(&w->n[0].nic, &from, &wrong[i], w->now);
	assert_int_equal(g->rtt.smooth, rtt);
	assert_int_equal(g->first, first);
	net_free(w);
}

/* The sweeps follow a measured round trip at once. If it is long, they stay as they are. A round
 * trip is never 0, which means that none was measured, and at most four times pull_ns. */
static void test_sweeps_follow_at_once(void **state)
{
	static const struct {
		uint64_t rtt; /* a multiple of 128 */
		uint64_t smooth, every, first, sweep;
	} one[] = {
		{ 0, 1, NBNIC_PULL_NS_LEAST, NBNIC_PULL_NS_LEAST, NBNIC_PULL_NS_LEAST / 8 },
		{ 128000, 128001, 384001, 384001, 384001 / 8 },
		{ 512000, 512001, 1536001, NBNIC_PULL_NS_DEFAULT, NBNIC_PULL_NS_DEFAULT / 2 },
		{ NET_SECOND, 4 * NET_MS, 12 * NET_MS, NBNIC_PULL_NS_DEFAULT,
		  NBNIC_PULL_NS_DEFAULT / 2 },
	};

	for (uint32_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
		struct nbnic_group *g;
		struct net *w = rtt_begin(&g);
		const struct nbnic *nic = &w->n[0].nic;
		const struct nbnic_addr from = { { 1 } };

		net_post(w, 0, 0, 0, 1);
		for (uint32_t k = 0; !g->rtt.asked; k++) {
			require(k < 1000, "no PULL");
			net_round(w);
		}
		const struct nbfw_token t = { .type = NBFW_TOKEN,
					      .handle = g->handle,
					      .cookie = g->cookie,
					      .src = 1,
					      .epoch = 1,
					      .info = (uint32_t)(w->now >> NBNIC_STAMP_SHIFT) | 1,
					      .sender = g->peer[0].handle };

		w->now += one[i].rtt;
		w->n[0].nic.doubt_end = w->now + 1; /* else the NIC does not look at this token */
		nbnic_receive(&w->n[0].nic, &from, &t, w->now);
		assert_int_equal(g->rtt.smooth, one[i].smooth);
		assert_int_equal(g->rtt.every, one[i].every);
		assert_int_equal(g->first, one[i].first);
		assert_int_equal(nic->sweep_ns, one[i].sweep);
		if (one[i].first < NBNIC_PULL_NS_DEFAULT)
			assert_true(nic->sweep_next <= w->now + g->first / 2);
		net_free(w);
	}
}

/* Round trips longer than pull_ns are measured, too, up to four times pull_ns: then the early PULLs
 * go out between the TIMEOUTs, whose intervals grow. */
static void test_round_trips_longer_than_pull_ns(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);

	w->delay = 9 * NET_MS / 10;
	rtt_lose_tokens = 1;
	rtt_barrier(w, 0);
	net_pass(w, 10 * NET_MS);
	assert_in_range(g->rtt.smooth, 2 * w->delay - 128, 2 * w->delay + 2 * NET_STEP);
	assert_int_equal(g->first, NBNIC_PULL_NS_DEFAULT);
	rtt_teach(w, 40);
	rtt_lose_tokens = 1;
	rtt_lose_pulls = 20;
	/* The TIMEOUTs alone would send the 21st PULL after a second. */
	assert_in_range(rtt_barrier(w, 0), 20 * 2 * w->delay, NET_SECOND / 5);
	assert_int_equal(rtt_lose_pulls, 0);
	net_free(w);
}

/* A NIC that stands still for a while, and answers then, is no long round trip. */
static void test_a_pause_of_the_peer(void **state)
{
	for (uint64_t pause = 5 * NET_MS; pause <= 320 * NET_MS; pause *= 4) {
		struct nbnic_group *g;
		struct net *w = rtt_begin(&g);

		rtt_teach(w, 20);
		rtt_lose_tokens = 1;
		net_post(w, 0, 0, 0, 21);
		net_post(w, 1, 0, 0, 21);
		net_pass(w, NET_STEP);
		w->delay = pause; /* of the first PULL; the others wait behind it */
		net_pass(w, g->first + 2 * NET_STEP);
		assert_true(g->rtt.asked);
		w->delay = DELAY;
		net_pass(w, pause + 4 * RTT);
		assert_int_equal(w->n[0].host[0][0].completions, 21);
		for (uint32_t i = 0; i < 10; i++) {
			rtt_lose_tokens = 1;
			assert_in_range(rtt_barrier(w, 0), 3 * RTT, 7 * RTT);
		}
		net_free(w);
	}
}

/* The time in a PULL is never 0, and a round trip is measured over its wrap. */
static void test_the_time_of_a_pull_wraps(void **state)
{
	const uint64_t wrap = UINT64_C(1) << (32 + NBNIC_STAMP_SHIFT);

	for (uint32_t i = 0; i < 2; i++) {
		struct nbnic_group *g;
		struct net *w = rtt_begin(&g);

		rtt_teach(w, 20);
		/* The PULL goes out just before the wrap, or just at it. */
		net_pass(w, wrap - RTT / 2 - g->first - w->now);
		rtt_lose_tokens = 1;
		if (i == 0) {
			rtt_barrier(w, 0);
			assert_true(w->now > wrap);
		} else {
			net_post(w, 0, 0, 0, 21);
			net_post(w, 1, 0, 0, 21);
			net_round(w);
			assert_true(g->deadline < wrap);
			w->now = wrap;
			net_round(w);
			assert_true(g->rtt.asked); /* at the time 0 */
			net_pass(w, 4 * RTT);
			assert_int_equal(w->n[0].host[0][0].completions, 21);
		}
		assert_false(g->rtt.slowed); /* the token counts as an answer */
		assert_in_range(g->rtt.smooth, RTT - 128, RTT + 2 * NET_STEP);
		assert_int_equal(rtt_counted(w, NBAR_COUNTER_pulls_sent), 21);
		net_free(w);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_a_lost_token_costs_three_round_trips),
	  UNIT(test_not_one_extra_frame), UNIT(test_a_token_that_was_on_its_way),
	  UNIT(test_a_lost_pull_is_repeated_soon), UNIT(test_the_answer_to_a_second_pull),
	  UNIT(test_the_interval_has_limits), UNIT(test_an_answer_without_a_question),
	  UNIT(test_other_answers_do_not_count), UNIT(test_sweeps_follow_at_once),
	  UNIT(test_round_trips_longer_than_pull_ns), UNIT(test_a_pause_of_the_peer),
	  UNIT(test_the_time_of_a_pull_wraps))
