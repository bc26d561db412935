/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_rtt_many.c - early PULLs of many groups and of large steps: their pace, and the sweeps
 * over the timers. Time is simulated.
 */
#include "unit/nic/rtt_pair.h"
#include "unit/unit.h"

/* A barrier of NIC 0 that waits for `slots` members of NIC 2, which only counts frames. */
static struct nbnic_group *wait_for_many(struct net *w, uint32_t cell, uint32_t slots)
{
	struct nbnic_group *g = net_open(w, 0, 1, cell, "dissemination:1", slots + 1, 0,
					 net_plan(slots + 1, 0, 1, slots));

	w->n[2].sink = true;
	net_connect_phantoms(w, 0, g, 2);
	return g;
}

/* A step of more than 64 slots sends no early PULLs, even if its group has measured a round trip.
 */
static void test_a_large_step_has_no_early_pulls(void **state)
{
	const uint64_t *sent;
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);

	sent = &w->n[0].nic.counter[NBAR_COUNTER_pulls_sent];
	g = wait_for_many(w, 0, NBFW_PULLS_MIN + 1);
	g->first = g->rtt.every = NBNIC_PULL_NS_DEFAULT / 8;
	net_post(w, 0, 1, 0, 1);
	net_pass(w, NBNIC_PULL_NS_DEFAULT - NET_STEP);
	assert_int_equal(*sent, 0);
	assert_int_equal(g->state->tries, 0);
	net_pass(w, NBNIC_PULL_NS_DEFAULT / 2 + 10 * NET_STEP);
	assert_int_equal(*sent, NBFW_PULLS_MIN);
	assert_int_equal(g->state->tries, 1);
	net_free(w);
	/* A step of 64 slots does. */
	w = rtt_begin(&g);
	sent = &w->n[0].nic.counter[NBAR_COUNTER_pulls_sent];
	g = wait_for_many(w, 0, NBFW_PULLS_MIN);
	g->first = g->rtt.every = NBNIC_PULL_NS_DEFAULT / 8;
	net_post(w, 0, 1, 0, 1);
	net_pass(w, NBNIC_PULL_NS_DEFAULT - NET_STEP);
	assert_true(*sent >= NBFW_PULLS_MIN);
	assert_int_equal(g->state->tries, 0);
	net_free(w);
}

/* 20 groups lose a token at the same time. All complete before the first TIMEOUT. */
static void test_groups_that_lose_together(void **state)
{
	const uint32_t groups = 20;
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	uint64_t start, most;

	rtt_teach(w, 20);
	for (uint32_t i = 1; i < groups; i++) {
		net_pair(w, 0, 0, 1, 0, i);
		w->n[0].host[0][i].group->first = w->n[0].host[0][i].group->rtt.every = g->first;
	}
	rtt_lose_tokens = groups;
	start = w->now;
	for (uint32_t i = 0; i < groups; i++)
		for (uint32_t nic = 0; nic < 2; nic++)
			net_post(w, nic, 0, i, i ? 1 : 21);
	for (uint32_t i = 0; i < groups; i++)
		while (w->n[0].host[0][i].completions < (i ? 1 : 21)) {
			require(w->now - start < NET_SECOND, "group %u does not complete", i);
			net_round(w);
		}
	most = w->now - start;
	assert_int_equal(rtt_lose_tokens, 0);
	assert_true(most < NBNIC_PULL_NS_DEFAULT);
	net_free(w);
}

/* Early PULLs wait while PULLs of TIMEOUTs are queued because the pace is used up. */
static void test_pulls_of_timeouts_go_first(void **state)
{
	struct nbnic_group *g;
	struct net *w = rtt_begin(&g);
	const struct nbnic *nic = &w->n[0].nic;
	uint64_t before;

	rtt_teach(w, 20);
	for (uint32_t i = 0; i < 2; i++) {
		wait_for_many(w, i, NBFW_PULLS_MIN);
		net_post(w, 0, 1, i, 1);
	}
	for (uint32_t i = 0; nbnic_rota_empty(&nic->pulls); i++) {
		require(i < 1000, "no PULL waits for the pace");
		net_round(w);
	}
	rtt_lose_tokens = 1;
	net_post(w, 0, 0, 0, 21);
	net_post(w, 1, 0, 0, 21);
	for (uint64_t end = w->now + g->first + g->first / 2; w->now < end; net_round(w))
		assert_false(nbnic_rota_empty(&nic->pulls));
	assert_int_equal(g->rtt.epoch, 21); /* its timer was due */
	assert_false(g->rtt.asked);
	/* It does not look again before the pace permits a PULL. */
	assert_int_equal(nic->pull_left, 0);
	assert_int_equal(g->deadline,
			 g->rtt.timeout < nic->pull_next ? g->rtt.timeout : nic->pull_next);
	before = w->n[1].nic.counter[NBAR_COUNTER_pulls_received];
	net_pass(w, NBNIC_PULL_NS_DEFAULT);
	/* The early PULL waited for the pace, almost until the TIMEOUT: both go out. */
	assert_int_equal(w->n[1].nic.counter[NBAR_COUNTER_pulls_received] - before, 2);
	assert_int_equal(w->n[0].host[0][0].completions, 21);
	net_free(w);
}

/* An early PULL waits for the pace: the wait is no part of the round trip. If it waits until the
 * TIMEOUT is due, only the PULL of the TIMEOUT goes out. */
static void test_the_wait_for_the_pace_is_not_measured(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct nbnic_group *g;
		struct net *w = rtt_begin(&g);
		struct nbnic *nic = &w->n[0].nic;
		uint64_t before;

		rtt_teach(w, 20);
		before = rtt_pulls(w);
		rtt_lose_tokens = 1;
		net_post(w, 0, 0, 0, 21);
		net_post(w, 1, 0, 0, 21);
		nic->pull_left = 0;
		nic->pull_next = w->now + (i ? NBNIC_PULL_NS_DEFAULT + RTT : g->first + 3 * RTT);
		net_pass(w, 2 * NBNIC_PULL_NS_DEFAULT);
		assert_int_equal(w->n[0].host[0][0].completions, 21);
		assert_int_equal(rtt_pulls(w) - before, 1);
		assert_in_range(g->rtt.smooth, RTT - 128, RTT + 2 * NET_STEP);
		net_free(w);
	}
}

/* The time from the begin of a sweep over the timers of NIC 0 to the begin of the next sweep. The
 * groups in cell 1 wait for a host, so a timer is armed. The first sweep sets the time of the
 * second sweep. */
static uint64_t sweep_gap(struct net *w)
{
	struct nbnic *nic = &w->n[0].nic;

	for (uint32_t i = 0; i < 2; i++) {
		uint64_t last = nic->sweep_next;

		for (uint32_t j = 0; nic->sweep_next == last || nic->sweeping; j++) {
			uint64_t next = nbnic_next(nic);

			require(j < NET_CELLS, "a sweep does not begin, or does not end");
			w->now = next > w->now ? next : w->now;
			nbnic_work(nic, w->now);
		}
	}
	return nic->sweep_next - w->now;
}

/* NIC 0 with a group that has lost tokens, and a group whose timer is armed. */
static struct net *begin_sweeps(struct nbnic_group **g)
{
	struct net *w = rtt_begin(g);

	rtt_teach(w, 20);
	net_pair(w, 0, 0, 1, 0, 1);
	net_post(w, 0, 0, 1, 1);
	return w;
}

/* Groups that have lost tokens make sweeps frequent. With many groups a sweep takes long, so the
 * next sweep comes later. */
static void test_many_groups_are_swept_less_often(void **state)
{
	const uint32_t many = 900;
	struct nbnic_group *g;
	struct net *w = begin_sweeps(&g);

	assert_int_equal(sweep_gap(w), g->first / 8);
	for (uint32_t i = 0; i < many; i++)
		net_open(w, 0, 1, i, "dissemination:1", 2, 0, NULL);
	assert_true(many * 64 > g->first / 8);
	assert_in_range(sweep_gap(w), many * 64, NBNIC_PULL_NS_DEFAULT / 2);
	net_free(w);
}

/* A group that lingers or has failed never asks early, so it does not make sweeps frequent. */
static void test_groups_that_have_ended_are_not_swept_for(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct nbnic_group *g;
		struct net *w = begin_sweeps(&g);

		if (i == 0)
			nbnic_group_close(&w->n[0].nic, g, NBAR_STATUS_CLOSED, w->now);
		else
			nbnic_group_fail(&w->n[0].nic, g, NBAR_STATUS_HOST_DIED, w->now);
		assert_int_equal(sweep_gap(w), NBNIC_PULL_NS_DEFAULT / 2);
		net_free(w);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_a_large_step_has_no_early_pulls),
	  UNIT(test_groups_that_lose_together), UNIT(test_pulls_of_timeouts_go_first),
	  UNIT(test_the_wait_for_the_pace_is_not_measured),
	  UNIT(test_many_groups_are_swept_less_often),
	  UNIT(test_groups_that_have_ended_are_not_swept_for))
