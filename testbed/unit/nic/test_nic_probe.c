/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_probe.c - PROBEs: whether the NICs of a group hear each other before its first barrier.
 * Lost frames, one direction, strangers, groups that are closed or not connected yet, the pace, and
 * the share of a pass.
 */
#include "unit/nic/nic_net.h"
#include "unit/unit.h"

#define MANY 4096u

static struct nbnic_group *group_of(const struct net *w, uint32_t nic)
{
	return w->n[nic].host[0][0].group;
}

/* What a request of the host of a NIC is told. */
static struct nbnic_reach reach(struct net *w, uint32_t nic, uint32_t rank)
{
	struct nbnic_reach out;

	nbnic_group_reach(&w->n[nic].nic, group_of(w, nic), rank, w->now, &out);
	return out;
}

/* The host asks again and again, for this time, until all peers have answered. True: they have. */
static bool reaches(struct net *w, uint32_t nic, uint64_t ns)
{
	uint64_t end = w->now + ns;

	while (reach(w, nic, NBAR_RANK_NONE).missing > 0 && w->now < end)
		net_pass(w, NET_MS);
	return reach(w, nic, NBAR_RANK_NONE).missing == 0;
}

static uint64_t counter(const struct net *w, uint32_t nic, enum nbar_counter c)
{
	return w->n[nic].nic.counter[c];
}

static void test_both_ways(void **state)
{
	struct net *w = net_new();
	struct nbnic_reach r;

	net_pair(w, 0, 0, 1, 0, 0);
	r = reach(w, 0, NBAR_RANK_NONE);
	assert_int_equal(r.missing, 1);
	assert_int_equal(r.peer->rank, 1);
	assert_false(r.is_heard);
	assert_int_equal(nbnic_next(&w->n[0].nic), 0);
	net_pass(w, NET_MS);
	r = reach(w, 0, NBAR_RANK_NONE);
	assert_int_equal(r.missing, 0);
	assert_null(r.peer);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_probes_sent), 1);
	assert_int_equal(counter(w, 1, NBAR_COUNTER_echoes_sent), 1);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_echoes_received), 1);
	/* All have answered: nothing more is sent, and the NIC is as idle as before. */
	net_pass(w, 10 * NET_MS);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_probes_sent), 1);
	assert_false(w->n[0].nic.probing);
	assert_true(nbnic_next(&w->n[0].nic) > w->now);
	/* The other member has not asked, but knows that rank 0 is alive. */
	r = reach(w, 1, 0);
	assert_int_equal(r.missing, 1);
	assert_true(r.is_heard);
	net_post(w, 0, 0, 0, 1);
	net_post(w, 1, 0, 0, 1);
	net_rounds_until(w, 0, 0, 0, 1, 4);
	net_free(w);
}

/* Requests that come faster than the pull interval send no more PROBEs. */
static void test_pace_of_one_peer(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	w->n[1].dead = true;
	for (uint32_t i = 0; i < 1000; i++) { /* 10 ms */
		reach(w, 0, NBAR_RANK_NONE);
		net_round(w);
	}
	assert_in_range(counter(w, 0, NBAR_COUNTER_probes_sent), 9, 11);
	/* A request about a rank sends nothing. */
	net_pass(w, 10 * NET_MS);
	uint64_t sent = counter(w, 0, NBAR_COUNTER_probes_sent);

	assert_int_equal(reach(w, 0, 1).peer->rank, 1);
	net_pass(w, 10 * NET_MS);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_probes_sent), sent);
	net_free(w);
}

/* A NIC answers for a group that is open, even if its own host has not connected it yet. A member
 * that is not connected asks nobody. */
static void test_before_connect(void **state)
{
	struct net *w = net_new();
	struct nbnic_group *g[2] = {
		net_open(w, 0, 0, 0, "dissemination:1", 2, 0, NULL),
		net_open(w, 1, 0, 0, "dissemination:1", 2, 1, NULL),
	};
	struct nbar_endpoint endpoint[2];

	nbnic_group_endpoint(&w->n[0].nic, g[0], &endpoint[0]);
	nbnic_group_endpoint(&w->n[1].nic, g[1], &endpoint[1]);
	net_connect(w, 0, g[0], endpoint);
	assert_true(reaches(w, 0, 2 * NET_MS));
	assert_null(reach(w, 1, NBAR_RANK_NONE).peer);
	assert_false(reaches(w, 1, 2 * NET_MS));
	assert_int_equal(counter(w, 1, NBAR_COUNTER_probes_sent), 0);
	net_connect(w, 1, g[1], endpoint);
	assert_true(reaches(w, 1, 2 * NET_MS));
	net_free(w);
}

static uint32_t seed;

static bool lose_third(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % 10 < 3;
}

/* Of 30 % of lost frames, nobody notices anything. */
static void test_loss(void **state)
{
	for (seed = 1; seed < 1000; seed += 7) {
		uint32_t before = seed;
		struct net *w = net_new();

		net_pair(w, 0, 0, 1, 0, 0);
		w->lost = lose_third;
		require(reaches(w, 0, 60 * NET_MS), "seed %u", before);
		net_free(w);
		seed = before;
	}
}

static uint32_t deaf; /* the NIC to which all frames are lost */

static bool lose_direction(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	return to == deaf;
}

/* Frames go only from NIC 1 to NIC 0: both members miss the other, and member 0 knows that it hears
 * the NIC that does not hear it. */
static void test_one_direction(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	w->lost = lose_direction;
	deaf = 1;
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(reach(w, 0, NBAR_RANK_NONE).missing, 1);
		assert_int_equal(reach(w, 1, NBAR_RANK_NONE).missing, 1);
		net_pass(w, NET_MS);
	}
	assert_true(reach(w, 0, NBAR_RANK_NONE).is_heard);
	assert_false(reach(w, 1, NBAR_RANK_NONE).is_heard);
	assert_true(counter(w, 0, NBAR_COUNTER_echoes_sent) > 10);
	assert_int_equal(counter(w, 1, NBAR_COUNTER_echoes_received), 0);
	deaf = NET_NICS; /* the firewall is removed */
	assert_true(reaches(w, 0, 2 * NET_MS) && reaches(w, 1, 2 * NET_MS));
	net_free(w);
}

/* The NIC has died, or was restarted and does not know the group. */
static void test_dead_and_restarted(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	w->n[1].dead = true;
	assert_false(reaches(w, 0, 20 * NET_MS));
	w->n[1].dead = false;
	net_restart(w, 1);
	assert_false(reaches(w, 0, 20 * NET_MS));
	assert_int_equal(counter(w, 1, NBAR_COUNTER_echoes_sent), 0);
	assert_true(counter(w, 1, NBAR_COUNTER_frames_stranger) > 10);
	net_free(w);
}

/* A group that its host has closed: the set-up has failed there. */
static void test_closed(void **state)
{
	struct net *w = net_new();

	net_pair(w, 0, 0, 1, 0, 0);
	nbnic_group_close(&w->n[1].nic, group_of(w, 1), NBAR_STATUS_CLOSED, w->now);
	assert_false(reaches(w, 0, 20 * NET_MS));
	assert_int_equal(counter(w, 1, NBAR_COUNTER_echoes_sent), 0);
	/* A group that is closed while PROBEs wait leaves no trace. */
	nbnic_group_close(&w->n[0].nic, group_of(w, 0), NBAR_STATUS_CLOSED, w->now);
	net_pass(w, 3 * NET_BUDGET);
	assert_null(group_of(w, 0));
	net_free(w);
}

/* Frames of strangers, of other members, and of other NICs: no answer, and no effect. */
static void test_strangers(void **state)
{
	struct net *w = net_new();
	const struct nbnic_addr peer = { { 1 } }, other = { { 2 } };
	struct nbnic_group *g;

	net_pair(w, 0, 0, 1, 0, 0);
	g = group_of(w, 0);
	const struct nbfw_token good = {
		.type = NBFW_PROBE,
		.handle = g->handle,
		.cookie = g->cookie,
		.src = 1,
		.arg = 0,
		.sender = group_of(w, 1)->handle,
		.reply_cookie = group_of(w, 1)->cookie,
	};
	const struct {
		const struct nbnic_addr *from;
		uint8_t type;
		uint32_t handle;
		uint64_t cookie;
		uint32_t src;
		enum nbar_counter counted;
	} bad[] = {
		{ &peer, NBFW_PROBE, good.handle, good.cookie + 1, 1,
		  NBAR_COUNTER_frames_stranger },
		{ &peer, NBFW_PROBE, good.handle + 0x10000, good.cookie, 1,
		  NBAR_COUNTER_frames_stranger },
		{ &peer, NBFW_PROBE, good.handle + 1, good.cookie, 1,
		  NBAR_COUNTER_frames_stranger },
		{ &peer, NBFW_PROBE, good.handle, good.cookie, 0, NBAR_COUNTER_frames_bad },
		{ &peer, NBFW_PROBE, good.handle, good.cookie, 2, NBAR_COUNTER_frames_bad },
		{ &other, NBFW_PROBE, good.handle, good.cookie, 1, NBAR_COUNTER_frames_bad },
		{ &peer, NBFW_ECHO, good.handle, good.cookie + 1, 1, NBAR_COUNTER_frames_stranger },
		{ &peer, NBFW_ECHO, good.handle, good.cookie, NBAR_RANK_NONE,
		  NBAR_COUNTER_frames_bad },
		{ &other, NBFW_ECHO, good.handle, good.cookie, 1, NBAR_COUNTER_frames_bad },
		{ &peer, NBFW_PROBE, good.handle, good.cookie, 1, NBAR_COUNTER_frames_bad },
		{ &peer, NBFW_ECHO, good.handle, good.cookie, 1, NBAR_COUNTER_frames_bad },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t before = counter(w, 0, bad[i].counted);
		struct nbfw_token t = good;

		t.type = bad[i].type;
		t.handle = bad[i].handle;
		t.cookie = bad[i].cookie;
		t.src = bad[i].src;
		t.sender += i + 2 >= sizeof(bad) / sizeof(bad[0]); /* another group of that NIC */
		nbnic_receive(&w->n[0].nic, bad[i].from, &t, w->now);
		require(counter(w, 0, bad[i].counted) == before + 1, "frame %zu", i);
		require(w->n[0].sent_pass == 0 && !reach(w, 0, 1).is_heard &&
				reach(w, 0, 1).missing == 1,
			"frame %zu has an effect", i);
	}
	nbnic_receive(&w->n[0].nic, &peer, &good, w->now);
	assert_int_equal(w->n[0].sent_pass, 1);
	assert_true(reach(w, 0, 1).is_heard);
	/* Once and again: one answer each, and one peer stays one peer. */
	for (uint32_t i = 0; i < 3; i++) {
		struct nbfw_token echo = good;

		echo.type = NBFW_ECHO;
		nbnic_receive(&w->n[0].nic, &peer, &echo, w->now);
		assert_int_equal(reach(w, 0, 1).missing, 0);
	}
	assert_null(reach(w, 0, 0).peer); /* its own rank, and none of the group */
	assert_null(reach(w, 0, 7).peer);
	net_free(w);
}

static bool is_probe(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	static uint32_t next;

	if (t->type == NBFW_PROBE) {
		require(t->slot == next % MANY && t->arg == t->slot + 1, "PROBE to peer %u, not %u",
			t->slot, next % MANY);
		next++;
	}
	return true;
}

/* 4,096 peers: each gets one PROBE in a round, in order, within the pace and the share of a pass.
 */
static void test_many_peers(void **state)
{
	struct net *w = net_new_quota(1);
	struct nbnic_group *g =
		net_open(w, 0, 0, 0, "custom", MANY + 1, 0, net_plan(MANY + 1, 0, MANY, 0));
	uint64_t sent = 0, begin;

	net_connect_phantoms(w, 0, g, 2);
	w->lost = is_probe;
	begin = w->now;
	assert_int_equal(reach(w, 0, NBAR_RANK_NONE).missing, MANY);
	while (w->n[0].nic.probing) {
		net_round(w);
		assert_in_range(counter(w, 0, NBAR_COUNTER_probes_sent) - sent, 0, 1);
		sent = counter(w, 0, NBAR_COUNTER_probes_sent);
		assert_in_range(sent, 0,
				NBNIC_PULLS_A_TICK * (1 + (w->now - begin) / (NET_MS / 2)));
	}
	assert_int_equal(sent, MANY);
	net_pass(w, 10 * NET_MS);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_probes_sent), MANY);
	/* The second round, and the wire has no room for a while. */
	reach(w, 0, NBAR_RANK_NONE);
	w->n[2].refuses = true;
	w->n[2].limit = 0;
	net_pass(w, NET_MS);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_probes_sent), MANY);
	w->n[2].refuses = false;
	net_pass(w, NET_SECOND);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_probes_sent), 2 * MANY);
	net_free(w);
}

/* PROBEs and PULLs have turns: a backlog of one does not stop the other. */
static void test_beside_pulls(void **state)
{
	struct net *w = net_new_quota(1);

	w->n[2].sink = true;
	net_connect_phantoms(
		w, 0, net_open(w, 0, 1, 0, "custom", MANY + 1, 0, net_plan(MANY + 1, 0, 0, MANY)),
		2);
	net_pair(w, 0, 0, 1, 0, 0);
	net_post(w, 0, 1, 0, 1);
	while (counter(w, 0, NBAR_COUNTER_pulls_sent) < 10)
		net_round(w);
	assert_true(reaches(w, 0, 5 * NET_MS));
	/* And the other way round: many peers wait for PROBEs. */
	nbnic_group_close(&w->n[0].nic, w->n[0].host[1][0].group, NBAR_STATUS_CLOSED, w->now);
	net_connect_phantoms(
		w, 0, net_open(w, 0, 2, 0, "custom", MANY + 1, 0, net_plan(MANY + 1, 0, MANY, 0)),
		2);
	struct nbnic_reach out;

	nbnic_group_reach(&w->n[0].nic, w->n[0].host[2][0].group, NBAR_RANK_NONE, w->now, &out);
	net_pair(w, 0, 3, 1, 3, 1);
	w->n[1].dead = true;
	net_post(w, 0, 3, 1, 1);
	uint64_t pulls = counter(w, 0, NBAR_COUNTER_pulls_sent);

	net_pass(w, 5 * NET_MS);
	assert_true(w->n[0].nic.probing);
	assert_true(counter(w, 0, NBAR_COUNTER_pulls_sent) >= pulls + 2);
	net_free(w);
}

/* Answers leave room in a pass for waiting frames; those without room are dropped and counted. */
static void test_answers_have_a_bound(void **state)
{
	struct net *w = net_new();
	const struct nbnic_addr from = { { 1 } };
	const uint32_t room = NBNIC_PASS_FRAMES(NBNIC_QUOTA) - NBNIC_QUOTA;

	w->n[1].sink = true;
	net_pair(w, 0, 0, 1, 0, 0);
	const struct nbfw_token t = { .type = NBFW_PROBE,
				      .handle = group_of(w, 0)->handle,
				      .cookie = group_of(w, 0)->cookie,
				      .src = 1,
				      .sender = group_of(w, 1)->handle };

	for (uint32_t i = 0; i < NET_BURST; i++)
		nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].sent_pass, room);
	assert_int_equal(counter(w, 0, NBAR_COUNTER_replies_dropped), NET_BURST - room);
	net_free(w);
}

UNIT_MAIN(NULL, NULL, UNIT(test_both_ways), UNIT(test_pace_of_one_peer), UNIT(test_before_connect),
	  UNIT(test_loss), UNIT(test_one_direction), UNIT(test_dead_and_restarted),
	  UNIT(test_closed), UNIT(test_strangers), UNIT(test_many_peers), UNIT(test_beside_pulls),
	  UNIT(test_answers_have_a_bound))
