/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_pass.c - the scheduler of the NIC loop: each pass sends a bounded number of frames of
 * one group, later passes send the rest, and other groups wait only a few passes. The test checks
 * counts and order, not times. test_nic_starts.c tests starts and raw messages.
 */
#include "unit/nic/nic_net.h"
#include "unit/unit.h"

#define FLOOD NBAR_SENDS_MAX
/* Passes that a barrier of two may take beside a flood. Without the flood it takes 2. */
#define BYSTANDER_PASSES 6u

/* A group whose peers are all played by the test: one step with the greatest number of sends. */
static struct nbnic_group *flooder(struct net *w, uint32_t nic, uint32_t port, uint32_t cell)
{
	struct nbnic_group *g = net_open(w, nic, port, cell, "custom", FLOOD + 1, 0,
					 net_plan(FLOOD + 1, 0, FLOOD, 0));

	net_connect_phantoms(w, nic, g, 2);
	return g;
}

static void expect_bounded(const struct net *w)
{
	for (uint32_t i = 0; i < NET_NICS; i++)
		assert_in_range(w->n[i].most_pass, 0, NET_BURST);
}

/* While one barrier of a plan with 4,096 sends runs, barriers of another port complete. */
static void test_one_post_of_many_sends(void **state)
{
	struct net *w = net_new();
	uint32_t e = 0;

	w->n[2].sink = true;
	flooder(w, 0, 0, 0);
	net_pair(w, 0, 1, 1, 1, 0);
	net_post(w, 0, 0, 0, 1);
	assert_int_equal(w->n[0].host[0][0].completions, 1); /* it waits for no other host */
	while (w->n[0].nic.counter[NBAR_COUNTER_tokens_sent] < FLOOD) {
		net_post(w, 0, 1, 0, ++e);
		net_post(w, 1, 1, 0, e);
		net_rounds_until(w, 0, 1, 0, e, BYSTANDER_PASSES);
		net_rounds_until(w, 1, 1, 0, e, BYSTANDER_PASSES);
	}
	assert_in_range(e, 20, FLOOD); /* it took many passes */
	net_pass(w, 10 * NET_MS);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_tokens_sent], FLOOD + e);
	expect_bounded(w);
	net_free(w);
}

/* 64 such groups die with their host. In the end the NIC has sent all ABORTs and released the
 * blocks. */
static void test_many_groups_die(void **state)
{
	struct net *w = net_new();
	const uint64_t *sent = &w->n[0].nic.counter[NBAR_COUNTER_aborts_sent];
	uint32_t e = 0;

	w->n[2].sink = true;
	for (uint32_t i = 0; i < 64; i++)
		flooder(w, 0, 0, i);
	net_pair(w, 0, 1, 1, 1, 0);
	for (uint32_t i = 0; i < w->n[0].nic.high; i++)
		if (w->n[0].nic.group[i] && w->n[0].nic.group[i]->port == 0)
			nbnic_group_close(&w->n[0].nic, w->n[0].nic.group[i], NBAR_STATUS_HOST_DIED,
					  w->now);
	while (*sent < 64 * FLOOD) {
		w->now += NET_SECOND / 100; /* the lingering is over before the aborts are out */
		net_post(w, 0, 1, 0, ++e);
		net_post(w, 1, 1, 0, e);
		net_rounds_until(w, 0, 1, 0, e, BYSTANDER_PASSES);
		net_rounds_until(w, 1, 1, 0, e, BYSTANDER_PASSES);
		require(e < 64 * FLOOD, "the aborts do not go out");
	}
	assert_int_equal(w->n[0].nic.nlinger, 64);
	net_pass(w, 2 * NET_BUDGET);
	assert_int_equal(w->n[0].nic.nlinger, 0);
	assert_int_equal(*sent, 64 * FLOOD);
	assert_int_equal(w->n[0].host[1][0].status, NBAR_STATUS_OK);
	expect_bounded(w);
	net_free(w);
}

#define ROOTS 32u

static uint64_t ntoken;

static void see_tokens(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	if (from != 0 || to != 2 || t->type != NBFW_TOKEN)
		return;
	require(t->cookie == t->handle - UINT32_C(0x10000), "cookie of another peer");
	ntoken++;
}

/* 32 roots of linear groups of 4,097 release their members at once; the wire often refuses. */
static void test_linear_roots_on_a_full_wire(void **state)
{
	struct net *w = net_new();
	uint32_t e = 0;

	ntoken = 0;
	w->seen = see_tokens;
	w->n[2].limit = NBNIC_QUOTA / 2 - 1; /* less than a pass may send */
	w->n[2].refuses = true;
	for (uint32_t i = 0; i < ROOTS; i++) {
		net_connect_phantoms(w, 0, net_open(w, 0, 0, i, "linear", NBFW_ROOT_MAX, 0, NULL),
				     2);
		net_post(w, 0, 0, i, 1);
	}
	net_pair(w, 0, 1, 1, 1, 0);
	for (uint32_t i = 0; i < ROOTS; i++) {
		struct nbnic_group *g = w->n[0].host[0][i].group;
		const struct nbnic_addr from = { { 2 } };

		for (uint32_t s = 0; s < g->plan->nrecv; s++) {
			const struct nbfw_token t = { .type = NBFW_TOKEN,
						      .handle = g->handle,
						      .cookie = g->cookie,
						      .src = nbfw_plan_recvs(g->plan)[s].src,
						      .epoch = 1,
						      .slot = s,
						      .sender = g->peer[g->recv_peer[s]].handle };

			nbnic_receive(&w->n[0].nic, &from, &t, w->now);
		}
		assert_int_equal(w->n[0].host[0][i].completions, 1);
	}
	while (ntoken < ROOTS * NBAR_SLOTS_MAX) {
		net_post(w, 0, 1, 0, ++e);
		net_post(w, 1, 1, 0, e);
		/* If the wire refuses a frame, the group of that frame waits until the other groups
		 * have had their turn. */
		net_rounds_until(w, 0, 1, 0, e, 2 * BYSTANDER_PASSES);
		net_rounds_until(w, 1, 1, 0, e, 2 * BYSTANDER_PASSES);
		require(e < ROOTS * NBAR_SLOTS_MAX, "the tokens do not go out");
	}
	assert_true(w->n[0].refused > 100);
	net_pass(w, NET_MS);
	assert_int_equal(ntoken, ROOTS * NBAR_SLOTS_MAX);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_tokens_sent], ntoken + e);
	expect_bounded(w);
	net_free(w);
}

/* The port of each frame to NIC 2, in order. */
static uint8_t order[100000];
static uint32_t norder;

static void see_order(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	if (to == 2 && t->type == NBFW_TOKEN && norder < sizeof(order))
		order[norder++] = (uint8_t)(t->cookie >> 32);
}

/* Two ports flood, one with a single group, one with ten; the third port has as much to send as
 * each of these. */
static void test_ports_share_the_wire(void **state)
{
	static const uint32_t ngroup[] = { 1, 10, 1 };
	struct net *w = net_new();
	uint32_t count[3] = { 0 };

	norder = 0;
	w->seen = see_order;
	w->n[2].sink = true;
	for (uint32_t port = 0; port < 3; port++) {
		for (uint32_t i = 0; i < ngroup[port]; i++) {
			struct nbnic_group *g = flooder(w, 0, port, i);

			for (uint32_t k = 0; k < g->npeer; k++)
				g->peer[k].cookie = (uint64_t)port << 32;
			net_post(w, 0, port, i, NBAR_POSTED_MAX);
		}
	}
	net_rounds_until(w, 0, 2, 0, 5, 5 * FLOOD);
	for (uint32_t i = 0; i < norder; i++) {
		require(order[i] < 3, "port %u", order[i]);
		count[order[i]]++;
		/* No port is ever behind by more than a share and a visit. */
		for (uint32_t p = 0; p < 3; p++)
			require(i < 200 ||
					count[p] + NBNIC_QUOTA + 2 * NBNIC_QUANTUM >= (i + 1) / 3,
				"port %u had %u of %u", p, count[p], i + 1);
	}
	/* The groups of a port have equal shares, too. */
	for (uint32_t i = 1; i < 10; i++)
		assert_in_range(w->n[0].host[1][i].group->state->epoch + 1,
				w->n[0].host[1][0].group->state->epoch,
				w->n[0].host[1][0].group->state->epoch + 2);
	expect_bounded(w);
	net_free(w);
}

/* One port has a backlog, another port has none. Counts the frames of the backlog that go out
 * between a doorbell of the other port and its frame. The doorbell rings at the worst moment, just
 * after the pass has looked. */
static void a_backlog_has_a_quota(uint32_t quota)
{
	struct net *w = net_new_quota(quota);
	struct net_nic *n = &w->n[0];
	uint32_t e = 0;

	n[2].sink = true;
	flooder(w, 0, 0, 0);
	flooder(w, 0, 2, 1);
	net_pair(w, 0, 1, 1, 1, 0);
	net_post(w, 0, 0, 0, 1);
	net_post(w, 0, 2, 1, 1);
	assert_in_range(n->sent_pass, 1, 2 * quota); /* each port has its share within the event */
	net_round(w);
	while (n->nic.counter[NBAR_COUNTER_tokens_sent] < FLOOD) {
		uint64_t others;

		net_round(w);
		others = n->sent_last;
		assert_in_range(others, 1, quota);
		net_post(w, 0, 1, 0, ++e);
		net_post(w, 1, 1, 0, e);
		assert_int_equal(n->sent_pass, 1); /* the frame goes before the backlog ... */
		net_round(w);
		assert_int_equal(n->sent_last, 1); /* ... which sends nothing in that pass */
		net_rounds_until(w, 0, 1, 0, e, 2);
		net_rounds_until(w, 1, 1, 0, e, 2);
	}
	assert_in_range(n->most_pass, 1, NBNIC_PASS_FRAMES(quota));
	net_free(w);
}

static void test_a_backlog_has_a_quota(void **state)
{
	a_backlog_has_a_quota(NBNIC_QUOTA_MIN);
	a_backlog_has_a_quota(NBNIC_QUOTA);
}

static uint32_t before_bystander; /* frames to NIC 2 before the first to NIC 1 */
static bool bystander_sent;

static void see_bystander(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	if (from == 0 && to == 1)
		bystander_sent = true;
	before_bystander += from == 0 && to == 2 && !bystander_sent;
}

#define RINGERS 30u

/* Many ports ring at once, all before the bystander, and use up the frames that a pass sends within
 * events. The frame of the bystander goes with those of the other fresh ports, and before the
 * backlog of two ports. */
static void test_a_fresh_port_goes_before_backlogs(void **state)
{
	struct net *w = net_new();
	uint32_t bystander = RINGERS + 2, passes = 0;

	w->n[2].sink = true;
	w->seen = see_bystander;
	flooder(w, 0, 0, 0);
	flooder(w, 0, 1, 0);
	for (uint32_t p = 2; p < bystander; p++)
		net_connect_phantoms(w, 0,
				     net_open(w, 0, p, 0, "custom", 3, 0, net_plan(3, 0, 2, 0)), 2);
	net_pair(w, 0, bystander, 1, 1, 0);
	net_post(w, 0, 0, 0, NBAR_POSTED_MAX);
	net_post(w, 0, 1, 0, NBAR_POSTED_MAX);
	for (uint32_t i = 0; i < 5; i++)
		net_round(w);
	before_bystander = 0;
	bystander_sent = false;
	for (uint32_t p = 2; p < bystander; p++)
		net_post(w, 0, p, 0, 1);
	net_post(w, 0, bystander, 0, 1);
	assert_int_equal(w->n[0].sent_pass, NBNIC_PASS_INLINE(NBNIC_QUOTA));
	assert_false(bystander_sent);
	while (!bystander_sent && passes++ < 10)
		net_round(w);
	/* At most two frames of each port that rang, and in each pass the quota for the backlog. */
	assert_in_range(before_bystander, RINGERS, RINGERS * 2 + passes * NBNIC_QUOTA);
	assert_in_range(passes, 1, 2);
	expect_bounded(w);
	net_free(w);
}

/* Ports that are fresh in every pass do not starve waiting ports. */
static void test_fresh_ports_leave_room_for_backlogs(void **state)
{
	struct net *w = net_new();
	const uint32_t nport = NET_PORTS;
	uint32_t e = 0, port;

	norder = 0;
	w->seen = see_order;
	w->n[2].sink = true;
	for (port = 0; port < nport; port++) {
		struct nbnic_group *g =
			port ? net_open(w, 0, port, 0, "custom", 40, 0, net_plan(40, 0, 5, 0))
			     : flooder(w, 0, port, 0);

		if (port)
			net_connect_phantoms(w, 0, g, 2);
		for (uint32_t k = 0; k < g->npeer; k++)
			g->peer[k].cookie = (uint64_t)port << 32;
	}
	net_post(w, 0, 0, 0, NBAR_POSTED_MAX);
	net_round(w);
	for (uint32_t pass = 0, own = 0; pass < 200; pass++) {
		norder = 0;
		if (pass % 4 == 0)
			e++;
		for (port = 1 + pass % 4; port < nport; port += 4)
			net_post(w, 0, port, 0, e);
		net_round(w);
		for (uint32_t i = 0; i < norder; i++)
			own += order[i] == 0;
		assert_in_range(own, 0, NBNIC_QUOTA);
		if (pass % 2 == 0)
			continue;
		assert_in_range(own, 1, NBNIC_QUOTA); /* in every second pass */
		own = 0;
	}
	expect_bounded(w);
	net_free(w);
}

static uint8_t aborted[FLOOD + 1], told[FLOOD + 1];

static void see_aborts(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	uint32_t peer = t->handle - UINT32_C(0x10000);

	if (t->type == NBFW_TOKEN) {
		require(!aborted[peer], "a token after the abort");
		told[peer]++;
	} else {
		require(t->type == NBFW_ABORT && t->info == NBAR_STATUS_HOST_DIED && t->arg == 0 &&
				t->epoch == 2,
			"type %u", t->type);
		aborted[peer]++;
	}
}

/* Tokens wait, then the group is closed: the tokens go out first, then the aborts, each once,
 * although the wire refuses again and again. */
static void test_aborts_go_on_where_they_stopped(void **state)
{
	struct net *w = net_new();
	struct nbnic_group *g = flooder(w, 0, 0, 0);

	memset(aborted, 0, sizeof(aborted));
	memset(told, 0, sizeof(told));
	w->seen = see_aborts;
	w->n[2].refuses = true;
	w->n[2].limit = NBNIC_QUOTA - 3;
	net_post(w, 0, 0, 0, 2);
	assert_int_equal(w->n[0].host[0][0].completions, 1);
	nbnic_group_close(&w->n[0].nic, g, NBAR_STATUS_HOST_DIED, w->now);
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t before = w->n[0].refused;

		net_round(w);
		assert_in_range(w->n[0].refused, before, before + 1); /* no second try in a pass */
	}
	net_pass(w, NET_SECOND);
	assert_true(w->n[0].refused > 50);
	for (uint32_t i = 0; i < FLOOD; i++)
		require(told[i] == 1 && aborted[i] == 1, "peer %u: %u tokens, %u aborts", i,
			told[i], aborted[i]);
	net_free(w);
}

/* A port is fresh if neither this pass nor the last one has served it. */
static void test_fresh_ports(void **state)
{
	static struct nbnic_rota_port port[NBNIC_PORTS_MAX + 1];
	struct nbnic_link link[3] = { { NULL, NULL } };
	struct nbnic_rota rota;
	uint32_t pass = 1;

	nbnic_rota_init(&rota, port, &pass);
	assert_null(port[NBNIC_PORTS_MAX].groups.next); /* no port */
	for (uint32_t i = 0; i < 3; i++) {
		port[i].served = pass - i;
		nbnic_rota_add(&rota, i, &link[i]);
		assert_int_equal(nbnic_link_empty(&rota.fresh), i < 2);
	}
	assert_ptr_equal(nbnic_rota_take(&rota, true), &link[2]);
	assert_int_equal(rota.nport, 2);
}

UNIT_MAIN(NULL, NULL, UNIT(test_one_post_of_many_sends), UNIT(test_many_groups_die),
	  UNIT(test_linear_roots_on_a_full_wire), UNIT(test_ports_share_the_wire),
	  UNIT(test_a_backlog_has_a_quota), UNIT(test_a_fresh_port_goes_before_backlogs),
	  UNIT(test_fresh_ports_leave_room_for_backlogs),
	  UNIT(test_aborts_go_on_where_they_stopped), UNIT(test_fresh_ports))
