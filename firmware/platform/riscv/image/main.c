/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - the NIC's firmware on bare metal: struct nbnic_device and the platform that it needs.
 *
 * start.S enters it. One thread polls, answers the host process, and sleeps when there is no work.
 * Memory is the arena; pages are BARs; a wake is a counter and a ring of the bell (bared.h).
 */
#include "arena.h"
#include "bared.h"
#include "device.h"
#include "machine.h"
#include "pci.h"
#include "virtio_net.h"

#define SPIN_NS UINT64_C(50000) /* from the last work to the first sleep */
/* A sleep takes an eighth of the time without work, within these limits. It must be short, because
 * no interrupt tells of a doorbell. */
#define DOZE_MIN_NS UINT64_C(50000)
#define DOZE_MAX_NS UINT64_C(1000000)
#define STOP_NS UINT64_C(200000000) /* when the NIC stops, peers have this time to send PULLs */

_Static_assert(NBNIC_PORTS_MAX <= BARED_PORTS_MAX, "each port has a BAR");
_Static_assert(NBNIC_GROUPS_MAX <= BARED_CELLS, "each cell can be woken");

/* All that is ever allocated, with the header of each block, and a plan while it is copied. */
_Static_assert(NBNIC_MEMORY_BYTES + NBNIC_HANDLES * 16u +
			       NBNIC_PORTS_MAX * (sizeof(struct nbnic_port) + 32) +
			       BARED_CLIENTS_MAX * (sizeof(struct nbnic_client) + 32) +
			       NBNIC_MEMORY_BYTES / 8 <=
		       BARED_ARENA,
	       "groups, ports and clients fit the arena");

extern uint8_t arena_begin[], arena_end[]; /* link.ld */
_Noreturn void image_main(void);

static struct {
	struct bared_control *control;
	struct nbar_page *page[NBNIC_PORTS_MAX];
	struct nbnic_client *client[BARED_CLIENTS_MAX];
	struct arena arena;
	uint32_t answered; /* calls */
	uint32_t nrandom;  /* used words of the current call */
	uint32_t woken[NBNIC_PORTS_MAX][NBNIC_GROUPS_MAX];
	uint64_t stop_at; /* 0: not asked to stop */
	bool ring;        /* the host process must look */
	struct nbnic_device device;
} self;

/* --- what the NIC asks of its platform ---------------------------------------------------------
 */

static void *image_on_alloc(void *ctx, size_t size)
{
	(void)ctx;
	return arena_alloc(&self.arena, size);
}

static void image_on_free(void *ctx, void *block)
{
	(void)ctx;
	if (block)
		arena_free(&self.arena, block);
}

/* Takes a random word of the current call: the machine has no source of its own. */
static bool image_on_random(void *ctx, uint64_t *out)
{
	(void)ctx;
	if (self.nrandom == BARED_RANDOM)
		return false;
	*out = self.control->call.random[self.nrandom++];
	return true;
}

static void image_on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	(void)ctx;
	fn(arg, machine_now()); /* there is one thread, and no pass is under way */
}

static int image_on_page_make(void *ctx, uint32_t port, struct nbar_page **out)
{
	(void)ctx;
	if (port >= self.control->nport)
		return -NBAR_ENOSPC;
	__builtin_memset(self.page[port], 0, sizeof(*self.page[port]));
	*out = self.page[port];
	return 0;
}

static void image_on_page_drop(void *ctx, uint32_t port, struct nbar_page *page)
{
	(void)ctx;
	(void)port;
	(void)page; /* a BAR stays */
}

static void image_on_wake(void *ctx, uint32_t port, uint32_t cell, uint32_t *word)
{
	(void)ctx;
	(void)word;
	/* Pairs with the acquire in nic_wakes: the word in the page was incremented before. */
	__atomic_store_n(&self.control->woken[port][cell], ++self.woken[port][cell],
			 __ATOMIC_RELEASE);
	self.ring = true;
}

static const struct nbnic_platform platform = {
	.alloc = image_on_alloc,
	.free = image_on_free,
	.random = image_on_random,
	.exclusive = image_on_exclusive,
	.page_make = image_on_page_make,
	.page_drop = image_on_page_drop,
	.wake = image_on_wake,
};

/* --- calls of the host process -----------------------------------------------------------------
 */

static int32_t client_begin(const struct bared_call *call)
{
	struct nbnic_client *c = arena_alloc(&self.arena, sizeof(*c));

	if (!c)
		return -NBAR_ENOMEM;
	nbnic_client_begin(&self.device, c, call->pid, call->uid, false);
	self.client[call->client] = c;
	return 0;
}

static void image_client_end(uint32_t number)
{
	struct nbnic_client *c = self.client[number];

	if (!c)
		return;
	nbnic_client_end(c, NBAR_STATUS_HOST_DIED);
	self.client[number] = NULL;
	arena_free(&self.arena, c);
}

static void request(const struct bared_call *call, struct bared_answer *answer)
{
	struct nbnic_client *c = self.client[call->client];

	if (!c)
		return;
	answer->length = nbnic_client_request(c, self.control->in, call->length, call->truncated,
					      self.control->out);
	if (c->gives_page)
		answer->page = 1 + c->page_port;
}

static bool serve_call(uint64_t now)
{
	const struct bared_call *call = &self.control->call;
	struct bared_answer *answer = &self.control->answer;
	/* Pairs with the release in nic_call: call and message are complete. */
	uint32_t seq = __atomic_load_n(&call->seq, __ATOMIC_ACQUIRE);

	if (seq == self.answered)
		return false;
	self.nrandom = 0;
	answer->status = 0;
	answer->length = 0;
	answer->page = 0;
	if (call->client < BARED_CLIENTS_MAX && call->length <= NBAR_MESSAGE_MAX) {
		switch ((enum bared_op)call->op) {
		case BARED_CLIENT_BEGIN:
			answer->status = client_begin(call);
			break;
		case BARED_CLIENT_END:
			image_client_end(call->client);
			break;
		case BARED_REQUEST:
			request(call, answer);
			break;
		case BARED_STOP:
			nbnic_device_stop(&self.device, now);
			self.stop_at = now + STOP_NS;
			break;
		}
	}
	self.nrandom = BARED_RANDOM;
	self.answered = seq;
	/* Pairs with the acquire in nic_call: answer and reply are complete. */
	__atomic_store_n(&answer->seq, seq, __ATOMIC_RELEASE);
	self.ring = true;
	return true;
}

/* --- start, poll, sleep ------------------------------------------------------------------------
 */

static void memory_start(void)
{
	struct bared_control *c = pci_map(BARED_PCI_CONTROL, BARED_CONTROL_BYTES);

	if (!c)
		machine_fail("no control BAR", 0);
	machine_report_to(c);
	if (c->magic != BARED_MAGIC || c->version != BARED_VERSION)
		machine_fail("nbar-bared and the image are of two releases; version", c->version);
	if (c->nport > NBNIC_PORTS_MAX)
		machine_fail("it has fewer ports than", c->nport);
	self.control = c;
	for (uint32_t i = 0; i < c->nport; i++) {
		self.page[i] = pci_map(BARED_PCI_PAGE + i, BARED_PAGE_BYTES);
		if (!self.page[i])
			machine_fail("no page BAR for port", i);
	}
	arena_init(&self.arena, arena_begin, arena_end);
}

static void nic_start(void)
{
	struct bared_control *c = self.control;
	const struct nbnic_config config = { .pull_ns = c->pull_ns, .budget_ns = c->budget_ns };
	const char *why;
	struct wire_base *wire = virtio_net_open(&why);

	if (!wire)
		machine_fail(why, 0);
	if (nbnic_device_init(&self.device, c->name, wire, &platform, NULL, &config) < 0)
		machine_fail("the pull interval does not fit the budget; pull_ns", c->pull_ns);
	self.device.pid = c->pid;
	self.nrandom = BARED_RANDOM;
	machine_init(virtio_net_irqs());
	__builtin_memcpy(c->text, wire->text, sizeof(wire->text));
	/* Pairs with the acquire in nic_state. */
	__atomic_store_n(&c->state, BARED_READY, __ATOMIC_RELEASE);
	self.ring = true;
}

/* Sleeps. The time grows with the time without work, so work that comes soon waits only briefly. */
static void image_idle(uint64_t now, uint64_t work_at)
{
	uint64_t wait = (now - work_at) >> 3, next = nbnic_device_next(&self.device);

	if (now - work_at < SPIN_NS)
		return;
	if (wait < DOZE_MIN_NS)
		wait = DOZE_MIN_NS;
	if (wait > DOZE_MAX_NS)
		wait = DOZE_MAX_NS;
	machine_sleep(next < now + wait ? next : now + wait, virtio_net_acknowledge);
	nbnic_device_reclaim(&self.device);
}

void image_main(void)
{
	uint64_t now, work_at = 0;

	memory_start();
	nic_start();
	for (now = machine_now(); !self.stop_at || now < self.stop_at; now = machine_now()) {
		bool work = nbnic_device_pass(&self.device, now);

		work |= serve_call(now);
		if (self.ring) {
			self.ring = false;
			machine_ring();
		}
		if (work)
			work_at = now;
		else
			image_idle(now, work_at);
	}
	/* Pairs with the acquire in nic_state. */
	__atomic_store_n(&self.control->state, BARED_STOPPED, __ATOMIC_RELEASE);
	machine_off(0);
}
