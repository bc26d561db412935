/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_peers.c - peers that do not answer as usual: NICs with short queues, silent and
 * restarted NICs, closed groups, strangers, and groups with 4,096 peers.
 */
#include "unit/nic/nic_net.h"
#include "unit/unit.h"

#define SLOTS NBAR_SLOTS_MAX

static void expect_status(const struct net *w, uint32_t nic, uint32_t port, uint32_t cells,
			  uint32_t status)
{
	for (uint32_t i = 0; i < cells; i++)
		require(w->n[nic].host[port][i].status == status, "cell %u: status %u", i,
			w->n[nic].host[port][i].status);
}

/* The root of 1,000 members comes ten minutes before the others. Both NICs have queues of 277
 * frames (a kernel's default receive buffer), which overflow. */
static void test_early_root_with_short_queues(void **state)
{
	struct net *w = net_new();
	static struct nbar_endpoint endpoint[1000];

	w->n[0].limit = w->n[1].limit = 277;
	net_open(w, 0, 0, 0, "linear", 1000, 0, NULL);
	nbnic_group_endpoint(&w->n[0].nic, w->n[0].host[0][0].group, &endpoint[0]);
	for (uint32_t r = 1; r < 1000; r++) {
		net_open(w, 1, 0, r, "linear", 1000, r, NULL);
		nbnic_group_endpoint(&w->n[1].nic, w->n[1].host[0][r].group, &endpoint[r]);
	}
	net_connect(w, 0, w->n[0].host[0][0].group, endpoint);
	for (uint32_t r = 1; r < 1000; r++)
		net_connect(w, 1, w->n[1].host[0][r].group, endpoint);
	net_post(w, 0, 0, 0, 1);
	net_pass(w, 600 * NET_SECOND);
	expect_status(w, 0, 0, 1, NBAR_STATUS_OK);
	assert_true(w->n[1].nic.counter[NBAR_COUNTER_laters_sent] > 1000000);
	for (uint32_t r = 1; r < 1000; r++)
		net_post(w, 1, 0, r, 1);
	net_pass(w, 10 * NET_SECOND);
	expect_status(w, 1, 0, 1000, NBAR_STATUS_OK);
	for (uint32_t r = 1; r < 1000; r++)
		assert_int_equal(w->n[1].host[0][r].completions, 1);
	assert_int_equal(w->n[0].host[0][0].completions, 1);
	net_free(w);
}

/* 1,000 groups of two: the members at one NIC all come a minute late. */
static void test_many_small_groups_with_short_queues(void **state)
{
	struct net *w = net_new();

	w->n[0].limit = w->n[1].limit = 277;
	for (uint32_t i = 0; i < 1000; i++) {
		net_pair(w, 0, 0, 1, 0, i);
		net_post(w, 0, 0, i, 1);
	}
	net_pass(w, 60 * NET_SECOND);
	expect_status(w, 0, 0, 1000, NBAR_STATUS_OK);
	assert_int_equal(w->n[0].dropped + w->n[1].dropped, 0); /* PULLs are spread out */
	for (uint32_t i = 0; i < 1000; i++)
		net_post(w, 1, 0, i, 1);
	net_pass(w, NET_SECOND);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(w->n[0].host[0][i].completions, 1);
	net_free(w);
}

static uint32_t deaf_handle; /* answers to this group are lost */

static bool lose_answers(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	return to == 0 && t->handle == deaf_handle;
}

/* If one group hears a NIC, no other group calls this NIC silent. If no group hears it, the groups
 * call it silent. */
static void test_heard_by_another_group(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	net_pair(w, 0, 0, 1, 0, 1);
	deaf_handle = w->n[0].host[0][0].group->handle;
	w->lost = lose_answers;
	net_post(w, 0, 0, 0, 1);
	net_post(w, 0, 0, 1, 1);
	net_pass(w, 20 * NET_SECOND);
	expect_status(w, 0, 0, 2, NBAR_STATUS_OK);
	w->n[1].dead = true;
	net_pass(w, 4 * NET_SECOND - 100 * NET_MS); /* a window has not passed yet */
	expect_status(w, 0, 0, 2, NBAR_STATUS_OK);
	net_pass(w, 6 * NET_SECOND);
	expect_status(w, 0, 0, 2, NBAR_STATUS_SILENT);
	assert_int_equal(w->n[0].host[0][0].failed_rank, 1);
	net_free(w);
}

/* No other group hears it: silence counts as before. */
static void test_silent_nic(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	w->n[1].dead = true;
	net_post(w, 0, 0, 0, 1);
	net_pass(w, 4 * NET_SECOND - NET_MS);
	expect_status(w, 0, 0, 1, NBAR_STATUS_OK);
	net_pass(w, NET_SECOND);
	expect_status(w, 0, 0, 1, NBAR_STATUS_SILENT);
	net_free(w);
}

/* A restarted NIC does not know the group, and says so in its answer to each PULL. */
static void test_restarted_peer_is_found_at_once(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	net_pair(w, 0, 0, 1, 0, 1);
	net_restart(w, 1);
	net_post(w, 0, 0, 0, 1);
	net_post(w, 0, 0, 1, 1);
	net_pass(w, 3 * NET_MS);
	expect_status(w, 0, 0, 2, NBAR_STATUS_NIC_DOWN);
	assert_int_equal(w->n[0].host[0][0].failed_rank, 1);
	assert_true(w->n[1].nic.counter[NBAR_COUNTER_frames_stranger] >= 2);
	net_free(w);
}

/* The same handle, but another cookie: the NIC was restarted, and has a new group there. */
static void test_restarted_peer_with_a_new_group(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	net_restart(w, 1);
	net_open(w, 1, 0, 0, "pairwise", 2, 1, NULL);
	net_post(w, 0, 0, 0, 1);
	net_pass(w, 3 * NET_MS);
	expect_status(w, 0, 0, 1, NBAR_STATUS_NIC_DOWN);
	net_free(w);
}

static void test_closed_long_ago(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	nbnic_group_close(&w->n[1].nic, w->n[1].host[0][0].group, NBAR_STATUS_CLOSED, w->now);
	net_pass(w, 5 * NET_SECOND);
	assert_null(w->n[1].host[0][0].group);
	net_post(w, 0, 0, 0, 1);
	net_pass(w, 3 * NET_MS);
	expect_status(w, 0, 0, 1, NBAR_STATUS_CLOSED);
	assert_int_equal(w->n[0].host[0][0].failed_rank, 1);
	net_free(w);
}

/* Of all frames of strangers, the NIC answers only PULLs, and only some in a pass. */
static void test_strangers(void **state)
{
	struct net *w = net_new();
	struct net_nic *n = &w->n[0];
	const struct nbnic_addr from = { { 1 } };
	struct nbfw_token t = { .handle = 0x20003, .cookie = 9, .src = 1, .arg = 0 };

	for (t.type = NBFW_TOKEN; t.type < NBFW_TYPE_END; t.type++)
		if (t.type != NBFW_PULL)
			nbnic_receive(&n->nic, &from, &t, w->now);
	t.type = NBFW_PULL;
	t.arg = NBAR_RANK_NONE; /* the PULL does not name the rank that it asks */
	nbnic_receive(&n->nic, &from, &t, w->now);
	assert_int_equal(n->sent_pass, 0);
	t.arg = 0;
	for (uint32_t i = 0; i < 2 * NBNIC_QUOTA; i++)
		nbnic_receive(&n->nic, &from, &t, w->now);
	assert_int_equal(n->sent_pass, NBNIC_QUOTA);
	net_round(w);
	nbnic_receive(&n->nic, &from, &t, w->now);
	assert_int_equal(n->sent_pass, 1);
	assert_int_equal(n->nic.counter[NBAR_COUNTER_frames_stranger],
			 NBFW_TYPE_END - 2 + 2 + 2 * NBNIC_QUOTA);
	net_free(w);
}

/* Answers leave room in a pass for waiting frames. Answers without room are counted, not queued. */
static void test_answers_leave_room(void **state)
{
	struct net *w = net_new();
	struct net_nic *n = &w->n[0];
	const struct nbnic_addr from = { { 1 } };
	const uint32_t room = NBNIC_PASS_FRAMES(NBNIC_QUOTA) - NBNIC_QUOTA;

	w->n[1].sink = true;
	net_pair(w, 0, 0, 1, 0, 0);
	const struct nbfw_token t = { .type = NBFW_PULL,
				      .handle = n->host[0][0].group->handle,
				      .cookie = n->host[0][0].group->cookie,
				      .src = 1,
				      .epoch = 1,
				      .sender = n->host[0][0].group->peer[0].handle };

	for (uint32_t i = 0; i < NET_BURST; i++)
		nbnic_receive(&n->nic, &from, &t, w->now);
	assert_int_equal(n->sent_pass, room);
	assert_int_equal(n->nic.counter[NBAR_COUNTER_replies_dropped], NET_BURST - room);
	assert_int_equal(n->nic.counter[NBAR_COUNTER_pulls_received], NET_BURST);
	net_free(w);
}

/* 4,096 peers in falling order: each send and slot finds its peer. */
static void test_peers_in_falling_order(void **state)
{
	static uint32_t block[8192];
	struct nbar_plan *p = (struct nbar_plan *)block;
	struct net *w = net_new();
	struct nbnic_group *g;

	memcpy(block, net_plan(SLOTS + 1, 0, SLOTS, 0), sizeof(block));
	p->nsend = 2048;
	p->nrecv = 2048;
	*(struct nbar_step *)(p + 1) = (struct nbar_step){ 0, 2048, 0, 2048 };
	struct nbar_send *send = (struct nbar_send *)((struct nbar_step *)(p + 1) + 1);
	struct nbar_recv *recv = (struct nbar_recv *)(send + 2048);

	for (uint32_t i = 0; i < 2048; i++) {
		send[i] = (struct nbar_send){ SLOTS - i, 0 };
		recv[i].src = SLOTS - 1024 - i;
	}
	g = net_open(w, 0, 0, 0, "custom", SLOTS + 1, 0, p);
	assert_int_equal(g->npeer, 3072);
	for (uint32_t i = 1; i < g->npeer; i++)
		assert_true(g->peer[i - 1].rank < g->peer[i].rank);
	for (uint32_t i = 0; i < 2048; i++) {
		assert_int_equal(g->peer[g->send_peer[i]].rank, SLOTS - i);
		assert_int_equal(g->peer[g->recv_peer[i]].rank, SLOTS - 1024 - i);
	}
	net_free(w);
}

UNIT_MAIN(NULL, NULL, UNIT(test_early_root_with_short_queues),
	  UNIT(test_many_small_groups_with_short_queues), UNIT(test_heard_by_another_group),
	  UNIT(test_silent_nic), UNIT(test_restarted_peer_is_found_at_once),
	  UNIT(test_restarted_peer_with_a_new_group), UNIT(test_closed_long_ago),
	  UNIT(test_strangers), UNIT(test_answers_leave_room), UNIT(test_peers_in_falling_order))
