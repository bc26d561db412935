/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics_world.c - hosts, wires and clocks around real NICs, and the checks after each event. See
 * nics.h.
 */
#include <string.h>

#include "nics.h"

#define PASSES_MAX 64u

static void broken(struct nics *n, const char *why)
{
	if (!n->why)
		n->why = why;
}

/* --- what the NICs call ----------------------------------------------------------------------- */

static struct nics *world; /* global, so that the context of a NIC is only its number */

static uint32_t rank_of(const void *ctx)
{
	return (uint32_t)((const struct nbnic *)ctx - world->nic);
}

static uint64_t key_of(const struct nics_frame *f)
{
	uint64_t key = (uint64_t)f->from << 56 | (uint64_t)f->to << 48;

	return key | (uint64_t)f->token.type << 40 | (uint64_t)(f->token.handle & 0xf000f) << 16 |
	       (f->token.epoch & 0xff) << 8 | (f->token.slot & 0xff);
}

static bool on_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct nics *n = world;
	struct nics_state *s = &n->s;
	uint32_t rank = rank_of(ctx), i = s->nframe;
	struct nics_frame f;

	if (s->no_room[rank])
		return false;
	if (i == NICS_FRAMES_MAX) {
		broken(n, "more frames are in flight than NICS_FRAMES_MAX");
		return true;
	}
	memset(&f, 0, sizeof(f));
	f.from = (uint8_t)rank;
	f.to = to->byte[0];
	f.token.type = t->type;
	f.token.handle = t->handle;
	f.token.cookie = t->cookie;
	f.token.src = t->src;
	f.token.epoch = t->epoch;
	f.token.slot = t->slot;
	f.token.arg = t->arg;
	f.token.info = t->info;
	f.token.sender = t->sender;
	f.token.reply_cookie = t->reply_cookie;
	f.token.value_length = t->value_length;
	if (t->value_length > NICS_VALUE)
		broken(n, "a NIC sends a longer value than it has");
	else if (t->value_length)
		memcpy(f.value, t->value, t->value_length);
	while (i > 0 && memcmp(&s->frame[i - 1], &f, sizeof(f)) > 0)
		i--;
	memmove(&s->frame[i + 1], &s->frame[i], (s->nframe - i) * sizeof(f));
	s->frame[i] = f;
	if (++s->nframe > n->frames_most)
		n->frames_most = s->nframe;
	if (n->chart)
		chart_sent(n->chart, key_of(&f));
	return true;
}

static void judge_failure(struct nics *n, uint32_t rank, uint32_t life, uint32_t epoch,
			  uint32_t status, uint32_t failed_rank)
{
	struct nics_group *g = &n->s.group[rank][life];

	if (g->failed)
		broken(n, "a host is told of a failure twice");
	if (status != NBAR_STATUS_CLOSED)
		broken(n, "a member fails, but not because another has closed");
	if (epoch != world->base + g->done)
		broken(n, "a host both completes a barrier and learns that it failed");
	if (failed_rank >= n->cfg.size || !(n->s.guilty >> failed_rank & 1))
		broken(n, "a member blames a rank to which nothing has happened");
	g->failed = true;
}

static void on_complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			uint32_t failed_rank)
{
	struct nics *n = world;
	uint32_t rank = rank_of(ctx);
	struct nics_group *g = &n->s.group[rank][cell];
	char text[CHART_TEXT];

	snprintf(text, sizeof(text),
		 status == NBAR_STATUS_OK ? "completes %u" : "fails after %u, blames %u",
		 epoch - world->base, failed_rank);
	if (n->chart)
		chart_then(n->chart, text);
	if (g->closed)
		broken(n, "a host is told of a group that it has closed");
	if (status != NBAR_STATUS_OK) {
		judge_failure(n, rank, cell, epoch, status, failed_rank);
		return;
	}
	g->done++;
	if (g->failed)
		broken(n, "a host completes a barrier after its group has failed");
	if (epoch != world->base + g->done || g->done > g->posted)
		broken(n, "a host completes another barrier than it has posted");
	for (uint32_t r = 0; r < n->cfg.size; r++)
		if (n->s.group[r][cell].posted < g->done)
			broken(n, "a host completes a barrier that another has not posted");
	if (n->cfg.values && g->results != g->done)
		broken(n, "a host completes a barrier and has no result of it");
}

/* What a rank contributes to a barrier: the sum of all says how often each is in it. */
static uint64_t contribution(uint32_t rank, uint32_t life, uint32_t epoch)
{
	return (uint64_t)(1 + 16 * life + epoch - world->base) << (8 * rank);
}

static int on_operand(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		      struct nbfw_value *out, uint32_t most)
{
	const struct nbfw_value head = { .op = NBAR_SUM, .type = NBAR_UINT64, .count = { 1 } };
	const uint64_t number = contribution(rank_of(ctx), cell, epoch);

	memcpy(out, &head, NBFW_VALUE_HEAD);
	memcpy(out->byte, &number, sizeof(number));
	return sizeof(number);
}

static void on_result(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		      const struct nbfw_value *v, uint32_t length)
{
	struct nics_group *g = &world->s.group[rank_of(ctx)][cell];
	uint64_t want = 0;

	for (uint32_t r = 0; r < world->cfg.size; r++)
		want += contribution(r, cell, epoch);
	if (length != NICS_VALUE || memcmp(v->byte, &want, sizeof(want)) != 0)
		broken(world, "a result is not the sum of all contributions, each once");
	if (epoch != world->base + ++g->results)
		broken(world, "a host gets the result of another barrier");
}

static void on_stragglers(void *ctx, uint32_t port, uint32_t cell,
			  const struct nbnic_straggler *straggler, uint32_t nstraggler)
{
	for (uint32_t i = 0; i < nstraggler; i++)
		if (straggler[i].rank >= world->cfg.size || straggler[i].rank == rank_of(ctx))
			broken(world, "a NIC names itself, or nobody, as a straggler");
}

static bool on_deliver(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
		       const uint32_t word[NBAR_SIGNAL_WORDS])
{
	broken(world, "a NIC delivers a signal to a group with a plan");
	return true;
}

static void on_release(void *ctx, struct nbnic_group *block)
{
	struct nics *n = world;
	uint32_t rank = rank_of(ctx), life = 0;

	while (life < NICS_LIVES && (const void *)block != (const void *)n->block[rank][life])
		life++;
	if (life == NICS_LIVES || !n->s.group[rank][life].block)
		broken(n, "a NIC releases a block that it does not have");
	else
		n->s.group[rank][life].block = 0;
	memset(block, 0, NICS_BLOCK);
}

static const struct nbnic_ops ops = {
	.transmit = on_transmit,
	.complete = on_complete,
	.stragglers = on_stragglers,
	.deliver = on_deliver,
	.release = on_release,
	.operand = on_operand,
	.result = on_result,
};

/* --- the beginning ---------------------------------------------------------------------------- */

bool nics_begin(struct nics *n, const struct nics_config *cfg)
{
	memset(n, 0, sizeof(*n));
	n->cfg = *cfg;
	world = n;
	n->base = cfg->values ? UINT32_MAX - 1 : 0;
	if (cfg->size > NICS_MAX || nbfw_alg_parse(cfg->alg, &n->alg) < 0)
		return false;
	for (uint32_t r = 0; r < cfg->size; r++) {
		int32_t length =
			nbfw_plan_generate(n->alg, cfg->size, r, n->plan[r], sizeof(n->plan[r]));

		if (length <= 0 || length > (int32_t)sizeof(n->plan[r]))
			return false;
		size_t bytes = nbnic_group_size_values((const void *)n->plan[r], cfg->size,
						       cfg->values ? 8 : 0);

		if (bytes > NICS_BLOCK)
			return false;
		n->bytes = bytes > n->bytes ? bytes : n->bytes;
	}
	return true;
}

void nics_first(struct nics *n)
{
	static const struct nbnic_config config = { .pull_ns = NICS_PULL_NS,
						    .budget_ns = NICS_BUDGET_NS,
						    .quota = NBNIC_QUOTA_MIN };

	memset(&n->s, 0, sizeof(n->s));
	memset(n->block, 0, sizeof(n->block));
	n->why = NULL;
	n->s.repeats = n->cfg.repeats;
	n->s.timers = n->cfg.timers;
	n->s.leaves = n->cfg.leaves;
	n->s.expires = n->cfg.expires;
	n->s.full = n->cfg.full;
	for (uint32_t r = 0; r < n->cfg.size; r++) {
		const struct nbnic_addr addr = { { (uint8_t)r } };

		n->s.now[r] = NICS_BUDGET_NS;
		nbnic_init(&n->nic[r], &ops, &n->nic[r], 7, &addr, &config);
		nics_open(n, r, 0);
	}
}

/* --- hosts ------------------------------------------------------------------------------------ */

static struct nbnic_group *block_of(struct nics *n, uint32_t rank, uint32_t life)
{
	return (struct nbnic_group *)(void *)n->block[rank][life];
}

static void say(struct nics *n, uint32_t rank, const char *what, uint32_t number)
{
	char text[CHART_TEXT];

	snprintf(text, sizeof(text), "%s %u", what, number);
	if (n->chart)
		chart_event(n->chart, rank, CHART_NOBODY, 0, false, text);
}

bool nics_may_open(const struct nics *n, uint32_t rank, uint32_t life)
{
	return life > 0 && n->cfg.goal[life] > 0 && n->s.group[rank][life - 1].closed &&
	       !n->s.group[rank][life].block && !n->s.group[rank][life].closed;
}

void nics_open(struct nics *n, uint32_t rank, uint32_t life)
{
	const struct nbnic_open arg = { .cell = life,
					.rank = rank,
					.size = n->cfg.size,
					.value_max = n->cfg.values ? 8 : 0,
					.tag = 1,
					.cookie = 1 + rank + NICS_MAX * life,
					.alg = n->cfg.alg,
					.kind = n->alg,
					.plan = (const void *)n->plan[rank] };
	struct nbnic_group *g;

	say(n, rank, "opens group", life + 1);
	g = nbnic_group_build(&arg, n->block[rank][life]);
	nbfw_init(g->state, g->plan, world->base);
	g->posted = world->base;
	if (nbnic_group_open(&n->nic[rank], g) < 0) {
		broken(n, "a NIC refuses a group");
		return;
	}
	n->s.group[rank][life].block = 1;
	n->s.handle[rank][life] = g->handle;
	nbnic_group_endpoint(&n->nic[rank], g, &n->endpoint[rank][life]);
}

bool nics_may_connect(const struct nics *n, uint32_t rank, uint32_t life)
{
	const struct nics_group *g = &n->s.group[rank][life];

	for (uint32_t r = 0; r < n->cfg.size; r++)
		if (!n->s.group[r][life].block && !n->s.group[r][life].closed)
			return false;
	return g->block && !g->connected && !g->closed;
}

void nics_connect(struct nics *n, uint32_t rank, uint32_t life)
{
	struct nbnic_group *g = block_of(n, rank, life);
	struct nbar_endpoint peer[NICS_MAX];
	uint32_t bad;
	const char *why;

	say(n, rank, "connects group", life + 1);
	for (uint32_t i = 0; i < g->npeer; i++) {
		uint32_t handle = n->s.handle[g->peer[i].rank][life];

		peer[i] = n->endpoint[g->peer[i].rank][life];
		for (uint32_t k = 0; k < 4; k++) /* at the place that WIRE.md specifies */
			peer[i].byte[8 + k] = (uint8_t)(handle >> (8 * k));
	}
	if (nbnic_group_connect(&n->nic[rank], g, peer, g->npeer, n->s.now[rank], &bad, &why) < 0)
		broken(n, "a NIC refuses the endpoint address of a member");
	n->s.group[rank][life].connected = true;
	nics_work(n, rank);
}

bool nics_may_post(const struct nics *n, uint32_t rank, uint32_t life)
{
	const struct nics_group *g = &n->s.group[rank][life];

	return g->block && !g->closed && !g->failed && g->posted == g->done &&
	       g->posted < n->cfg.goal[life];
}

void nics_post(struct nics *n, uint32_t rank, uint32_t life)
{
	struct nics_group *g = &n->s.group[rank][life];

	g->posted++;
	say(n, rank, "posts", g->posted);
	nbnic_doorbell(&n->nic[rank], block_of(n, rank, life), world->base + g->posted,
		       n->s.now[rank]);
	nics_work(n, rank);
}

bool nics_has_ended(const struct nics *n, uint32_t rank, uint32_t life)
{
	const struct nics_group *g = &n->s.group[rank][life];

	return g->block && (g->failed || g->done == n->cfg.goal[life]);
}

void nics_close(struct nics *n, uint32_t rank, uint32_t life)
{
	struct nics_group *g = &n->s.group[rank][life];

	say(n, rank, "closes group", life + 1);
	if (!nics_has_ended(n, rank, life))
		n->s.guilty |= (uint8_t)(1u << rank);
	g->closed = true;
	nbnic_group_close(&n->nic[rank], block_of(n, rank, life), NBAR_STATUS_CLOSED,
			  n->s.now[rank]);
	nics_work(n, rank);
}

/* --- NICs, network and clock ------------------------------------------------------------------ */

static void judge_nic(struct nics *n, uint32_t rank)
{
	const struct nbnic *nic = &n->nic[rank];

	for (uint32_t i = 0; i < nic->high; i++)
		if (nic->group[i] && nbfw_check(nic->group[i]->state, nic->group[i]->plan) != 0)
			broken(n, "an invariant of nbfw_check does not hold");
	if (nic->counter[NBAR_COUNTER_frames_bad] > 0)
		broken(n, "a NIC calls a frame of a correct member bad");
	if (nic->counter[NBAR_COUNTER_doorbells_bad] > 0)
		broken(n, "a NIC refuses the doorbell of a correct host");
}

uint64_t nics_due(const struct nics *n, uint32_t rank)
{
	const struct nbnic *nic = &n->nic[rank];
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < nic->high; i++)
		if (nic->group[i] && nic->group[i]->armed && nic->group[i]->deadline < due)
			due = nic->group[i]->deadline;
	return due;
}

void nics_work(struct nics *n, uint32_t rank)
{
	struct nbnic *nic = &n->nic[rank];
	uint32_t most = n->s.no_room[rank] ? 2 : PASSES_MAX, i = 0;

	while (i < most && (nbnic_work(nic, n->s.now[rank]) || nbnic_next(nic) == 0))
		i++;
	if (i == PASSES_MAX)
		broken(n, "a NIC has work for ever");
	judge_nic(n, rank);
}

void nics_take(struct nics *n, uint32_t frame, bool again)
{
	static const char *const names[] = { "?", "TOKEN", "PULL", "LATER", "ABORT", "SIGNAL" };
	struct nics_state *s = &n->s;
	struct nics_frame f = s->frame[frame];
	const struct nbnic_addr from = { { f.from } };
	char text[CHART_TEXT];

	if (n->chart) {
		snprintf(text, sizeof(text), " %s %u to %x ", names[f.token.type], f.token.epoch,
			 f.token.handle);
		chart_event(n->chart, f.to, f.from, key_of(&f), false, text);
	}
	if (!again) {
		s->nframe--;
		memmove(&s->frame[frame], &s->frame[frame + 1], (s->nframe - frame) * sizeof(f));
	}
	f.token.value = (const void *)f.value;
	nbnic_receive(&n->nic[f.to], &from, &f.token, s->now[f.to]);
	nics_work(n, f.to);
}

void nics_wait(struct nics *n, uint32_t rank, uint64_t until)
{
	if (until > n->s.now[rank])
		n->s.now[rank] = until;
	nics_work(n, rank);
}
