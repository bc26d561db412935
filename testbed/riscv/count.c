/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count.c - an image that counts the instructions of a NIC for a doorbell, a frame, a completion.
 * Run by testbed/riscv/count.sh under `-icount`, where `minstret` counts exactly.
 *
 * It has the objects of the NIC's image, except main.c and pci.c. Two NICs, A and B, are in one
 * memory; the wire between them is an array of packed frames. Only A is measured. A figure is the
 * count of a whole pass that handles this event, minus an idle pass, minus the instructions in the
 * wire, which the wire counts itself. Packing and unpacking a frame, which every wire must do, are
 * counted separately.
 */
#include "arena.h"
#include "device.h"
#include "machine.h"
#include "virtio_net.h"

#define UART ((volatile uint8_t *)0x10000000u)
#define QUEUE 64u
#define TIMES 64u /* repetitions; the median counts */
#define SIZE_MAX_HERE 4u

extern uint8_t arena_begin[], arena_end[];
_Noreturn void image_main(void);

struct frame {
	uint8_t byte[NBFW_FRAME_SIZE];
	struct nbnic_addr from, to;
};

static struct {
	struct arena arena;
	struct nbnic_device device[2];
	struct nbnic_client client[2];
	struct wire_base wire[2];
	struct nbar_page *page[2];
	uint32_t nframe; /* frames under way; frame[0] is the oldest */
	bool newest_first;
	struct frame frame[QUEUE];
	uint64_t now, nrandom;
	uint64_t inside; /* instructions spent in the wire */
	_Alignas(8) uint8_t in[1024], out[4096];
} world;

static uint64_t counter(void)
{
	uint64_t n;

	__asm__ volatile("csrr %0, minstret" : "=r"(n)::"memory");
	return n;
}

/* --- platform and wire -------------------------------------------------------------------------
 */

static void *on_alloc(void *ctx, size_t size)
{
	(void)ctx;
	return arena_alloc(&world.arena, size);
}

static void on_free(void *ctx, void *block)
{
	(void)ctx;
	if (block)
		arena_free(&world.arena, block);
}

static bool on_random(void *ctx, uint64_t *out)
{
	(void)ctx;
	*out = ++world.nrandom * UINT64_C(0x9e3779b97f4a7c15);
	return true;
}

static void on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	(void)ctx;
	fn(arg, world.now);
}

static int on_page_make(void *ctx, uint32_t port, struct nbar_page **out)
{
	struct nbnic_device *d = ctx;
	uint32_t i = (uint32_t)(d - world.device);

	if (port > 0)
		return -NBAR_ENOSPC;
	world.page[i] = arena_alloc(&world.arena, sizeof(**out));
	if (!world.page[i])
		return -NBAR_ENOMEM;
	__builtin_memset(world.page[i], 0, sizeof(**out));
	*out = world.page[i];
	return 0;
}

static void on_page_drop(void *ctx, uint32_t port, struct nbar_page *page)
{
	(void)port;
	on_free(ctx, page);
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
	.wake = on_wake,
};

static bool wire_transmit(struct wire_base *w, const struct nbnic_addr *to,
			  const struct nbfw_token *t)
{
	uint64_t before = counter();

	if (world.nframe == QUEUE)
		return false;
	world.frame[world.nframe].from = w->addr;
	world.frame[world.nframe].to = *to;
	nbfw_token_pack(t, world.frame[world.nframe++].byte);
	world.inside += counter() - before;
	return true;
}

/* Delivers the oldest frame for this NIC, or the newest if newest_first is set. */
static unsigned wire_poll(struct wire_base *w, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct nbfw_token t;
	struct nbnic_addr from;
	uint64_t before = counter();
	uint32_t i = world.nframe;

	(void)budget;
	for (uint32_t k = 0; k < world.nframe; k++)
		if (world.frame[k].to.byte[0] == w->addr.byte[0] &&
		    (i == world.nframe || world.newest_first))
			i = k;
	if (i == world.nframe || !nbfw_token_unpack(world.frame[i].byte, NBFW_FRAME_SIZE, &t)) {
		world.inside += counter() - before;
		return 0;
	}
	from = world.frame[i].from;
	for (world.nframe--; i < world.nframe; i++)
		world.frame[i] = world.frame[i + 1];
	world.inside += counter() - before;
	nbnic_receive(nic, &from, &t, now);
	return 1;
}

static const struct wire_ops wire_ops = {
	.poll = wire_poll,
	.transmit = wire_transmit,
};

/* --- a host for each NIC -----------------------------------------------------------------------
 */

static void say(const char *text)
{
	while (*text)
		*UART = (uint8_t)*text++;
}

static _Noreturn void give_up(const char *why)
{
	say("failed: ");
	say(why);
	say("\n");
	machine_off(1);
}

static const void *ask(uint32_t i, uint16_t op, const void *body, uint32_t length)
{
	const struct nbar_reply *r = (const void *)world.out;
	struct nbar_request *q = (void *)world.in;

	*q = (struct nbar_request){ NBAR_ABI_MAGIC, NBAR_ABI_VERSION, op,
				    (uint32_t)sizeof(*q) + length, 0 };
	__builtin_memcpy(q + 1, body, length);
	nbnic_client_request(&world.client[i], q, q->length, false, world.out);
	if (r->status < 0)
		give_up(r->text);
	return r + 1;
}

/* Makes a group: rank 0 at A, all others at B. Sets cell[r] for each rank r. */
static void group_make(uint32_t size, const char *alg, uint32_t cell[SIZE_MAX_HERE])
{
	struct nbar_rep_group_open rep;
	struct nbar_endpoint endpoint[SIZE_MAX_HERE];
	struct {
		struct nbar_req_group_connect head;
		struct nbar_endpoint endpoint[SIZE_MAX_HERE];
	} connect;
	uint32_t peers[SIZE_MAX_HERE][SIZE_MAX_HERE], npeer[SIZE_MAX_HERE];

	for (uint32_t r = 0; r < size; r++) {
		struct nbar_req_group_open open = { .rank = r, .size = size };

		for (uint32_t k = 0; alg[k]; k++)
			open.alg[k] = alg[k];
		const uint8_t *body = ask(r > 0, NBAR_OP_GROUP_OPEN, &open, sizeof(open));

		__builtin_memcpy(&rep, body, sizeof(rep));
		__builtin_memcpy(peers[r], body + sizeof(rep), rep.npeer * sizeof(uint32_t));
		cell[r] = rep.cell;
		endpoint[r] = rep.endpoint;
		npeer[r] = rep.npeer;
	}
	for (uint32_t r = 0; r < size; r++) {
		connect.head = (struct nbar_req_group_connect){ cell[r], npeer[r] };
		for (uint32_t k = 0; k < npeer[r]; k++)
			connect.endpoint[k] = endpoint[peers[r][k]];
		ask(r > 0, NBAR_OP_GROUP_CONNECT, &connect,
		    (uint32_t)(sizeof(connect.head) + npeer[r] * sizeof(connect.endpoint[0])));
	}
}

static void post(uint32_t i, uint32_t cell, uint32_t epoch)
{
	__atomic_store_n(&world.page[i]->doorbell[cell].posted, epoch, __ATOMIC_RELEASE);
}

static uint32_t completed(uint32_t i, uint32_t cell)
{
	return (uint32_t)__atomic_load_n(&world.page[i]->completion[cell].word, __ATOMIC_ACQUIRE);
}

/* --- the figures -------------------------------------------------------------------------------
 */

static uint64_t pass(uint32_t i)
{
	uint64_t before;

	world.now += 1000;
	world.inside = 0;
	before = counter();
	nbnic_device_pass(&world.device[i], world.now);
	return counter() - before - world.inside;
}

static uint64_t idle;

static uint64_t median(uint64_t *v)
{
	for (uint32_t i = 1; i < TIMES; i++)
		for (uint32_t k = i; k > 0 && v[k - 1] > v[k]; k--) {
			uint64_t x = v[k];

			v[k] = v[k - 1];
			v[k - 1] = x;
		}
	return v[TIMES / 2];
}

/* Prints the median of v, minus `without`. */
static void figure(const char *name, uint64_t *v, uint64_t without)
{
	uint64_t n = median(v) - without, ten = 1;

	say(name);
	say(" ");
	while (ten * 10 <= n)
		ten *= 10;
	for (; ten > 0; n -= n / ten * ten, ten /= 10)
		*UART = (uint8_t)('0' + n / ten);
	say("\n");
}

static void settle(void)
{
	for (uint32_t k = 0; k < 16; k++) {
		pass(0);
		pass(1);
	}
}

/* Groups of two: the doorbell sends a token, the frame completes the barrier. */
static void measure_two(void)
{
	static uint64_t bell[TIMES], done[TIMES], none[TIMES];
	uint32_t cell[SIZE_MAX_HERE];

	group_make(2, "dissemination:1", cell);
	settle();
	for (uint32_t k = 0; k < TIMES; k++)
		none[k] = pass(0);
	figure("idle", none, 0);
	idle = median(none);
	for (uint32_t e = 1; e <= TIMES; e++) {
		post(0, cell[0], e);
		bell[e - 1] = pass(0);
		post(1, cell[1], e);
		pass(1); /* sends its token, and takes ours */
		pass(1);
		done[e - 1] = pass(0);
		if (completed(0, cell[0]) != e || completed(1, cell[1]) != e)
			give_up("a barrier of two is not complete");
	}
	figure("doorbell", bell, idle);
	figure("completion", done, idle);
}

/* A group of four, dissemination. The token of the second step is delivered first, and only changes
 * the state ("frame"). Then the token of the first step is delivered: the NIC sends the token of
 * the second step, and completes ("step"). */
static void measure_four(void)
{
	static uint64_t early[TIMES], last[TIMES];
	uint32_t cell[SIZE_MAX_HERE];

	group_make(4, "dissemination:1", cell);
	settle();
	for (uint32_t e = 1; e <= TIMES; e++) {
		post(0, cell[0], e);
		pass(0);
		for (uint32_t r = 1; r < 4; r++)
			post(1, cell[r], e);
		for (uint32_t k = 0; k < 16; k++)
			pass(1);
		world.newest_first = true;
		early[e - 1] = pass(0);
		world.newest_first = false;
		last[e - 1] = pass(0);
		if (completed(0, cell[0]) != e)
			give_up("a barrier of four is not complete");
		settle();
	}
	figure("frame", early, idle);
	figure("step", last, idle);
}

/* The work that every wire does for a frame. */
static void measure_wire(void)
{
	static uint64_t pack[TIMES], unpack[TIMES];
	struct nbfw_token t = { .type = NBFW_TOKEN, .handle = 1, .cookie = 2, .src = 3 };
	_Alignas(8) uint8_t frame[NBFW_FRAME_SIZE];

	for (uint32_t k = 0; k < TIMES; k++) {
		uint64_t before = counter();

		nbfw_token_pack(&t, frame);
		pack[k] = counter() - before;
		before = counter();
		nbfw_token_unpack(frame, sizeof(frame), &t);
		unpack[k] = counter() - before;
	}
	figure("pack", pack, 0);
	figure("unpack", unpack, 0);
}

/* The wire of the image sends to an address that no NIC has. */
static void measure_send(void)
{
	static uint64_t send[TIMES];
	const struct nbnic_addr to = { { 2, 0, 0, 0, 0, 9 } };
	const struct nbfw_token t = { .type = NBFW_TOKEN, .handle = 1, .cookie = 2, .src = 3 };
	const char *why;
	struct wire_base *w = virtio_net_open(&why);

	if (!w)
		give_up(why);
	for (uint32_t k = 0; k < TIMES; k++) {
		uint64_t before = counter();

		while (!w->ops->transmit(w, &to, &t))
			before = counter(); /* the send queue is full */
		send[k] = counter() - before;
	}
	figure("send", send, 0);
}

void image_main(void)
{
	const struct nbnic_config config = { .pull_ns = UINT64_C(1000000000),
					     .budget_ns = UINT64_C(100000000000) };
	const struct nbar_req_port_open port = { .port = 0 };

	arena_init(&world.arena, arena_begin, arena_end);
	for (uint32_t i = 0; i < 2; i++) {
		world.wire[i].ops = &wire_ops;
		world.wire[i].name = "count";
		world.wire[i].kind = WIRE_KIND_TEST;
		world.wire[i].addr.byte[0] = (uint8_t)(1 + i);
		if (nbnic_device_init(&world.device[i], "n", &world.wire[i], &platform,
				      &world.device[i], &config) < 0)
			give_up("no NIC");
		nbnic_client_begin(&world.device[i], &world.client[i], 1, 1, false);
		ask(i, NBAR_OP_PORT_OPEN, &port, sizeof(port));
	}
	measure_two();
	measure_four();
	measure_wire();
	measure_send();
	say("end\n");
	machine_off(0);
}
