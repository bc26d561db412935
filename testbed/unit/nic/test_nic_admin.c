/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_admin.c - the life of groups on a NIC, over a simulated wire and clock: open, connect,
 * close, linger, and refusals.
 */
#include "unit/unit.h"

#include "nic_world.h"

static void closed_member_answers_while_it_lingers(void **state)
{
	struct world *w = world_connected(2, "dissemination:1");

	post(w, 1, 1);
	settle(w);
	w->loss_percent = 100;
	post(w, 0, 1); /* completes, by the token of rank 1; the token of rank 0 is lost */
	w->loss_percent = 0;
	assert_int_equal(w->member[0].completions, 1);
	nbnic_group_close(&w->member[0].nic, w->member[0].group, NBAR_STATUS_CLOSED, w->now);
	assert_int_equal(w->member[1].completions, 0);
	pass_time(w, 3 * MS);
	assert_int_equal(w->member[1].completions, 1);
	/* The next barrier can never complete: a member that asks gets the reason. */
	post(w, 1, 2);
	pass_time(w, 3 * MS);
	assert_int_equal(w->member[1].status, NBAR_STATUS_CLOSED);
	assert_int_equal(w->member[1].failed_rank, 0);
	assert_int_equal(w->member[0].released, 0);
	pass_time(w, world_config.budget_ns + MS);
	assert_int_equal(w->member[0].released, 1);
	assert_int_equal(w->member[0].nic.nlinger, 0);
	world_close(w);
}

static void orderly_close_sends_nothing(void **state)
{
	struct world *w = world_connected(4, "pairwise");
	uint32_t sent;

	post_all(w, 1);
	sent = w->sent;
	for (uint32_t i = 0; i < 4; i++)
		nbnic_group_close(&w->member[i].nic, w->member[i].group, NBAR_STATUS_CLOSED,
				  w->now);
	assert_int_equal(w->sent, sent);
	assert_int_equal(counted(w, NBAR_COUNTER_barriers_failed), 0);
	world_close(w);
}

/* The NIC informs its hosts at once, and its peers by its last frames. Lingering groups do not
 * change. */
static void nic_that_fails_tells_all(void **state)
{
	struct world *w = world_connected(4, "pairwise");

	post_all(w, 1);
	post(w, 1, 2);
	nbnic_fail(&w->member[0].nic, NBAR_STATUS_NIC_DOWN, w->now);
	nbnic_fail(&w->member[0].nic, NBAR_STATUS_NIC_DOWN, w->now);
	settle(w);
	assert_int_equal(w->member[0].status, NBAR_STATUS_NIC_DOWN);
	assert_int_equal(w->member[0].failed_rank, 0);
	assert_int_equal(w->member[0].completions, 1);
	assert_int_equal(w->member[1].status, NBAR_STATUS_NIC_DOWN);
	assert_int_equal(w->member[1].failed_rank, 0);
	nbnic_group_close(&w->member[0].nic, w->member[0].group, NBAR_STATUS_CLOSED, w->now);
	nbnic_fail(&w->member[0].nic, NBAR_STATUS_NIC_DOWN, w->now);
	assert_int_equal(w->member[0].nic.nlinger, 1);
	world_close(w);
}

static void strangers_are_dropped(void **state)
{
	struct world *w = world_connected(2, "pairwise");
	struct member *m = &w->member[0];
	struct nbnic_addr from = { { 1 } };
	struct nbfw_token good = { .type = NBFW_TOKEN,
				   .handle = m->group->handle,
				   .cookie = m->group->cookie,
				   .src = 1,
				   .epoch = 1,
				   .sender = m->group->peer[0].handle };
	struct nbfw_token t = good;

	t.cookie ^= 1;
	nbnic_receive(&m->nic, &from, &t, w->now);
	t = good;
	t.handle += UINT32_C(1) << 16; /* another generation */
	nbnic_receive(&m->nic, &from, &t, w->now);
	t.handle = 0xffffffff;
	nbnic_receive(&m->nic, &from, &t, w->now);
	t.handle = 77;
	nbnic_receive(&m->nic, &from, &t, w->now);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_frames_stranger], 4);
	t = good;
	t.src = 0; /* not the source of this slot */
	nbnic_receive(&m->nic, &from, &t, w->now);
	t = good;
	t.slot = 99;
	nbnic_receive(&m->nic, &from, &t, w->now);
	t = good;
	t.epoch = 3; /* further ahead than any member can be */
	nbnic_receive(&m->nic, &from, &t, w->now);
	t = good;
	t.type = NBFW_SIGNAL;
	nbnic_receive(&m->nic, &from, &t, w->now);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_frames_bad], 4);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_tokens_received], 0);
	post_all(w, 1);
	assert_int_equal(m->completions, 1);

	/* An old group: same index, another generation and cookie. */
	nbnic_group_close(&m->nic, m->group, NBAR_STATUS_CLOSED, w->now);
	pass_time(w, world_config.budget_ns + MS);
	assert_int_equal(open_group(m, "pairwise", 2, 0, &m->group), 0);
	assert_int_equal(m->group->handle & 0xffff, good.handle & 0xffff);
	nbnic_receive(&m->nic, &from, &good, w->now);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_frames_stranger], 5);
	world_close(w);
}

static void full_nic_says_so(void **state)
{
	struct world *w = world_open(2, "pairwise");
	struct member *m = &w->member[0];
	static struct nbnic_group *g[NBAR_GROUPS_MAX];
	struct nbnic_group *more;

	for (uint32_t i = 1; i < NBAR_GROUPS_MAX; i++)
		assert_int_equal(open_group(m, "pairwise", 2, 0, &g[i]), 0);
	assert_int_equal(open_group(m, "pairwise", 2, 0, &more), -NBFW_ENOSPC);
	/* Closing makes room at once, although closed groups linger. */
	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 1; i < NBAR_GROUPS_MAX; i++) {
			nbnic_group_close(&m->nic, g[i], NBAR_STATUS_CLOSED, w->now + round);
			assert_int_equal(open_group(m, "pairwise", 2, 0, &g[i]), 0);
		}
	}
	assert_int_equal(m->nic.nopen, NBAR_GROUPS_MAX);
	assert_int_equal(m->nic.nopen + m->nic.nlinger, NBNIC_HANDLES);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_linger_cut],
			 6 * NBAR_GROUPS_MAX - 5 - NBNIC_HANDLES);
	m->group = (struct nbnic_group *)(void *)8; /* behind the NIC, which must not read it */
	nbnic_fail(&m->nic, NBAR_STATUS_NIC_DOWN, w->now);
	assert_int_equal(m->status, NBAR_STATUS_NIC_DOWN);
	world_close(w);
}

/* A client that opens and closes large groups again and again gets a bounded part of the NIC's
 * memory. */
static void lingering_has_a_limit(void **state)
{
	struct world *w = world_open(2, "pairwise");
	struct member *m = &w->member[0];
	struct nbnic_group *g;
	uint32_t last = 0;

	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(open_group(m, "linear", NBFW_ROOT_MAX, 0, &g), 0);
		last = g->handle & 0xffff;
		nbnic_group_close(&m->nic, g, NBAR_STATUS_CLOSED, w->now + i);
	}
	assert_true(m->nic.linger_bytes <= m->nic.linger_bytes_max);
	assert_true(m->nic.nlinger > 10);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_linger_cut], 500 - m->nic.nlinger);
	assert_non_null(m->nic.group[last]); /* the NIC has released older groups */
	pass_time(w, world_config.budget_ns + MS);
	assert_int_equal(m->nic.linger_bytes, 0);
	world_close(w);
}

static void refused_endpoints_change_nothing(void **state)
{
	static const struct {
		uint32_t at;
		uint8_t flip;
		const char *why;
	} wrong[] = {
		{ 0, 1, "not the endpoint address of a NIC" },
		{ 4, 2,
		  "it was opened with values, or its NIC speaks another version of the protocol" },
		{ 6, 4, "its NIC is on another kind of wire" },
		{ 16, 1, "it was opened with another size, algorithm or tag" },
		{ 20, 1, "it was opened with another size, algorithm or tag" },
		{ 12, 1, "it is the endpoint address of another rank" },
		{ 13, 1, "its rank is not that of a peer" },
	};
	struct world *w = world_open(8, "dissemination:1");
	struct member *m = &w->member[0];
	struct nbar_endpoint endpoint[8];
	uint32_t bad, n = m->group->npeer;
	const char *why;

	for (uint32_t i = 0; i < n; i++)
		endpoint[i] = w->member[m->group->peer[i].rank].endpoint;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct nbar_endpoint keep = endpoint[2];

		endpoint[2].byte[wrong[i].at] ^= wrong[i].flip;
		assert_int_equal(nbnic_group_connect(&m->nic, m->group, endpoint, n, 1, &bad, &why),
				 -NBNIC_EPROTO);
		assert_int_equal(bad, 2);
		assert_string_equal(why, wrong[i].why);
		assert_int_equal(m->group->nconnected, 0);
		endpoint[2] = keep;
	}
	endpoint[n] = endpoint[0];
	assert_int_equal(nbnic_group_connect(&m->nic, m->group, endpoint, n + 1, 1, &bad, &why),
			 -NBNIC_EPROTO);
	assert_int_equal(m->group->life, NBAR_LIFE_OPEN);
	for (uint32_t i = 0; i < 8; i++)
		connect_member(w, i);
	post_all(w, 1);
	assert_int_equal(m->completions, 1);
	world_close(w);
}

static void budget_too_short_is_refused(void **state)
{
	static const struct nbnic_config wrong[] = {
		{ .pull_ns = 0, .budget_ns = 1000 },
		{ .pull_ns = 100, .budget_ns = 64 * 100 - 1 },
	};
	static const struct nbnic_config right = { .pull_ns = 100, .budget_ns = 64 * 100 };
	struct nbnic_addr addr = { { 0 } };
	struct nbnic nic;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(nbnic_init(&nic, &world_ops, NULL, 1, &addr, &wrong[i]),
				 -NBFW_EINVAL);
	assert_int_equal(nbnic_init(&nic, &world_ops, NULL, 1, &addr, &right), 0);
	assert_int_equal(nbnic_init(&nic, &world_ops, NULL, 1, &addr, &world_config), 0);
	for (uint32_t i = 0; i < NBFW_WINDOW; i++)
		sum += nic.interval[i];
	assert_int_equal(sum, world_config.budget_ns);
}

UNIT_MAIN(NULL, NULL, UNIT(closed_member_answers_while_it_lingers),
	  UNIT(orderly_close_sends_nothing), UNIT(nic_that_fails_tells_all),
	  UNIT(strangers_are_dropped), UNIT(full_nic_says_so), UNIT(lingering_has_a_limit),
	  UNIT(refused_endpoints_change_nothing), UNIT(budget_too_short_is_refused))
