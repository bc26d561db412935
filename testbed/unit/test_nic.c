/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic.c - the NIC loop and the life of groups, over a simulated wire and clock.
 *
 * A world of NICs with one member each. The wire is a queue; the clock moves when nothing else
 * does. Everything is decided by the test: what is lost, who posts, when time passes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic.h"

#define MEMBERS_MAX 20
#define QUEUE_MAX 65536
#define MS UINT64_C(1000000)

struct frame {
	uint32_t from, to;
	struct nbfw_token token;
};

struct member {
	struct world *world;
	uint32_t index;
	struct nbnic nic;
	struct nbnic_group *group;
	struct nbar_blob blob;
	uint32_t completions, epoch, status, culprit; /* as told to the host */
	uint32_t nlate, late[NBAR_LATE_MAX];
	uint32_t released;
	uint32_t signals, signal_src, signal_word0;
	bool ring_full, unplugged;
};

struct world {
	struct member member[MEMBERS_MAX];
	struct frame queue[QUEUE_MAX];
	uint32_t head, tail, size, sent;
	uint32_t loss_percent, duplicate_percent;
	uint64_t now;
	const char *alg;
};

static struct world world;

static void on_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct member *m = ctx;
	struct world *w = m->world;
	uint32_t copies = 1;

	w->sent++;
	if (m->unplugged || (uint32_t)rand() % 100 < w->loss_percent)
		return;
	if ((uint32_t)rand() % 100 < w->duplicate_percent)
		copies = 2;
	while (copies--) {
		assert_true(w->tail - w->head < QUEUE_MAX);
		w->queue[w->tail++ % QUEUE_MAX] = (struct frame){ m->index, to->byte[0], *t };
	}
}

static void on_complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			uint32_t culprit)
{
	struct member *m = ctx;

	(void)port, (void)cell;
	if (status == NBAR_STATUS_OK)
		assert_int_equal(epoch, m->epoch + 1); /* in order, each once */
	m->completions += status == NBAR_STATUS_OK;
	m->epoch = epoch;
	m->status = status;
	m->culprit = culprit;
}

static void on_late(void *ctx, uint32_t port, uint32_t cell, const struct nbnic_late *late,
		    uint32_t n)
{
	struct member *m = ctx;

	(void)port, (void)cell;
	m->nlate = n;
	for (uint32_t i = 0; i < n; i++)
		m->late[i] = late[i].rank;
}

static bool on_deliver(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
		       const uint32_t word[NBAR_SIGNAL_WORDS])
{
	struct member *m = ctx;

	(void)port, (void)cell;
	if (m->ring_full)
		return false;
	m->signals++;
	m->signal_src = src;
	m->signal_word0 = word[0];
	return true;
}

static void on_release(void *ctx, struct nbnic_group *block)
{
	struct member *m = ctx;

	m->released++;
	if (m->group == block)
		m->group = NULL;
	free(block);
}

static const struct nbnic_ops ops = { on_transmit, on_complete, on_late, on_deliver, on_release };
static const struct nbnic_config config = { MS, 1000 * MS };

static int open_group(struct member *m, const char *alg, uint32_t size, uint32_t rank,
		      struct nbnic_group **out)
{
	struct nbnic_open arg = { .port = 0,
				  .rank = rank,
				  .size = size,
				  .alg = alg,
				  .cookie = (uint64_t)rand() << 32 | (uint64_t)rand() };
	static uint32_t plan[32768];
	const struct nbar_plan *p = NULL;

	assert_int_equal(nbfw_alg_parse(alg, &arg.kind), 0);
	if (arg.kind.kind != NBFW_ALG_SIGNAL) {
		assert_true(nbfw_plan_generate(arg.kind, size, rank, plan, sizeof(plan)) > 0);
		p = (const struct nbar_plan *)plan;
	}
	arg.plan = p;

	void *block = malloc(nbnic_group_size(p, size));
	int rc = nbnic_group_build(&arg, block, out);

	if (rc == 0)
		rc = nbnic_group_open(&m->nic, *out);
	if (rc < 0)
		free(block);
	return rc;
}

/* size members, opened but not connected. */
static struct world *world_open(uint32_t size, const char *alg)
{
	struct world *w = &world;

	srand(1);
	memset(w, 0, sizeof(*w));
	w->size = size;
	w->alg = alg;
	w->now = 1;
	for (uint32_t i = 0; i < size; i++) {
		struct member *m = &w->member[i];
		struct nbnic_addr addr = { { (uint8_t)i } };

		m->world = w;
		m->index = i;
		assert_int_equal(nbnic_init(&m->nic, &ops, m, 255, &addr, &config), 0);
		assert_int_equal(open_group(m, alg, size, i, &m->group), 0);
		nbnic_group_blob(&m->nic, m->group, &m->blob);
	}
	return w;
}

static void connect_member(struct world *w, uint32_t i)
{
	struct member *m = &w->member[i];
	struct nbar_blob blob[MEMBERS_MAX];
	uint32_t bad, n = 0;
	const char *why;

	if (m->group->is_signal) {
		for (uint32_t r = 0; r < w->size; r++)
			if (r != i)
				blob[n++] = w->member[r].blob;
	} else {
		for (; n < m->group->npeer; n++)
			blob[n] = w->member[m->group->peer[n].rank].blob;
	}
	assert_int_equal(nbnic_group_connect(&m->nic, m->group, blob, n, w->now, &bad, &why), 0);
}

static struct world *world_connected(uint32_t size, const char *alg)
{
	struct world *w = world_open(size, alg);

	for (uint32_t i = 0; i < size; i++)
		connect_member(w, i);
	return w;
}

static void check_states(struct world *w)
{
	for (uint32_t i = 0; i < w->size; i++) {
		const struct nbnic_group *g = w->member[i].group;

		if (g && g->state)
			assert_int_equal(nbfw_check(g->state, g->plan), 0);
	}
}

/* Carries frames until the wire is empty. */
static void settle(struct world *w)
{
	while (w->head != w->tail) {
		struct frame f = w->queue[w->head++ % QUEUE_MAX];
		struct nbnic_addr from = { { (uint8_t)f.from } };
		struct member *m = &w->member[f.to];

		if (!m->unplugged)
			nbnic_receive(&m->nic, &from, &f.token, w->now);
		check_states(w);
	}
}

static void pass_time(struct world *w, uint64_t ns)
{
	for (uint64_t end = w->now + ns; w->now < end; w->now += MS / 2) {
		for (uint32_t i = 0; i < w->size; i++)
			if (!w->member[i].unplugged)
				nbnic_tick(&w->member[i].nic, w->now);
		settle(w);
	}
}

static void post(struct world *w, uint32_t i, uint32_t epoch)
{
	nbnic_doorbell(&w->member[i].nic, w->member[i].group, epoch, w->now);
}

static void post_all(struct world *w, uint32_t epoch)
{
	for (uint32_t i = 0; i < w->size; i++)
		post(w, i, epoch);
	settle(w);
}

static void world_close(struct world *w)
{
	for (uint32_t i = 0; i < w->size; i++)
		nbnic_fini(&w->member[i].nic);
}

static uint64_t counted(struct world *w, enum nbar_counter c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->size; i++)
		sum += w->member[i].nic.counter[c];
	return sum;
}

static void barriers_without_one_extra_frame(void **state)
{
	static const char *const algs[] = { "pairwise", "dissemination:1", "dissemination:3" };

	(void)state;
	for (uint32_t a = 0; a < 3; a++) {
		for (uint32_t size = 1; size <= MEMBERS_MAX; size++) {
			struct world *w = world_connected(size, algs[a]);
			uint32_t sends = 0;

			for (uint32_t i = 0; i < size; i++)
				sends += w->member[i].group->plan->nsend;
			for (uint32_t e = 1; e <= 20; e++) {
				/* nobody completes before the last has arrived */
				for (uint32_t i = 0; i + 1 < size; i++)
					post(w, (i + e) % size, e);
				settle(w);
				for (uint32_t i = 0; i < size; i++)
					assert_int_equal(w->member[i].completions, e - 1);
				post(w, (size - 1 + e) % size, e);
				settle(w);
				for (uint32_t i = 0; i < size; i++)
					assert_int_equal(w->member[i].completions, e);
			}
			assert_int_equal(w->sent, 20 * sends);
			assert_int_equal(counted(w, NBAR_COUNTER_tokens_received), 20 * sends);
			world_close(w);
		}
	}
}

static void posts_ahead_complete_in_order(void **state)
{
	struct world *w = world_connected(5, "dissemination:2");

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		post(w, i, 10);
	post(w, 4, 3);
	settle(w);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(w->member[i].completions, 3);
	post(w, 4, NBAR_POSTED_MAX + 3);
	settle(w);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(w->member[i].completions, 10);
	world_close(w);
}

static void one_event_starts_a_bounded_number(void **state)
{
	struct world *w = world_connected(1, "pairwise");
	uint32_t before;

	(void)state;
	post(w, 0, NBAR_POSTED_MAX);
	before = w->member[0].completions;
	assert_in_range(before, 1, NBAR_POSTED_MAX / 8);
	pass_time(w, NBAR_POSTED_MAX * MS); /* the clock does the rest */
	assert_int_equal(w->member[0].completions, NBAR_POSTED_MAX);
	world_close(w);
}

static void posts_before_connect_wait_for_it(void **state)
{
	struct world *w = world_open(4, "pairwise");

	(void)state;
	post_all(w, 1);
	for (uint32_t i = 0; i < 3; i++)
		connect_member(w, i);
	settle(w);
	/* Member 3 has a slow host: opened, not connected. Its NIC still answers for it. */
	pass_time(w, 5 * config.budget_ns);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(w->member[i].completions, 0);
		assert_int_equal(w->member[i].status, NBAR_STATUS_OK);
	}
	connect_member(w, 3);
	settle(w);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(w->member[i].completions, 1);
	world_close(w);
}

static void late_host_is_named_and_nobody_fails(void **state)
{
	struct world *w = world_connected(16, "dissemination:1");

	(void)state;
	for (uint32_t i = 0; i < 16; i++)
		if (i != 11)
			post(w, i, 1);
	pass_time(w, 10 * config.budget_ns);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(w->member[i].status, NBAR_STATUS_OK);
		assert_int_equal(w->member[i].completions, 0);
		if (i == 11)
			continue;
		bool named = false;

		for (uint32_t k = 0; k < w->member[i].nlate; k++)
			named |= w->member[i].late[k] == 11;
		assert_true(named);
	}
	post(w, 11, 1);
	settle(w);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(w->member[i].completions, 1);
		assert_int_equal(w->member[i].nlate, 0);
	}
	world_close(w);
}

static void silent_nic_is_named_within_two_budgets(void **state)
{
	struct world *w = world_connected(8, "dissemination:1");

	(void)state;
	w->member[5].unplugged = true;
	for (uint32_t i = 0; i < 8; i++)
		post(w, i, 1);
	pass_time(w, config.budget_ns - 2 * MS);
	assert_int_equal(counted(w, NBAR_COUNTER_barriers_failed), 0);
	pass_time(w, config.budget_ns + 4 * MS);
	for (uint32_t i = 0; i < 8; i++) {
		if (i == 5)
			continue;
		assert_int_equal(w->member[i].completions, 0);
		assert_int_equal(w->member[i].status, NBAR_STATUS_SILENT);
		assert_int_equal(w->member[i].culprit, 5);
		assert_int_equal(w->member[i].nic.counter[NBAR_COUNTER_barriers_failed], 1);
	}
	world_close(w);
}

static void dead_host_is_named_at_once(void **state)
{
	struct world *w = world_connected(9, "pairwise");

	(void)state;
	post_all(w, 1);
	for (uint32_t i = 0; i < 9; i++)
		if (i != 2)
			post(w, i, 2);
	settle(w);
	nbnic_port_close(&w->member[2].nic, 0, NBAR_STATUS_HOST_DIED, w->now);
	settle(w);
	pass_time(w, 40 * MS); /* some learn it by asking */
	for (uint32_t i = 0; i < 9; i++) {
		if (i == 2)
			continue;
		assert_int_equal(w->member[i].epoch, 1);
		assert_int_equal(w->member[i].status, NBAR_STATUS_HOST_DIED);
		assert_int_equal(w->member[i].culprit, 2);
	}
	world_close(w);
}

static void closed_member_answers_while_it_lingers(void **state)
{
	struct world *w = world_connected(2, "dissemination:1");

	(void)state;
	post(w, 1, 1);
	settle(w);
	w->loss_percent = 100;
	post(w, 0, 1); /* completes: the token of 1 is there. Its own is lost. */
	w->loss_percent = 0;
	assert_int_equal(w->member[0].completions, 1);
	nbnic_group_close(&w->member[0].nic, w->member[0].group, NBAR_STATUS_CLOSED, w->now);
	assert_int_equal(w->member[1].completions, 0);
	pass_time(w, 3 * MS);
	assert_int_equal(w->member[1].completions, 1);
	/* One more barrier can never be: who asks is told. */
	post(w, 1, 2);
	pass_time(w, 3 * MS);
	assert_int_equal(w->member[1].status, NBAR_STATUS_CLOSED);
	assert_int_equal(w->member[1].culprit, 0);
	assert_int_equal(w->member[0].released, 0);
	pass_time(w, config.budget_ns + MS);
	assert_int_equal(w->member[0].released, 1);
	assert_int_equal(w->member[0].nic.nlinger, 0);
	world_close(w);
}

static void orderly_close_sends_nothing(void **state)
{
	struct world *w = world_connected(4, "pairwise");
	uint32_t sent;

	(void)state;
	post_all(w, 1);
	sent = w->sent;
	for (uint32_t i = 0; i < 4; i++)
		nbnic_group_close(&w->member[i].nic, w->member[i].group, NBAR_STATUS_CLOSED,
				  w->now);
	assert_int_equal(w->sent, sent);
	assert_int_equal(counted(w, NBAR_COUNTER_barriers_failed), 0);
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
				   .epoch = 1 };
	struct nbfw_token t = good;

	(void)state;
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
	t.epoch = 3; /* further ahead than anybody can be */
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
	pass_time(w, config.budget_ns + MS);
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

	(void)state;
	for (uint32_t i = 1; i < NBAR_GROUPS_MAX; i++)
		assert_int_equal(open_group(m, "pairwise", 2, 0, &g[i]), 0);
	assert_int_equal(open_group(m, "pairwise", 2, 0, &more), -NBFW_ENOSPC);
	/* Closing makes room at once, although the closed ones linger. */
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
	world_close(w);
}

/* Whoever opens and closes large groups in turn gets a bounded part of the NIC's memory. */
static void lingering_has_a_limit(void **state)
{
	struct world *w = world_open(2, "pairwise");
	struct member *m = &w->member[0];
	struct nbnic_group *g;
	uint32_t last = 0;

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		assert_int_equal(open_group(m, "linear", NBFW_LINEAR_MAX, 0, &g), 0);
		last = g->handle & 0xffff;
		nbnic_group_close(&m->nic, g, NBAR_STATUS_CLOSED, w->now + i);
	}
	assert_true(m->nic.linger_bytes <= NBNIC_LINGER_BYTES);
	assert_true(m->nic.nlinger > 10);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_linger_cut], 500 - m->nic.nlinger);
	assert_non_null(m->nic.group[last]); /* the oldest go first */
	pass_time(w, config.budget_ns + MS);
	assert_int_equal(m->nic.linger_bytes, 0);
	world_close(w);
}

static void refused_blobs_change_nothing(void **state)
{
	static const struct {
		uint32_t at;
		uint8_t flip;
		const char *why;
	} wrong[] = {
		{ 0, 1, "this is no blob of a NIC" },
		{ 4, 2, "its NIC speaks another version of the protocol" },
		{ 6, 4, "its NIC is on another kind of wire" },
		{ 16, 1, "it was opened with another size, algorithm or tag" },
		{ 20, 1, "it was opened with another size, algorithm or tag" },
		{ 12, 1, "it is the blob of another rank" },
		{ 13, 1, "its rank is not that of a peer" },
	};
	struct world *w = world_open(8, "dissemination:1");
	struct member *m = &w->member[0];
	struct nbar_blob blob[8];
	uint32_t bad, n = m->group->npeer;
	const char *why;

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		blob[i] = w->member[m->group->peer[i].rank].blob;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct nbar_blob keep = blob[2];

		blob[2].byte[wrong[i].at] ^= wrong[i].flip;
		assert_int_equal(nbnic_group_connect(&m->nic, m->group, blob, n, 1, &bad, &why),
				 -NBNIC_EPROTO);
		assert_int_equal(bad, 2);
		assert_string_equal(why, wrong[i].why);
		assert_int_equal(m->group->nconnected, 0);
		blob[2] = keep;
	}
	blob[n] = blob[0];
	assert_int_equal(nbnic_group_connect(&m->nic, m->group, blob, n + 1, 1, &bad, &why),
			 -NBNIC_EPROTO);
	assert_int_equal(m->group->life, NBAR_LIFE_OPEN);
	for (uint32_t i = 0; i < 8; i++)
		connect_member(w, i);
	post_all(w, 1);
	assert_int_equal(m->completions, 1);
	world_close(w);
}

static void bad_doorbells_are_counted(void **state)
{
	struct world *w = world_connected(2, "pairwise");
	struct member *m = &w->member[0];

	(void)state;
	post(w, 0, NBAR_POSTED_MAX + 1);
	post(w, 0, 0xdeadbeef);
	post(w, 0, 0xffffffff);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_doorbells_bad], 3);
	assert_int_equal(m->group->state->running, 0);
	post_all(w, 2);
	post(w, 0, 1); /* back in time */
	assert_int_equal(m->nic.counter[NBAR_COUNTER_doorbells_bad], 4);
	assert_int_equal(m->completions, 2);
	world_close(w);
}

static void signals_go_through_or_are_counted(void **state)
{
	struct world *w = world_connected(4, "signal");
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 42, 1, 2, 3, 4 };
	struct member *m = &w->member[1];

	(void)state;
	nbnic_signal(&m->nic, m->group, 2, word); /* ranks 0, 2, 3: index 2 is rank 3 */
	settle(w);
	assert_int_equal(w->member[3].signals, 1);
	assert_int_equal(w->member[3].signal_src, 1);
	assert_int_equal(w->member[3].signal_word0, 42);
	w->member[3].ring_full = true;
	nbnic_signal(&m->nic, m->group, 2, word);
	settle(w);
	assert_int_equal(w->member[3].nic.counter[NBAR_COUNTER_signals_dropped], 1);
	nbnic_signal(&m->nic, m->group, 3, word);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_entries_bad], 1);
	world_close(w);
}

static void lossy_wire_only_costs_time(void **state)
{
	static const char *const algs[] = { "pairwise", "dissemination:1", "dissemination:4" };

	(void)state;
	for (uint32_t a = 0; a < 3; a++) {
		struct world *w = world_connected(13, algs[a]);

		w->loss_percent = 20;
		w->duplicate_percent = 20;
		for (uint32_t e = 1; e <= 200; e++) {
			post_all(w, e);
			for (uint32_t i = 0; i < 13; i++) {
				while (w->member[i].completions < e) {
					pass_time(w, MS);
					assert_int_equal(w->member[i].status, NBAR_STATUS_OK);
				}
			}
		}
		assert_true(counted(w, NBAR_COUNTER_pulls_sent) > 0);
		assert_true(counted(w, NBAR_COUNTER_tokens_duplicate) > 0);
		world_close(w);
	}
}

static void budget_too_short_is_refused(void **state)
{
	static const struct nbnic_config wrong[] = { { 0, 1000 }, { 100, 64 * 100 - 1 } };
	static const struct nbnic_config right = { 100, 64 * 100 };
	struct nbnic_addr addr = { { 0 } };
	struct nbnic nic;
	uint64_t sum = 0;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(nbnic_init(&nic, &ops, NULL, 1, &addr, &wrong[i]), -NBFW_EINVAL);
	assert_int_equal(nbnic_init(&nic, &ops, NULL, 1, &addr, &right), 0);
	assert_int_equal(nbnic_init(&nic, &ops, NULL, 1, &addr, &config), 0);
	for (uint32_t i = 0; i < NBFW_WINDOW; i++)
		sum += nic.interval[i];
	assert_int_equal(sum, config.budget_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(barriers_without_one_extra_frame),
		cmocka_unit_test(posts_ahead_complete_in_order),
		cmocka_unit_test(one_event_starts_a_bounded_number),
		cmocka_unit_test(posts_before_connect_wait_for_it),
		cmocka_unit_test(late_host_is_named_and_nobody_fails),
		cmocka_unit_test(silent_nic_is_named_within_two_budgets),
		cmocka_unit_test(dead_host_is_named_at_once),
		cmocka_unit_test(closed_member_answers_while_it_lingers),
		cmocka_unit_test(orderly_close_sends_nothing),
		cmocka_unit_test(strangers_are_dropped),
		cmocka_unit_test(full_nic_says_so),
		cmocka_unit_test(lingering_has_a_limit),
		cmocka_unit_test(refused_blobs_change_nothing),
		cmocka_unit_test(bad_doorbells_are_counted),
		cmocka_unit_test(signals_go_through_or_are_counted),
		cmocka_unit_test(lossy_wire_only_costs_time),
		cmocka_unit_test(budget_too_short_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
