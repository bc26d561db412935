/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_world.c - NICs with one member each, over a simulated wire and clock.
 *
 * For the tests of the NIC loop. See nic_world.h.
 */
#include "unit/unit.h"

#include "nic_world.h"

static struct world world;

static bool on_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct member *m = ctx;
	struct world *w = m->world;
	uint32_t copies = 1;

	w->sent++;
	if (m->unplugged || (uint32_t)rand() % 100 < w->loss_percent)
		return true;
	if ((uint32_t)rand() % 100 < w->duplicate_percent)
		copies = 2;
	while (copies--) {
		assert_true(w->tail - w->head < QUEUE_MAX);
		w->queue[w->tail++ % QUEUE_MAX] = (struct frame){ m->index, to->byte[0], *t };
	}
	return true;
}

static void on_complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			uint32_t failed_rank)
{
	struct member *m = ctx;

	/* Barriers complete in order, each once. A report changes one half of the completion word,
	 * never both: a NIC with 32-bit stores writes one half after the other (WIRE.md). */
	assert_int_equal(epoch, m->epoch + (status == NBAR_STATUS_OK));
	m->completions += status == NBAR_STATUS_OK;
	m->epoch = epoch;
	m->status = status;
	m->failed_rank = failed_rank;
}

static void on_stragglers(void *ctx, uint32_t port, uint32_t cell,
			  const struct nbnic_straggler *straggler, uint32_t n)
{
	struct member *m = ctx;

	m->nstragglers = n;
	for (uint32_t i = 0; i < n; i++)
		m->straggler[i] = straggler[i].rank, m->why[i] = straggler[i].why;
}

static uint8_t on_host(void *ctx, uint32_t port, uint64_t now)
{
	const struct member *m = ctx;

	return m->host ? m->host : NBAR_WHY_HOST_LATE;
}

static bool on_deliver(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
		       const uint32_t word[NBAR_SIGNAL_WORDS])
{
	struct member *m = ctx;

	if (m->ring_full)
		return false;
	m->signals++;
	m->signal_src = src;
	m->signal_word0 = word[0];
	return true;
}

static void on_release(void *ctx, struct nbnic_group *block)
{
	struct member *m = ctx;

	m->released++;
	if (m->group == block)
		m->group = NULL;
	free(block);
}

const struct nbnic_ops world_ops = { on_transmit, on_complete, on_stragglers, on_deliver,
				     on_release,  on_host,     NULL,          NULL,
				     NULL,        NULL };
const struct nbnic_config world_config = { .pull_ns = MS, .budget_ns = 1000 * MS };

int open_group(struct member *m, const char *alg, uint32_t size, uint32_t rank,
	       struct nbnic_group **out)
{
	struct nbnic_open arg = { .port = 0,
				  .rank = rank,
				  .size = size,
				  .alg = alg,
				  .cookie = (uint64_t)rand() << 32 | (uint64_t)rand() };
	static uint32_t plan[32768];
	const struct nbar_plan *p = NULL;

	assert_int_equal(nbfw_alg_parse(alg, &arg.kind), 0);
	if (arg.kind.kind != NBFW_ALG_SIGNAL) {
		assert_true(nbfw_plan_generate(arg.kind, size, rank, plan, sizeof(plan)) > 0);
		p = (const struct nbar_plan *)plan;
	}
	arg.plan = p;

	void *block = malloc(nbnic_group_size(p, size));
	int rc;

	*out = nbnic_group_build(&arg, block);
	rc = nbnic_group_open(&m->nic, *out);
	if (rc < 0)
		free(block);
	return rc;
}

/* Makes `size` members with open groups that are not connected. */
struct world *world_open(uint32_t size, const char *alg)
{
	struct world *w = &world;

	srand(1);
	memset(w, 0, sizeof(*w));
	w->size = size;
	w->alg = alg;
	w->now = 1;
	for (uint32_t i = 0; i < size; i++) {
		struct member *m = &w->member[i];
		struct nbnic_addr addr = { { (uint8_t)i } };

		m->world = w;
		m->index = i;
		assert_int_equal(nbnic_init(&m->nic, &world_ops, m, 255, &addr, &world_config), 0);
		assert_int_equal(open_group(m, alg, size, i, &m->group), 0);
		nbnic_group_endpoint(&m->nic, m->group, &m->endpoint);
	}
	return w;
}

void connect_member(struct world *w, uint32_t i)
{
	struct member *m = &w->member[i];
	struct nbar_endpoint endpoint[MEMBERS_MAX];
	uint32_t bad, n = 0;
	const char *why;

	if (m->group->is_signal) {
		for (uint32_t r = 0; r < w->size; r++)
			if (r != i)
				endpoint[n++] = w->member[r].endpoint;
	} else {
		for (; n < m->group->npeer; n++)
			endpoint[n] = w->member[m->group->peer[n].rank].endpoint;
	}
	assert_int_equal(nbnic_group_connect(&m->nic, m->group, endpoint, n, w->now, &bad, &why),
			 0);
}

struct world *world_connected(uint32_t size, const char *alg)
{
	struct world *w = world_open(size, alg);

	for (uint32_t i = 0; i < size; i++)
		connect_member(w, i);
	return w;
}

static void check_states(struct world *w)
{
	for (uint32_t i = 0; i < w->size; i++) {
		const struct nbnic_group *g = w->member[i].group;

		if (g && g->state)
			assert_int_equal(nbfw_check(g->state, g->plan), 0);
	}
}

/* Ends a pass of each NIC; true if one of them has more to do. */
static bool work(struct world *w)
{
	bool more = false;

	for (uint32_t i = 0; i < w->size; i++) {
		struct nbnic *nic = &w->member[i].nic;

		if (w->member[i].unplugged)
			continue;
		more |= nbnic_work(nic, w->now);
		more |= nbnic_next(nic) == 0;
	}
	return more;
}

/* Carries frames until the wire is empty and no NIC has more to do. */
void settle(struct world *w)
{
	while (w->head != w->tail || work(w)) {
		if (w->head == w->tail)
			continue;
		struct frame f = w->queue[w->head++ % QUEUE_MAX];
		struct nbnic_addr from = { { (uint8_t)f.from } };
		struct member *m = &w->member[f.to];

		if (!m->unplugged)
			nbnic_receive(&m->nic, &from, &f.token, w->now);
		check_states(w);
	}
}

void pass_time(struct world *w, uint64_t ns)
{
	for (uint64_t end = w->now + ns; w->now < end; w->now += MS / 2)
		settle(w);
}

void post(struct world *w, uint32_t i, uint32_t epoch)
{
	nbnic_doorbell(&w->member[i].nic, w->member[i].group, epoch, w->now);
}

void post_all(struct world *w, uint32_t epoch)
{
	for (uint32_t i = 0; i < w->size; i++)
		post(w, i, epoch);
	settle(w);
}

void world_close(struct world *w)
{
	for (uint32_t i = 0; i < w->size; i++)
		nbnic_fini(&w->member[i].nic);
}

uint64_t counted(struct world *w, enum nbar_counter c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->size; i++)
		sum += w->member[i].nic.counter[c];
	return sum;
}
