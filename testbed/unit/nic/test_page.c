/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_page.c - the NIC's side of a page, word by word: what cells begin with, doorbells, wakes,
 * completions and both signal rings. The test is the host.
 */
#include "page.h"
#include "unit/nic/nic_trace.h"

#define CELL TRACE_CELL

static struct nbar_page page;
static struct nbnic_port port;
static uint32_t wakes, woken; /* calls of wake, and the cell of the last call */

static void on_wake(void *ctx, uint32_t number, uint32_t cell, uint32_t *word)
{
	assert_ptr_equal(ctx, &port);
	assert_int_equal(number, TRACE_PORT);
	assert_ptr_equal(word, &page.completion[cell].wake);
	wakes++;
	woken = cell;
}

static const struct nbnic_platform platform = { .wake = on_wake };

/* A port whose cell CELL has the group of the trace. */
static void begin(const char *alg, uint32_t size, uint32_t rank)
{
	trace_connected(alg, size, rank);
	memset(&page, 0xee, sizeof(page));
	memset(&port, 0, sizeof(port));
	port = (struct nbnic_port){ .page = &page,
				    .completion = page.completion,
				    .value = page.value,
				    .platform = &platform,
				    .ctx = &port,
				    .number = TRACE_PORT };
	page.sends_taken = page.recvs_taken = 0;
	wakes = 0;
	nbnic_page_begin(&port);
	nbnic_cell_begin(&port, CELL, trace.group);
}

static bool scan(void)
{
	struct nbnic_port *const ports[] = { &port };
	bool any = nbnic_page_scan(ports, 1, &trace.nic, trace.now);

	return any;
}

/* Whatever the host writes there, the NIC only writes the word. */
static void test_kicks(void **state)
{
	begin("pairwise", 2, 0);
	page.kick = 0;
	nbnic_page_ask_kicks(&port, true);
	assert_int_equal(page.kick, 1);
	page.kick = 7;
	page.doorbell[CELL].posted = 1; /* without a kick */
	nbnic_page_ask_kicks(&port, true);
	assert_int_equal(page.kick, 1);
	assert_true(scan());
	nbnic_page_ask_kicks(&port, false);
	assert_int_equal(page.kick, 0);
}

static void test_cells(void **state)
{
	const uint32_t all_set = 0xeeeeeeee;

	begin("pairwise", 2, 0);
	assert_int_equal(page.magic, NBAR_ABI_MAGIC);
	assert_int_equal(page.version, NBAR_ABI_VERSION);
	assert_int_equal(page.port, TRACE_PORT);
	assert_int_equal(page.doorbell[CELL].posted, 0);
	assert_int_equal(page.doorbell[CELL].wake_seq, 0);
	assert_true(page.completion[CELL].word == 0);
	assert_int_equal(page.completion[CELL].failed_rank, NBAR_RANK_NONE);
	assert_int_equal(page.completion[CELL].nstragglers, 0);
	assert_int_equal(page.doorbell[CELL + 1].posted, all_set);
	assert_int_equal(page.doorbell[CELL - 1].wake_seq, all_set);
	assert_int_equal(port.nlive, 1);
	assert_int_equal(port.nsignal, 0);
	assert_int_equal(nbnic_page_free_cell(&port), 0);
	for (uint32_t i = 0; i < CELL; i++)
		port.cell[i].held = 1;
	assert_int_equal(nbnic_page_free_cell(&port), CELL + 1);
	/* The last live cell fills the gap of a cell that ends. */
	for (uint32_t i = 1; i <= 3; i++)
		nbnic_cell_begin(&port, CELL + i, trace.group);
	nbnic_cell_end(&port, CELL + 1);
	assert_int_equal(port.nlive, 3);
	assert_int_equal(port.live[0], CELL);
	assert_int_equal(port.live[1], CELL + 3);
	assert_int_equal(port.live[2], CELL + 2);
	assert_int_equal(port.cell[CELL + 3].live_index, 1);
	assert_null(nbnic_cell_group(&port, CELL + 1));
	assert_null(nbnic_cell_group(&port, NBAR_GROUPS_MAX));
	assert_ptr_equal(nbnic_cell_group(&port, CELL + 3), trace.group);
	trace_end();
}

static void test_doorbells(void **state)
{
	begin("dissemination:1", 4, 0);
	assert_false(scan());
	page.doorbell[CELL].posted = 1;
	assert_true(scan());
	trace_expect("token @1 slot 0 to 1; ");
	assert_false(scan());
	page.doorbell[CELL].posted = 0; /* less than before */
	assert_true(scan());
	assert_int_equal(trace_counter(NBAR_COUNTER_doorbells_bad), 1);
	assert_false(scan());
	trace_end();
}

/* A host asks for a wake, then sleeps. The NIC wakes the host once for a later completion, or at
 * once if there was a completion since the last wake. */
static void test_wakes(void **state)
{
	struct nbar_completion *c = &page.completion[CELL];
	uint32_t before;

	begin("dissemination:1", 4, 0);
	before = c->wake;
	nbnic_page_complete(&port, &trace.nic, CELL, 7, NBAR_STATUS_OK, NBAR_RANK_NONE);
	assert_true(c->word == 7);
	assert_int_equal(c->failed_rank, NBAR_RANK_NONE);
	assert_int_equal(wakes, 0);
	page.doorbell[CELL].wake_seq++; /* the host looked before barrier 7 was complete */
	assert_true(scan());
	assert_int_equal(wakes, 1);
	assert_int_equal(woken, CELL);
	assert_int_equal(c->wake, before + 1);
	assert_false(scan());
	page.doorbell[CELL].wake_seq++;
	assert_true(scan());
	assert_int_equal(wakes, 1);
	nbnic_page_complete(&port, &trace.nic, CELL, 8, NBAR_STATUS_OK, NBAR_RANK_NONE);
	assert_int_equal(wakes, 2);
	nbnic_page_complete(&port, &trace.nic, CELL, 9, NBAR_STATUS_OK, NBAR_RANK_NONE);
	assert_int_equal(wakes, 2);
	nbnic_page_complete(&port, &trace.nic, CELL, 9, NBAR_STATUS_CLOSED, 3);
	assert_true(c->word == ((uint64_t)NBAR_STATUS_CLOSED << 32 | 9));
	assert_int_equal(c->failed_rank, 3);
	assert_int_equal(wakes, 3); /* whether the host has asked or not */
	assert_int_equal(c->wake, before + 3);
	assert_int_equal(trace_counter(NBAR_COUNTER_wakes), 3);
	page.doorbell[CELL].wake_seq++;
	scan();
	assert_int_equal(wakes, 3); /* no completion has been missed */
	/* Beyond the budget of a pass, a request waits for the next pass. */
	nbnic_cell_end(&port, CELL);
	nbnic_cell_begin(&port, CELL, trace.group);
	nbnic_page_complete(&port, &trace.nic, CELL, 1, NBAR_STATUS_OK, NBAR_RANK_NONE);
	trace.nic.used.wakes = NBNIC_PASS_WAKES;
	page.doorbell[CELL].wake_seq = 5;
	assert_true(scan());
	assert_int_equal(wakes, 3);
	trace.nic.used.wakes = NBNIC_PASS_WAKES - 1;
	assert_true(scan());
	assert_int_equal(wakes, 4);
	assert_int_equal(trace.nic.used.wakes, NBNIC_PASS_WAKES);
	trace_end();
}

/* A pass looks at some cells of a port with many cells, and the next pass at the other cells. */
static void test_many_cells(void **state)
{
	uint32_t last = CELL + NBNIC_SCAN_CELLS;

	begin("dissemination:1", 4, 0);
	for (uint32_t cell = CELL + 1; cell <= last; cell++)
		nbnic_cell_begin(&port, cell, trace.group);
	page.doorbell[last].posted = 1;
	assert_false(scan());
	assert_int_equal(port.scan_at, NBNIC_SCAN_CELLS);
	assert_true(scan());
	trace_expect("token @1 slot 0 to 1; ");
	assert_int_equal(port.scan_at, NBNIC_SCAN_CELLS - 1);
	nbnic_cell_end(&port, last);
	assert_false(scan());
	trace_end();
}

static void test_stragglers(void **state)
{
	static const struct nbnic_straggler late[] = { { .rank = 4 }, { .rank = 9 } };
	const struct nbar_completion *c = &page.completion[CELL];

	begin("pairwise", 2, 0);
	nbnic_page_stragglers(&port, CELL, late, 2);
	assert_int_equal(c->nstragglers, 2);
	assert_int_equal(c->straggler[0], 4);
	assert_int_equal(c->straggler[1], 9);
	assert_int_equal(c->straggler[2], 0xeeeeeeee);
	nbnic_page_stragglers(&port, CELL, late, 0);
	assert_int_equal(c->nstragglers, 0);
	trace_end();
}

static void fill(uint32_t at, uint32_t cell, uint32_t peer)
{
	struct nbar_signal *e = &page.send[at % NBAR_SIGNALS_MAX];

	*e = (struct nbar_signal){ at + 1, cell, peer, { at, 1, 2, 3, 4 } };
}

/* Entries go out in order, up to the budget, and around the end of the ring. */
static void test_send_ring(void **state)
{
	begin("signal", 4, 1);
	assert_int_equal(port.nsignal, 1);
	port.sends_taken = NBAR_SIGNALS_MAX - 1;
	assert_int_equal(nbnic_page_signals(&port, &trace.nic, 4), 0);
	assert_int_equal(page.sends_taken, 0);
	fill(NBAR_SIGNALS_MAX - 1, CELL, 0);
	fill(NBAR_SIGNALS_MAX, CELL + 1, 0); /* a cell without a group */
	fill(NBAR_SIGNALS_MAX + 1, CELL, 2);
	fill(NBAR_SIGNALS_MAX + 2, CELL, 1);
	assert_int_equal(nbnic_page_signals(&port, &trace.nic, 3), 3);
	trace_expect("signal to 0: 1023 1 2 3 4; signal to 3: 1025 1 2 3 4; ");
	assert_int_equal(page.sends_taken, NBAR_SIGNALS_MAX + 2);
	assert_int_equal(trace_counter(NBAR_COUNTER_entries_bad), 1);
	trace.room = 0;
	assert_int_equal(nbnic_page_signals(&port, &trace.nic, 3), 0);
	assert_int_equal(page.sends_taken, NBAR_SIGNALS_MAX + 2);
	trace.room = 9;
	trace_work(0);
	assert_int_equal(nbnic_page_signals(&port, &trace.nic, 3), 1);
	trace_expect("signal to 2: 1026 1 2 3 4; ");
	nbnic_cell_end(&port, CELL);
	assert_int_equal(port.nsignal, 0);
	trace_end();
}

/* The receive ring takes one message per entry, and more when the host has taken some. */
static void test_receive_ring(void **state)
{
	static const uint32_t word[NBAR_SIGNAL_WORDS] = { 5, 6, 7, 8, 9 };
	const struct nbar_signal *e = &page.recv[0];

	begin("signal", 4, 1);
	for (uint32_t i = 0; i < NBAR_SIGNALS_MAX; i++) {
		assert_true(nbnic_page_deliver(&port, CELL, 3, word));
		assert_int_equal(page.recv[i].seq, i + 1);
	}
	assert_int_equal(e->cell, CELL);
	assert_int_equal(e->peer, 3);
	assert_memory_equal(e->word, word, sizeof(word));
	assert_false(nbnic_page_deliver(&port, CELL, 2, word));
	assert_int_equal(e->seq, 1);
	page.recvs_taken = 2;
	assert_true(nbnic_page_deliver(&port, CELL + 1, 2, word));
	assert_int_equal(e->seq, NBAR_SIGNALS_MAX + 1);
	assert_int_equal(e->cell, CELL + 1);
	assert_int_equal(e->peer, 2);
	assert_true(nbnic_page_deliver(&port, CELL, 2, word));
	assert_false(nbnic_page_deliver(&port, CELL, 2, word));
	trace_end();
}

UNIT_MAIN(NULL, NULL, UNIT(test_cells), UNIT(test_doorbells), UNIT(test_wakes),
	  UNIT(test_many_cells), UNIT(test_stragglers), UNIT(test_send_ring),
	  UNIT(test_receive_ring), UNIT(test_kicks))
