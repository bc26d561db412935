/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_request.c - requests of clients that open ports and groups, and connect them: each refusal
 * with its error and its text, and what a failing platform or wire leaves behind (nothing).
 */
#include "unit/nic/request_world.h"

static void test_heads(void **state)
{
	struct nbar_request q = { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_NIC_STAT, sizeof(q),
				  5 };
	const struct {
		size_t length;
		bool truncated;
		struct nbar_request q;
		int error;
		const char *text;
	} bad[] = {
		{ 15, false, q, NBAR_EBADMSG,
		  "a request of 15 bytes is shorter than its head of 16; send" },
		{ 16,
		  false,
		  { 1, 1, 5, 16, 5 },
		  NBAR_EPROTO,
		  "not an nbar request (it begins with 0x1, not 0x7261626e); use" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, 9, 5, 16, 5 },
		  NBAR_EPROTO,
		  "the client speaks version 9, this daemon version 3; install" },
		{ 16, true, q, NBAR_EMSGSIZE, "the request is longer than 65536 bytes; send" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, 5, 65537, 5 },
		  NBAR_EMSGSIZE,
		  "the request is" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, 5, 65536, 5 },
		  NBAR_EBADMSG,
		  "a request that says it has 65536 bytes came with 16; send" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, 0, 16, 5 },
		  NBAR_EOPNOTSUPP,
		  "unknown op 0: there are 1 to 13" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, 14, 16, 5 },
		  NBAR_EOPNOTSUPP,
		  "unknown op 14" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(w.in, &bad[i].q, sizeof(q));
		nbnic_client_request(&w.client, w.in, bad[i].length, bad[i].truncated, &w.out);
		assert_int_equal(w.out.head.status, -bad[i].error);
		require(!strncmp(w.out.head.text, bad[i].text, strlen(bad[i].text)), "%s",
			w.out.head.text);
		assert_int_equal(w.out.head.seq, bad[i].length < 16 ? 0 : 5);
		assert_int_equal(w.out.head.op, bad[i].length < 16 ? 0 : bad[i].q.op);
	}
}

/* Lengths of bodies, and the ops that need a port. */
static void test_bodies(void **state)
{
	static const struct {
		uint16_t op, length;
		bool more; /* may follow */
		bool port; /* needed */
	} op[] = {
		{ NBAR_OP_PORT_OPEN, 8, false, false },
		{ NBAR_OP_GROUP_OPEN, 56, true, true },
		{ NBAR_OP_GROUP_CONNECT, 8, true, true },
		{ NBAR_OP_GROUP_CLOSE, 8, false, true },
		{ NBAR_OP_NIC_STAT, 0, false, false },
		{ NBAR_OP_GROUP_STAT, 8, false, false },
		{ NBAR_OP_PORT_ATTACH, 24, false, false },
		{ NBAR_OP_GROUP_ATTACH, 104, false, false },
		{ NBAR_OP_GROUP_EVENTS, 8, false, true },
		{ NBAR_OP_GROUP_ABORT, 8, false, true },
		{ NBAR_OP_GROUP_REACH, 8, false, true },
		{ NBAR_OP_NIC_LATENCY, 0, false, false },
		{ NBAR_OP_GROUP_LATENCY, 16, false, false },
	};
	static const uint8_t zero[200];
	char text[64];

	for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
		for (uint32_t length = 0; length < op[i].length + 4u; length += 4) {
			if (length == op[i].length || (length > op[i].length && op[i].more))
				continue;
			snprintf(text, sizeof(text), "op %u with a body of %u bytes: that is",
				 op[i].op, length);
			refuses(&w.client, op[i].op, zero, length, NBAR_EBADMSG, text);
		}
		if (op[i].port)
			refuses(&w.client, op[i].op, zero, op[i].length, NBAR_ENXIO,
				"no port of n0 is open on this connection; open");
	}
}

static void test_ports(void **state)
{
	static struct nbnic_client third; /* it may only attach */
	struct nbar_req_port_open req = { .port = NBAR_PORTS_MAX };
	const struct nbar_rep_port_open *rep = body();

	refuses(&w.client, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_ERANGE,
		"port 1024: n0 has ports 0 to 1023");
	req.port = NBAR_PORTS_MAX - 1;
	w.no_random = true;
	refuses(&w.client, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_EIO, "the machine of n0");
	w.no_random = false;
	w.allocs = 0;
	refuses(&w.client, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_ENOMEM,
		"no memory for port 1023 of n0 (error 12): close");
	w.allocs = UINT32_MAX;
	w.page_error = -NBAR_EMFILE;
	refuses(&w.client, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_EMFILE,
		"no file descriptor for port 1023 of n0: uid");
	w.page_error = -NBAR_EPERM;
	refuses(&w.client, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_EPERM,
		"no memory for port 1023 of n0 (error 1): close");
	assert_int_equal(w.blocks, 0);
	w.page_error = 0;
	port_open(&w.client, NBAR_PORTS_MAX - 1);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep));
	assert_int_equal(rep->port, NBAR_PORTS_MAX - 1);
	assert_int_equal(rep->page_size, sizeof(struct nbar_page));
	assert_int_equal(rep->pid, 4711);
	assert_string_equal(rep->nic, "n0");
	assert_memory_equal(rep->secret, w.client.secret, sizeof(rep->secret));
	assert_true(rep->secret[0] != rep->secret[1]);
	assert_true(w.client.gives_page);
	assert_int_equal(w.client.page_port, NBAR_PORTS_MAX - 1);
	assert_int_equal(w.client.port->page->magic, NBAR_ABI_MAGIC);
	assert_int_equal(w.client.port->page->version, NBAR_ABI_VERSION);
	assert_int_equal(w.client.port->page->port, NBAR_PORTS_MAX - 1);
	refuses(&w.client, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_EALREADY,
		"this connection has port 1023 of n0 already; open");
	refuses(&w.other, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_EBUSY,
		"port 1023 of n0 is in use by process 100; take");
	nbnic_client_begin(&w.device, &third, 1, 7, true);
	refuses(&third, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_EACCES,
		"n0 is inside process 4711, and only");
	nbnic_client_end(&third, NBAR_STATUS_CLOSED);
	port_open(&w.other, NBAR_PORT_ANY);
	assert_int_equal(rep->port, 0);
}

static void test_all_ports_in_use(void **state)
{
	static struct nbnic_client c[NBAR_PORTS_MAX];
	const struct nbar_req_port_open req = { .port = NBAR_PORT_ANY };

	for (uint32_t i = 0; i < NBAR_PORTS_MAX; i++) {
		nbnic_client_begin(&w.device, &c[i], i, 1, false);
		port_open(&c[i], NBAR_PORT_ANY);
		assert_int_equal(c[i].port->number, i);
	}
	refuses(&w.client, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_ENOSPC,
		"all 1024 ports of n0 are in use; use");
	nbnic_client_end(&c[500], NBAR_STATUS_CLOSED);
	port_open(&w.client, NBAR_PORT_ANY);
	assert_int_equal(w.client.port->number, 500);
	for (uint32_t i = 0; i < NBAR_PORTS_MAX; i++)
		if (i != 500)
			nbnic_client_end(&c[i], NBAR_STATUS_CLOSED);
}

static void test_groups(void **state)
{
	static const struct {
		const char *alg;
		uint32_t rank, size;
		int error;
		const char *text;
	} bad[] = {
		{ "pairwise", 0, 0, NBAR_ERANGE, "size 0: a group has 1 to 1048576 ranks" },
		{ "pairwise", 0, NBAR_SIZE_MAX + 1, NBAR_ERANGE, "size 1048577: a group has" },
		{ "pairwise", 4, 4, NBAR_ERANGE, "rank 4: a group of 4 has ranks 0 to 3" },
		{ "pairwise", 6, 4, NBAR_ERANGE, "rank 6: a group of 4 has ranks 0 to 3" },
		{ "a\x1f~\x7f z", 0, 4, NBAR_EINVAL, "unknown algorithm \"a?~? z\"; this NIC" },
		{ "dissemination:17", 0, 4, NBAR_ERANGE,
		  "algorithm \"dissemination:17\": N of dissemination:N goes from 1 to 16" },
		{ "linear", 0, 4098, NBAR_ERANGE,
		  "size 4098: a group with the algorithm linear has at most 4097 ranks; use" },
		{ "custom", 1, 4, NBAR_EINVAL, "the plan of rank 1 is refused: " },
	};
	struct nbar_req_group_open req;
	const struct nbar_rep_group_open *rep = body();

	port_open(&w.client, 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		req = group(bad[i].alg, bad[i].rank, bad[i].size);
		refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), bad[i].error,
			bad[i].text);
	}
	memset(req.alg, 'x', sizeof(req.alg));
	req.rank = 0; /* its bytes, behind the name, do not end the name */
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EINVAL,
		"the name of an algorithm has at most 31 characters; this one begins with "
		"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"");
	req.alg[NBAR_NAME_MAX - 1] = '\0';
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EINVAL,
		"unknown algorithm \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; this");
	memset(req.alg, 'x', sizeof(req.alg));
	req.alg[0] = '\0';
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EINVAL,
		"unknown algorithm \"\"; this");
	req = group("pairwise", 0, 4);
	req.plan_length = 4;
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EBADMSG,
		"a plan of 4 bytes was announced, 0 came");
	struct {
		struct nbar_req_group_open req;
		uint32_t plan;
	} more = { req, 0 };
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &more, sizeof(more), NBAR_EINVAL,
		"algorithm \"pairwise\" makes its own plan, but");
	req.plan_length = 0;
	for (uint32_t i = 0; i < 2; i++) {
		w.allocs = i;
		refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_ENOMEM,
			"n0 has no memory for a ");
	}
	w.allocs = UINT32_MAX;
	w.no_random = true;
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EIO, "the machine of n0");
	w.no_random = false;
	assert_int_equal(w.blocks, 1); /* the port */
	memset(&w.out, 0x5a, sizeof(w.out));
	group_open("pairwise", 1, 4);
	assert_int_equal(rep->cell, 0);
	assert_int_equal(rep->npeer, 2);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep) + 8);
	assert_int_equal(((const uint32_t *)(rep + 1))[0], 0);
	assert_int_equal(((const uint32_t *)(rep + 1))[1], 3);
	assert_int_equal(((const uint32_t *)(rep + 1))[2], 0x5a5a5a5a); /* behind the reply */
	assert_int_equal(w.device.nblock, 1);
	assert_int_equal(w.device.ngroup, 1);
	assert_int_equal(w.client.ngroup, 1);
	assert_int_equal(w.client.bytes, w.client.port->cell[0].group->bytes);
	assert_int_equal(w.blocks, 2);
	/* What goes fast, if not all values do. With a key, the wire has no groups of its own. */
	assert_int_equal(rep->fast_value, 0);
	w.wire.fast_value = 64;
	assert_int_equal(group_open("pairwise", 2, 4).fast_value, 64);
	w.wire.auth = (const void *)&w;
	assert_int_equal(group_open("pairwise", 3, 4).fast_value, 0);
	w.wire.auth = NULL;
	w.wire.fast_value = 0;
	group_open("pairwise", 0, NBAR_SIZE_MAX);
}

/* The plan of a client must have the client's rank and size, or there is no plan. */
static void test_custom(void **state)
{
	struct {
		struct nbar_req_group_open req;
		uint32_t plan[64];
	} q = { .req = group("custom", 1, 4) };
	struct nbfw_alg pairwise = { NBFW_ALG_PAIRWISE, 0 };
	size_t length;

	port_open(&w.client, 0);
	q.req.plan_length = (uint32_t)nbfw_plan_generate(pairwise, 4, 1, q.plan, sizeof(q.plan));
	length = sizeof(q.req) + q.req.plan_length;
	w.allocs = 0;
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &q, length, NBAR_ENOMEM,
		"n0 has no memory to check a plan of ");
	w.allocs = UINT32_MAX;
	q.req.rank = 2;
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &q, length, NBAR_EINVAL,
		"the plan is that of rank 1 of 4, the group is opened as rank 2 of 4");
	q.req.rank = 1;
	q.req.size = 5;
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &q, length, NBAR_EINVAL, "the plan is that of");
	q.req.size = 4;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_OPEN, &q, length), 0);
	assert_int_equal(w.blocks, 2);
}

static void test_connect(void **state)
{
	struct {
		struct nbar_req_group_connect req;
		struct nbar_endpoint endpoint[3];
	} q = { .req = { 0, 2 } };
	struct nbar_endpoint a, b;
	const struct nbar_rep_group_connect *rep = body();

	port_open(&w.client, 3);
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 192, NBAR_ENOENT,
		"there is no group in cell 0 of port 3; open");
	group_open("linear", 0, 3);
	a = group_open("linear", 1, 3).endpoint;
	b = group_open("linear", 2, 3).endpoint;
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 96, NBAR_EBADMSG,
		"2 endpoint addresses were announced, 96 bytes came");
	q.req.nendpoint = 3;
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q), NBAR_ERANGE,
		"the group in cell 0 lacks 2 peers, but 3 endpoint addresses came");
	q.req.nendpoint = 2;
	q.endpoint[0] = a;
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 192, NBAR_EPROTO,
		"the endpoint address of rank 2 is refused: not the endpoint address of a NIC; ");
	assert_int_equal(w.peers, 0);
	q.endpoint[1] = b;
	w.peers_left = 1;
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 192, NBAR_EPERM,
		"no way to the NIC of rank 2: no road");
	assert_int_equal(w.peers, 0);
	w.peers_left = UINT32_MAX;
	q.req.nendpoint = 1;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 96), 0);
	assert_int_equal(rep->missing, 1);
	q.endpoint[0] = b;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 96), 0);
	assert_int_equal(rep->missing, 0);
	assert_int_equal(w.peers, 2);
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 96, NBAR_EISCONN,
		"the group in cell 0 is connected already");
	q.req.nendpoint = 0;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req)), 0);
	q.req = (struct nbar_req_group_connect){ group_open("signal", 0, 3).cell, 1 };
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 96, NBAR_EPROTO,
		"endpoint address 0 is refused: it was opened with another size, algorithm or");
	nbnic_client_end(&w.client, NBAR_STATUS_CLOSED);
	w.now += 1000000000;
	nbnic_device_pass(&w.device, w.now);
	nbnic_device_reclaim(&w.device);
	assert_int_equal(w.peers, 0);
	assert_int_equal(w.device.nblock, 0);
	nbnic_client_begin(&w.device, &w.client, 100, 7, false);
}

UNIT_MAIN(NULL, NULL, REQUEST_TEST(test_heads), REQUEST_TEST(test_bodies), REQUEST_TEST(test_ports),
	  REQUEST_TEST(test_all_ports_in_use), REQUEST_TEST(test_groups), REQUEST_TEST(test_custom),
	  REQUEST_TEST(test_connect))
