/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_rtt_late.c - early PULLs while a host is late or a NIC is silent: their number, what
 * they cost, and the retry budget, which stays. Time is simulated.
 */
#include "unit/nic/rtt_pair.h"
#include "unit/unit.h"

/* PULLs that a late host did not need make the interval as long as it was. */
static void test_needless_pulls_end(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	uint64_t before;

	rtt_teach(w, 20);
	assert_in_range(g->first, 2 * RTT - 256, 5 * RTT / 2);
	before = rtt_pulls(w);
	for (uint64_t shorter = g->first; g->first < NBNIC_PULL_NS_DEFAULT; shorter = g->first) {
		rtt_barrier(w, g->first + RTT);
		assert_true(g->first == 2 * shorter || g->first == NBNIC_PULL_NS_DEFAULT);
	}
	assert_in_range(rtt_pulls(w) - before, 1, 3);
	before = rtt_frames(w);
	for (uint32_t i = 0; i < 50; i++)
		rtt_barrier(w, NBNIC_PULL_NS_DEFAULT - 3 * DELAY);
	assert_int_equal(rtt_frames(w) - before, 2 * 50);
	net_free(w);
}

static uint64_t pulls_for_a_late_host(bool after_losses, uint64_t late)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	uint64_t before;

	if (after_losses)
		rtt_teach(w, 20);
	before = rtt_pulls(w);
	rtt_barrier(w, late);
	before = rtt_pulls(w) - before;
	net_free(w);
	return before;
}

/* The longer a host is late, the fewer early PULLs ask for it: after an eighth of the retry budget
 * there are none. Their number is that of intervals that grow by an eighth, between the round trip
 * and that time. */
static void test_a_late_host_gets_few_pulls(void **state)
{
	uint64_t usual = pulls_for_a_late_host(false, 5 * NET_SECOND);
	uint64_t most = pulls_for_a_late_host(true, 5 * NET_SECOND), n = 0;

	for (double ns = 8.0 * 2 * RTT; ns < (double)NET_BUDGET / 8; ns *= 9.0 / 8)
		n++;
	assert_in_range(most, usual + n / 2, usual + n + 8);
	assert_int_equal(most - usual, pulls_for_a_late_host(true, 2 * NET_SECOND) -
					       pulls_for_a_late_host(false, 2 * NET_SECOND));
}

/* If the token of a late host is lost, the barrier takes an eighth longer at most, and a few round
 * trips. */
static void test_a_token_lost_after_a_long_wait(void **state)
{
	for (uint64_t late = 2 * NET_MS; late < NET_SECOND; late *= 3) {
		struct nbnic_group *g;
		struct net *w = rtt_begin(&g);

		rtt_teach(w, 20);
		rtt_lose_tokens = 1;
		assert_in_range(rtt_barrier(w, late), late, late + late / 8 + 4 * RTT);
		assert_int_equal(rtt_lose_tokens, 0);
		net_free(w);
	}
}

/* While a source does not answer, the intervals are those of the round trip, then an eighth of the
 * time that the step has waited. */
static void test_intervals_grow_with_the_wait(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	uint64_t start, last = 0, before;
	uint32_t n = 0;

	rtt_teach(w, 20);
	w->n[1].dead = true;
	start = w->now;
	before = rtt_pulls(w);
	net_post(w, 0, 0, 0, 21);
	for (; w->now < start + NET_SECOND / 4; net_round(w)) {
		uint64_t waited = last - start, gap = w->now - last;
		uint64_t most = waited / 8 > g->rtt.every ? waited / 8 : g->rtt.every;

		if (rtt_pulls(w) == before)
			continue;
		/* A TIMEOUT may come sooner. */
		if (last > 0)
			assert_true(gap <= most + g->first / 8 + 2 * NET_STEP);
		if (last > 0 && !g->rtt.is_timeout)
			assert_true(gap + 2 * NET_STEP >= most);
		n += !g->rtt.is_timeout;
		before = rtt_pulls(w);
		last = w->now;
	}
	assert_in_range(n, 30, 60);
	net_free(w);
}

static uint64_t silent_after(bool after_losses, uint64_t *asked)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	const struct net_host *h = &w->n[0].host[0][0];
	uint64_t start, took;

	if (after_losses)
		rtt_teach(w, 20);
	*asked = rtt_pulls(w);
	w->n[1].dead = true;
	start = w->now;
	net_post(w, 0, 0, 0, h->completions + 1);
	while (h->status == NBAR_STATUS_OK) {
		took = w->now - start;
		require(took < 2 * NET_BUDGET, "the silent NIC is not given up");
		assert_int_equal(g->nstragglers > 0 && took < 100 * NET_MS, false);
		net_pass(w, NET_MS);
	}
	assert_int_equal(h->status, NBAR_STATUS_SILENT);
	*asked = rtt_pulls(w) - *asked;
	took = w->now - start;
	net_free(w);
	return took;
}

/* A NIC that falls silent is given up after the same time as before any loss, and is not called
 * silent sooner. Early PULLs end after an eighth of the budget. */
static void test_the_budget_stays(void **state)
{
	uint64_t asked, most = NBFW_WINDOW - 1;

	for (uint32_t i = 0; i < 2; i++) {
		assert_in_range(silent_after(i > 0, &asked), NET_BUDGET, NET_BUDGET * 9 / 8);
		assert_in_range(asked, NBFW_WINDOW - 1, most);
		most += 8 + 50; /* 8 intervals of 2 RTT; (9 / 8)^50 > NET_BUDGET / 8 / (16 RTT) */
	}
}

/* A LATER without a reason, or with an unknown one, or that names the member that asked, makes the
 * interval a sixteenth longer. If its sender names another member with a reason, the interval grows
 * by a half: that member may have arrived since. If a NIC calls its own host late, the interval
 * doubles. In one step there is one growth for a reason, and one for the other cases. */
static void test_what_a_later_changes(void **state)
{
	static const uint32_t kind[] = { NBAR_WHY_UNKNOWN, NBAR_WHY_END, NBAR_WHY_HOST_LATE };

	/* The engine would refuse rank 2 of a group of two, but it comes after this file. */
	for (uint32_t named = 0; named < 3; named++) {
		struct nbnic_group *g;
		struct net *w = rtt_begin(&g);
		const struct nbnic_addr from = { { 1 } };
		uint64_t first;

		rtt_teach(w, 20);
		first = g->first;
		net_post(w, 0, 0, 0, 21);
		net_pass(w, first + 2 * NET_STEP);
		assert_true(g->rtt.asked);
		struct nbfw_token later = { .type = NBFW_LATER,
					    .handle = g->handle,
					    .cookie = g->cookie,
					    .src = 1,
					    .epoch = 21,
					    .arg = named,
					    .sender = g->peer[0].handle };

		for (uint32_t i = 0; i < 4; i++) {
			if (i == 2)
				first += first / 16;
			later.info = kind[i < 2 ? i : 2] << 29;
			nbnic_receive(&w->n[0].nic, &from, &later, w->now);
			if (i < 2)
				assert_int_equal(g->first, first + first / 16);
			else
				assert_int_equal(g->first,
						 first + (named == 2 ? first / 2 : named * first));
		}
		net_free(w);
	}
}

/* A group of three, linear: rank 0 waits for the others, and rank 1 for rank 0. If rank 2 always
 * comes late, both stop sending PULLs after a few barriers. */
static void test_one_host_is_always_late(void **state)
{
	const uint64_t late = 8 * NBNIC_PULL_NS_DEFAULT / 10;
	struct net *w = net_new();
	struct nbnic_group *g[3];
	struct nbar_endpoint endpoint[3];
	uint32_t last = 0;

	w->delay = DELAY;
	for (uint32_t rank = 0; rank < 3; rank++) {
		g[rank] = net_open(w, rank, 0, 0, "linear", 3, rank, NULL);
		nbnic_group_endpoint(&w->n[rank].nic, g[rank], &endpoint[rank]);
	}
	for (uint32_t rank = 0; rank < 3; rank++)
		net_connect(w, rank, g[rank], endpoint);
	for (uint32_t rank = 0; rank < 2; rank++)
		g[rank]->first = g[rank]->rtt.every = 2 * RTT;
	for (uint32_t epoch = 1; epoch <= 60; epoch++) {
		uint64_t before = rtt_counted(w, NBAR_COUNTER_pulls_sent);

		net_post(w, 0, 0, 0, epoch);
		net_post(w, 1, 0, 0, epoch);
		net_pass(w, late);
		net_post(w, 2, 0, 0, epoch);
		net_pass(w, 4 * RTT);
		assert_int_equal(w->n[1].host[0][0].completions, epoch);
		if (rtt_counted(w, NBAR_COUNTER_pulls_sent) > before)
			last = epoch;
	}
	assert_in_range(last, 2, 12);
	net_free(w);
}

UNIT_MAIN(NULL, NULL, UNIT(test_needless_pulls_end), UNIT(test_a_late_host_gets_few_pulls),
	  UNIT(test_a_token_lost_after_a_long_wait), UNIT(test_intervals_grow_with_the_wait),
	  UNIT(test_the_budget_stays), UNIT(test_what_a_later_changes),
	  UNIT(test_one_host_is_always_late))
