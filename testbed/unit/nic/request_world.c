/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_world.c - a NIC whose platform and wire fail on demand. See request_world.h.
 */
#include "unit/nic/request_world.h"

struct request_world w;

static unsigned on_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	return 0;
}

static bool on_transmit(struct wire_base *base, const struct nbnic_addr *to,
			const struct nbfw_token *t)
{
	return true;
}

static int on_peer_begin(struct wire_base *base, const struct nbnic_addr *a, const char **why)
{
	if (w.peers_left == 0) {
		*why = "no road";
		return -NBAR_EPERM; /* the error nearest to 0 */
	}
	w.peers_left--;
	w.peers++;
	return 0;
}

static void on_peer_end(struct wire_base *base, const struct nbnic_addr *a)
{
	assert_true(w.peers > 0);
	w.peers--;
}

static void on_show(const struct wire_base *base, const struct nbnic_addr *a, char *text,
		    size_t size)
{
	assert_in_range(size, 64, 64);
	strcpy(text, "there");
}

static const struct wire_ops wire_ops = { .show = on_show,
					  .poll = on_poll,
					  .transmit = on_transmit,
					  .peer_begin = on_peer_begin,
					  .peer_end = on_peer_end };

static void *on_alloc(void *ctx, size_t size)
{
	if (w.allocs == 0 || size == 0) /* as malloc may do */
		return NULL;
	w.allocs--;
	w.blocks++;
	return memset(malloc(size), 0xa5, size); /* not 0, as malloc may do */
}

static void on_free(void *ctx, void *block)
{
	w.blocks -= block != NULL;
	free(block);
}

static bool on_random(void *ctx, uint64_t *out)
{
	static struct rng rng = { 1 };

	*out = rng_next(&rng);
	return !w.no_random;
}

static void on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	struct nbnic_group **cell = w.client.port ? &w.client.port->cell[0].group : NULL;
	struct nbnic_group *hidden = NULL;

	if (w.hide > 0 && --w.hide == 0) {
		hidden = *cell;
		*cell = NULL;
	}
	fn(arg, w.now);
	if (hidden)
		*cell = hidden;
}

static void on_trace(void *ctx, const struct nbar_trace_event *e)
{
	w.traced++;
}

static void on_look(void *ctx)
{
	w.looks++;
}

static int on_page_make(void *ctx, uint32_t port, struct nbar_page **out)
{
	if (w.page_error)
		return w.page_error;
	*out = calloc(1, sizeof(**out));
	return 0;
}

static void on_page_drop(void *ctx, uint32_t port, struct nbar_page *page)
{
	free(page);
}

static int on_events_make(void *ctx, uint32_t port, uint32_t cell)
{
	w.events = w.events_error == 0;
	return w.events_error;
}

static void on_events_drop(void *ctx, uint32_t port, uint32_t cell)
{
	w.events = false;
}

static void on_wake(void *ctx, uint32_t port, uint32_t cell, uint32_t *word)
{
}

static bool on_push(void *ctx, uint32_t port, const void *at, size_t n, uint32_t cell)
{
	size_t from = (size_t)((const uint8_t *)at - (const uint8_t *)w.client.port->page);

	assert_int_equal(port, w.client.port->number);
	assert_true(from < sizeof(w.copy) && n <= sizeof(w.copy) - from);
	memcpy((uint8_t *)&w.copy + from, at, n);
	w.pushes++;
	return true;
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
	.push = on_push,
	.trace = on_trace,
	.look = on_look,
};

int request_world_setup(void **state)
{
	const struct nbnic_config config = { .pull_ns = 1000000, .budget_ns = 1000000000 };

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

int request_world_teardown(void **state)
{
	nbnic_client_end(&w.client, NBAR_STATUS_CLOSED);
	nbnic_client_end(&w.other, NBAR_STATUS_CLOSED);
	assert_int_equal(w.device.ngroup, 0);
	assert_int_equal(w.device.open_bytes, 0);
	nbnic_device_reclaim(&w.device);
	nbnic_device_end(&w.device);
	assert_int_equal(w.blocks, 0);
	return 0;
}

int request(struct nbnic_client *c, uint16_t op, const void *body, size_t length)
{
	struct nbar_request *q = (void *)w.in;
	uint32_t n;

	*q = (struct nbar_request){ NBAR_ABI_MAGIC, NBAR_ABI_VERSION, op,
				    (uint32_t)(sizeof(*q) + length), 0x1234567 };
	if (length > 0)
		memcpy(q + 1, body, length);
	n = nbnic_client_request(c, q, q->length, false, &w.out);
	assert_int_equal(n, w.out.head.length);
	assert_int_equal(w.out.head.magic, NBAR_ABI_MAGIC);
	assert_int_equal(w.out.head.version, NBAR_ABI_VERSION);
	assert_int_equal(w.out.head.op, op);
	assert_int_equal(w.out.head.seq, 0x1234567);
	assert_int_equal(w.out.head.text[0] == 0, w.out.head.status == 0);
	return w.out.head.status;
}

const void *body(void)
{
	return &w.out.head + 1;
}

void port_open(struct nbnic_client *c, uint32_t port)
{
	const struct nbar_req_port_open req = { .port = port };

	assert_int_equal(request(c, NBAR_OP_PORT_OPEN, &req, sizeof(req)), 0);
}

struct nbar_req_group_open group(const char *alg, uint32_t rank, uint32_t size)
{
	struct nbar_req_group_open req = { .rank = rank, .size = size };

	snprintf(req.alg, sizeof(req.alg), "%s", alg);
	return req;
}

struct nbar_rep_group_open group_open(const char *alg, uint32_t rank, uint32_t size)
{
	const struct nbar_req_group_open req = group(alg, rank, size);

	assert_int_equal(request(&w.client, NBAR_OP_GROUP_OPEN, &req, sizeof(req)), 0);
	return *(const struct nbar_rep_group_open *)body();
}
