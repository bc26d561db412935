/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_pull.c - PULLs for missing tokens: their number, order and rate, and the timers that
 * send them. test_nic_peers.c tests late, silent and lost peers.
 */
#include "unit/nic/nic_net.h"
#include "unit/unit.h"

#define SLOTS NBAR_SLOTS_MAX

/* The PULLs that NIC 0 has sent, in order. */
static struct {
	uint64_t at;
	uint32_t slot, arg, handle;
} pull[1 << 20];
static uint32_t npull;

static void see_pulls(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	if (from != 0 || t->type != NBFW_PULL || npull == sizeof(pull) / sizeof(pull[0]))
		return;
	pull[npull].at = w->now;
	pull[npull].slot = t->slot;
	pull[npull].arg = t->arg;
	pull[npull].handle = t->sender;
	npull++;
}

/* A root of a linear group that arrives early; the test plays the other members at NIC 2. */
static struct nbnic_group *early_root(struct net *w, uint32_t port, uint32_t cell, uint32_t size)
{
	struct nbnic_group *g = net_open(w, 0, port, cell, "linear", size, 0, NULL);

	net_connect_phantoms(w, 0, g, 2);
	net_post(w, 0, port, cell, 1);
	return g;
}

static void say(struct net *w, const struct nbnic_group *g, uint8_t type, uint32_t slot)
{
	const struct nbnic_addr from = { { 2 } };
	const struct nbfw_token t = { .type = type,
				      .handle = g->handle,
				      .cookie = g->cookie,
				      .src = nbfw_plan_recvs(g->plan)[slot].src,
				      .epoch = g->state->epoch,
				      .slot = slot,
				      .arg = 0,
				      .sender = g->peer[g->recv_peer[slot]].handle };

	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
}

/* Lets time pass until all PULLs of the next timeout are out. */
static void next_timeout(struct net *w, const struct nbnic_group *g)
{
	uint32_t was = g->timeouts;

	for (uint32_t i = 0; g->timeouts == was || !g->armed; i++) {
		require(i < 1000000, "no timeout");
		net_round(w);
	}
}

/* A timeout of a large step asks for an eighth of the slots; eight timeouts ask for all slots. */
static void test_all_slots_in_eight_timeouts(void **state)
{
	static uint8_t pulled[SLOTS];
	struct net *w = net_new();
	struct nbnic_group *g = early_root(w, 0, 0, NBFW_ROOT_MAX);

	memset(pulled, 0, sizeof(pulled));
	npull = 0;
	w->seen = see_pulls;
	w->n[2].sink = true;
	for (uint32_t i = 1; i <= 16; i++) {
		next_timeout(w, g);
		assert_int_equal(npull, i * SLOTS / NBFW_ROUND);
		for (uint32_t k = (i - 1) * SLOTS / NBFW_ROUND; k < npull; k++) {
			assert_int_equal(pull[k].arg, nbfw_plan_recvs(g->plan)[pull[k].slot].src);
			pulled[pull[k].slot]++;
		}
		for (uint32_t k = 0; i % 8 == 0 && k < SLOTS; k++)
			require(pulled[k] == i / 8, "slot %u: %u times", k, pulled[k]);
	}
	net_free(w);
}

/* Silent slots come first; the other slots share the rest in turn. */
static void test_silent_slots_first(void **state)
{
	static uint8_t heard[1000], pulled[1000];
	struct net *w = net_new();
	struct nbnic_group *g = early_root(w, 0, 0, 1001);
	uint32_t nslot = g->plan->nrecv, cap = NBFW_PULLS_LEAST(nslot), silent = 0;

	memset(pulled, 0, sizeof(pulled));
	w->seen = see_pulls;
	w->n[2].sink = true;
	assert_int_equal(cap, 125);
	for (uint32_t i = 0; i < nslot; i++) {
		heard[i] = i % 10 != 3;
		silent += !heard[i];
		if (heard[i])
			say(w, g, NBFW_LATER, i);
	}
	for (uint32_t i = 0; i < 36; i++) {
		npull = 0;
		next_timeout(w, g);
		assert_int_equal(npull, cap);
		for (uint32_t k = 0; k < npull; k++) {
			require(heard[pull[k].slot] == (k >= silent), "PULL %u", k);
			pulled[pull[k].slot]++;
		}
	}
	for (uint32_t i = 0; i < nslot; i++) /* 25 of the 900 heard slots each time */
		require(pulled[i] == (heard[i] ? 1 : 36), "slot %u: %u times", i, pulled[i]);
	net_free(w);
}

/* The NIC paces the PULLs of all groups together, and each port and each group gets its turn. */
static void test_pulls_are_paced(void **state)
{
	struct net *w = net_new();
	uint32_t first = 0, small = 0;
	uint64_t pace = NBNIC_PULL_NS_DEFAULT / 2;

	npull = 0;
	w->seen = see_pulls;
	w->n[2].sink = true;
	for (uint32_t i = 0; i < 8; i++)
		early_root(w, 0, i, NBFW_ROOT_MAX);
	struct nbnic_group *g = early_root(w, 1, 0, 3);

	net_pass(w, NET_SECOND);
	for (uint32_t i = 0; i < npull; i++) {
		while (pull[i].at - pull[first].at >= pace)
			first++;
		require(i - first < 2 * NBNIC_PULLS_A_TICK, "%u PULLs at once", i - first + 1);
		small += pull[i].handle == g->handle;
	}
	assert_in_range(npull, 20000, NET_SECOND / pace * NBNIC_PULLS_A_TICK + 64);
	/* After 1, 2, 4, ... ms, then every 62.5 ms: the large groups have not slowed the small
	 * group down. */
	assert_in_range(small, 2 * 18, 2 * 22);
	/* All groups still wait, and no member is given up, although a round takes longer than the
	 * interval. */
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(w->n[0].host[0][i].status, NBAR_STATUS_OK);
	net_free(w);
}

/* The least quota is one frame: PULLs and waiting sends take turns. */
static void test_pulls_and_sends_share_one_frame(void **state)
{
	struct net *w = net_new_quota(NBNIC_QUOTA_MIN);
	const uint64_t *counter = w->n[0].nic.counter;
	uint64_t pulls, tokens;

	w->n[2].sink = true;
	struct nbnic_group *many =
		net_open(w, 0, 1, 0, "custom", 4001, 0, net_plan(4001, 0, 4000, 0));

	net_connect_phantoms(w, 0, many, 2);
	struct nbnic_group *late = early_root(w, 0, 0, NBFW_ROOT_MAX);

	for (uint32_t i = 0; late->pull_left == 0; i++) {
		require(i < 1000000, "no timeout");
		net_round(w);
	}
	net_post(w, 0, 1, 0, 2);
	pulls = counter[NBAR_COUNTER_pulls_sent];
	tokens = counter[NBAR_COUNTER_tokens_sent];
	for (uint32_t i = 0; i < NBNIC_PULLS_A_TICK / 2; i++)
		net_round(w);
	assert_in_range(counter[NBAR_COUNTER_pulls_sent] - pulls, NBNIC_PULLS_A_TICK / 4 - 2,
			NBNIC_PULLS_A_TICK / 4 + 2);
	assert_in_range(counter[NBAR_COUNTER_tokens_sent] - tokens, NBNIC_PULLS_A_TICK / 4 - 2,
			NBNIC_PULLS_A_TICK / 4 + 2);
	net_free(w);
}

/* While PULLs wait, the next pass is due at once or, if the pace is used up, when it begins anew.
 */
static void test_waiting_pulls_are_due(void **state)
{
	struct net *w = net_new();
	struct nbnic *nic = &w->n[0].nic;

	w->n[2].sink = true;
	early_root(w, 0, 0, NBFW_ROOT_MAX);
	for (uint32_t i = 0; nbnic_rota_empty(&nic->pulls); i++) {
		require(i < 1000000, "no PULL waits");
		net_round(w);
	}
	nic->pull_left = 1;
	assert_int_equal(nbnic_next(nic), 0);
	nic->pull_left = 0;
	assert_int_equal(nbnic_next(nic), nic->pull_next);
	net_free(w);
}

/* Groups that began to wait at one moment do not go on asking at the same moments. */
static void test_timers_spread(void **state)
{
	struct net *w = net_new();
	uint32_t apart = 0;

	w->n[2].sink = true;
	for (uint32_t i = 0; i < 16; i++)
		early_root(w, 0, i, 2);
	net_pass(w, NET_SECOND);
	for (uint32_t i = 1; i < 16; i++) {
		uint64_t a = w->n[0].host[0][i - 1].group->deadline;
		uint64_t b = w->n[0].host[0][i].group->deadline;

		apart += (a > b ? a - b : b - a) > NBNIC_PULL_NS_DEFAULT;
	}
	assert_in_range(apart, 8, 15);
	net_free(w);
}

/* Timers that are due at one moment fire in several passes: few in each, fewer with long plans. */
static void few_timers_a_pass(uint32_t size, uint32_t most)
{
	enum { GROUPS = 64 };
	struct net *w = net_new();
	struct nbnic_group *g[GROUPS];
	uint32_t fired = 0, passes = 0;

	w->n[2].sink = true;
	for (uint32_t i = 0; i < GROUPS; i++)
		g[i] = early_root(w, 0, i, size);
	w->now += NBNIC_PULL_NS_DEFAULT;
	for (; fired < GROUPS; passes++) {
		uint32_t before = fired;

		require(passes < 2 * GROUPS, "%u timers have fired", fired);
		net_round(w);
		w->now -= NET_STEP; /* all happens at one moment */
		fired = 0;
		for (uint32_t i = 0; i < GROUPS; i++)
			fired += g[i]->timeouts;
		assert_in_range(fired, before, before + most);
	}
	assert_in_range(passes, GROUPS / most, GROUPS / most + 2);
	net_free(w);
}

static void test_few_timers_a_pass(void **state)
{
	few_timers_a_pass(2, 8);
	few_timers_a_pass(NBFW_ROOT_MAX, 1);
}

/* A pass looks at 64 groups. */
static void test_few_groups_a_pass(void **state)
{
	struct net *w = net_new();
	struct nbnic *nic = &w->n[0].nic;

	for (uint32_t i = 0; i < 100; i++)
		net_open(w, 0, 0, i, "linear", 2, 0, NULL);
	nic->due = w->now;
	nbnic_work(nic, w->now);
	assert_int_equal(nic->sweep_left, 100 - 64);
	nbnic_work(nic, w->now);
	assert_false(nic->sweeping);
	net_free(w);
}

/* Each sweep over the timers begins with the next group. */
static void test_groups_fire_first_in_turn(void **state)
{
	enum { GROUPS = 3 };
	struct net *w = net_new();
	struct nbnic_group *g[GROUPS];
	uint32_t last = 0;

	w->seen = see_pulls;
	w->n[2].sink = true;
	for (uint32_t i = 0; i < GROUPS; i++)
		g[i] = early_root(w, 0, i, 2);
	net_pass(w, 2 * NBNIC_PULL_NS_DEFAULT);
	for (uint32_t i = 0; i < 3 * GROUPS; i++) {
		for (uint32_t k = 0; k < GROUPS; k++) /* all are due */
			w->now = w->now < g[k]->deadline ? g[k]->deadline : w->now;
		npull = 0;
		net_round(w);
		assert_int_equal(npull, GROUPS);
		if (i > 0)
			assert_int_equal(pull[0].handle, g[(last + 1) % GROUPS]->handle);
		last = pull[0].handle & 0xffff;
	}
	net_free(w);
}

UNIT_MAIN(NULL, NULL, UNIT(test_all_slots_in_eight_timeouts), UNIT(test_silent_slots_first),
	  UNIT(test_pulls_are_paced), UNIT(test_pulls_and_sends_share_one_frame),
	  UNIT(test_waiting_pulls_are_due), UNIT(test_timers_spread), UNIT(test_few_timers_a_pass),
	  UNIT(test_few_groups_a_pass), UNIT(test_groups_fire_first_in_turn))
