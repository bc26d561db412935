/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_request_rare.c - requests at the limits: a port that ends while its request is under way,
 * plans with the most peers, endpoint addresses in several parts, and the information about groups.
 */
#include "mirror.h"
#include "unit/nic/request_world.h"

#define MANY 40u /* endpoint addresses: more than one exclusive call takes */

static struct {
	struct nbar_req_group_connect req;
	struct nbar_endpoint endpoint[MANY];
} connect_all;

/* Rank 0 of a group of MANY + 1 in cell 0, and the endpoint addresses of all others. */
static void open_many(void)
{
	port_open(&w.client, 3);
	connect_all.req = (struct nbar_req_group_connect){ 0, MANY };
	group_open("linear", 0, MANY + 1);
	for (uint32_t i = 0; i < MANY; i++)
		connect_all.endpoint[i] = group_open("linear", i + 1, MANY + 1).endpoint;
}

static void test_connect_in_parts(void **state)
{
	const struct nbar_rep_group_connect *rep = body();

	open_many();
	assert_int_equal(
		request(&w.client, NBAR_OP_GROUP_CONNECT, &connect_all, sizeof(connect_all)), 0);
	assert_int_equal(rep->missing, 0);
	assert_int_equal(w.peers, MANY);
	assert_int_equal(w.client.port->cell[0].group->life, NBAR_LIFE_CONNECTED);
}

/* A process that exits ends its port between two exclusive calls of its request. */
static void test_port_ends(void **state)
{
	static const struct {
		uint32_t call; /* the exclusive call in which the group is gone */
		uint32_t peers;
	} end[] = { { 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, 0 }, { 5, 32 } };

	open_many();
	for (uint32_t i = 0; i < sizeof(end) / sizeof(end[0]); i++) {
		w.hide = end[i].call;
		refuses(&w.client, NBAR_OP_GROUP_CONNECT, &connect_all, sizeof(connect_all),
			NBAR_ENOENT, "there is no group in cell 0 of port 3; open");
		assert_int_equal(w.peers, end[i].peers);
	}
	nbnic_client_abandon(&w.other); /* it has no port */
	port_open(&w.other, 4);
	nbnic_client_end(&w.other, NBAR_STATUS_CLOSED);
	assert_null(w.other.port);
	nbnic_client_begin(&w.device, &w.other, 200, 7, false);
}

/* A plan with as many peers as a group may have, and a plan with one peer more. */
static void test_most_peers(void **state)
{
	enum { EACH = NBAR_PEERS_MAX / 2 + 1 };
	static struct {
		struct nbar_req_group_open req;
		struct nbar_plan plan;
		struct nbar_step step;
		struct nbar_send send[EACH];
		struct nbar_recv recv[EACH];
	} q;

	port_open(&w.client, 3);
	q.req = group("custom", 0, 2 * EACH + 1);
	q.req.plan_length = sizeof(q) - sizeof(q.req);
	q.plan = (struct nbar_plan){ NBAR_PLAN_MAGIC, 0, 2 * EACH + 1, 1, EACH, EACH };
	q.step = (struct nbar_step){ 0, EACH, 0, EACH };
	for (uint32_t i = 0; i < EACH; i++) {
		q.send[i] = (struct nbar_send){ i + 1, 0 };
		q.recv[i] = (struct nbar_recv){ EACH + i };
	}
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &q, sizeof(q), NBAR_ENOSPC,
		"the plan of rank 0 is refused: the plan talks to more peers than this NIC");
	assert_int_equal(w.blocks, 1); /* the port */
	q.recv[1].src = EACH - 1;      /* a peer of the sends, like recv[0].src */
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_OPEN, &q, sizeof(q)), 0);
	assert_int_equal(w.client.port->cell[0].group->npeer, NBAR_PEERS_MAX);
}

/* A group that is closed leaves a gap in the statistics; messages have no state of a barrier. */
static void test_statistics_with_a_gap(void **state)
{
	const struct nbar_rep_group_stat *rep = body();
	const struct nbar_group_info *info = (const void *)(rep + 1);
	struct nbar_req_group_stat req = { 0 };
	const struct nbar_req_group_close cell = { .cell = 1 };

	port_open(&w.client, 3);
	for (uint32_t i = 0; i < 3; i++)
		group_open("signal", i, 3);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 2);
	assert_int_equal(rep->next, 0);
	assert_int_equal(info[0].rank, 0);
	assert_int_equal(info[1].rank, 2);
	assert_string_equal(info[1].alg, "signal");
	assert_int_equal(info[1].nstep, 0);
	/* Many handles have no group, but one call looks only at some handles. */
	w.device.nic.high = 300;
	req.first = 3;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 0);
	assert_int_equal(rep->next, 3 + 256);
	req.first = rep->next;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo + rep->next, 0);
	w.device.nic.high = 3;
}

/* A group of messages has no barrier: nobody can abort it, nor attach to it. */
static void test_messages_have_no_barrier(void **state)
{
	const struct nbar_req_group_abort abort_it = { .cell = 0 };
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_req_group_attach hold = { .cell = 0 };

	port_open(&w.client, 3);
	hold.endpoint = group_open("signal", 0, 3).endpoint;
	assert_false(nbnic_device_pass(&w.device, w.now)); /* no message waits */
	refuses(&w.client, NBAR_OP_GROUP_ABORT, &abort_it, sizeof(abort_it), NBAR_ENOENT,
		"there is no group of barriers in cell 0 of this port of n0; was");
	memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
	refuses(&w.client, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_EALREADY,
		"this connection has a port of n0 already; open");
	assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	refuses(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold), NBAR_ENOENT,
		"the group is not in cell 0 of port 3; was");
}

/* A client asks whether its peers answer: the owner of the port, or a process that has attached to
 * the group. */
static void test_reach(void **state)
{
	struct nbar_req_group_reach req = { .cell = 0, .rank = NBAR_RANK_NONE };
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_req_group_attach hold = { .cell = 0 };
	const struct nbar_rep_group_reach *rep = body();
	struct nbar_endpoint peer;
	struct {
		struct nbar_req_group_connect head;
		struct nbar_endpoint endpoint;
	} connect = { { 0, 1 }, { { 0 } } };
	struct nbfw_token echo = { .type = NBFW_ECHO, .src = 1 };

	port_open(&w.client, 3);
	peer = group_open("pairwise", 1, 2).endpoint;
	hold.endpoint = group_open("pairwise", 0, 2).endpoint;
	req.cell = hold.cell = connect.head.cell = 1;
	/* Not connected: nobody to ask. */
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_REACH, &req, sizeof(req)), 0);
	assert_int_equal(rep->missing, 1);
	assert_int_equal(rep->rank, NBAR_RANK_NONE);
	assert_string_equal(rep->own, "a.b.c");
	assert_string_equal(rep->peer, "");
	connect.endpoint = peer;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CONNECT, &connect, sizeof(connect)), 0);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_REACH, &req, sizeof(req)), 0);
	assert_int_equal(rep->missing, 1);
	assert_int_equal(rep->rank, 1);
	assert_int_equal(rep->is_heard, 0);
	assert_string_equal(rep->own, "a.b.c");
	assert_string_equal(rep->peer, "there");
	assert_true(nbnic_device_pass(&w.device, w.now));
	assert_int_equal(w.device.nic.counter[NBAR_COUNTER_probes_sent], 1);
	/* The peer answers. */
	echo.handle = w.client.port->cell[1].group->handle;
	echo.cookie = w.client.port->cell[1].group->cookie;
	echo.sender = w.client.port->cell[1].group->peer[0].handle;
	nbnic_receive(&w.device.nic, &w.client.port->cell[1].group->peer[0].addr, &echo, w.now);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_REACH, &req, sizeof(req)), 0);
	assert_int_equal(rep->missing, 0);
	assert_int_equal(rep->rank, NBAR_RANK_NONE);
	/* The address of a rank. */
	req.rank = 1;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_REACH, &req, sizeof(req)), 0);
	assert_int_equal(rep->rank, 1);
	assert_string_equal(rep->peer, "there");
	req.rank = 9;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_REACH, &req, sizeof(req)), 0);
	assert_int_equal(rep->rank, NBAR_RANK_NONE);
	req.rank = 1;
	/* Other clients must hold the group. */
	memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
	assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	refuses(&w.other, NBAR_OP_GROUP_REACH, &req, sizeof(req), NBAR_ENOENT,
		"there is no group of barriers in cell 1 of this port of n0; was");
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_REACH, &req, sizeof(req)), 0);
	assert_string_equal(rep->peer, "there");
	/* No such group, and a group of messages. */
	group_open("signal", 0, 3);
	for (req.cell = 2; req.cell < 4; req.cell++)
		refuses(&w.client, NBAR_OP_GROUP_REACH, &req, sizeof(req), NBAR_ENOENT,
			"there is no group of barriers in cell");
	req.cell = UINT32_MAX;
	refuses(&w.client, NBAR_OP_GROUP_REACH, &req, sizeof(req), NBAR_ENOENT,
		"there is no group of barriers in cell 4294967295");
}

/* While tracing is on, the platform gets the events of all groups. */
static void test_trace(void **state)
{
	port_open(&w.client, 3);
	group_open("pairwise", 0, 1);
	w.client.port->page->doorbell[0].posted = 1;
	nbnic_device_pass(&w.device, w.now);
	assert_int_equal(w.traced, 0);
	w.device.nic.tracing = true;
	w.client.port->page->doorbell[0].posted = 2;
	nbnic_device_pass(&w.device, w.now);
	assert_true(w.traced > 0);
	assert_true(nbnic_device_next(&w.device) > w.now);
}

/* A percentage that would give 0 gives 1. 100 % is no limit, and neither is 0 %. */
static void test_user_limits(void **state)
{
	static const struct {
		uint32_t percent, nport, nattached;
		uint64_t open_bytes, bytes;
	} limit[] = {
		{ 0, UINT32_MAX, UINT32_MAX, 1 << 20, UINT64_MAX },
		{ 100, UINT32_MAX, UINT32_MAX, 1 << 20, UINT64_MAX },
		{ 99, 1013, NBNIC_ATTACHED_MAX * 99 / 100, 100 << 16, 99 << 16 },
		{ 1, 10, NBNIC_ATTACHED_MAX / 100, 1 << 20, 1 << 16 },
	};
	static struct nbnic_device d;

	for (uint32_t i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
		d.open_bytes_max = limit[i].open_bytes;
		nbnic_users_init(&d, limit[i].percent);
		assert_int_equal(d.user_max.nport, limit[i].nport);
		assert_int_equal(d.user_max.ngroup, limit[i].nport); /* as many, in all cases */
		assert_int_equal(d.user_max.nattached, limit[i].nattached);
		assert_true(d.user_max.bytes == limit[i].bytes);
	}
}

/* The memory of a group counts in KiB, rounded up. */
static void test_user_memory(void **state)
{
	struct nbnic_request r = { .client = &w.client, .device = &w.device, .reply = &w.out.head };
	struct nbnic_user *u = &w.device.user[w.client.user];

	w.device.user_max.bytes = 64 << 10;
	u->bytes = 1 << 10;
	assert_int_equal(nbnic_user_check_group(&r, 63 << 10), 0);
	assert_int_equal(nbnic_user_check_group(&r, (63 << 10) + 1), -NBAR_ENOSPC);
	u->bytes = 0;
}

/* The information about a host after another member has asked for it. */
static void test_host_of_a_group(void **state)
{
	struct nbar_group_info info;
	struct nbnic_group *g;

	port_open(&w.client, 3);
	group_open("pairwise", 0, 2);
	g = w.client.port->cell[0].group;
	nbnic_group_info(g, &info);
	assert_int_equal(info.host_why, 0);
	g->asked_epoch = 1;
	g->host_why = 77;
	nbnic_group_info(g, &info);
	assert_int_equal(info.host_why, 77);
	g->asked_epoch = 0; /* in another epoch */
	nbnic_group_info(g, &info);
	assert_int_equal(info.host_why, 0);
	g->port = NBNIC_PORTS_MAX;
	assert_int_equal(nbnic_group_open(&w.device.nic, g), -NBAR_EINVAL);
	g->port = 3;
	g->user = NBNIC_USERS_MAX;
	assert_int_equal(nbnic_group_open(&w.device.nic, g), -NBAR_EINVAL);
	g->user = (uint8_t)w.client.user;
}

/* What a peer learns of the own host, and the own host of a peer. */
static void test_peers_ask(void **state)
{
	/* An age, and the age that a frame carries: 9 bits, shifted by at most 15. */
	static const struct {
		uint64_t units, told;
	} age[] = {
		{ 511, 511 },
		{ 512, 512 },
		{ 1023, 1022 },
		{ 511 << 15, 511 << 15 },
		{ 512 << 15, 511 << 15 },
		{ 1 << 30, 511 << 15 },
	};
	struct {
		struct nbar_req_group_connect req;
		struct nbar_endpoint endpoint;
	} q = { .req = { 0, 1 } };
	const struct nbar_completion *c;
	const struct nbnic_addr from = { { 0 } };
	struct nbfw_token t = { .src = 1, .epoch = 1, .arg = 0 };
	const struct nbnic_group *g;

	port_open(&w.client, 3);
	group_open("pairwise", 0, 2);
	q.endpoint = group_open("pairwise", 1, 2).endpoint;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q)), 0);
	g = w.client.port->cell[0].group;
	c = &w.client.port->page->completion[0];
	t.handle = g->handle;
	t.cookie = g->cookie;
	t.sender = g->peer[0].handle;
	t.type = NBFW_PULL;
	w.now = UINT64_C(5000) << NBAR_WHY_SHIFT;
	assert_false(w.client.port->asked);
	nbnic_receive(&w.device.nic, &from, &t, w.now);
	assert_true(w.client.port->asked);
	assert_int_equal(w.looks, 1);
	assert_int_equal(NBAR_WHY_KIND(g->host_why), NBAR_WHY_HOST_LATE);
	w.client.port->host = NBAR_WHY_HOST_STOPPED;
	w.client.port->host_at = w.now;
	nbnic_receive(&w.device.nic, &from, &t, w.now);
	assert_int_equal(w.looks, 1); /* the last look was just now */
	assert_int_equal(NBAR_WHY_KIND(g->host_why), NBAR_WHY_HOST_STOPPED);
	w.client.port->host = 0; /* no look has found a reason */
	for (uint32_t i = 0; i < sizeof(age) / sizeof(age[0]); i++) {
		uint64_t now = w.now + (age[i].units << NBAR_WHY_SHIFT);

		nbnic_receive(&w.device.nic, &from, &t, now);
		assert_int_equal(NBAR_WHY_KIND(g->host_why), NBAR_WHY_HOST_LATE);
		assert_true(NBAR_WHY_NS(g->host_why) == age[i].told << NBAR_WHY_SHIFT);
	}
	w.client.port->host = NBAR_WHY_HOST_STOPPED;
	w.device.look_next = 0;
	w.looks = 1;
	/* A look every 100 ms; a look that is a second old counts no more. */
	nbnic_receive(&w.device.nic, &from, &t, w.now);
	nbnic_receive(&w.device.nic, &from, &t, w.now + 99999999);
	assert_int_equal(w.looks, 2);
	nbnic_receive(&w.device.nic, &from, &t, w.now + 100000000);
	assert_int_equal(w.looks, 3);
	nbnic_receive(&w.device.nic, &from, &t, w.now + 999999999);
	assert_int_equal(NBAR_WHY_KIND(g->host_why), NBAR_WHY_HOST_STOPPED);
	w.now += 1000000000;
	nbnic_receive(&w.device.nic, &from, &t, w.now);
	assert_int_equal(NBAR_WHY_KIND(g->host_why), NBAR_WHY_HOST_LATE);
	w.client.port->page->doorbell[0].posted = 1;
	nbnic_device_pass(&w.device, w.now);
	t.type = NBFW_LATER;
	t.arg = 1;
	t.info = NBAR_WHY_HOST_ENDED << 29;
	nbnic_receive(&w.device.nic, &from, &t, w.now);
	assert_int_equal(c->nstragglers, 1);
	assert_int_equal(c->straggler[0], 1);
	assert_int_equal(NBAR_WHY_KIND(c->why[0]), NBAR_WHY_HOST_ENDED);
}

/* A remote host learns that its request is done, and that the NIC lives. */
static void test_remote_host(void **state)
{
	struct nbar_completion *completion;

	assert_non_null(nbnic_client_mirror(&w.client)); /* no port */
	port_open(&w.client, 3);
	completion = w.client.port->completion;
	w.client.port->completion = NULL; /* in a map, as on the wire kernel */
	assert_non_null(strstr(nbnic_client_mirror(&w.client), "use another wire"));
	w.client.port->completion = completion;
	w.allocs = 0;
	assert_string_equal(nbnic_client_mirror(&w.client),
			    "no memory for the port of a remote host");
	w.allocs = UINT32_MAX;
	assert_null(nbnic_client_mirror(&w.client));
	assert_non_null(nbnic_client_mirror(&w.client)); /* again */
	assert_int_equal(w.pushes, 0);
	w.copy.completion[0].word = 7;
	group_open("linear", 0, 2);
	assert_int_equal(w.copy.settled, 0x1234567);
	assert_true(w.copy.completion[0].word == 0);
	w.pushes = 0;
	refuses(&w.client, NBAR_OP_GROUP_CLOSE, NULL, 0, NBAR_EBADMSG, "");
	assert_int_equal(w.pushes, 1);
	/* The host has a fifth of a second to start its end of the connection. */
	nbnic_device_pass(&w.device, w.now);
	assert_int_equal(w.pushes, 1);
	w.now += NBNIC_MIRROR_LIFE_NS;
	nbnic_device_pass(&w.device, w.now);
	assert_int_equal(w.pushes, 2);
	assert_int_equal(w.copy.life, w.client.port->page->life);
	/* Another host, of this machine. */
	port_open(&w.other, 4);
	assert_int_equal(w.pushes, 2);
}

/* Groups with values: too large, on a wire without them, and on a NIC of a wire that has them. */
static void test_values_are_refused(void **state)
{
	struct nbar_req_group_open req = group("linear", 0, 2);
	const struct wire_ops *ops = w.wire.ops;
	struct wire_ops with = *ops;

	port_open(&w.client, 3);
	req.value_max = NBAR_VALUE_MAX + 1;
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_ERANGE,
		"values of 257 bytes: a barrier carries at most 256");
	req.value_max = NBAR_VALUE_MAX;
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EOPNOTSUPP,
		"the wire of n0, road, carries no values; use ring");
	with.values = true;
	w.wire.ops = &with;
	w.wire.no_values = "its MTU is 256 bytes";
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EOPNOTSUPP,
		"n0 carries no values: its MTU is 256 bytes");
	w.wire.no_values = NULL;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req)), 0);
	w.wire.ops = ops;
}

/* A NIC that will sleep asks the hosts of all its ports for kicks. */
static void test_kicks(void **state)
{
	port_open(&w.client, 3);
	group_open("linear", 0, 2);
	nbnic_device_ask_kicks(&w.device, true);
	assert_int_equal(w.client.port->page->kick, 1);
	nbnic_device_ask_kicks(&w.device, false);
	assert_int_equal(w.client.port->page->kick, 0);
}

UNIT_MAIN(NULL, NULL, REQUEST_TEST(test_connect_in_parts), REQUEST_TEST(test_port_ends),
	  REQUEST_TEST(test_most_peers), REQUEST_TEST(test_statistics_with_a_gap),
	  REQUEST_TEST(test_messages_have_no_barrier), REQUEST_TEST(test_reach),
	  REQUEST_TEST(test_trace), REQUEST_TEST(test_user_limits), REQUEST_TEST(test_user_memory),
	  REQUEST_TEST(test_host_of_a_group), REQUEST_TEST(test_peers_ask),
	  REQUEST_TEST(test_remote_host), REQUEST_TEST(test_values_are_refused),
	  REQUEST_TEST(test_kicks))
