/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_trace.c - what one NIC sends and tells its host, and when: traces of doorbells, frames
 * and moments. The peers are played by the test, so nothing depends on another NIC. Full wires,
 * failures and strangers are in test_nic_trace_errors.c.
 */
#include "unit/nic/nic_trace.h"

/* Rank 0 of dissemination:1 among 4 ranks sends to rank 1 and waits for rank 3, then sends to rank
 * 2 and waits for rank 2. */
#define FOUR "dissemination:1"

/* What a LATER says of a rank whose host is late, for no time yet. */
#define LATE (NBAR_WHY_HOST_LATE << 29)

static void token(uint32_t rank, uint32_t epoch, uint32_t slot)
{
	trace_hear(NBFW_TOKEN, rank, epoch, slot, NBAR_RANK_NONE, 0);
}

static void test_barrier(void **state)
{
	trace_connected(FOUR, 4, 0);
	trace_expect("");
	trace_post(1);
	trace_expect("token @1 slot 0 to 1; ");
	token(3, 1, 0);
	trace_expect("token @1 slot 1 to 2; ");
	token(3, 2, 0); /* early */
	trace_expect("");
	token(2, 1, 1);
	trace_expect("complete @1; ");
	assert_false(trace.group->armed);
	trace_post(3);
	trace_expect("token @2 slot 0 to 1; token @2 slot 1 to 2; ");
	token(2, 2, 1);
	trace_expect("complete @2; token @3 slot 0 to 1; ");
	assert_int_equal(trace_counter(NBAR_COUNTER_tokens_sent), 5);
	assert_int_equal(trace_counter(NBAR_COUNTER_tokens_received), 4);
	assert_int_equal(trace_counter(NBAR_COUNTER_barriers_completed), 2);
	token(3, 2, 0);
	assert_int_equal(trace_counter(NBAR_COUNTER_tokens_stale), 1);
	token(3, 4, 0);
	token(3, 4, 0);
	assert_int_equal(trace_counter(NBAR_COUNTER_tokens_duplicate), 1);
	token(3, 5, 0);
	token(2, 3, 0);
	trace_hear(NBFW_SIGNAL, 3, 3, 0, 0, 0);
	assert_int_equal(trace_counter(NBAR_COUNTER_frames_bad), 3);
	trace_expect("");
	trace_end();
}

/* A timeout asks for the missing tokens at once. Each interval is longer than the interval before.
 */
static void test_timeouts(void **state)
{
	uint64_t interval = TRACE_MS;

	trace_connected(FOUR, 4, 0);
	trace_post(1);
	trace_take();
	assert_true(trace.group->armed);
	assert_true(nbnic_next(&trace.nic) == trace.now + TRACE_MS);
	trace_work(TRACE_MS - 1);
	trace_expect("");
	trace_work(1);
	trace_expect("late; pull @1 slot 0 to 3; ");
	for (uint32_t i = 2; i < 6; i++) {
		uint64_t wait = trace.group->deadline - trace.now;

		interval *= 2; /* and up to an eighth, by the group */
		assert_in_range(wait, interval, interval + interval / 8);
		assert_true(wait != interval);
		assert_true(nbnic_next(&trace.nic) == trace.group->deadline);
		trace_work(wait - 1);
		trace_expect("");
		trace_work(1);
		/* A rank that was merely asked is no straggler; its NIC is silent after 7. */
		trace_expect("late; pull @1 slot 0 to 3; ");
	}
	assert_int_equal(trace_counter(NBAR_COUNTER_pulls_sent), 5);
	token(3, 1, 0); /* a new step begins with the first interval */
	trace_expect("token @1 slot 1 to 2; ");
	assert_true(trace.group->deadline == trace.now + TRACE_MS);
	trace_work(0); /* the pass that has sent this leaves the queues alone */
	trace_work(TRACE_MS);
	trace_expect("late; pull @1 slot 1 to 2; ");
	token(2, 1, 1);
	trace_expect("complete @1; ");
	assert_true(nbnic_next(&trace.nic) > trace.now);
	trace_work(TRACE_BUDGET);
	trace_expect("");
	assert_int_equal(trace.group->timeouts, 6);
	trace_post(2); /* no timeout of this barrier yet */
	assert_int_equal(trace.group->timeouts, 0);
	trace_end();
}

/* Half of pull_ns or more lies between two sweeps over the timers. */
static void test_sweeps(void **state)
{
	trace_connected(FOUR, 4, 0);
	trace_post(1);
	trace_work(TRACE_MS * 3 / 4);
	token(3, 1, 0);
	trace_take();
	trace_work(0);
	trace_work(TRACE_MS * 3 / 4); /* the first sweep finds that the new timer is not due */
	assert_true(nbnic_next(&trace.nic) == trace.now + TRACE_MS / 2);
	trace_work(TRACE_MS / 2 - 1);
	trace_expect("");
	trace_work(1);
	trace_expect("late; pull @1 slot 1 to 2; ");
	trace_end();
}

/* A source that says nothing for the whole retry budget has failed; the NIC tells the members that
 * wait for its own. */
static void test_silence(void **state)
{
	uint64_t began, sum = 0;

	trace_connected(FOUR, 4, 0);
	for (uint32_t i = 0; i < NBFW_WINDOW; i++)
		sum += trace.nic.interval[i];
	assert_true(sum == TRACE_BUDGET);
	trace_post(1);
	trace_hear(NBFW_TOKEN, 3, 1, 0, 0, 0);
	trace_take();
	began = trace.now;
	for (uint32_t i = 1; i < NBFW_WINDOW; i++) {
		trace_work(trace.group->deadline - trace.now);
		trace_take();
		assert_int_equal(trace_counter(NBAR_COUNTER_pulls_sent), i);
		assert_int_equal(trace.group->timeouts, i);
	}
	trace_work(trace.group->deadline - trace.now - 1);
	trace_expect("");
	trace.now++;
	assert_true(nbnic_work(&trace.nic, trace.now)); /* though it sends nothing */
	trace_expect("failed @0 cause 1 rank 2; ");
	assert_in_range(trace.now - began, TRACE_BUDGET, TRACE_BUDGET + TRACE_BUDGET / 8);
	assert_int_equal(trace_counter(NBAR_COUNTER_barriers_failed), 1);
	assert_false(trace.group->armed);
	trace_post(2);
	trace_expect("");
	trace_hear(NBFW_PULL, 1, 1, 0, 0, 0);
	trace_expect("token @1 slot 0 to 1; ");
	trace_hear(NBFW_PULL, 1, 2, 0, 0, 0);
	trace_expect("abort @2 slot 0 to 1 rank 2 cause 1; ");
	assert_int_equal(trace_counter(NBAR_COUNTER_aborts_sent), 1);
	trace_end();
}

/* A sign of life of its NIC for another group, or a LATER, gives the source one more window. */
static void test_alive(void **state)
{
	for (uint32_t how = 0; how < 3; how++) {
		trace_connected(FOUR, 4, 0);
		trace_post(1);
		trace_hear(NBFW_TOKEN, 3, 1, 0, 0, 0);
		for (uint32_t i = 1; i <= NBFW_WINDOW; i++) {
			trace_work(trace.group->deadline - trace.now);
			if (i == NBFW_WINDOW / 2 && how == 0)
				trace_hear(NBFW_LATER, 2, 1, 1, 2, 0);
			if (i == NBFW_WINDOW / 2 && how == 1) /* a PULL for the group itself */
				trace_hear(NBFW_PULL, 2, 2, 0, 0, 0);
			trace_work(
				0); /* the pass that has sent an answer leaves the queues alone */
		}
		trace_take();
		assert_int_equal(trace.group->state->tries, NBFW_WINDOW);
		assert_int_equal(trace.group->state->cause,
				 how == 2 ? NBAR_STATUS_SILENT : NBAR_STATUS_OK);
		trace_end();
	}
}

/* A budget shorter than a unit of the clock: a NIC that was heard in this unit or the one before is
 * alive. */
static void test_alive_with_a_short_budget(void **state)
{
	for (uint64_t units = 0; units < 3; units++) {
		uint64_t end;

		trace_connected(FOUR, 4, 0);
		trace.nic.budget_ns = TRACE_MS;
		trace_post(1);
		trace_hear(NBFW_TOKEN, 3, 1, 0, 0, 0);
		for (uint32_t i = 1; i < NBFW_WINDOW; i++)
			trace_work(trace.group->deadline - trace.now);
		end = trace.group->deadline;
		trace_work((((end >> NBNIC_HEARD_SHIFT) - units) << NBNIC_HEARD_SHIFT) - trace.now);
		trace_hear(NBFW_PULL, 2, 2, 0, 0, 0);
		trace_work(end - trace.now);
		trace_take();
		assert_int_equal(trace.group->state->cause,
				 units == 2 ? NBAR_STATUS_SILENT : NBAR_STATUS_OK);
		trace_end();
	}
}

static void test_answers(void **state)
{
	trace_connected(FOUR, 4, 0);
	trace_hear(NBFW_PULL, 1, 1, 0, 0, 0);
	trace_expect("later @1 slot 0 to 1 rank 0 step 0 why 1; ");
	trace_post(1);
	trace_take();
	trace_hear(NBFW_PULL, 1, 1, 0, 0, 0);
	trace_expect("token @1 slot 0 to 1; ");
	trace_hear(NBFW_PULL, 2, 1, 1, 0, 0); /* rank 0 waits for rank 3 */
	trace_expect("later @1 slot 1 to 2 rank 3 step 0 why 0; ");
	trace_hear(NBFW_LATER, 3, 1, 0, 1, (uint32_t)NBAR_WHY_END << 29); /* an unknown reason */
	trace_expect("late; ");
	trace_hear(NBFW_LATER, 3, 1, 0, 1, LATE);
	trace_expect("late 1; later @1 slot 1 to 2 rank 1 step 0 why 1; ");
	trace_hear(NBFW_PULL, 2, 1, 1, 0, 0); /* rank 3 waits for rank 1 */
	trace_expect("later @1 slot 1 to 2 rank 1 step 0 why 1; ");
	for (uint32_t i = 0; i < 4; i++) /* rank 1 is forgotten */
		trace_work(trace.group->deadline - trace.now);
	trace_take();
	trace_hear(NBFW_PULL, 2, 1, 1, 0, 0);
	trace_expect("later @1 slot 1 to 2 rank 1 step 0 why 0; ");
	trace_hear(NBFW_LATER, 3, 1, 0, 1, LATE);
	trace_expect("late 1; later @1 slot 1 to 2 rank 1 step 0 why 1; ");
	/* The asker has been told once: it asks again if it wants to know more. */
	trace_hear(NBFW_LATER, 3, 1, 0, 1, (uint32_t)NBAR_WHY_HOST_STOPPED << 29);
	trace_hear(NBFW_LATER, 3, 1, 0, 1, LATE);
	trace_expect("late 1; late 1; ");
	token(3, 1, 0);
	trace_take();
	trace_hear(NBFW_PULL, 1, 2, 0, 0, 0);
	trace_expect("later @2 slot 0 to 1 rank 1 step 1 why 1; ");
	trace_hear(NBFW_PULL, 3, 1, 0, 0, 0); /* rank 3 waits for no slot of rank 0 */
	trace_expect("");
	assert_int_equal(trace_counter(NBAR_COUNTER_pulls_received), 6);
	assert_int_equal(trace_counter(NBAR_COUNTER_laters_sent), 7);
	assert_int_equal(trace_counter(NBAR_COUNTER_laters_received), 5);
	assert_int_equal(trace_counter(NBAR_COUNTER_frames_bad), 1);
	trace_hear(NBFW_ABORT, 2, 1, 1, 1, NBAR_STATUS_HOST_DIED);
	trace_expect("failed @0 cause 2 rank 1; ");
	assert_int_equal(trace_counter(NBAR_COUNTER_aborts_received), 1);
	trace_end();
}

/* The list of stragglers: each rank once, the newest rank in the last place when the list is full.
 * A rank that no answer repeats leaves the list after three timeouts. */
static void test_stragglers(void **state)
{
	trace_connected("linear", 20, 0);
	trace_post(1);
	trace_take();
	for (uint32_t r = 1; r <= 11; r++)
		trace_hear(NBFW_LATER, r, 1, r - 1, r, LATE);
	trace_take();
	trace_hear(NBFW_LATER, 5, 1, 4, 5, LATE);
	trace_expect("late 1 2 3 4 11 6 5; ");
	trace_hear(NBFW_LATER, 12, 1, 11, 12, LATE);
	trace_expect("late 1 2 3 4 11 6 12; ");
	trace_hear(NBFW_LATER, 13, 1, 12, 13, LATE);
	trace_expect("late 1 2 3 4 11 6 13; ");
	for (uint32_t s = 13; s < 19; s++)
		token(s + 1, 1, s);
	for (uint32_t s = 0; s < 12; s++)
		if (s != 2)
			token(s + 1, 1, s);
	trace_take();
	for (uint32_t i = 1; i <= 4; i++) {
		trace_work(trace.group->deadline - trace.now);
		trace_hear(NBFW_LATER, 13, 1, 12, 13, LATE);
		if (i == 3)
			assert_non_null(strstr(trace_take(), "late 1 2 3 4 11 6 13; "));
	}
	trace_expect("late 13; pull @1 slot 2 to 3; pull @1 slot 12 to 13; late 13; ");
	/* Nobody is late for a barrier that is complete. */
	token(3, 1, 2);
	token(13, 1, 12);
	assert_memory_equal(trace_take(), "late; complete @1; ", 19);
	trace_end();
}

/* A NIC that says nothing is called silent after 7 timeouts. In a step of more than 64 slots it is
 * called silent after 24 timeouts, if it belongs to one of the first 64 slots. */
static void test_silent_nics(void **state)
{
	for (uint32_t slots = NBFW_PULLS_MIN; slots <= NBFW_PULLS_MIN + 1; slots++) {
		const bool large = slots > NBFW_PULLS_MIN;

		trace_connected("linear", slots + 1, 0);
		trace_post(1);
		for (uint32_t i = 1; i < slots - 1; i++)
			token(i + 1, 1, i);
		for (uint32_t i = 1; i <= (large ? 24 : 7); i++) {
			assert_int_equal(trace.group->nstragglers, 0);
			trace_work(trace.group->deadline - trace.now);
			assert_int_equal(trace.group->timeouts, i);
		}
		assert_int_equal(trace.group->nstragglers, large ? 1 : 2);
		assert_int_equal(trace.group->straggler[0].rank, 1);
		assert_int_equal(NBAR_WHY_KIND(trace.group->straggler[0].why), NBAR_WHY_NIC_SILENT);
		if (!large)
			assert_int_equal(trace.group->straggler[1].rank, slots);
		trace_end();
	}
}

/* If other NICs have taken the entries of the sources in the table of live NICs, a source is called
 * silent if it was not heard in this window, of which 7 timeouts have passed. */
static void test_silent_nics_without_an_entry(void **state)
{
	trace_connected("linear", 4, 0);
	trace_post(1);
	for (uint32_t rank = 2; rank < 4; rank++)
		trace_hear(NBFW_LATER, rank, 1, rank - 1, rank, 0);
	for (uint32_t i = 1; i <= NBFW_WINDOW + 7; i++) {
		for (uint32_t k = 0; k < NBNIC_HEARD_MAX; k++)
			trace.nic.heard[k].nic = 0;
		trace_work(trace.group->deadline - trace.now);
		trace_take();
		assert_int_equal(trace.group->timeouts, i);
		if (i < 7 || (i > 7 && i < NBFW_WINDOW + 7)) {
			assert_int_equal(trace.group->nstragglers, 0);
			continue;
		}
		assert_int_equal(trace.group->nstragglers, i == 7 ? 1 : 3);
		assert_int_equal(trace.group->straggler[0].rank, 1);
		trace_hear(NBFW_LATER, 1, 1, 0, 1, 0);
	}
	trace_end();
}

/* Addresses that differ in one of the bytes that name a NIC, except the last one, have different
 * entries in the table of live NICs: most of 256 such NICs are remembered. */
static void test_entries_of_nics(void **state)
{
	trace_open(FOUR, 4, 0); /* not connected: any NIC may ask */
	trace.room = 0;
	for (uint32_t at = 0; at < NBNIC_ADDR_NAME - 1; at++) {
		uint32_t known = 0;

		memset(trace.nic.heard, 0, sizeof(trace.nic.heard));
		for (uint32_t v = 0; v < 256; v++) {
			struct nbnic_addr from = { { 0 } };
			const struct nbfw_token t = { .type = NBFW_PULL,
						      .handle = trace.group->handle,
						      .cookie = trace.group->cookie,
						      .src = 1,
						      .epoch = 1 };

			from.byte[at] = (uint8_t)v;
			nbnic_receive(&trace.nic, &from, &t, trace.now);
		}
		for (uint32_t i = 0; i < NBNIC_HEARD_MAX; i++)
			known += trace.nic.heard[i].nic != 0;
		require(known > 128, "byte %u: %u entries", at, known);
	}
	trace_end();
}

/* A pass that finds nothing does nothing, also after others that had work. */
static void test_idle(void **state)
{
	uint32_t pass;

	trace_connected("linear", 3, 0);
	trace_post(1);
	trace_work(trace.group->deadline - trace.now);
	token(1, 1, 0);
	token(2, 1, 1);
	for (uint32_t i = 0; i < 10; i++)
		trace_work(TRACE_BUDGET);
	pass = trace.nic.pass;
	trace_work(0);
	assert_int_equal(trace.nic.pass, pass);
	trace_post(2);
	trace_work(0);
	assert_int_equal(trace.nic.pass, pass + 1);
	trace_end();
}

/* Half of a window without an answer: from now on, tokens count as signs of life, too. Before,
 * tokens count only for four times pull_ns after PULLs. */
static void test_doubt(void **state)
{
	uint64_t end = 0;

	trace_connected("linear", 3, 0);
	trace_post(1);
	for (uint32_t i = 0; i <= NBFW_WINDOW / 2; i++) {
		assert_true(trace.nic.doubt_end == end);
		trace_work(trace.group->deadline - trace.now);
		end = trace.now + 4 * trace.nic.interval[0];
	}
	assert_true(trace.nic.doubt_end == trace.now + TRACE_BUDGET);
	/* No PULL makes this time end sooner. */
	end = trace.group->deadline + 4 * trace.nic.interval[0] + 1;
	trace.nic.doubt_end = end;
	trace_work(trace.group->deadline - trace.now);
	assert_int_equal(trace.group->timeouts, NBFW_WINDOW / 2 + 2);
	assert_true(trace.nic.doubt_end == end);
	trace_end();
}

/* The copy of a token shows which PULL it answers, but not while the token itself still waits in
 * the queue: then no token was lost. */
static void test_answers_to_pulls(void **state)
{
	trace_connected("linear", 6, 0);
	nbnic_quota_set(&trace.nic, 1);
	trace_post(1);
	for (uint32_t rank = 1; rank < 6; rank++)
		token(rank, 1, rank - 1);
	trace_expect("complete @1; token @1 slot 0 to 1; ");
	trace_work(0);
	trace_expect("token @1 slot 0 to 2; token @1 slot 0 to 3; ");
	trace_hear(NBFW_PULL, 5, 1, 0, 0, 77);
	trace_expect("token @1 slot 0 to 5; ");
	trace_work(0);
	trace_take();
	trace_post(2); /* now the host is not late: its barrier waits for the queue */
	trace_hear(NBFW_PULL, 5, 2, 0, 0, 0);
	trace_expect("later @2 slot 0 to 5 rank 0 step 0 why 0; ");
	for (uint32_t i = 0; i < 8; i++)
		trace_work(0);
	trace_expect("token @1 slot 0 to 4; token @1 slot 0 to 5; ");
	trace_hear(NBFW_PULL, 5, 1, 0, 0, 77);
	trace_expect("token @1 slot 0 to 5 for pull 77; ");
	trace_end();
}

static void test_signals(void **state)
{
	static const uint32_t word[NBAR_SIGNAL_WORDS] = { 1, 2, 3, 4, UINT32_MAX };

	trace_connected("signal", 4, 1);
	assert_true(nbnic_signal(&trace.nic, trace.group, 1, word));
	trace_expect("signal to 2: 1 2 3 4 4294967295; ");
	assert_true(nbnic_signal(&trace.nic, trace.group, 3, word)); /* no such peer: counted */
	assert_int_equal(trace_counter(NBAR_COUNTER_entries_bad), 1);
	trace_hear(NBFW_SIGNAL, 3, 11, 12, 13, 14);
	trace_expect("signal from 3: 11 12 13 14 262154; ");
	trace_hear(NBFW_SIGNAL, 4, 11, 12, 13, 14); /* no rank of the group */
	token(3, 1, 0);
	assert_int_equal(trace_counter(NBAR_COUNTER_frames_bad), 2);
	trace.ring_full = true;
	trace_hear(NBFW_SIGNAL, 3, 11, 12, 13, 14);
	assert_int_equal(trace_counter(NBAR_COUNTER_signals_dropped), 1);
	assert_int_equal(trace_counter(NBAR_COUNTER_signals_received), 1);
	assert_int_equal(trace_counter(NBAR_COUNTER_signals_sent), 1);
	trace_post(1);
	assert_int_equal(trace_counter(NBAR_COUNTER_doorbells_bad), 1);
	trace_expect("");
	trace.room = 1; /* then the wire refuses, and the NIC does not try again in this pass */
	assert_true(nbnic_signal(&trace.nic, trace.group, 0, word));
	assert_false(nbnic_signal(&trace.nic, trace.group, 0, word));
	trace.room = 99;
	assert_false(nbnic_signal(&trace.nic, trace.group, 0, word));
	trace_work(1);
	trace_take();
	for (uint32_t i = 0; i < NBNIC_QUOTA; i++) /* the share of a port */
		assert_true(nbnic_signal(&trace.nic, trace.group, 0, word));
	assert_false(nbnic_signal(&trace.nic, trace.group, 0, word));
	assert_int_equal(trace_counter(NBAR_COUNTER_signals_sent), 2 + NBNIC_QUOTA);
	trace_work(1);
	for (uint32_t i = 0; i < NBNIC_QUOTA; i++) { /* the share of all ports together */
		trace.group->port = i % 2 ? TRACE_PORT : TRACE_PORT + 1;
		assert_true(nbnic_signal(&trace.nic, trace.group, 0, word));
	}
	assert_false(nbnic_signal(&trace.nic, trace.group, 0, word));
	trace_work(1);
	assert_true(nbnic_signal(&trace.nic, trace.group, 0, word));
	trace.nic.share[TRACE_PORT].left = 1; /* its barriers have had the rest */
	assert_true(nbnic_signal(&trace.nic, trace.group, 0, word));
	assert_false(nbnic_signal(&trace.nic, trace.group, 0, word));
	trace_take();
	nbnic_fail(&trace.nic, NBAR_STATUS_NIC_DOWN, trace.now);
	trace_expect("failed @0 cause 4 rank 1; ");
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_NIC_DOWN, trace.now);
	trace_expect("failed @0 cause 4 rank 1; released; ");
	trace_end();
}

UNIT_MAIN(NULL, NULL, UNIT(test_barrier), UNIT(test_timeouts), UNIT(test_sweeps),
	  UNIT(test_silence), UNIT(test_alive), UNIT(test_alive_with_a_short_budget),
	  UNIT(test_answers), UNIT(test_idle), UNIT(test_doubt), UNIT(test_answers_to_pulls),
	  UNIT(test_stragglers), UNIT(test_silent_nics), UNIT(test_entries_of_nics),
	  UNIT(test_silent_nics_without_an_entry), UNIT(test_signals))
