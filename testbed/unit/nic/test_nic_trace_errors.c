/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_trace_errors.c - what one NIC sends and tells its host when the wire refuses frames, a
 * group fails, or frames come from strangers; and the ages in frames. The test plays the peers.
 */
#include "unit/nic/nic_trace.h"

/* Rank 0 of dissemination:1 among 4 ranks sends to rank 1 and waits for rank 3, then sends to rank
 * 2 and waits for rank 2. */
#define FOUR "dissemination:1"

static void token(uint32_t rank, uint32_t epoch, uint32_t slot)
{
	trace_hear(NBFW_TOKEN, rank, epoch, slot, NBAR_RANK_NONE, 0);
}

/* What the wire refuses goes out later, once, and in order. */
static void test_no_room(void **state)
{
	trace_connected(FOUR, 4, 0);
	trace.room = 0;
	trace_post(1);
	trace_expect("");
	assert_true(nbnic_next(&trace.nic) == 0);
	trace_work(1);
	trace_expect("");
	assert_int_equal(trace.nic.pull_next, 0); /* the pace begins with the first PULL */
	token(3, 1, 0);
	token(2, 1, 1);
	trace_expect("complete @1; ");
	trace_post(2); /* starts when the tokens of barrier 1 are out */
	trace_expect("");
	trace.room = 1;
	trace_work(1);
	trace_expect("token @1 slot 0 to 1; ");
	trace.room = 2;
	trace_work(1);
	trace_expect("token @1 slot 1 to 2; token @2 slot 0 to 1; ");
	assert_int_equal(trace_counter(NBAR_COUNTER_tokens_sent), 3);
	assert_int_equal(trace.group->state->epoch, 2);
	trace_hear(NBFW_PULL, 1, 2, 0, 0, 0);
	assert_int_equal(trace_counter(NBAR_COUNTER_replies_dropped), 1);
	trace.room = 1;
	trace_hear(NBFW_PULL, 1, 2, 0, 0, 0); /* in this pass the wire has refused */
	trace_expect("");
	assert_int_equal(trace_counter(NBAR_COUNTER_replies_dropped), 2);
	trace_work(1);
	trace_hear(NBFW_PULL, 1, 2, 0, 0, 0);
	trace_expect("token @2 slot 0 to 1; ");
	trace_end();
}

/* A PULL that the wire refuses goes out later, and so does an ABORT. */
static void test_no_room_for_pulls(void **state)
{
	trace_connected(FOUR, 4, 0);
	trace_post(1);
	trace_take();
	trace_work(0); /* the pass that has sent this leaves the queues alone */
	trace.room = 0;
	trace_work(TRACE_MS);
	trace_expect("late; ");
	trace.room = 1;
	trace_work(1);
	trace_expect("pull @1 slot 0 to 3; ");
	assert_int_equal(trace_counter(NBAR_COUNTER_pulls_sent), 1);
	trace.room = 0;
	nbnic_group_fail(&trace.nic, trace.group, NBAR_STATUS_ABORTED, trace.now);
	trace_expect("failed @0 cause 5 rank 0; ");
	trace.room = 9;
	trace_work(1);
	trace_expect("abort @1 slot 1 to 2 rank 0 cause 5; ");
	trace_end();

	trace_connected("pairwise", 2, 0);
	trace_post(1);
	trace_take();
	trace_work(0);
	trace.room = 0;
	trace_work(TRACE_MS);
	token(1, 1, 0);
	trace_expect("late; complete @1; ");
	trace.room = 9;
	trace_work(1); /* nothing is missing now */
	trace_expect("");
	assert_false(trace.group->armed);
	trace_end();

	trace_connected(FOUR, 4, 0);
	trace.room = 0;
	trace_post(1);
	trace_work(TRACE_MS); /* the token still waits, and PULLs wait, too */
	trace.room = 9;
	trace_work(1);
	trace_expect("late; pull @1 slot 0 to 3; token @1 slot 0 to 1; ");
	trace_end();
}

/* PULLs go on where the wire refused them, also in another barrier, and ask only for slots of the
 * step. */
static void test_pulls_go_on(void **state)
{
	const struct nbar_recv *recv;

	trace_connected("dissemination:3", 16, 0);
	recv = nbfw_plan_recvs(trace.group->plan);
	trace_post(1);
	trace_work(0);
	trace_take();
	trace.room = 1;
	trace_work(TRACE_MS);
	trace_expect("late; pull @1 slot 0 to 15; ");
	for (uint32_t slot = 0; slot < 6; slot++)
		token(recv[slot].src, 1, slot);
	trace.room = 99;
	trace_work(1);
	trace_post(2);
	token(recv[2].src, 2, 2);
	trace_work(0);
	trace_take();
	trace_work(TRACE_MS);
	trace_expect("late; pull @2 slot 1 to 14; pull @2 slot 0 to 15; ");
	trace_end();
}

/* A frame about a slot that the plan does not have is no sign of life of any NIC. */
static void test_no_such_slot(void **state)
{
	static const struct nbnic_heard none[NBNIC_HEARD_MAX];

	trace_connected(FOUR, 4, 0);
	trace_post(1);
	trace.now = TRACE_BUDGET;
	trace_hear(NBFW_LATER, 3, 1, trace.group->plan->nrecv, 1, 0);
	assert_memory_equal(trace.nic.heard, none, sizeof(none));
	assert_int_equal(trace_counter(NBAR_COUNTER_frames_bad), 1);
	trace_end();
}

/* Sources side by side that say nothing for a window, but whose NICs are alive. */
static void test_silent_neighbours(void **state)
{
	trace_connected("linear", 4, 0);
	trace_post(1);
	for (uint32_t i = 1; i <= NBFW_WINDOW; i++) {
		trace_work(trace.group->deadline - trace.now);
		for (uint32_t rank = 1; i == NBFW_WINDOW / 2 && rank < 4; rank++)
			trace_hear(NBFW_PULL, rank, 2, 0, 0, 0);
		trace_work(0); /* the pass that has sent answers leaves the queues alone */
		trace_take();
	}
	assert_int_equal(trace.group->state->tries, NBFW_WINDOW);
	assert_int_equal(trace.group->state->cause, NBAR_STATUS_OK);
	trace_end();
}

/* The last frames of a pass are for the queues: an event sends no more than the frames before. */
static void test_last_frames(void **state)
{
	for (uint32_t inlined = 0; inlined <= 4; inlined += 4) {
		uint32_t n = NBNIC_PASS_FRAMES(NBNIC_QUOTA) - NBNIC_QUOTA - inlined;

		trace_connected("dissemination:16", 32, 0);
		for (uint32_t i = 0; i < n; i++)
			trace_hear(NBFW_PULL, 1, 1, 0, 0, 0);
		trace_take();
		trace_post(1);
		assert_int_equal(trace_counter(NBAR_COUNTER_tokens_sent), inlined);
		trace_hear(NBFW_PULL, 1, 2, 0, 0, 0);
		assert_int_equal(trace_counter(NBAR_COUNTER_replies_dropped), 1);
		trace_work(1);
		trace_work(1);
		trace_work(1);
		assert_int_equal(trace_counter(NBAR_COUNTER_tokens_sent), 16);
		trace_end();
	}
}

/* A NIC tells a failure to all members that would wait for its own, and only to these. */
static void test_failure(void **state)
{
	trace_connected(FOUR, 4, 0);
	trace_post(1);
	trace_take();
	nbnic_group_fail(&trace.nic, trace.group, NBAR_STATUS_ABORTED, trace.now);
	trace_expect("failed @0 cause 5 rank 0; abort @1 slot 1 to 2 rank 0 cause 5; ");
	nbnic_group_fail(&trace.nic, trace.group, NBAR_STATUS_ABORTED, trace.now);
	trace_expect("");
	assert_int_equal(trace_counter(NBAR_COUNTER_barriers_failed), 1);
	trace_end();

	trace_connected(FOUR, 4, 0);
	nbnic_group_fail(&trace.nic, trace.group, NBAR_STATUS_HOST_DIED, trace.now);
	trace_expect("failed @0 cause 2 rank 0; abort @1 slot 0 to 1 rank 0 cause 2; "
		     "abort @1 slot 1 to 2 rank 0 cause 2; ");
	assert_int_equal(trace_counter(NBAR_COUNTER_aborts_sent), 2);
	trace_end();

	trace_open(FOUR, 4, 0); /* no peer is known yet */
	nbnic_group_fail(&trace.nic, trace.group, NBAR_STATUS_HOST_DIED, trace.now);
	trace_expect("failed @0 cause 2 rank 0; ");
	trace_end();
}

/* A PULL gets the reason if this NIC has given out its handle, and if it has not. Other frames are
 * dropped. */
static void test_strangers(void **state)
{
	struct nbfw_token t = { .type = NBFW_PULL, .epoch = 4, .slot = 6, .arg = 3 };
	struct nbnic_addr from;
	struct nbnic_group *g;

	trace_connected(FOUR, 4, 3);
	memset(&from, 0, sizeof(from));
	from.byte[0] = 0xa0;
	from.byte[1] = 1;
	from.byte[NBNIC_ADDR_SIZE - 1] = 0x55;
	t.sender = trace_handle(1);
	t.reply_cookie = trace_cookie(1);
	t.handle = trace.group->handle; /* not its cookie: it was restarted */
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	trace_expect("abort @4 slot 6 to 1 rank 3 cause 4; ");
	t.handle = trace.group->handle + 0x10000;
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	trace_expect("abort @4 slot 6 to 1 rank 3 cause 4 of handle +65536; ");
	t.handle = 0xffff;
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	trace_expect("abort @4 slot 6 to 1 rank 3 cause 4 of handle -1; ");
	t.handle = trace.group->handle & 0xffff; /* an older generation */
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	trace_expect("abort @4 slot 6 to 1 rank 3 cause 3 of handle -65536; ");
	t.arg = NBAR_RANK_NONE;
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	t.arg = 3;
	t.type = NBFW_TOKEN;
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	trace_expect("");
	assert_int_equal(trace_counter(NBAR_COUNTER_frames_stranger), 6);
	t.type = NBFW_PULL;
	for (uint32_t i = 4; i < NBNIC_QUOTA; i++)
		nbnic_receive(&trace.nic, &from, &t, trace.now);
	assert_int_equal(trace_counter(NBAR_COUNTER_aborts_sent), NBNIC_QUOTA);
	trace_take();
	nbnic_receive(&trace.nic, &from, &t, trace.now); /* a pass answers so many */
	trace_expect("");
	trace_work(1);
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	trace_expect("abort @4 slot 6 to 1 rank 3 cause 3 of handle -65536; ");
	g = trace_group("signal", 2, 0, 0, 1); /* the newest generation, closed */
	t.handle = g->handle;
	nbnic_group_close(&trace.nic, g, NBAR_STATUS_CLOSED, trace.now);
	trace_expect("released; ");
	nbnic_receive(&trace.nic, &from, &t, trace.now);
	trace_expect("abort @4 slot 6 to 1 rank 3 cause 3 of handle +1; ");
	trace_end();
}

/* A LATER carries the age of a straggler in nine bits, shifted by at most 15. The list has the same
 * age. */
static void test_ages(void **state)
{
	static const uint16_t age[] = {
		1, 511, 1 << 9 | 256, 1 << 9 | 511, 7 << 9 | 300, 15 << 9 | 256, 15 << 9 | 511
	};

	trace_connected(FOUR, 4, 0);
	trace_post(1);
	for (uint32_t i = 0; i < sizeof(age) / sizeof(age[0]); i++) {
		uint16_t why = (uint16_t)(NBAR_WHY_HOST_LATE << 13 | age[i]);
		const struct nbnic_straggler *s = &trace.group->straggler[0];

		trace_hear(NBFW_LATER, 3, 1, 0, 1, (uint32_t)why << 16);
		assert_int_equal(s->why, why);
		assert_int_equal((uint32_t)(trace.now >> NBAR_WHY_SHIFT) - s->since,
				 NBAR_WHY_NS(why) >> NBAR_WHY_SHIFT);
	}
	trace_end();
}

/* A NIC is silent if 7 intervals have passed since it was heard, and one unit of the clock more. */
static void test_age_of_silence(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t end;

		trace_connected("pairwise", 2, 0);
		trace_hear(NBFW_PULL, 1, 1, 0, 0, 0);
		end = (trace.now >> NBNIC_HEARD_SHIFT) + 1 + i +
		      7 * (trace.nic.interval[7] >> NBNIC_HEARD_SHIFT);
		trace_post(1);
		for (uint32_t k = 1; k < 7; k++)
			trace_work(trace.group->deadline - trace.now);
		trace_work((end << NBNIC_HEARD_SHIFT) - trace.now);
		assert_int_equal(trace.group->timeouts, 7);
		assert_int_equal(trace.group->nstragglers, i);
		trace_end();
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_no_room), UNIT(test_no_room_for_pulls), UNIT(test_last_frames),
	  UNIT(test_failure), UNIT(test_strangers), UNIT(test_ages), UNIT(test_age_of_silence),
	  UNIT(test_pulls_go_on), UNIT(test_no_such_slot), UNIT(test_silent_neighbours))
