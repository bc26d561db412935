/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_forged.c - a NIC speaks for its own members alone: frames in the name of a member count
 * only if they come from the member's NIC, and if this NIC says that they come from the member,
 * even if handle, cookie and rank are right. Other groups of the member's NIC may be another
 * user's.
 */
#include "unit/unit.h"

#include "nic_world.h"

static const struct nbnic_addr liar = { { 77 } };

/* A frame of rank 1 for the first slot of member 0. */
static struct nbfw_token frame_of(const struct world *w, uint8_t type)
{
	const struct nbnic_group *g = w->member[0].group;

	return (struct nbfw_token){ .type = type,
				    .handle = g->handle,
				    .cookie = g->cookie,
				    .src = 1,
				    .epoch = 1,
				    .arg = 1,
				    .info = type == NBFW_ABORT   ? NBAR_STATUS_CLOSED
					    : type == NBFW_LATER ? NBAR_WHY_HOST_LATE << 29
								 : 0,
				    .sender = w->member[1].group->handle,
				    .reply_cookie = type == NBFW_SIGNAL
							    ? w->member[1].group->handle
							    : w->member[1].group->cookie };
}

static uint64_t bad(const struct world *w)
{
	return w->member[0].nic.counter[NBAR_COUNTER_frames_bad];
}

/* `other` is added to the handle of the sender: not 0 means another group of the same NIC. */
static void say_of(struct world *w, const struct nbnic_addr *from, uint32_t other, uint8_t type)
{
	struct nbfw_token t = frame_of(w, type);

	t.sender += other;
	nbnic_receive(&w->member[0].nic, from, &t, w->now);
}

static void say(struct world *w, const struct nbnic_addr *from, uint8_t type)
{
	say_of(w, from, 0, type);
}

static void is_refused_of(struct world *w, const struct nbnic_addr *from, uint32_t other)
{
	struct member *m = &w->member[0];
	uint32_t sent = w->sent;
	uint64_t before = bad(w);

	for (uint8_t type = NBFW_TOKEN; type < NBFW_TYPE_END; type++)
		say_of(w, from, other, type);
	assert_int_equal(bad(w), before + NBFW_TYPE_END - 1);
	assert_int_equal(w->sent, sent); /* a PULL gets no answer */
	assert_int_equal(m->completions, 0);
	assert_int_equal(m->status, NBAR_STATUS_OK);
	assert_int_equal(m->nstragglers, 0);
	assert_int_equal(m->group->state->tries, 0);
}

static void is_refused(struct world *w, const struct nbnic_addr *from)
{
	is_refused_of(w, from, 0);
}

/* In a barrier under way, both in doubt, when the NIC looks at tokens, and without a doubt. */
static void test_all_types(void **state)
{
	const struct nbnic_addr own = { { 1 } };

	for (uint32_t doubt = 0; doubt < 2; doubt++) {
		struct world *w = world_connected(2, "pairwise");
		struct member *m = &w->member[0];

		post(w, 0, 1);
		if (doubt)
			m->nic.doubt_end = UINT64_MAX;
		is_refused(w, &liar);
		for (uint32_t bit = 0; bit < 32; bit++)
			is_refused_of(w, &own, UINT32_C(1) << bit);
		for (uint32_t i = 0; i < NBNIC_HEARD_MAX; i++)
			assert_int_equal(m->nic.heard[i].nic, 0);
		say(w, &own, NBFW_LATER);
		assert_int_equal(m->nstragglers, 1);
		say(w, &own, NBFW_TOKEN);
		assert_int_equal(m->completions, 1);
		world_close(w);
	}
}

/* Each byte of the name counts, and no byte behind the name. */
static void test_each_byte(void **state)
{
	struct world *w = world_connected(2, "pairwise");

	post(w, 0, 1);
	for (uint32_t at = 0; at < NBNIC_ADDR_SIZE; at++)
		for (uint32_t bit = 0; bit < 8; bit++) {
			struct nbnic_addr from = { { 1 } };

			from.byte[at] ^= (uint8_t)(1 << bit);
			if (at < NBNIC_ADDR_NAME)
				is_refused(w, &from);
		}
	struct nbnic_addr from = { { 1 } };

	memset(from.byte + NBNIC_ADDR_NAME, 0x55, NBNIC_ADDR_SIZE - NBNIC_ADDR_NAME);
	say(w, &from, NBFW_TOKEN);
	assert_int_equal(w->member[0].completions, 1);
	world_close(w);
}

/* A member's NIC lies about other members of its own group. */
static void test_of_another_member(void **state)
{
	struct world *w = world_connected(8, "dissemination:1");
	const struct nbnic_group *g = w->member[0].group;

	post(w, 0, 1);
	for (uint32_t slot = 0; slot < g->plan->nrecv; slot++) {
		uint32_t src = nbfw_plan_recvs(g->plan)[slot].src;

		for (uint32_t r = 0; r < 8; r++) {
			const struct nbnic_addr from = { { (uint8_t)r } };
			struct nbfw_token t = frame_of(w, NBFW_TOKEN);

			t.slot = slot;
			t.src = src;
			if (r != src)
				nbnic_receive(&w->member[0].nic, &from, &t, w->now);
		}
	}
	assert_int_equal(bad(w), 7 * g->plan->nrecv);
	assert_int_equal(w->member[0].completions, 0);
	post_all(w, 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(w->member[i].completions, 1);
	world_close(w);
}

/* Tokens that come before the member connects its peers: kept if the endpoint address then names
 * their NIC and handle, without a PULL; else forgotten, and a PULL brings the true ones. A second
 * NIC, or another group of the same NIC, does not speak for the same member. */
static void test_before_connect(void **state)
{
	const struct nbnic_addr own = { { 1 } };

	for (uint32_t i = 0; i < 4; i++) {
		struct world *w = world_open(2, "pairwise");
		struct member *m = &w->member[0];
		const uint32_t other = i / 2; /* a liar of the same NIC */
		const struct nbnic_addr from = other ? own : liar;
		const bool lie = i % 2;

		connect_member(w, 1);
		say_of(w, &from, other, NBFW_ABORT);
		say_of(w, &from, other, NBFW_LATER);
		if (lie)
			say_of(w, &from, other, NBFW_TOKEN);
		post(w, 1, 1);
		settle(w); /* the true token */
		if (!lie)
			say_of(w, &from, other, NBFW_TOKEN);
		assert_int_equal(bad(w), 1); /* the second one */
		if (lie)                     /* from the member that sent the token */
			say_of(w, &from, other, NBFW_ABORT);
		else
			say(w, &own, NBFW_ABORT);
		assert_int_equal(m->status, NBAR_STATUS_OK);
		assert_int_equal(m->nic.counter[NBAR_COUNTER_tokens_stale], 3);
		connect_member(w, 0);
		assert_int_equal(bad(w), 1 + lie);
		post(w, 0, 1);
		settle(w);
		assert_int_equal(m->status, NBAR_STATUS_OK);
		assert_int_equal(m->completions, !lie);
		assert_int_equal(w->member[1].completions, 1);
		pass_time(w, 3 * MS);
		assert_int_equal(m->completions, 1);
		assert_int_equal(counted(w, NBAR_COUNTER_pulls_sent) > 0, lie);
		world_close(w);
	}
}

/* Before connect, a PULL is answered to where it came from: the member is not connected here, and
 * may not know yet that this member has arrived. */
static void test_pull_before_connect(void **state)
{
	struct world *w = world_open(2, "pairwise");

	say(w, &(struct nbnic_addr){ { 1 } }, NBFW_PULL);
	assert_int_equal(w->sent, 1);
	assert_int_equal(w->queue[0].to, 1);
	assert_int_equal(w->queue[0].token.type, NBFW_LATER);
	world_close(w);
}

/* Raw messages: of a peer that is connected, from its NIC. Peers have any order, and a rank may
 * have several addresses. */
static void test_signals(void **state)
{
	struct world *w = world_open(5, "signal");
	struct member *m = &w->member[0];
	static const uint8_t order[] = { 3, 1, 4 }; /* rank 2 is not connected */
	struct nbar_endpoint endpoint[4], moved;
	struct nbfw_token t = frame_of(w, NBFW_SIGNAL);
	const uint32_t handle = w->member[1].group->handle;
	uint32_t bad_at;
	const char *why;

	for (uint32_t i = 0; i < 3; i++)
		endpoint[i] = w->member[order[i]].endpoint;
	moved = w->member[3].endpoint;
	moved.byte[32] = 9; /* the address of another NIC */
	endpoint[3] = moved;
	assert_int_equal(nbnic_group_connect(&m->nic, m->group, endpoint, 3, 0, &bad_at, &why), 0);
	assert_int_equal(nbnic_group_connect(&m->nic, m->group, endpoint + 3, 1, 0, &bad_at, &why),
			 0);
	for (uint32_t src = 0; src < 6; src++)
		for (uint8_t at = 0; at < 10; at++) {
			const struct nbnic_addr from = { { at } };
			bool right = (src == at && (src == 1 || src == 3 || src == 4)) ||
				     (src == 3 && at == 9);
			uint32_t got = m->signals;
			uint64_t before = bad(w);

			t.src = src;
			for (uint32_t other = 2; other > 0; other--) {
				t.reply_cookie = handle + ((other - 1) << (src + at));
				nbnic_receive(&m->nic, &from, &t, w->now);
			}
			assert_int_equal(m->signals, got + right);
			assert_int_equal(bad(w), before + 1 + !right);
			if (right)
				assert_int_equal(m->signal_src, src);
		}
	assert_int_equal(m->signals, 4);
	world_close(w);
}

UNIT_MAIN(NULL, NULL, UNIT(test_all_types), UNIT(test_each_byte), UNIT(test_of_another_member),
	  UNIT(test_before_connect), UNIT(test_pull_before_connect), UNIT(test_signals))
