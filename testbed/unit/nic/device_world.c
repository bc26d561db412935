/* SPDX-License-Identifier: BSD-3-Clause */
/* device_world.c - see device_world.h. */
#include "device_world.h"

struct device_world w;

unsigned loop_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct loop *l = (struct loop *)base;
	const struct nbfw_token stranger = { .type = NBFW_TOKEN, .handle = 0xdead0fff };
	unsigned n = 0;

	l->budget = budget;
	for (; n < budget && l->junk > 0; n++, l->junk--)
		nbnic_receive(nic, &base->addr, &stranger, now);
	for (; n < budget && l->head != l->tail; n++)
		nbnic_receive(nic, &base->addr, &l->queue[l->head++ % 65536], now);
	return n;
}

bool loop_transmit(struct wire_base *base, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct loop *l = (struct loop *)base;

	if (l->room == 0)
		return false;
	l->room--;
	l->sent++;
	l->queue[l->tail++ % 65536] = *t;
	return true;
}

static const struct wire_ops loop_ops = {
	.poll = loop_poll,
	.transmit = loop_transmit,
};

/* Memory; its size is stored before it. */
static void *on_alloc(void *ctx, size_t size)
{
	uint64_t *block = malloc(size + 8);

	if (!block)
		return NULL;
	*block = size;
	w.bytes += size;
	if (w.bytes > w.bytes_max)
		w.bytes_max = w.bytes;
	return memset(block + 1, 0xa5, size); /* not 0, as malloc may do */
}

static void on_free(void *ctx, void *at)
{
	uint64_t *block = at;

	if (!block)
		return;
	w.bytes -= block[-1];
	free(block - 1);
}

static bool on_random(void *ctx, uint64_t *out)
{
	static struct rng rng = { 1 };

	*out = rng_next(&rng);
	return true;
}

/* The long part of a reply must not be written while the pass waits. */
static void on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	uint32_t length = w.out.head.length;

	fn(arg, w.now);
	if (w.out.head.length - length > w.grown)
		w.grown = w.out.head.length - length;
}

static int on_page_make(void *ctx, uint32_t port, struct nbar_page **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -NBAR_ENOMEM;
}

static void on_page_drop(void *ctx, uint32_t port, struct nbar_page *page)
{
	free(page);
}

static void on_wake(void *ctx, uint32_t port, uint32_t cell, uint32_t *word)
{
	w.wakes++;
}

static const struct nbnic_platform platform = {
	.alloc = on_alloc,
	.free = on_free,
	.random = on_random,
	.exclusive = on_exclusive,
	.page_make = on_page_make,
	.page_drop = on_page_drop,
	.wake = on_wake,
};

const struct wire_ops *world_ops;

void world_begin(uint64_t memory_bytes, uint32_t user_percent)
{
	const struct nbnic_config config = {
		.pull_ns = MS,
		.budget_ns = 1000 * MS,
		.memory_bytes = memory_bytes,
		.user_percent = user_percent,
	};

	memset(&w, 0, sizeof(w));
	w.now = 1;
	w.wire.base.ops = world_ops ? world_ops : &loop_ops;
	w.wire.base.name = "loop";
	w.wire.room = UINT32_MAX;
	memset(&w.device, 0xff, sizeof(w.device)); /* the caller need not clear it */
	assert_int_equal(nbnic_device_init(&w.device, "n0", &w.wire.base, &platform, NULL, &config),
			 0);
}

void world_end(void)
{
	nbnic_device_reclaim(&w.device);
	nbnic_device_end(&w.device);
	assert_int_equal(w.bytes, 0);
}

void passes(uint32_t n)
{
	while (n-- > 0)
		nbnic_device_pass(&w.device, w.now);
}

int request(struct nbnic_client *c, enum nbar_op op, const void *body, size_t length)
{
	struct nbar_request *q = (void *)w.in;

	*q = (struct nbar_request){
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = (uint16_t)op,
		.length = (uint32_t)(sizeof(*q) + length),
	};
	memcpy(q + 1, body, length);
	nbnic_client_request(c, q, q->length, false, &w.out);
	return w.out.head.status;
}

const void *reply_body(void)
{
	return &w.out.head + 1;
}

int port_open_as(struct nbnic_client *c, uint32_t uid)
{
	const struct nbar_req_port_open req = { .port = NBAR_PORT_ANY };

	nbnic_client_begin(&w.device, c, 1, uid, false);
	return request(c, NBAR_OP_PORT_OPEN, &req, sizeof(req));
}

void port_open(struct nbnic_client *c)
{
	assert_int_equal(port_open_as(c, 1), 0);
	assert_true(c->gives_page);
}

int group_open(struct nbnic_client *c, const char *alg, uint32_t rank, uint32_t size)
{
	struct nbar_req_group_open req = { .rank = rank, .size = size };

	strncpy(req.alg, alg, sizeof(req.alg) - 1);
	return request(c, NBAR_OP_GROUP_OPEN, &req, sizeof(req));
}

void group_close(struct nbnic_client *c, uint32_t cell)
{
	const struct nbar_req_group_close req = { .cell = cell };

	assert_int_equal(request(c, NBAR_OP_GROUP_CLOSE, &req, sizeof(req)), 0);
}

uint32_t completed(const struct nbnic_client *c, uint32_t cell)
{
	return (uint32_t)c->port->page->completion[cell].word;
}
