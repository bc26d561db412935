/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_request.c - requests of clients: each refusal with its error and its text, what a failing
 * platform or wire leaves behind (nothing), and what the replies say.
 */
#include "unit/unit.h"

#include "request.h"
#include "text.h"

/* A platform and a wire that fail on demand. */
static struct {
	struct wire_base wire;
	struct nbnic_device device;
	struct nbnic_client client, other;
	uint32_t blocks; /* that the NIC has */
	uint32_t allocs; /* that still succeed */
	bool no_random, events;
	int page_error, events_error;
	uint32_t peers, peers_left; /* that the wire has begun; that it still takes */
	uint64_t now;
	uint64_t in[NBAR_MESSAGE_MAX / 8];
	union {
		struct nbar_reply head;
		uint64_t word[NBAR_MESSAGE_MAX / 8];
	} out;
} w;

static unsigned on_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	(void)base, (void)nic, (void)now, (void)budget;
	return 0;
}

static bool on_transmit(struct wire_base *base, const struct nbnic_addr *to,
			const struct nbfw_token *t)
{
	(void)base, (void)to, (void)t;
	return true;
}

static int on_peer_begin(struct wire_base *base, const struct nbnic_addr *a, const char **why)
{
	(void)base, (void)a;
	if (w.peers_left == 0) {
		*why = "no road";
		return -NBAR_EHOSTUNREACH;
	}
	w.peers_left--;
	w.peers++;
	return 0;
}

static void on_peer_end(struct wire_base *base, const struct nbnic_addr *a)
{
	(void)base, (void)a;
	assert_true(w.peers > 0);
	w.peers--;
}

static const struct wire_ops wire_ops = { .poll = on_poll,
					  .transmit = on_transmit,
					  .peer_begin = on_peer_begin,
					  .peer_end = on_peer_end };

static void *on_alloc(void *ctx, size_t size)
{
	(void)ctx;
	if (w.allocs == 0)
		return NULL;
	w.allocs--;
	w.blocks++;
	return malloc(size);
}

static void on_free(void *ctx, void *block)
{
	(void)ctx;
	w.blocks -= block != NULL;
	free(block);
}

static bool on_random(void *ctx, uint64_t *out)
{
	static struct rng rng = { 1 };

	(void)ctx;
	*out = rng_next(&rng);
	return !w.no_random;
}

static void on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	(void)ctx;
	fn(arg, w.now);
}

static int on_page_make(void *ctx, uint32_t port, struct nbar_page **out)
{
	(void)ctx, (void)port;
	if (w.page_error)
		return w.page_error;
	*out = calloc(1, sizeof(**out));
	return 0;
}

static void on_page_drop(void *ctx, uint32_t port, struct nbar_page *page)
{
	(void)ctx, (void)port;
	free(page);
}

static int on_events_make(void *ctx, uint32_t port, uint32_t cell)
{
	(void)ctx, (void)port, (void)cell;
	w.events = w.events_error == 0;
	return w.events_error;
}

static void on_events_drop(void *ctx, uint32_t port, uint32_t cell)
{
	(void)ctx, (void)port, (void)cell;
	w.events = false;
}

static void on_wake(void *ctx, uint32_t port, uint32_t cell, uint32_t *word)
{
	(void)ctx, (void)port, (void)cell, (void)word;
}

static const struct nbnic_platform platform = {
	.alloc = on_alloc,
	.free = on_free,
	.random = on_random,
	.exclusive = on_exclusive,
	.page_make = on_page_make,
	.page_drop = on_page_drop,
	.events_make = on_events_make,
	.events_drop = on_events_drop,
	.wake = on_wake,
};

static int setup(void **state)
{
	const struct nbnic_config config = { .pull_ns = 1000000, .budget_ns = 1000000000 };

	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = 1;
	w.allocs = w.peers_left = UINT32_MAX;
	w.wire.ops = &wire_ops;
	w.wire.name = "road";
	w.wire.kind = 99;
	strcpy(w.wire.text, "a.b.c");
	assert_int_equal(nbnic_device_init(&w.device, "n0", &w.wire, &platform, NULL, &config), 0);
	w.device.pid = 4711;
	nbnic_client_begin(&w.device, &w.client, 100, 7, false);
	nbnic_client_begin(&w.device, &w.other, 200, 7, false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	nbnic_client_end(&w.client, NBAR_STATUS_CLOSED);
	nbnic_client_end(&w.other, NBAR_STATUS_CLOSED);
	assert_int_equal(w.device.ngroup, 0);
	assert_int_equal(w.device.open_bytes, 0);
	nbnic_device_reclaim(&w.device);
	nbnic_device_end(&w.device);
	assert_int_equal(w.blocks, 0);
	return 0;
}

static int request(struct nbnic_client *c, uint16_t op, const void *body, size_t length)
{
	struct nbar_request *q = (void *)w.in;
	uint32_t n;

	*q = (struct nbar_request){ NBAR_ABI_MAGIC, NBAR_ABI_VERSION, op,
				    (uint32_t)(sizeof(*q) + length), 0x1234567 };
	memcpy(q + 1, body, length);
	n = nbnic_client_request(c, q, q->length, false, &w.out);
	assert_int_equal(n, w.out.head.length);
	assert_int_equal(w.out.head.magic, NBAR_ABI_MAGIC);
	assert_int_equal(w.out.head.version, NBAR_ABI_VERSION);
	assert_int_equal(w.out.head.op, op);
	assert_int_equal(w.out.head.seq, 0x1234567);
	return w.out.head.status;
}

/* The request is refused: the text begins like this, and the reply is no longer than its head. */
#define refuses(c, op, body, size, error, words)                                          \
	do {                                                                              \
		assert_int_equal(request(c, op, body, size), -(error));                   \
		require(!strncmp(w.out.head.text, words, strlen(words)), "'%s' for '%s'", \
			w.out.head.text, words);                                          \
		assert_int_equal(w.out.head.length, sizeof(w.out.head));                  \
		assert_false((c)->gives_page || (c)->gives_events);                       \
	} while (0)

static const void *body(void)
{
	return &w.out.head + 1;
}

static void port_open(struct nbnic_client *c, uint32_t port)
{
	const struct nbar_req_port_open req = { .port = port };

	assert_int_equal(request(c, NBAR_OP_PORT_OPEN, &req, sizeof(req)), 0);
}

static struct nbar_req_group_open group(const char *alg, uint32_t rank, uint32_t size)
{
	struct nbar_req_group_open req = { .rank = rank, .size = size };

	snprintf(req.alg, sizeof(req.alg), "%s", alg);
	return req;
}

static struct nbar_rep_group_open group_open(const char *alg, uint32_t rank, uint32_t size)
{
	const struct nbar_req_group_open req = group(alg, rank, size);

	assert_int_equal(request(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req)), 0);
	return *(const struct nbar_rep_group_open *)body();
}

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
		  "this is no request of nbar (it begins with 0x1, not 0x7261626e); use" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, 9, 5, 16, 5 },
		  NBAR_EPROTO,
		  "the client speaks version 9, this daemon version 1; install" },
		{ 16, true, q, NBAR_EMSGSIZE, "the request is longer than 65536 bytes; send" },
		{ 16, false, { NBAR_ABI_MAGIC, 1, 5, 65537, 5 }, NBAR_EMSGSIZE, "the request is" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, 1, 5, 65536, 5 },
		  NBAR_EBADMSG,
		  "a request that says it has 65536 bytes came with 16; send" },
		{ 16,
		  false,
		  { NBAR_ABI_MAGIC, 1, 0, 16, 5 },
		  NBAR_EOPNOTSUPP,
		  "unknown op 0: there are 1 to 10" },
		{ 16, false, { NBAR_ABI_MAGIC, 1, 11, 16, 5 }, NBAR_EOPNOTSUPP, "unknown op 11" },
	};

	(void)state;
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

/* Lengths of bodies, and what needs a port. */
static void test_bodies(void **state)
{
	static const struct {
		uint16_t op, length;
		bool more; /* may follow */
		bool port; /* needed */
	} op[] = {
		{ NBAR_OP_PORT_OPEN, 8, false, false },
		{ NBAR_OP_GROUP_OPEN, 48, true, true },
		{ NBAR_OP_GROUP_CONNECT, 8, true, true },
		{ NBAR_OP_GROUP_CLOSE, 8, false, true },
		{ NBAR_OP_NIC_STAT, 0, false, false },
		{ NBAR_OP_GROUP_STAT, 8, false, false },
		{ NBAR_OP_PORT_ATTACH, 24, false, false },
		{ NBAR_OP_GROUP_ATTACH, 104, false, false },
		{ NBAR_OP_GROUP_EVENTS, 8, false, true },
		{ NBAR_OP_GROUP_ABORT, 8, false, true },
	};
	static const uint8_t zero[200];
	char text[64];

	(void)state;
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
	struct nbar_req_port_open req = { .port = NBAR_PORTS_MAX };
	const struct nbar_rep_port_open *rep = body();

	(void)state;
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
		"no memory for port 1023 of n0 (error 24): close");
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
	w.other.attach_only = true;
	refuses(&w.other, NBAR_OP_PORT_OPEN, &req, sizeof(req), NBAR_EACCES,
		"n0 is inside process 4711, which");
	w.other.attach_only = false;
	port_open(&w.other, NBAR_PORT_ANY);
	assert_int_equal(rep->port, 0);
}

static void test_all_ports_in_use(void **state)
{
	static struct nbnic_client c[NBAR_PORTS_MAX];
	const struct nbar_req_port_open req = { .port = NBAR_PORT_ANY };

	(void)state;
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
		{ "a\x1f~\x7f z", 0, 4, NBAR_EINVAL, "unknown algorithm \"a?~? z\"; this NIC" },
		{ "dissemination:17", 0, 4, NBAR_ERANGE,
		  "algorithm \"dissemination:17\": N of dissemination:N goes from 1 to 16" },
		{ "linear", 0, 4098, NBAR_ERANGE,
		  "size 4098: a group with the algorithm linear has at most 4097 ranks; use" },
		{ "custom", 1, 4, NBAR_EINVAL, "the plan of rank 1 is refused: " },
	};
	struct nbar_req_group_open req;
	const struct nbar_rep_group_open *rep = body();

	(void)state;
	port_open(&w.client, 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		req = group(bad[i].alg, bad[i].rank, bad[i].size);
		refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), bad[i].error,
			bad[i].text);
	}
	memset(req.alg, 'x', sizeof(req.alg));
	refuses(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req), NBAR_EINVAL,
		"the name of an algorithm has at most 31 characters; this one begins with "
		"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"");
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
	group_open("pairwise", 1, 4);
	assert_int_equal(rep->cell, 0);
	assert_int_equal(rep->npeer, 2);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep) + 8);
	assert_int_equal(((const uint32_t *)(rep + 1))[0], 0);
	assert_int_equal(((const uint32_t *)(rep + 1))[1], 3);
	assert_int_equal(w.device.nblock, 1);
	assert_int_equal(w.device.ngroup, 1);
	assert_int_equal(w.client.ngroup, 1);
	assert_int_equal(w.client.bytes, w.client.port->cell[0].group->bytes);
	assert_int_equal(w.blocks, 2);
}

/* A plan of a client: that of its rank and size, or none. */
static void test_custom(void **state)
{
	struct {
		struct nbar_req_group_open req;
		uint32_t plan[64];
	} q = { .req = group("custom", 1, 4) };
	struct nbfw_alg pairwise = { NBFW_ALG_PAIRWISE, 0 };
	size_t length;

	(void)state;
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

	(void)state;
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
		"the endpoint address of rank 2 is refused: this is no endpoint address of a NIC; ");
	assert_int_equal(w.peers, 0);
	q.endpoint[1] = b;
	w.peers_left = 1;
	refuses(&w.client, NBAR_OP_GROUP_CONNECT, &q, sizeof(q.req) + 192, NBAR_EHOSTUNREACH,
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

static void test_attach(void **state)
{
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_req_group_attach hold = { .cell = 70 };
	const struct nbar_req_group_close cell = { .cell = 70 };

	(void)state;
	port_open(&w.client, 3);
	for (uint32_t i = 0; i < 70; i++)
		group_open("pairwise", 0, 2);
	hold.endpoint = group_open("pairwise", 0, 2).endpoint;
	refuses(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold), NBAR_ENXIO,
		"this connection is not attached to a port of n0; attach");
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOENT,
		"port 3 of n0 is not shared under this secret: has");
	attach.port = NBAR_PORTS_MAX;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOENT, "port 1024");
	attach.port = 3;
	memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
	attach.secret[1] ^= UINT64_C(1) << 63;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOENT, "port 3");
	attach.secret[1] ^= UINT64_C(1) << 63;
	w.other.uid = 8;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_EACCES,
		"port 3 of n0 belongs to uid 7, not to uid 8; a");
	w.other.uid = 7;
	w.device.nattached = NBAR_ATTACHED_MAX;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOSPC,
		"8192 processes are attached to ports of n0; have");
	w.device.nattached = 0;
	assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	assert_int_equal(w.device.nattached, 1);
	assert_true(w.other.gives_page && w.other.page_port == 3);
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_EALREADY, "this con");
	refuses(&w.other, NBAR_OP_PORT_OPEN, &cell, sizeof(cell), NBAR_EALREADY,
		"this connection has port 3 of n0 already; open");
	refuses(&w.other, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell), NBAR_EPERM,
		"this process is only attached to port 3 of n0; the");
	refuses(&w.other, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell), NBAR_ENOENT,
		"not attached to a group in cell 70");
	hold.cell = 69;
	refuses(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold), NBAR_ENOENT,
		"the group is not in cell 69 of port 3; was");
	hold.cell = 70;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	assert_int_equal(w.client.port->cell[70].held, 1);
	assert_true(nbnic_client_holds(&w.other, 70));
	for (uint32_t i = 0; i < 70; i++)
		assert_false(nbnic_client_holds(&w.other, i));
	refuses(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold), NBAR_EALREADY,
		"attached to the group in cell 70 already");
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_int_equal(w.client.port->cell[70].held, 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	/* Its end is that of the group which it holds, and of no other. */
	nbnic_client_end(&w.other, NBAR_STATUS_HOST_DIED);
	assert_int_equal(w.device.nattached, 0);
	for (uint32_t i = 0; i <= 70; i++)
		assert_int_equal(w.client.port->page->completion[i].word >> 32,
				 i == 70 ? NBAR_STATUS_HOST_DIED : NBAR_STATUS_OK);
	nbnic_client_begin(&w.device, &w.other, 200, 7, false);
}

/* A cell that somebody holds is given to no other group. */
static void test_held_cell(void **state)
{
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_req_group_attach hold = { .cell = 0 };
	struct nbar_req_group_close cell = { .cell = 0 };

	(void)state;
	port_open(&w.client, 3);
	hold.endpoint = group_open("pairwise", 0, 2).endpoint;
	memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
	assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_int_equal(w.client.port->page->completion[0].word >> 32, NBAR_STATUS_CLOSED);
	assert_int_equal(w.client.bytes, 0);
	refuses(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell), NBAR_ENOENT,
		"there is no group in cell 0 of port 3; was");
	assert_int_equal(group_open("pairwise", 0, 2).cell, 1);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_int_equal(group_open("pairwise", 0, 2).cell, 0);
}

static void test_events(void **state)
{
	struct nbar_req_group_events cell = { .cell = 0 };

	(void)state;
	port_open(&w.client, 3);
	refuses(&w.client, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell), NBAR_ENOENT,
		"there is no group of barriers in cell 0 of this port of n0; was");
	group_open("pairwise", 0, 2);
	w.events_error = -NBAR_EMFILE;
	refuses(&w.client, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell), NBAR_EMFILE,
		"no socket for the group in cell 0 of n0 (error 24); poll");
	w.events_error = 0;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell)), 0);
	assert_true(w.client.gives_events && w.events && !w.client.gives_page);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_false(w.client.gives_events || w.events);
}

static void test_statistics(void **state)
{
	const struct nbar_rep_nic_stat *stat = body();
	const struct nbar_rep_group_stat *rep = body();
	const struct nbar_group_info *info = (const void *)(rep + 1);
	struct nbar_req_group_stat req = { 0 };
	struct nbar_req_group_close cell = { .cell = 1 };

	(void)state;
	port_open(&w.client, 3);
	for (uint32_t i = 0; i < 4; i++)
		group_open("pairwise", 0, 2);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	w.wire.errors = 5;
	w.wire.malformed = 6;
	w.wire.drops = 7;
	w.wire.refused = 8;
	w.wire.writes = 9;
	assert_int_equal(request(&w.other, NBAR_OP_NIC_STAT, "", 0), 0);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*stat));
	assert_string_equal(stat->nic, "n0");
	assert_string_equal(stat->wire, "road");
	assert_string_equal(stat->address, "a.b.c");
	assert_int_equal(stat->pid, 4711);
	assert_int_equal(stat->nport, 1);
	assert_int_equal(stat->ngroup, 3);
	assert_int_equal(stat->nlinger, 1);
	assert_int_equal(stat->counter[NBAR_COUNTER_wire_errors], 5);
	assert_int_equal(stat->counter[NBAR_COUNTER_frames_malformed], 6);
	assert_int_equal(stat->counter[NBAR_COUNTER_wire_drops], 7);
	assert_int_equal(stat->counter[NBAR_COUNTER_wire_refused], 8);
	assert_int_equal(stat->counter[NBAR_COUNTER_rdma_writes], 9);
	assert_int_equal(w.wire.errors + w.wire.malformed + w.wire.drops + w.wire.refused +
				 w.wire.writes,
			 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 2);
	assert_int_equal(rep->next, 2);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep) + 2 * sizeof(*info));
	assert_int_equal(info[0].pid, 100);
	assert_int_equal(info[0].uid, 7);
	assert_int_equal(info[0].cell, 0);
	assert_int_equal(info[1].life, NBAR_LIFE_LINGER);
	assert_int_equal(info[1].pid, 0); /* its port may have another owner by now */
	req.first = 3;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 1);
	assert_int_equal(rep->next, 0);
	assert_int_equal(info[0].index, 3);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep) + sizeof(*info));
	req.first = 4;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 0);
	assert_int_equal(rep->next, 0);
}

static void format(char *out, size_t size, const char *text, ...)
{
	va_list args;

	va_start(args, text);
	nbnic_text_format(out, size, text, args);
	va_end(args);
}

static void test_texts(void **state)
{
	char text[64];

	(void)state;
	format(text, sizeof(text), "%s %u %u %x %d %d %%", "a", 0u, UINT32_MAX, 0xcafe09u,
	       INT32_MIN, 10);
	assert_string_equal(text, "a 0 4294967295 cafe09 -2147483648 10 %");
	memset(text, 'z', sizeof(text));
	format(text, 4, "%s", "abcdef");
	assert_string_equal(text, "abc");
	assert_int_equal(text[4], 'z');
	nbnic_text_copy(text, 4, "abcdef");
	assert_string_equal(text, "abc");
	nbnic_text_copy(text, 8, "ab");
	assert_memory_equal(text, "ab\0\0\0\0\0\0z", 9);
	assert_true(nbnic_text_same("", ""));
	assert_true(nbnic_text_same("ab", "ab"));
	assert_false(nbnic_text_same("ab", "a"));
	assert_false(nbnic_text_same("a", "ab"));
	assert_false(nbnic_text_same("ax", "ab"));
	assert_int_equal(nbnic_refuse(-NBAR_EMFILE, "no more", &w.out), sizeof(struct nbar_reply));
	assert_int_equal(w.out.head.status, -NBAR_EMFILE);
	assert_int_equal(w.out.head.magic, NBAR_ABI_MAGIC);
	assert_int_equal(w.out.head.version, NBAR_ABI_VERSION);
	assert_int_equal(w.out.head.length, sizeof(w.out.head));
	assert_string_equal(w.out.head.text, "no more");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_heads),      TEST(test_bodies),
		TEST(test_ports),      TEST(test_all_ports_in_use),
		TEST(test_groups),     TEST(test_custom),
		TEST(test_connect),    TEST(test_attach),
		TEST(test_held_cell),  TEST(test_events),
		TEST(test_statistics), TEST(test_texts),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
