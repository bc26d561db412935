/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_device.c - a whole NIC with hostile clients, hosts and peers: the input is a list of
 * requests, frames, words written into pages, and passes.
 *
 * After each action the invariants of the engine hold in every group. At the end all memory is
 * given back. The wire returns frames of the NIC to the same NIC, so its own answers are input,
 * too.
 */
#include "device.h"
#include "fuzz.h"

#define CLIENTS 4u
#define QUEUE 256u
#define ENDPOINTS 16u
#define ACTIONS_MAX 400u

struct loop {
	struct wire_base base;
	struct nbfw_token queue[QUEUE];
	struct nbfw_value value[QUEUE]; /* of tokens that have one */
	uint32_t head, tail, room;
};

static struct {
	struct loop wire;
	struct nbnic_device device;
	struct nbnic_client client[CLIENTS];
	struct nbar_endpoint endpoint[ENDPOINTS]; /* of the groups opened last */
	uint32_t nendpoint;
	uint64_t random, now;
	size_t blocks; /* of memory that the NIC has */
	uint64_t in[NBAR_MESSAGE_MAX / 8];
	union {
		struct nbar_reply head;
		uint64_t word[NBAR_MESSAGE_MAX / 8];
	} out;
} w;

static unsigned on_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct loop *l = (struct loop *)base;
	unsigned n = 0;

	for (; n < budget && l->head != l->tail; n++, l->head++)
		nbnic_receive(nic, &base->addr, &l->queue[l->head % QUEUE], now);
	return n;
}

static bool on_transmit(struct wire_base *base, const struct nbnic_addr *to,
			const struct nbfw_token *t)
{
	struct loop *l = (struct loop *)base;

	if (l->room == 0)
		return false;
	l->room--;
	if (l->tail - l->head == QUEUE)
		return true;
	struct nbfw_token *f = &l->queue[l->tail % QUEUE];

	*f = *t;
	if (t->value_length)
		f->value = memcpy(&l->value[l->tail % QUEUE], t->value, t->value_length);
	l->tail++;
	return true;
}

static const struct wire_ops wire_ops = { .values = true,
					  .poll = on_poll,
					  .transmit = on_transmit };

static void *on_alloc(void *ctx, size_t size)
{
	void *block = malloc(size);

	w.blocks += block != NULL;
	return block;
}

static void on_free(void *ctx, void *block)
{
	w.blocks -= block != NULL;
	free(block);
}

static bool on_random(void *ctx, uint64_t *out)
{
	*out = w.random += UINT64_C(0x9e3779b97f4a7c15);
	return true;
}

static void on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	fn(arg, w.now);
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
	fuzz_require(cell < NBAR_GROUPS_MAX);
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

static void send_message(struct nbnic_client *c, size_t length, bool truncated)
{
	uint32_t n = nbnic_client_request(c, w.in, length, truncated, &w.out);

	fuzz_require(n >= sizeof(w.out.head) && n <= NBAR_MESSAGE_MAX && n == w.out.head.length);
	fuzz_require(w.out.head.status <= 0 && w.out.head.text[sizeof(w.out.head.text) - 1] == 0);
	fuzz_require(w.out.head.status == 0 || w.out.head.text[0] != 0);
}

/* A request with a valid header. */
static void request(struct nbnic_client *c, uint16_t op, const void *body, size_t length)
{
	struct nbar_request *q = (void *)w.in;

	*q = (struct nbar_request){ .magic = NBAR_ABI_MAGIC,
				    .version = NBAR_ABI_VERSION,
				    .op = op,
				    .length = (uint32_t)(sizeof(*q) + length) };
	memcpy(q + 1, body, length);
	send_message(c, q->length, false);
	if (op == NBAR_OP_GROUP_OPEN && w.out.head.status == 0)
		w.endpoint[w.nendpoint++ % ENDPOINTS] =
			((const struct nbar_rep_group_open *)(&w.out.head + 1))->endpoint;
}

static void any_request(struct nbnic_client *c, struct fuzz_input *in)
{
	uint8_t body[2048];
	uint16_t op = fuzz_u8(in) % (NBAR_OP_GROUP_LATENCY + 2);
	size_t length = fuzz_u16(in) % sizeof(body);

	request(c, op, body, fuzz_take(in, body, length));
}

static void any_message(struct nbnic_client *c, struct fuzz_input *in)
{
	size_t length = fuzz_u16(in) % 2048;

	length = fuzz_take(in, w.in, length);
	send_message(c, length, length > 0 && w.in[0] & 1);
}

static void open_group(struct nbnic_client *c, struct fuzz_input *in)
{
	static const char *const alg[] = { "pairwise",  "dissemination:1", "dissemination:3",
					   "tree:2",    "signal",          "auto",
					   "pairwise:", "dissemination:0" };
	struct nbar_req_group_open req = { .rank = 0 };
	uint8_t kind = fuzz_u8(in);

	strcpy(req.alg, alg[kind % 8]);
	req.value_max = kind & 0x80 ? kind & 0x78 : 0;
	req.rank = fuzz_u8(in) % 8;
	req.size = 1 + fuzz_u8(in) % 8;
	request(c, NBAR_OP_GROUP_OPEN, &req, sizeof(req));
}

/* Connects a group with endpoint addresses of opened groups. The input may change one byte of the
 * first address. */
static void connect_group(struct nbnic_client *c, struct fuzz_input *in)
{
	struct {
		struct nbar_req_group_connect head;
		struct nbar_endpoint endpoint[8];
	} req = { .head = { .cell = fuzz_u8(in) % 8, .nendpoint = fuzz_u8(in) % 9 } };
	uint8_t at;

	for (uint32_t i = 0; i < req.head.nendpoint && i < 8; i++)
		req.endpoint[i] = w.endpoint[fuzz_u8(in) % ENDPOINTS];
	at = fuzz_u8(in);
	if (at < NBAR_ENDPOINT_SIZE)
		req.endpoint[0].byte[at] ^= fuzz_u8(in);
	request(c, NBAR_OP_GROUP_CONNECT, &req,
		sizeof(req.head) + req.head.nendpoint % 9 * sizeof(req.endpoint[0]));
}

static void any_frame(struct fuzz_input *in)
{
	uint8_t frame[NBFW_FRAME_MAX + 8], again[NBFW_FRAME_MAX];
	size_t length = fuzz_take(in, frame, fuzz_u8(in) % (NBFW_FRAME_SIZE + 48));
	struct nbfw_token t;

	if (!nbfw_token_unpack(frame, length, &t))
		return;
	length = nbfw_token_pack(&t, again);
	fuzz_require(memcmp(frame, again, length) == 0);
	nbnic_receive(&w.device.nic, &w.wire.base.addr, &t, w.now);
}

/* A frame of a peer that knows handle and cookie. */
static void aimed_frame(struct fuzz_input *in)
{
	const struct nbnic *nic = &w.device.nic;
	uint32_t index = fuzz_u8(in) % 16;
	const struct nbnic_group *g = nic->group[index];
	struct nbfw_token t = { .type = fuzz_u8(in) };

	if (!g)
		return;
	t.handle = g->handle;
	t.cookie = g->cookie;
	t.src = fuzz_u8(in) % 9;
	t.epoch = (g->state ? g->state->epoch : 0) + fuzz_near(in);
	t.slot = fuzz_u8(in) & 0x80 ? fuzz_u32(in) : fuzz_u8(in) % 9;
	t.arg = fuzz_u8(in) & 0x80 ? NBAR_RANK_NONE : fuzz_u8(in) % 9;
	t.info = fuzz_u8(in);
	t.sender = g->handle;
	if (g->plan && t.slot < g->plan->nrecv)
		t.sender = g->peer[g->recv_peer[t.slot]].handle;
	t.reply_cookie = g->is_signal && g->nconnected ? g->peer[0].handle : g->cookie;
	if (t.type == NBFW_TOKEN && t.arg == NBAR_RANK_NONE) {
		struct nbfw_value v = { .op = NBAR_SUM };

		v.type = fuzz_u8(in) % (NBAR_INT64_INT + 1);
		v.count[0] = fuzz_u8(in) % 8;
		t.value = &v;
		t.value_length = (uint16_t)nbfw_value_length(&v);
		t.value_length += t.value_length ? NBFW_VALUE_HEAD : 0;
		nbnic_receive(&w.device.nic, &w.wire.base.addr, &t, w.now);
		return;
	}
	nbnic_receive(&w.device.nic, &w.wire.base.addr, &t, w.now);
}

/* The host may write any word of its page. */
static void write_page(struct nbnic_client *c, struct fuzz_input *in)
{
	uint32_t word = fuzz_u16(in) % (sizeof(struct nbar_page) / 4), value = fuzz_u32(in);

	if (c->port)
		((uint32_t *)(void *)c->port->page)[word] = value;
}

static void post(struct nbnic_client *c, struct fuzz_input *in)
{
	uint32_t cell = fuzz_u8(in) % 8, more = fuzz_u8(in) % 4;

	if (!c->port)
		return;
	c->port->page->doorbell[cell].posted += more;
	c->port->page->doorbell[cell].wake_seq += more & 1;
}

/* The host writes an entry of the send ring, with the right sequence number. */
static void send_signal(struct nbnic_client *c, struct fuzz_input *in)
{
	struct nbar_page *page;
	struct nbar_signal *e;

	if (!c->port)
		return;
	page = c->port->page;
	e = &page->send[page->sends_taken % NBAR_SIGNALS_MAX];
	e->cell = fuzz_u8(in) % 9;
	e->peer = fuzz_u8(in) % 9;
	e->seq = page->sends_taken + 1;
}

static void run_passes(struct fuzz_input *in)
{
	uint32_t n = fuzz_u8(in) % 16;
	uint64_t step = UINT64_C(1) << fuzz_u8(in) % 34;

	for (; n > 0; n--) {
		nbnic_device_pass(&w.device, w.now);
		w.now += step;
	}
	nbnic_device_reclaim(&w.device);
}

static void restart_client(struct nbnic_client *c, struct fuzz_input *in)
{
	const struct nbar_req_port_open req = { .port = fuzz_u8(in) % 2 ? NBAR_PORT_ANY : 1 };
	uint8_t how = fuzz_u8(in);

	nbnic_client_end(c, 1 + how % (NBAR_STATUS_END - 1));
	nbnic_client_begin(&w.device, c, 1, 1, how & 0x40);
	if (how & 0x80)
		request(c, NBAR_OP_PORT_OPEN, &req, sizeof(req));
}

static void act(struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	struct nbnic_client *c = &w.client[what / 16 % CLIENTS];

	switch (what % 13) {
	case 0:
		any_message(c, in);
		return;
	case 1:
		open_group(c, in);
		return;
	case 2:
		connect_group(c, in);
		return;
	case 3:
		any_frame(in);
		return;
	case 4:
		aimed_frame(in);
		return;
	case 5:
		write_page(c, in);
		return;
	case 6:
		post(c, in);
		return;
	case 7:
		send_signal(c, in);
		return;
	case 8:
		restart_client(c, in);
		return;
	case 9:
		w.wire.room = fuzz_u8(in) & 1 ? UINT32_MAX : fuzz_u8(in);
		return;
	case 10:
		any_request(c, in);
		return;
	default:
		run_passes(in);
	}
}

static void check_groups(void)
{
	const struct nbnic *nic = &w.device.nic;

	fuzz_require(nic->high <= NBNIC_HANDLES);
	for (uint32_t i = 0; i < nic->high; i++)
		if (nic->group[i] && nic->group[i]->state)
			fuzz_require(nbfw_check(nic->group[i]->state, nic->group[i]->plan) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct nbnic_config config = { .pull_ns = 1000000, .budget_ns = 1000000000 };
	const struct nbar_req_port_open any = { .port = NBAR_PORT_ANY };
	struct fuzz_input in = { data, size };

	memset(&w, 0, sizeof(w));
	w.now = 1;
	w.wire.base.ops = &wire_ops;
	w.wire.base.name = "loop";
	w.wire.room = UINT32_MAX;
	fuzz_require(nbnic_device_init(&w.device, "n0", &w.wire.base, &platform, NULL, &config) ==
		     0);
	for (uint32_t i = 0; i < CLIENTS; i++)
		nbnic_client_begin(&w.device, &w.client[i], i, 1, false);
	for (uint32_t i = 0; i < 2; i++)
		request(&w.client[i], NBAR_OP_PORT_OPEN, &any, sizeof(any));
	for (uint32_t n = 0; in.left > 0 && n < ACTIONS_MAX; n++) {
		act(&in);
		check_groups();
	}
	for (uint32_t i = 0; i < CLIENTS; i++)
		nbnic_client_end(&w.client[i], NBAR_STATUS_CLOSED);
	nbnic_device_reclaim(&w.device);
	nbnic_device_end(&w.device);
	fuzz_require(w.blocks == 0);
	return 0;
}
