/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_trace.c - one NIC, and a trace of what it does. See nic_trace.h.
 */
#include "unit/nic/nic_trace.h"

struct trace trace;

static void note(const char *format, ...)
{
	size_t used = strlen(trace.text);
	va_list args;

	va_start(args, format);
	vsnprintf(trace.text + used, sizeof(trace.text) - used, format, args);
	va_end(args);
}

uint32_t trace_handle(uint32_t rank)
{
	return (rank + 1) << 16 | (rank + 7);
}

uint64_t trace_cookie(uint32_t rank)
{
	return UINT64_C(0xabcdef0012340000) + rank;
}

static struct nbnic_addr address(uint32_t rank)
{
	struct nbnic_addr a = { { 0xa0, (uint8_t)rank, (uint8_t)(rank >> 8) } };

	a.byte[NBNIC_ADDR_SIZE - 1] = 0x55;
	return a;
}

static void note_plan_frame(const struct nbfw_token *t, uint32_t to)
{
	static const char *const name[] = { "none", "token", "pull", "later", "abort" };

	note("%s @%u slot %u to %u", name[t->type], t->epoch, t->slot, to);
	if (t->type == NBFW_TOKEN && t->info)
		note(" for pull %u", t->info);
	if (t->type == NBFW_LATER)
		note(" rank %u step %u why %u", t->arg, t->info & 0xffff,
		     NBAR_WHY_KIND(t->info >> 16));
	if (t->type == NBFW_ABORT)
		note(" rank %u cause %u", t->arg, t->info);
	if (t->sender != trace.group->handle)
		note(" of handle %+d", (int)(t->sender - trace.group->handle));
	if (t->type == NBFW_PULL) {
		assert_int_equal(t->arg, to);
		assert_true(t->reply_cookie == trace.group->cookie);
	}
}

static bool on_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	uint32_t rank = to->byte[1] | (uint32_t)to->byte[2] << 8;
	struct nbnic_addr known = address(rank);

	assert_ptr_equal(ctx, &trace);
	if (trace.room == 0)
		return false;
	trace.room--;
	assert_memory_equal(to, &known, sizeof(known));
	assert_int_equal(t->handle, trace_handle(rank));
	assert_true(t->cookie == trace_cookie(rank));
	if (trace.group)
		assert_int_equal(t->src, trace.group->rank);
	if (t->type == NBFW_SIGNAL && trace.group)
		assert_true(t->reply_cookie == trace.group->handle);
	if (t->type == NBFW_SIGNAL)
		note("signal to %u: %u %u %u %u %u", rank, t->word[0], t->word[1], t->word[2],
		     t->word[3], t->word[4]);
	else
		note_plan_frame(t, rank);
	note("; ");
	return true;
}

static void on_complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			uint32_t failed_rank)
{
	assert_ptr_equal(ctx, &trace);
	assert_int_equal(port, TRACE_PORT);
	assert_int_equal(cell, TRACE_CELL);
	if (status == NBAR_STATUS_OK) {
		assert_int_equal(failed_rank, NBAR_RANK_NONE);
		note("complete @%u; ", epoch);
	} else {
		note("failed @%u cause %u rank %u; ", epoch, status, failed_rank);
	}
}

static void on_stragglers(void *ctx, uint32_t port, uint32_t cell,
			  const struct nbnic_straggler *straggler, uint32_t n)
{
	assert_ptr_equal(ctx, &trace);
	assert_int_equal(port, TRACE_PORT);
	assert_int_equal(cell, TRACE_CELL);
	assert_in_range(n, 0, NBAR_STRAGGLERS_MAX);
	note("late");
	for (uint32_t i = 0; i < n; i++)
		note(" %u", straggler[i].rank);
	note("; ");
}

static bool on_deliver(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
		       const uint32_t word[NBAR_SIGNAL_WORDS])
{
	assert_ptr_equal(ctx, &trace);
	assert_int_equal(port, TRACE_PORT);
	assert_int_equal(cell, TRACE_CELL);
	if (trace.ring_full)
		return false;
	note("signal from %u: %u %u %u %u %u; ", src, word[0], word[1], word[2], word[3], word[4]);
	return true;
}

static void on_release(void *ctx, struct nbnic_group *block)
{
	assert_ptr_equal(ctx, &trace);
	note("released; ");
	if (trace.group == block)
		trace.group = NULL;
	free(block);
}

struct nbnic_group *trace_group(const char *alg, uint32_t size, uint32_t rank, uint32_t tag,
				uint64_t cookie)
{
	struct nbnic_open open = { .port = TRACE_PORT,
				   .cell = TRACE_CELL,
				   .rank = rank,
				   .size = size,
				   .tag = tag,
				   .alg = alg,
				   .cookie = cookie };
	static uint32_t plan[32768];
	struct nbnic_group *g = NULL;

	assert_int_equal(nbfw_alg_parse(alg, &open.kind), 0);
	if (open.kind.kind != NBFW_ALG_SIGNAL) {
		assert_true(nbfw_plan_generate(open.kind, size, rank, plan, sizeof(plan)) > 0);
		open.plan = (const struct nbar_plan *)plan;
	}
	/* Allocates the exact size, so a sanitizer sees an access beyond the block. The bytes of
	 * the block are not 0, so that the NIC must write what it reads. */
	size_t bytes = nbnic_group_size(open.plan, size);
	void *block = memset(malloc(bytes), 0xa5, bytes);

	g = nbnic_group_build(&open, block);
	assert_ptr_equal(g, block);
	assert_int_equal(nbnic_group_open(&trace.nic, g), 0);
	return g;
}

void trace_open(const char *alg, uint32_t size, uint32_t rank)
{
	static const struct nbnic_ops ops = { on_transmit, on_complete, on_stragglers, on_deliver,
					      on_release,  NULL,        NULL,          NULL,
					      NULL,        NULL };
	const struct nbnic_config config = { .pull_ns = TRACE_MS, .budget_ns = TRACE_BUDGET };
	const struct nbnic_addr own = address(rank);

	memset(&trace, 0, sizeof(trace));
	trace.now = TRACE_MS;
	trace.room = UINT32_MAX;
	assert_int_equal(nbnic_init(&trace.nic, &ops, &trace, TRACE_WIRE, &own, &config), 0);
	trace.group = trace_group(alg, size, rank, 9, TRACE_COOKIE);
}

static void put(uint8_t *at, uint64_t v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

struct nbar_endpoint trace_endpoint(uint32_t rank)
{
	struct nbnic_addr a = address(rank);
	struct nbar_endpoint e;

	nbnic_group_endpoint(&trace.nic, trace.group, &e);
	put(e.byte + 8, trace_handle(rank), 4);
	put(e.byte + 12, rank, 4);
	put(e.byte + 24, trace_cookie(rank), 8);
	memcpy(e.byte + 32, &a, sizeof(a));
	return e;
}

void trace_connected(const char *alg, uint32_t size, uint32_t rank)
{
	uint32_t n, bad;
	const char *why;

	trace_open(alg, size, rank);
	n = trace.group->is_signal ? size : trace.group->npeer;
	for (uint32_t i = 0; i < n; i++) {
		struct nbar_endpoint e =
			trace_endpoint(trace.group->is_signal ? i : trace.group->peer[i].rank);

		if (trace.group->is_signal && i == rank)
			continue;
		assert_int_equal(
			nbnic_group_connect(&trace.nic, trace.group, &e, 1, trace.now, &bad, &why),
			0);
	}
	assert_int_equal(trace.group->life, NBAR_LIFE_CONNECTED);
}

void trace_end(void)
{
	nbnic_fini(&trace.nic);
	assert_null(trace.group);
}

void trace_post(uint32_t epoch)
{
	nbnic_doorbell(&trace.nic, trace.group, epoch, trace.now);
}

void trace_hear(uint8_t type, uint32_t rank, uint32_t epoch, uint32_t slot, uint32_t arg,
		uint32_t info)
{
	const struct nbnic_addr from = address(rank);
	const struct nbfw_token t = { .type = type,
				      .handle = trace.group->handle,
				      .cookie = trace.group->cookie,
				      .src = rank,
				      .epoch = epoch,
				      .slot = slot,
				      .arg = arg,
				      .info = info,
				      .sender = trace_handle(rank),
				      .reply_cookie = type == NBFW_SIGNAL ? trace_handle(rank)
									  : trace_cookie(rank) };

	nbnic_receive(&trace.nic, &from, &t, trace.now);
}

void trace_work(uint64_t ns)
{
	trace.now += ns;
	nbnic_work(&trace.nic, trace.now);
}

const char *trace_take(void)
{
	static char taken[sizeof(trace.text)];

	memcpy(taken, trace.text, sizeof(taken));
	trace.text[0] = 0;
	return taken;
}
