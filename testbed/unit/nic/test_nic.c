/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic.c - the NIC loop, over a simulated wire and clock: what doorbells, frames and time do.
 */
#include "unit/unit.h"

#include "nic_world.h"

static void barriers_without_one_extra_frame(void **state)
{
	static const char *const algs[] = { "pairwise", "dissemination:1", "dissemination:3" };

	for (uint32_t a = 0; a < 3; a++) {
		for (uint32_t size = 1; size <= MEMBERS_MAX; size++) {
			struct world *w = world_connected(size, algs[a]);
			uint32_t sends = 0;

			for (uint32_t i = 0; i < size; i++)
				sends += w->member[i].group->plan->nsend;
			for (uint32_t e = 1; e <= 20; e++) {
				/* no member completes before the last member has arrived */
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

	post(w, 0, NBAR_POSTED_MAX);
	before = w->member[0].completions;
	assert_in_range(before, 1, NBAR_POSTED_MAX / 8);
	pass_time(w, NBAR_POSTED_MAX * MS); /* the rest starts as time passes */
	assert_int_equal(w->member[0].completions, NBAR_POSTED_MAX);
	world_close(w);
}

static void posts_before_connect_wait_for_it(void **state)
{
	struct world *w = world_open(4, "pairwise");

	post_all(w, 1);
	for (uint32_t i = 0; i < 3; i++)
		connect_member(w, i);
	settle(w);
	/* The host of member 3 is slow: it has opened its group, but not connected it. Its NIC
	 * still answers PULLs. */
	pass_time(w, 5 * world_config.budget_ns);
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

	for (uint32_t i = 0; i < 16; i++)
		if (i != 11)
			post(w, i, 1);
	pass_time(w, 10 * world_config.budget_ns);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(w->member[i].status, NBAR_STATUS_OK);
		assert_int_equal(w->member[i].completions, 0);
		if (i == 11)
			continue;
		bool named = false;

		for (uint32_t k = 0; k < w->member[i].nstragglers; k++)
			named |= w->member[i].straggler[k] == 11;
		assert_true(named);
	}
	post(w, 11, 1);
	settle(w);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(w->member[i].completions, 1);
		assert_int_equal(w->member[i].nstragglers, 0);
	}
	world_close(w);
}

static void silent_nic_is_named_within_two_budgets(void **state)
{
	struct world *w = world_connected(8, "dissemination:1");

	w->member[5].unplugged = true;
	for (uint32_t i = 0; i < 8; i++)
		post(w, i, 1);
	pass_time(w, world_config.budget_ns - 2 * MS);
	assert_int_equal(counted(w, NBAR_COUNTER_barriers_failed), 0);
	pass_time(w, world_config.budget_ns + 4 * MS);
	for (uint32_t i = 0; i < 8; i++) {
		if (i == 5)
			continue;
		assert_int_equal(w->member[i].completions, 0);
		assert_int_equal(w->member[i].status, NBAR_STATUS_SILENT);
		assert_int_equal(w->member[i].failed_rank, 5);
		assert_int_equal(w->member[i].nic.counter[NBAR_COUNTER_barriers_failed], 1);
	}
	world_close(w);
}

static void dead_host_is_named_at_once(void **state)
{
	struct world *w = world_connected(9, "pairwise");

	post_all(w, 1);
	for (uint32_t i = 0; i < 9; i++)
		if (i != 2)
			post(w, i, 2);
	settle(w);
	nbnic_group_close(&w->member[2].nic, w->member[2].group, NBAR_STATUS_HOST_DIED, w->now);
	settle(w);
	pass_time(w, 40 * MS); /* some members learn it by a PULL */
	for (uint32_t i = 0; i < 9; i++) {
		if (i == 2)
			continue;
		assert_int_equal(w->member[i].epoch, 1);
		assert_int_equal(w->member[i].status, NBAR_STATUS_HOST_DIED);
		assert_int_equal(w->member[i].failed_rank, 2);
	}
	world_close(w);
}

static void bad_doorbells_are_counted(void **state)
{
	struct world *w = world_connected(2, "pairwise");
	struct member *m = &w->member[0];

	post(w, 0, NBAR_POSTED_MAX + 1);
	post(w, 0, 0xdeadbeef);
	post(w, 0, 0xffffffff);
	assert_int_equal(m->nic.counter[NBAR_COUNTER_doorbells_bad], 3);
	assert_int_equal(m->group->state->running, 0);
	post_all(w, 2);
	post(w, 0, 1); /* less than before */
	assert_int_equal(m->nic.counter[NBAR_COUNTER_doorbells_bad], 4);
	assert_int_equal(m->completions, 2);
	post(w, 0, 5);
	post(w, 0, 4); /* less than before, though not complete */
	assert_int_equal(m->nic.counter[NBAR_COUNTER_doorbells_bad], 5);
	post(w, 0, 5); /* a doorbell that says nothing new */
	assert_int_equal(m->nic.counter[NBAR_COUNTER_doorbells_bad], 5);
	world_close(w);
}

static void signals_go_through_or_are_counted(void **state)
{
	struct world *w = world_connected(4, "signal");
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 42, 1, 2, 3, 4 };
	struct member *m = &w->member[1];

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

/* Events as text: a letter for the event, and the epoch; for a frame also its type and the rank of
 * the peer. */
static char noted[256];

static void on_trace(void *ctx, const struct nbar_trace_event *e)
{
	static const char what[] = "?DSCFOILN", type[] = "?TPLA";
	const struct member *m = ctx;
	size_t n = strlen(noted);

	assert_int_equal(e->handle, m->group->handle);
	assert_int_equal(e->rank, m->index);
	n += (size_t)snprintf(noted + n, sizeof(noted) - n, " %c%u", what[e->what], e->epoch);
	if (e->what == NBAR_TRACE_OUT || e->what == NBAR_TRACE_IN)
		snprintf(noted + n, sizeof(noted) - n, ":%c%u", type[e->type], e->peer);
}

static void noted_is(const char *want)
{
	assert_string_equal(noted, want);
	*noted = '\0';
}

/* Events are noted in the order in which they happen, and only while somebody traces. */
static void traced_events_come_in_order(void **state)
{
	struct world *w = world_connected(2, "pairwise");
	struct nbnic_ops ops = world_ops;
	struct nbnic *nic = &w->member[0].nic;

	ops.trace = on_trace;
	nic->ops = &ops;
	post_all(w, 1);
	noted_is("");
	nic->tracing = true;
	post(w, 0, 3);
	noted_is(" D3 S2 O2:T1");
	pass_time(w, 3 * MS / 2);
	noted_is(" O2:P1 I2:L1 L2");
	pass_time(w, 5 * MS / 2); /* the second LATER causes no second L */
	noted_is(" O2:P1 I2:L1");
	post(w, 1, 2);
	settle(w);
	noted_is(" I2:T1 C2 S3 O3:T1");
	nbnic_group_fail(nic, w->member[0].group, NBAR_STATUS_ABORTED, w->now);
	noted_is(" F3");
	nic->tracing = false;
	world_close(w);
}

/* An answer is noted with the rank of the member that gives it. */
static void traced_answers(void **state)
{
	struct world *w = world_connected(2, "pairwise");
	struct nbnic_ops ops = world_ops;
	struct nbnic *nic = &w->member[0].nic;

	ops.trace = on_trace;
	nic->ops = &ops;
	nic->tracing = true;
	post(w, 1, 1);
	pass_time(w, 3 * MS / 2);
	noted_is(" I1:T1 I1:P1 O1:L1");
	nic->tracing = false;
	world_close(w);
}

/* A LATER notes that a rank is late only if it gives a known reason, and names another rank. */
static void a_later_without_a_reason_is_not_traced(void **state)
{
	static const struct {
		uint32_t rank, kind;
		const char *noted;
	} later[] = {
		{ 1, NBAR_WHY_UNKNOWN, " I1:L1" },
		{ 1, NBAR_WHY_END, " I1:L1" },
		{ 0, NBAR_WHY_HOST_LATE, " I1:L1" },
		{ 1, NBAR_WHY_HOST_LATE, " I1:L1 L1" },
	};
	struct world *w = world_connected(2, "pairwise");
	struct member *m = &w->member[0];
	const struct nbnic_addr from = { { 1 } };
	struct nbnic_ops ops = world_ops;

	ops.trace = on_trace;
	m->nic.ops = &ops;
	m->nic.tracing = true;
	post(w, 0, 1);
	noted_is(" D1 S1 O1:T1");
	for (uint32_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		const struct nbfw_token t = { .type = NBFW_LATER,
					      .handle = m->group->handle,
					      .cookie = m->group->cookie,
					      .src = 1,
					      .epoch = 1,
					      .arg = later[i].rank,
					      .info = later[i].kind << 29,
					      .sender = m->group->peer[0].handle };

		nbnic_receive(&m->nic, &from, &t, w->now);
		noted_is(later[i].noted);
	}
	m->nic.tracing = false;
	world_close(w);
}

/* A silent NIC is noted once, after some PULLs. */
static void a_silent_nic_is_traced(void **state)
{
	struct world *w = world_connected(2, "pairwise");
	struct nbnic_ops ops = world_ops;
	struct nbnic *nic = &w->member[0].nic;

	ops.trace = on_trace;
	nic->ops = &ops;
	nic->tracing = true;
	w->member[1].unplugged = true;
	post(w, 0, 1);
	noted_is(" D1 S1 O1:T1");
	for (uint32_t i = 0; i < 1000 && !strchr(noted, 'N'); i++)
		pass_time(w, MS);
	assert_string_equal(strchr(noted, 'N'), "N1 O1:P1");
	*noted = '\0';
	for (uint32_t i = 0; i < 1000 && !strstr(noted, " O1:P1 O1:P1"); i++)
		pass_time(w, MS);
	assert_non_null(strstr(noted, " O1:P1 O1:P1"));
	assert_null(strchr(noted, 'N'));
	nic->tracing = false;
	*noted = '\0';
	world_close(w);
}

static uint32_t nlate; /* events that a rank is late */

static void count_late(void *ctx, const struct nbar_trace_event *e)
{
	nlate += e->what == NBAR_TRACE_LATE;
}

/* More ranks are late than the list of stragglers has room for: in each barrier, each late rank is
 * noted once at most for each reason. */
static void many_late_ranks_are_traced_once(void **state)
{
	struct world *w = world_connected(NBAR_STRAGGLERS_MAX + 3, "linear");
	struct nbnic_ops ops = world_ops;
	struct nbnic *nic = &w->member[0].nic;

	ops.trace = count_late;
	nic->ops = &ops;
	nic->tracing = true;
	nlate = 0;
	post(w, 0, 1);
	for (uint32_t i = 0; i < 200; i++)
		pass_time(w, MS);
	assert_int_equal(nlate, NBAR_STRAGGLERS_MAX);
	/* In the next barrier the same ranks are late, and one of them for another reason, too. */
	post_all(w, 1);
	post(w, 0, 2);
	for (uint32_t i = 0; i < 200; i++)
		pass_time(w, MS);
	assert_int_equal(nlate, 2 * NBAR_STRAGGLERS_MAX);
	w->member[w->member[0].straggler[0]].host = NBAR_WHY_HOST_STOPPED;
	for (uint32_t i = 0; i < 200; i++)
		pass_time(w, MS);
	assert_int_equal(nlate, 2 * NBAR_STRAGGLERS_MAX + 1);
	nic->tracing = false;
	world_close(w);
}

UNIT_MAIN(NULL, NULL, UNIT(barriers_without_one_extra_frame), UNIT(posts_ahead_complete_in_order),
	  UNIT(one_event_starts_a_bounded_number), UNIT(posts_before_connect_wait_for_it),
	  UNIT(late_host_is_named_and_nobody_fails), UNIT(silent_nic_is_named_within_two_budgets),
	  UNIT(dead_host_is_named_at_once), UNIT(bad_doorbells_are_counted),
	  UNIT(signals_go_through_or_are_counted), UNIT(lossy_wire_only_costs_time),
	  UNIT(traced_events_come_in_order), UNIT(traced_answers),
	  UNIT(a_later_without_a_reason_is_not_traced), UNIT(a_silent_nic_is_traced),
	  UNIT(many_late_ranks_are_traced_once))
