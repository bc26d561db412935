/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_starts.c - barriers and raw messages that wait for their share of a pass: starts and
 * visits of groups are bounded, a start waits for the sends of the barrier before, and lingering is
 * no work.
 */
#include "unit/nic/nic_net.h"
#include "unit/unit.h"

/* Passes that a barrier of two may take beside a flood. Without the flood it takes 2. */
#define BYSTANDER_PASSES 6u

/* Groups with one member complete each barrier at once: their barriers start in turn, and not by a
 * timer. */
static void test_starts_are_bounded(void **state)
{
	struct net *w = net_new();
	uint32_t rounds, before, started = 0;

	for (uint32_t i = 0; i < 8; i++) {
		net_open(w, 0, 0, i, "dissemination:1", 1, 0, NULL);
		net_post(w, 0, 0, i, NBAR_POSTED_MAX);
		started += w->n[0].host[0][i].completions;
	}
	assert_in_range(started, 1, NBNIC_PASS_STARTS);
	net_pair(w, 0, 1, 1, 1, 0);
	before = w->n[0].host[0][7].completions;
	net_post(w, 0, 1, 0, 1);
	net_post(w, 1, 1, 0, 1);
	net_rounds_until(w, 0, 1, 0, 1, BYSTANDER_PASSES);
	assert_in_range(w->n[0].host[0][7].completions, before + 1, before + 100);
	w->now = 0; /* no timer is due any more */
	rounds = net_rounds_until(w, 0, 0, 7, NBAR_POSTED_MAX, 8 * NBAR_POSTED_MAX);
	assert_in_range(rounds, 50, 8 * NBAR_POSTED_MAX);
	net_free(w);
}

/* How many barriers have started; *ports: on how many ports one has since the last call. */
static uint32_t started(struct net *w, uint32_t *ports)
{
	static uint32_t last[NET_PORTS];
	uint32_t sum = 0;

	*ports = 0;
	for (uint32_t port = 0; port < NET_PORTS; port++) {
		uint32_t now = w->n[0].host[port][0].group->state->epoch;

		*ports += now != last[port];
		sum += last[port] = now;
	}
	return sum;
}

/* A pass visits so many groups, and no more, although their barriers need no frame. Of these visits
 * half are for ports that have waited, however large the quota is; fresh ports have the others. */
static void test_visits_are_bounded(void **state)
{
	struct net *w = net_new_quota(NBNIC_PASS_VISITS);
	uint32_t ports, before;

	for (uint32_t port = 0; port < NET_PORTS; port++)
		net_open(w, 0, port, 0, "dissemination:1", 1, 0, NULL);
	net_pass(w, NET_MS);
	for (uint32_t port = 0; port < NET_PORTS; port++)
		net_post(w, 0, port, 0, NBAR_POSTED_MAX);
	before = started(w, &ports);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t now;

		net_round(w);
		now = started(w, &ports);
		assert_int_equal(now - before, NBNIC_PASS_VISITS * NBNIC_QUANTUM);
		if (i == 0)
			assert_int_equal(ports, NBNIC_PASS_VISITS / 2);
		before = now;
	}
	net_free(w);
}

/* Barriers that wait for their start have the quota, too, although their tokens go out within the
 * start. */
static void waiting_starts_have_the_quota(uint32_t quota)
{
	struct net *w = net_new_quota(quota);

	w->n[2].sink = true;
	for (uint32_t port = 0; port < 8; port++) {
		net_connect_phantoms(
			w, 0, net_open(w, 0, port, 0, "custom", 3, 0, net_plan(3, 0, 2, 0)), 2);
		net_post(w, 0, port, 0, NBAR_POSTED_MAX);
	}
	for (uint32_t i = 0; i < 8 * 2 * NBAR_POSTED_MAX / quota - 100; i++) {
		net_round(w);
		if (i >= 10) /* no port is fresh any more */
			assert_int_equal(w->n[0].sent_last, quota);
	}
	net_free(w);
}

static void test_waiting_starts_have_the_quota(void **state)
{
	waiting_starts_have_the_quota(NBNIC_QUOTA_MIN);
	waiting_starts_have_the_quota(3);
	waiting_starts_have_the_quota(NBNIC_QUOTA);
}

/* A NIC with nothing to do until a group has lingered says so: it may sleep. */
static void test_lingering_is_no_work(void **state)
{
	struct net *w = net_new();
	struct nbnic *nic = &w->n[0].nic;

	net_pair(w, 0, 0, 1, 0, 0);
	nbnic_group_close(nic, w->n[0].host[0][0].group, NBAR_STATUS_CLOSED, w->now);
	net_pass(w, NET_MS);
	assert_int_equal(nic->nlinger, 1);
	assert_false(nbnic_work(nic, w->now));
	assert_true(nbnic_next(nic) > w->now);
	net_free(w);
}

static uint32_t last_epoch, in_epoch;

static void see_epochs(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	if (to != 2)
		return;
	if (t->epoch != last_epoch) {
		require(t->epoch == last_epoch + 1, "epoch %u after %u", t->epoch, last_epoch);
		require(last_epoch == 0 || in_epoch == 500, "%u sends in epoch %u", in_epoch,
			last_epoch);
		last_epoch = t->epoch;
		in_epoch = 0;
	}
	in_epoch++;
}

/* The next barrier starts when the sends of the last barrier are out. */
static void test_start_waits_for_sends(void **state)
{
	struct net *w = net_new();
	struct nbnic_group *g;

	last_epoch = in_epoch = 0;
	w->seen = see_epochs;
	w->n[2].sink = true;
	g = net_open(w, 0, 0, 0, "custom", 501, 0, net_plan(501, 0, 500, 0));
	net_connect_phantoms(w, 0, g, 2);
	net_post(w, 0, 0, 0, 3);
	assert_int_equal(g->state->epoch, 1);
	assert_int_equal(g->state->running, 0);
	net_rounds_until(w, 0, 0, 0, 3, 3 * 500 / NBNIC_QUOTA);
	net_pass(w, NET_MS);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_tokens_sent], 3 * 500);
	assert_int_equal(last_epoch, 3);
	assert_int_equal(in_epoch, 500);
	net_free(w);
}

/* Raw messages have a share of a pass. The NIC refuses messages beyond that share. */
static void test_signals_have_a_share(void **state)
{
	static const uint32_t word[NBAR_SIGNAL_WORDS] = { 1 };
	struct net *w = net_new();
	const struct nbnic_open arg = { .size = 2, .alg = "signal", .cookie = 5 };
	struct nbnic_group *g;
	struct nbar_endpoint endpoint;
	uint32_t bad, n = 0;
	const char *why;

	w->n[2].sink = true;
	g = nbnic_group_build(&arg, malloc(nbnic_group_size(NULL, 2)));
	assert_int_equal(nbnic_group_open(&w->n[0].nic, g), 0);
	w->n[0].host[0][0].group = g;
	endpoint = net_endpoint(w, g, 2, 1, 1, 1);
	assert_int_equal(nbnic_group_connect(&w->n[0].nic, g, &endpoint, 1, w->now, &bad, &why), 0);
	for (uint32_t pass = 0; pass < 10; pass++) {
		while (nbnic_signal(&w->n[0].nic, g, 0, word))
			n++;
		assert_int_equal(n, (pass + 1) * NBNIC_QUOTA);
		net_round(w);
	}
	/* The NIC does not retry a frame that can never be sent. */
	assert_true(nbnic_signal(&w->n[0].nic, g, 7, word));
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_signals_sent], n);
	net_free(w);
}

UNIT_MAIN(NULL, NULL, UNIT(test_waiting_starts_have_the_quota), UNIT(test_lingering_is_no_work),
	  UNIT(test_starts_are_bounded), UNIT(test_visits_are_bounded),
	  UNIT(test_start_waits_for_sends), UNIT(test_signals_have_a_share))
