/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mirror.c - the page of a remote host: what is pushed, in which order, and what happens while
 * nothing can be pushed. The test is the host, and looks only at its own copy.
 */
#include "mirror.h"
#include "page.h"
#include "unit/nic/nic_trace.h"

#define CELL TRACE_CELL
#define NO_CELL UINT32_MAX

static struct nbar_page page, copy; /* of the NIC; of the host */
static struct nbnic_port port;
static struct nbnic_mirror mirror;
static uint32_t pushes, woken;
static uint32_t allowed, refused;  /* after `allowed` more pushes, `refused` are not taken */
static uint64_t word_without_rank; /* the host saw a failure before its rank */
static uint32_t results_late;      /* the host saw a completion before its result */

static bool on_push(void *ctx, uint32_t number, const void *at, size_t n, uint32_t cell)
{
	size_t from = (size_t)((const uint8_t *)at - (const uint8_t *)&page);

	assert_ptr_equal(ctx, &port);
	assert_int_equal(number, TRACE_PORT);
	assert_true(from < sizeof(page) && n > 0 && n <= sizeof(page) - from);
	if (allowed > 0) {
		allowed--;
	} else if (refused > 0) {
		refused--;
		return false;
	}
	memcpy((uint8_t *)&copy + from, at, n);
	pushes++;
	woken += cell == CELL;
	assert_true(cell == CELL || cell == NO_CELL);
	if (copy.completion[CELL].word >> 32 && copy.completion[CELL].failed_rank == NBAR_RANK_NONE)
		word_without_rank++;
	for (uint32_t e = (uint32_t)copy.completion[CELL].word; port.cell[CELL].values && e; e = 0)
		results_late += copy.value[0][e % NBAR_VALUES_AHEAD].value.epoch != e;
	return true;
}

static const struct nbnic_platform platform = { .push = on_push };

static void begin(void)
{
	trace_connected("pairwise", 2, 0);
	memset(&page, 0xee, sizeof(page));
	memset(&copy, 0xdd, sizeof(copy));
	memset(&mirror, 0, sizeof(mirror));
	port = (struct nbnic_port){ .page = &page,
				    .completion = page.completion,
				    .value = page.value,
				    .platform = &platform,
				    .ctx = &port,
				    .mirror = &mirror,
				    .number = TRACE_PORT };
	page.sends_taken = page.recvs_taken = 0;
	allowed = refused = 0;
	nbnic_page_begin(&port);
	nbnic_cell_begin(&port, CELL, trace.group);
	assert_memory_equal(&copy.completion[CELL], &page.completion[CELL],
			    sizeof(copy.completion[CELL]));
	pushes = woken = results_late = 0;
	word_without_rank = 0;
}

static void complete(uint32_t epoch)
{
	nbnic_page_complete(&port, &trace.nic, CELL, epoch, NBAR_STATUS_OK, NBAR_RANK_NONE);
}

/* The host posts; the trace's peer does not answer, so this barrier does not complete by itself. */
static void scan(void)
{
	struct nbnic_port *const ports[] = { &port };

	nbnic_page_scan(ports, 1, &trace.nic, trace.now);
	trace.nic.used.wakes = 0;
}

static void test_one_push_a_completion(void **state)
{
	begin();
	for (uint32_t e = 1; e <= 100; e++) {
		complete(e);
		assert_true(copy.completion[CELL].word == e);
	}
	assert_int_equal(pushes, 100);
	assert_int_equal(woken, 0);
	trace_end();
}

static void test_wakes(void **state)
{
	begin();
	page.doorbell[CELL].wake_seq++; /* before the completion */
	scan();
	assert_int_equal(woken, 0);
	complete(1);
	assert_int_equal(woken, 1);
	complete(2); /* nobody asks */
	assert_int_equal(woken, 1);
	page.doorbell[CELL].wake_seq++; /* too late: the sleeper may not have seen it */
	scan();
	assert_int_equal(woken, 2);
	page.doorbell[CELL].wake_seq++; /* nothing has completed since */
	scan();
	assert_int_equal(woken, 2);
	complete(3);
	assert_int_equal(woken, 3);
	assert_int_equal(copy.completion[CELL].wake, page.completion[CELL].wake);
	trace_end();
}

static void test_failures(void **state)
{
	begin();
	complete(1);
	nbnic_page_complete(&port, &trace.nic, CELL, 1, NBAR_STATUS_SILENT, 1);
	assert_true(copy.completion[CELL].word == ((uint64_t)NBAR_STATUS_SILENT << 32 | 1));
	assert_int_equal(copy.completion[CELL].failed_rank, 1);
	assert_true(word_without_rank == 0);
	assert_int_equal(woken, 1);
	trace_end();
}

/* For any number of refused pushes, all is at the host after a look, in order, and a sleeper is
 * woken once. */
static void test_no_room(void **state)
{
	for (uint32_t n = 0; n < 12; n++) {
		begin();
		port.cell[CELL].values = 1;
		page.doorbell[CELL].wake_seq++;
		scan();
		refused = n;
		for (uint32_t e = 1; e <= 5; e++) {
			const struct nbfw_value v = { .op = NBAR_SUM,
						      .type = NBAR_UINT64,
						      .count = { 1 },
						      .byte = { (uint8_t)e } };

			nbnic_page_result(&port, CELL, e, &v, NBFW_VALUE_HEAD + 8);
			complete(e);
		}
		nbnic_page_live(&port);
		copy.settled = 0;
		nbnic_mirror_settle(&port, 77);
		for (uint32_t i = 0; i < 12; i++)
			nbnic_mirror_look(&port, trace.now);
		assert_int_equal(copy.settled, 77);
		assert_true(copy.completion[CELL].word == 5);
		assert_int_equal(results_late, 0);
		assert_int_equal(woken, 1);
		for (uint32_t e = 1; e <= 5; e++)
			assert_int_equal(copy.value[0][e].value.of.byte[0], e);
		assert_int_equal(copy.life, page.life);
		trace_end();
	}
}

/* The host can write its own words over those of the NIC, at the NIC: pushes stay in the page, and
 * are few. */
static void test_hostile(void **state)
{
	begin();
	port.cell[CELL].values = 1;
	page.completion[CELL].word = 0x7fffffff;
	memset(page.value, 0xff, sizeof(page.value));
	nbnic_page_wake(&port, &trace.nic, CELL);
	assert_true(pushes <= NBAR_VALUES_AHEAD + 2);
	/* A value of 65,535 elements would end outside the page. */
	memset(page.value, 0, sizeof(page.value));
	for (uint32_t i = 0; i < NBAR_VALUES_AHEAD; i++)
		page.value[NBAR_VALUE_GROUPS - 1][i].value = (struct nbar_value){
			.op = NBAR_SUM, .type = NBAR_UINT64, .count = UINT16_MAX
		};
	port.cell[CELL].values = NBAR_VALUE_GROUPS;
	mirror.pushed[CELL] = 0;
	nbnic_page_wake(&port, &trace.nic, CELL);
	trace_end();
}

static void test_rings(void **state)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 1, 2, 3, 4, 5 };

	begin();
	copy.recv[0].seq = copy.recv[1].seq = 0;
	refused = 1;
	assert_true(nbnic_page_deliver(&port, CELL, 1, word));
	assert_int_equal(copy.recv[0].seq, 0);
	assert_true(nbnic_page_deliver(&port, CELL, 1, word));
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(copy.recv[i].seq, i + 1);
		assert_memory_equal(copy.recv[i].word, word, sizeof(word));
	}
	page.send[0] = (struct nbar_signal){ .seq = 1, .cell = CELL + 1 }; /* of no group */
	page.send[1].seq = 0;
	refused = 1;
	assert_int_equal(nbnic_page_signals(&port, &trace.nic, 8), 1);
	nbnic_mirror_look(&port, trace.now);
	assert_int_equal(copy.sends_taken, 1);
	trace_end();
}

/* A host that knows of its request sees the cell as it has begun, the messages of an old group, and
 * what the NIC has taken, whichever push is refused before. */
static void test_settled(void **state)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 1 };

	for (uint32_t n = 0; n < 128; n++) {
		begin();
		copy.completion[CELL].word = 0x123; /* of an old group */
		copy.settled = copy.recv[0].seq = copy.sends_taken = 0;
		allowed = n / 16;
		refused = n % 16;
		assert_true(nbnic_page_deliver(&port, CELL, 1, word));
		page.send[0] = (struct nbar_signal){ .seq = 1, .cell = CELL + 1 };
		page.send[1].seq = 0;
		assert_int_equal(nbnic_page_signals(&port, &trace.nic, 8), 1);
		nbnic_mirror_cell(&port, CELL);
		assert_true(nbnic_page_deliver(&port, CELL, 1, word));
		nbnic_mirror_settle(&port, 5);
		for (uint32_t i = 0; i < 20 && copy.settled != 5; i++)
			nbnic_mirror_look(&port, trace.now);
		assert_int_equal(copy.settled, 5);
		assert_true(copy.completion[CELL].word == page.completion[CELL].word);
		assert_int_equal(copy.recv[0].seq, 1);
		assert_int_equal(copy.recv[1].seq, 2);
		assert_int_equal(copy.sends_taken, 1);
		trace_end();
	}
}

static void test_stragglers(void **state)
{
	const struct nbnic_straggler late = { .rank = 1, .why = 77 };

	begin();
	nbnic_page_stragglers(&port, CELL, &late, 1);
	assert_int_equal(copy.completion[CELL].nstragglers, 1);
	assert_int_equal(copy.completion[CELL].straggler[0], 1);
	assert_int_equal(copy.completion[CELL].why[0], 77);
	trace_end();
}

/* The host clears its own copy when it kicks. */
static void test_kicks(void **state)
{
	begin();
	nbnic_page_ask_kicks(&port, true);
	assert_int_equal(copy.kick, 1);
	nbnic_page_ask_kicks(&port, false);
	nbnic_page_ask_kicks(&port, true);
	assert_int_equal(pushes, 1);
	copy.kick = 0;
	nbnic_mirror_kicked(&port);
	nbnic_page_ask_kicks(&port, true);
	assert_int_equal(copy.kick, 1);
	trace_end();
}

static void test_life(void **state)
{
	begin();
	nbnic_mirror_look(&port, trace.now);
	assert_int_equal(copy.life, page.life);
	nbnic_page_live(&port);
	nbnic_mirror_look(&port, trace.now + 1);
	assert_int_equal(pushes, 1);
	nbnic_mirror_look(&port, trace.now + 1000000000);
	assert_int_equal(copy.life, page.life);
	trace_end();
}

UNIT_MAIN(NULL, NULL, UNIT(test_one_push_a_completion), UNIT(test_wakes), UNIT(test_failures),
	  UNIT(test_no_room), UNIT(test_hostile), UNIT(test_rings), UNIT(test_settled),
	  UNIT(test_stragglers), UNIT(test_kicks), UNIT(test_life))
