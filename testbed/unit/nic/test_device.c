/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_device.c - a whole NIC in a world made by the test (device_world.h). The test counts what a
 * pass does, and never measures time.
 */
#include "device_world.h"

#define FLOOD 1000u /* signals in the host's ring, which has NBAR_SIGNALS_MAX entries */

/* Opens both members of a "signal" group on one port; member 0 sends to member 1. */
static void signal_open(struct nbnic_client *c)
{
	struct nbar_req_group_connect *req = (void *)(w.in + 1024);
	struct nbar_endpoint endpoint;

	assert_int_equal(group_open(c, "signal", 0, 2), 0);
	assert_int_equal(group_open(c, "signal", 1, 2), 0);
	endpoint = ((const struct nbar_rep_group_open *)reply_body())->endpoint;
	*req = (struct nbar_req_group_connect){ .cell = 0, .nendpoint = 1 };
	memcpy(req + 1, &endpoint, sizeof(endpoint));
	assert_int_equal(request(c, NBAR_OP_GROUP_CONNECT, req, sizeof(*req) + sizeof(endpoint)),
			 0);
}

/* The host puts FLOOD entries into its send ring. */
static void flood(struct nbnic_client *c)
{
	for (uint32_t i = 0; i < FLOOD; i++) {
		struct nbar_signal *e = &c->port->page->send[i];

		e->cell = 0;
		e->peer = 0;
		e->seq = i + 1;
	}
}

static void only_live_cells_are_looked_at(void **state)
{
	struct nbnic_client c;

	world_begin(0, 0);
	port_open(&c);
	for (uint32_t i = 0; i < NBNIC_GROUPS_MAX; i++)
		assert_int_equal(group_open(&c, "pairwise", 0, 1), 0);
	assert_int_equal(group_open(&c, "pairwise", 0, 1), -NBAR_ENOSPC);
	for (uint32_t i = 0; i < NBNIC_GROUPS_MAX - 1; i++)
		group_close(&c, i);
	assert_int_equal(c.port->nlive, 1);
	c.port->page->doorbell[NBNIC_GROUPS_MAX - 1].posted = 1;
	passes(1);
	assert_int_equal(completed(&c, NBNIC_GROUPS_MAX - 1), 1);
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	world_end();
}

/* The list of 4,096 peers is written outside the pass, and one call to the pass reports few groups.
 */
static void long_replies_do_not_delay_the_pass(void **state)
{
	const struct nbar_req_group_stat stat = { 0 };
	struct nbnic_client c;

	world_begin(0, 0);
	port_open(&c);
	assert_int_equal(group_open(&c, "linear", 0, NBFW_ROOT_MAX), 0);
	assert_int_equal(((const struct nbar_rep_group_open *)reply_body())->npeer,
			 NBFW_ROOT_MAX - 1);
	assert_in_range(w.grown, 0, sizeof(struct nbar_rep_group_open));
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(group_open(&c, "pairwise", 0, 2), 0);
	assert_int_equal(request(&c, NBAR_OP_GROUP_STAT, &stat, sizeof(stat)), 0);
	assert_in_range(((const struct nbar_rep_group_stat *)reply_body())->ninfo, 1, 2);
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	world_end();
}

/* A pass looks at a bounded number of ringing cells of one port, and at the cells of other ports.
 * Every cell gets its turn. */
static void doorbells_are_looked_at_in_turn(void **state)
{
	const uint32_t n = 5 * NBNIC_SCAN_CELLS;
	struct nbnic_client many, one;
	uint32_t done = 0;

	world_begin(0, 0);
	port_open(&many);
	port_open(&one);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(group_open(&many, "pairwise", 0, 1), 0);
	assert_int_equal(group_open(&one, "pairwise", 0, 1), 0);
	for (uint32_t i = 0; i < n; i++)
		many.port->page->doorbell[i].posted = 1;
	one.port->page->doorbell[0].posted = 1;
	passes(1);
	assert_int_equal(completed(&one, 0), 1);
	for (uint32_t i = 0; i < n; i++)
		done += completed(&many, i);
	assert_in_range(done, 1, NBNIC_SCAN_CELLS);
	passes(4);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(completed(&many, i), 1);
	nbnic_client_end(&many, NBAR_STATUS_CLOSED);
	nbnic_client_end(&one, NBAR_STATUS_CLOSED);
	world_end();
}

static void signals_are_sent_up_to_a_budget(void **state)
{
	enum { PORTS = 8 };
	struct nbnic_client c[PORTS];

	world_begin(0, 0);
	for (uint32_t i = 0; i < PORTS; i++) {
		port_open(&c[i]);
		signal_open(&c[i]);
		flood(&c[i]);
	}
	for (uint64_t pass = 1; pass <= PORTS; pass++) {
		passes(1);
		assert_in_range(w.wire.sent, pass, pass * NBNIC_QUOTA);
		for (uint32_t i = 0; i < PORTS; i++) /* in a pass, a port has half of the quota */
			assert_in_range(c[i].port->sends_taken, 0, pass * NBNIC_QUOTA / 2);
	}
	/* All ports have had the same number of passes. */
	for (uint32_t i = 0; i < PORTS; i++)
		assert_int_equal(c[i].port->sends_taken, c[0].port->sends_taken);
	assert_in_range(c[0].port->sends_taken, 1, PORTS * NBNIC_QUOTA / 2);
	for (uint32_t i = 0; i < PORTS; i++)
		nbnic_client_end(&c[i], NBAR_STATUS_CLOSED);
	world_end();
}

/* The quota of the wire protects other ports. A port that is alone has a larger quota. */
static void a_port_alone_has_a_larger_quota(void **state)
{
	static const struct wire_ops slow_ops = {
		.quota = NBNIC_QUOTA_MIN,
		.poll = loop_poll,
		.transmit = loop_transmit,
	};
	struct nbnic_client a, b;

	world_begin(0, 0);
	w.wire.base.ops = &slow_ops;
	port_open(&a);
	signal_open(&a);
	flood(&a);
	passes(1);
	assert_int_equal(w.wire.sent, NBNIC_QUOTA / 2);
	port_open(&b);
	passes(1); /* the other port has no group yet */
	assert_int_equal(w.wire.sent, NBNIC_QUOTA);
	signal_open(&b);
	flood(&b);
	passes(2);
	assert_int_equal(w.wire.budget, NBNIC_PASS_FRAMES(NBNIC_QUOTA_MIN));
	assert_int_equal(w.wire.sent, NBNIC_QUOTA + 2); /* one frame of each port */
	assert_int_equal(b.port->sends_taken, 1);
	nbnic_client_end(&b, NBAR_STATUS_CLOSED);
	passes(1);
	assert_int_equal(w.wire.sent, NBNIC_QUOTA + 2 + NBNIC_QUOTA / 2);
	nbnic_client_end(&a, NBAR_STATUS_CLOSED);
	world_end();
}

/* Received frames go first; but a flood of them does not stop the signals of the hosts here. */
static void a_pass_receives_before_it_sends_signals(void **state)
{
	struct nbnic_client c;
	uint32_t with = 0;

	world_begin(0, 0);
	port_open(&c);
	signal_open(&c);
	flood(&c);
	for (uint32_t i = 0; i < 80; i++) {
		uint64_t sent = w.wire.sent;

		w.wire.junk = 2 * NBNIC_PASS_FRAMES(NBNIC_QUOTA);
		passes(1);
		assert_int_equal(w.wire.budget, NBNIC_PASS_FRAMES(NBNIC_QUOTA));
		assert_int_equal(w.wire.junk, NBNIC_PASS_FRAMES(NBNIC_QUOTA));
		with += w.wire.sent > sent;
	}
	assert_in_range(with, 1, 20);
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	world_end();
}

static void signals_wait_for_room_on_the_wire(void **state)
{
	struct nbnic_client c;

	world_begin(0, 0);
	port_open(&c);
	signal_open(&c);
	group_close(&c, 1); /* one group for signals is enough */
	flood(&c);
	w.wire.room = 3;
	passes(20);
	assert_int_equal(c.port->page->sends_taken, 3);
	assert_int_equal(w.wire.sent, 3);
	w.wire.room = UINT32_MAX;
	passes(4 * FLOOD / NBNIC_QUOTA);
	assert_int_equal(c.port->page->sends_taken, FLOOD);
	assert_int_equal(w.wire.sent, FLOOD);
	assert_int_equal(w.device.nic.counter[NBAR_COUNTER_wire_errors], 0);
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	world_end();
}

/* A root of linear with 4,097 members takes some hundred KiB. No client gets more than its share,
 * and the NIC never uses more than its limit. */
static void memory_is_budgeted(void **state)
{
	enum { PORTS = 6 };
	const uint64_t memory = UINT64_C(8) << 20;
	struct nbnic_client c[PORTS];
	uint32_t opened[PORTS] = { 0 }, more = 0;
	uint64_t ports, one;
	char used[96];

	world_begin(memory, 0);
	for (uint32_t i = 0; i < PORTS; i++)
		port_open(&c[i]);
	ports = w.bytes;
	for (uint32_t i = 0; i < PORTS; i++)
		while (group_open(&c[i], "linear", 0, NBFW_ROOT_MAX) == 0)
			opened[i]++;
	assert_int_equal(w.out.head.status, -NBAR_ENOSPC);
	one = w.device.open_bytes / w.device.ngroup;
	snprintf(used, sizeof(used),
		 "groups of n0 take %u KiB, this one %u more, and a NIC has %u;",
		 (unsigned)(w.device.open_bytes / 1024), (unsigned)(one / 1024),
		 (unsigned)(memory * 3 / 4 / 1024));
	require(strstr(w.out.head.text, used), "%s", w.out.head.text);
	assert_true(group_open(&c[0], "linear", 0, NBFW_ROOT_MAX) < 0);
	snprintf(used, sizeof(used),
		 "of port %u of n0 take %u KiB, this one %u more, and a port may have %u;",
		 c[0].port->number, (unsigned)(c[0].bytes / 1024), (unsigned)(one / 1024),
		 (unsigned)(memory / 4 / 1024));
	require(strstr(w.out.head.text, used), "%s", w.out.head.text);
	assert_true(opened[0] > 0 && opened[0] == opened[1] && opened[1] == opened[2]);
	assert_int_equal(opened[PORTS - 1], 0); /* the limit is reached */
	assert_in_range(c[0].bytes, memory / 4 - one + 1, memory / 4);
	assert_in_range(w.device.open_bytes, memory - memory / 4 - one + 1, memory - memory / 4);
	/* Clients that open and close again and again leave lingering groups. */
	for (uint32_t i = 0; i < 100; i++) {
		group_close(&c[0], 0);
		assert_int_equal(group_open(&c[0], "linear", 0, NBFW_ROOT_MAX), 0);
		more += w.device.nic.nlinger > 0;
	}
	assert_int_equal(more, 100);
	assert_true(w.device.nic.linger_bytes_max == memory / 4);
	assert_true(w.device.nic.linger_bytes <= memory / 4);
	/* Beside its groups a NIC needs the plan of one request. */
	assert_true(w.bytes_max - ports <= memory + (UINT64_C(1) << 20));
	for (uint32_t i = 0; i < PORTS; i++)
		nbnic_client_end(&c[i], NBAR_STATUS_HOST_DIED);
	assert_int_equal(w.device.open_bytes, 0);
	world_end();
}

/* Groups with one member complete at once. But a pass starts a bounded number of their barriers,
 * and wakes a bounded number of sleepers. Later passes serve the others. */
static void starts_and_wakes_have_a_budget(void **state)
{
	const uint32_t n = NBNIC_SCAN_CELLS, ahead = 16;
	struct nbnic_client c[4];
	uint32_t started = 0;

	world_begin(0, 0);
	for (uint32_t i = 0; i < 4; i++) {
		port_open(&c[i]);
		for (uint32_t cell = 0; cell < n; cell++) {
			assert_int_equal(group_open(&c[i], "pairwise", 0, 1), 0);
			c[i].port->page->doorbell[cell].posted = ahead;
		}
	}
	passes(1);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t cell = 0; cell < n; cell++)
			started += completed(&c[i], cell);
	assert_in_range(started, 1, NBNIC_PASS_STARTS + (NBNIC_QUOTA + 4) * NBNIC_QUANTUM);
	passes(4 * n * ahead / NBNIC_PASS_STARTS + 4);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t cell = 0; cell < n; cell++) {
			assert_int_equal(completed(&c[i], cell), ahead);
			c[i].port->page->doorbell[cell].wake_seq++;
		}
	w.wakes = 0;
	passes(1);
	assert_in_range(w.wakes, 1, NBNIC_PASS_WAKES);
	passes(4 * n / NBNIC_PASS_WAKES);
	assert_int_equal(w.wakes, 4 * n);
	for (uint32_t i = 0; i < 4; i++)
		nbnic_client_end(&c[i], NBAR_STATUS_CLOSED);
	world_end();
}

/* A NIC that stops informs the hosts. It keeps the messages for its peers, even if they exceed the
 * memory limit. Later requests do no harm. */
static void a_stop_tells_everybody(void **state)
{
	struct nbnic_client c[2];
	uint32_t n[2] = { 0 };

	world_begin(UINT64_C(8) << 20, 0);
	for (uint32_t i = 0; i < 2; i++) {
		port_open(&c[i]);
		while (group_open(&c[i], "linear", 0, NBFW_ROOT_MAX) == 0)
			n[i]++;
		assert_true(n[i] > 1);
	}
	assert_true(w.device.open_bytes > w.device.nic.linger_bytes_max);
	nbnic_device_stop(&w.device, w.now);
	assert_int_equal(w.device.nopen, 0);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t cell = 0; cell < n[i]; cell++)
			assert_int_equal(c[i].port->page->completion[cell].word >> 32,
					 NBAR_STATUS_NIC_DOWN);
	assert_int_equal(w.device.nic.nlinger, n[0] + n[1]);
	assert_int_equal(w.device.nic.counter[NBAR_COUNTER_linger_cut], 0);
	assert_int_equal(group_open(&c[0], "pairwise", 0, 1), -NBAR_ENETDOWN);
	assert_string_equal(w.out.head.text, "port 0 of n0 has ended, as its process exits");
	for (uint32_t i = 0; i < 2; i++)
		nbnic_client_end(&c[i], NBAR_STATUS_HOST_DIED);
	assert_int_equal(w.device.nic.nopen, 0);
	world_end();
}

static void the_end_of_a_client_closes_its_port(void **state)
{
	struct nbnic_client c, other;
	struct nbar_req_port_attach attach = { 0 };
	struct nbar_req_group_attach hold = { 0 };

	world_begin(0, 0);
	port_open(&c);
	memcpy(attach.secret, c.secret, sizeof(attach.secret));
	assert_int_equal(group_open(&c, "pairwise", 0, 2), 0);
	hold.endpoint = ((const struct nbar_rep_group_open *)reply_body())->endpoint;
	nbnic_client_begin(&w.device, &other, 2, 1, false);
	assert_int_equal(request(&other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	assert_int_equal(request(&other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	nbnic_client_end(&c, NBAR_STATUS_HOST_DIED);
	assert_int_equal(w.device.nopen, 0);
	assert_int_equal(w.device.nbusy, 0);
	assert_null(other.owner);
	nbnic_client_end(&other, NBAR_STATUS_HOST_DIED);
	assert_null(w.device.client);
	world_end();
}

static void only_holders_abort_a_group(void **state)
{
	struct nbnic_client c, other;
	struct nbar_req_port_attach attach = { 0 };
	struct nbar_req_group_attach hold = { 0 };
	struct nbar_req_group_abort cell = { 0 }, bad = { .cell = UINT32_MAX };

	world_begin(0, 0);
	nbnic_client_begin(&w.device, &other, 2, 1, false);
	assert_int_equal(request(&other, NBAR_OP_GROUP_ABORT, &cell, sizeof(cell)), -NBAR_ENXIO);
	port_open(&c);
	memcpy(attach.secret, c.secret, sizeof(attach.secret));
	assert_int_equal(request(&c, NBAR_OP_GROUP_ABORT, &cell, sizeof(cell)), -NBAR_ENOENT);
	assert_int_equal(group_open(&c, "pairwise", 0, 2), 0);
	hold.endpoint = ((const struct nbar_rep_group_open *)reply_body())->endpoint;
	assert_int_equal(request(&c, NBAR_OP_GROUP_ABORT, &bad, sizeof(bad)), -NBAR_ENOENT);
	assert_int_equal(request(&c, NBAR_OP_GROUP_ABORT, &cell, 4), -NBAR_EBADMSG);
	/* Attached to the port, but not to the group. */
	assert_int_equal(request(&other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	assert_int_equal(request(&other, NBAR_OP_GROUP_ABORT, &cell, sizeof(cell)), -NBAR_ENOENT);
	assert_int_equal(c.port->page->completion[0].word >> 32, NBAR_STATUS_OK);
	assert_int_equal(request(&other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	assert_int_equal(request(&other, NBAR_OP_GROUP_ABORT, &bad, sizeof(bad)), -NBAR_ENOENT);
	assert_int_equal(request(&other, NBAR_OP_GROUP_ABORT, &cell, sizeof(cell)), 0);
	assert_int_equal(c.port->page->completion[0].word >> 32, NBAR_STATUS_ABORTED);
	assert_int_equal(c.port->page->completion[0].failed_rank, 0);
	assert_int_equal(request(&c, NBAR_OP_GROUP_ABORT, &cell, sizeof(cell)), 0);
	/* This platform has no sockets. */
	assert_int_equal(request(&c, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell)), -NBAR_EOPNOTSUPP);
	assert_int_equal(request(&other, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell)), -NBAR_EPERM);
	assert_false(c.gives_events || other.gives_events);
	nbnic_client_end(&other, NBAR_STATUS_OK);
	nbnic_client_end(&c, NBAR_STATUS_HOST_DIED);
	world_end();
}

/* Hosts doubt a NIC without a sign of life, so the period of these signs does not grow with
 * pull_ns. */
static void signs_of_life_do_not_wait_for_pulls(void **state)
{
	struct nbnic_client c;
	uint32_t life;

	world_begin(0, 0);
	passes(1);
	assert_true(w.device.next_tick == w.now + MS / 2); /* half of pull_ns */
	w.device.pull_ns = 60000 * MS;
	port_open(&c);
	assert_int_equal(group_open(&c, "pairwise", 0, 2), 0);
	passes(1);
	life = c.port->page->life;
	w.now += 10 * MS;
	passes(1);
	assert_int_equal(c.port->page->life, life + 2);
	w.device.pull_ns = 6 * MS;
	w.now += 10 * MS;
	passes(1);
	assert_true(w.device.next_tick == w.now + 3 * MS);
	w.wire.junk = 1; /* one frame is work */
	assert_true(nbnic_device_pass(&w.device, w.now));
	assert_false(nbnic_device_pass(&w.device, w.now));
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	world_end();
}

/* A tick shows the hosts of some ports a sign of life, and the next tick goes on with the others.
 */
static void signs_of_life_come_in_turn(void **state)
{
	enum { PORTS = 96, A_TICK = 64 };
	struct nbnic_client c[PORTS];

	world_begin(0, 0);
	passes(1);
	for (uint32_t i = 0; i < PORTS; i++) {
		port_open(&c[i]);
		assert_int_equal(group_open(&c[i], "pairwise", 0, 2), 0);
	}
	for (uint32_t tick = 1; tick <= 3; tick++) {
		w.now += 10 * MS;
		passes(1);
		for (uint32_t i = 0; i < PORTS; i++)
			assert_int_equal(c[i].port->page->life,
					 1 + 2 * (1 + (tick * A_TICK + PORTS - 1 - i) / PORTS));
	}
	for (uint32_t i = 0; i < PORTS; i++)
		nbnic_client_end(&c[i], NBAR_STATUS_CLOSED);
	world_end();
}

/* A call closes 16 groups of a port that ends, so that the pass does not wait for long. */
static void a_port_ends_in_parts(void **state)
{
	struct nbnic_client c;

	world_begin(0, 0);
	port_open(&c);
	for (uint32_t i = 0; i < 33; i++)
		assert_int_equal(group_open(&c, "pairwise", 0, 2), 0);
	assert_false(nbnic_device_port_end(&w.device, c.port, NBAR_STATUS_CLOSED, w.now));
	assert_int_equal(c.port->nlive, 17);
	assert_false(nbnic_device_port_end(&w.device, c.port, NBAR_STATUS_CLOSED, w.now));
	assert_int_equal(c.port->nlive, 1);
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	assert_int_equal(w.device.nic.nopen, 0);
	world_end();
}

UNIT_MAIN(NULL, NULL, UNIT(only_live_cells_are_looked_at), UNIT(long_replies_do_not_delay_the_pass),
	  UNIT(doorbells_are_looked_at_in_turn), UNIT(signals_are_sent_up_to_a_budget),
	  UNIT(a_port_alone_has_a_larger_quota), UNIT(signs_of_life_do_not_wait_for_pulls),
	  UNIT(signs_of_life_come_in_turn), UNIT(a_port_ends_in_parts),
	  UNIT(a_pass_receives_before_it_sends_signals), UNIT(signals_wait_for_room_on_the_wire),
	  UNIT(memory_is_budgeted), UNIT(starts_and_wakes_have_a_budget),
	  UNIT(a_stop_tells_everybody), UNIT(the_end_of_a_client_closes_its_port),
	  UNIT(only_holders_abort_a_group))
