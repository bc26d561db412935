/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - NICs, their wire and their poll passes; see world.h. Hosts are in world_host.c.
 */
#include "fast.h"

#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "tally.h"

#define SLEEP_MAX (250000000 * SIM_NS) /* of a daemon */

static uint64_t world_clock_of(const struct sim_nic *n, sim_time at)
{
	return at / SIM_NS + n->clock_ns + 1;
}

void sim_world_push(struct sim_world *w, sim_time at, uint8_t type, uint32_t to, uint32_t arg)
{
	const struct sim_event ev = { .time = at, .type = type, .to = to, .arg = arg };

	sim_queue_push(&w->queue, &ev);
}

/* Schedules a poll pass at this time, or when the core is free. */
static void schedule(struct sim_world *w, struct sim_nic *n, sim_time at)
{
	sim_time busy = w->busy[sim_net_core(&w->net, n->index)];

	at = at < busy ? busy : at;
	if (n->dead || at >= n->signals_at)
		return;
	n->signals_at = at;
	sim_world_push(w, at, SIM_WORLD_TURN, n->index, 0);
}

static uint32_t frame_take(struct sim_world *w)
{
	uint32_t at = w->frame_free;

	if (at != SIM_NOBODY) {
		w->frame_free = w->frame[at].next;
		return at;
	}
	uint32_t n = 2 * w->nframe + 256;
	struct sim_frame *frame = realloc(w->frame, n * sizeof(*frame));

	if (!frame) {
		w->full = true;
		return SIM_NOBODY;
	}
	w->frame = frame;
	for (uint32_t i = n - 1; i > w->nframe; i--) {
		frame[i].next = w->frame_free;
		w->frame_free = i;
	}
	at = w->nframe;
	w->nframe = n;
	return at;
}

void sim_frame_free(struct sim_world *w, uint32_t at)
{
	w->frame[at].next = w->frame_free;
	w->frame_free = at;
}

void sim_world_inject(struct sim_world *w, uint32_t from, uint32_t to, const struct nbfw_token *t,
		      sim_time at)
{
	uint32_t index = frame_take(w);
	struct sim_event ev = { .time = at, .type = SIM_WORLD_FRAME, .to = to, .from = from };

	if (index == SIM_NOBODY)
		return;
	w->frame[index].from = from;
	w->frame[index].token = *t;
	if (t->value_length)
		nbfw_value_copy(&w->frame[index].value, t->value, t->value_length);
	ev.arg = index;
	ev.info = t->type;
	sim_queue_push(&w->queue, &ev);
}

/* Reports changes in the pages of a NIC's hosts to the user of the world. */
void sim_world_look(struct sim_nic *n)
{
	struct sim_world *w = n->world;

	if (n->now < w->now)
		n->now = w->now;
	for (uint32_t i = n->first_host; i != SIM_NOBODY; i = w->host[i]->next) {
		struct sim_host *h = w->host[i];

		if (!h->page || (h->asleep && !sim_fast_wakes(h)))
			continue;
		const struct nbar_completion *c = &h->page->completion[h->cell];
		uint64_t word = __atomic_load_n(&c->word, __ATOMIC_ACQUIRE);

		if (word == h->seen)
			continue;
		h->seen = word;
		const struct sim_event ev = {
			.time = n->now + w->notice,
			.type = SIM_WORLD_PROGRESS,
			.to = i,
			.epoch = (uint32_t)word,
			.info = (uint8_t)(word >> 32),
			.arg = c->failed_rank,
		};

		sim_queue_push(&w->queue, &ev);
		sim_fast_looked(n, h, word);
	}
}

void sim_world_send(struct sim_nic *n, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct sim_world *w = n->world;
	uint32_t peer = sim_nic_of(to);
	struct sim_cost cost = sim_net_cost(&w->net, n->index, peer);
	sim_time late[2], waited;

	n->now += cost.send;
	if (w->cut && n->side != w->nic[peer]->side) {
		n->cut++;
		return;
	}
	sim_time arrive = sim_net_carry(&w->net, &cost, n->index, peer, n->now, &waited);
	uint32_t copies = sim_net_fate(&w->net, late);

	for (uint32_t i = 0; i < copies; i++)
		sim_world_inject(w, n->index, peer, t, arrive + late[i]);
}

static bool world_on_transmit(struct wire_base *base, const struct nbnic_addr *to,
			      const struct nbfw_token *t)
{
	struct sim_nic *n = (struct sim_nic *)base;
	struct sim_world *w = n->world;

	if (w->now < n->full_until ||
	    (w->refuse && sim_net_random(&w->net, SIM_MILLION) < w->refuse)) {
		if (w->full_for && w->now >= n->full_until)
			n->full_until = w->now + sim_net_random(&w->net, w->full_for);
		n->refused++;
		base->refused++;
		return false;
	}
	sim_world_look(n); /* the host learns of changes before the NIC sends */
	w->frames++;
	sim_world_send(n, to, t);
	return true;
}

static unsigned world_on_poll(struct wire_base *base, struct nbnic *nic, uint64_t now,
			      unsigned budget)
{
	struct sim_nic *n = (struct sim_nic *)base;
	struct sim_world *w = n->world;
	unsigned got = n->fast ? sim_fast_hear(n, now) : 0;

	for (; got < budget && n->waiting > 0; got++) {
		uint32_t at = n->head;
		struct sim_frame f = w->frame[at];

		n->head = f.next;
		n->waiting--;
		sim_frame_free(w, at);
		f.token.value = &f.value;
		n->now += sim_net_cost(&w->net, f.from, n->index).recv;
		nbnic_receive(nic, &w->nic[f.from]->wire.addr, &f.token, now);
	}
	return got;
}

static const struct wire_ops sim_wire_ops = { .values = true,
					      .poll = world_on_poll,
					      .transmit = world_on_transmit };
static const struct wire_ops sim_lending_ops = { .values = true,
						 .poll = world_on_poll,
						 .transmit = world_on_transmit,
						 .lend = sim_fast_lend,
						 .take = sim_fast_take };

void sim_world_up(struct sim_nic *n, uint32_t frame)
{
	struct sim_world *w = n->world;

	if (n->dead || n->waiting >= w->queue_limit) {
		n->dropped += !n->dead;
		n->wire.drops += !n->dead;
		sim_frame_free(w, frame);
		return;
	}
	if (n->waiting++ > 0)
		w->frame[n->tail].next = frame;
	else
		n->head = frame;
	n->tail = frame;
	schedule(w, n, w->now);
}

static void on_turn(struct sim_world *w, const struct sim_event *ev)
{
	struct sim_nic *n = w->nic[ev->to];
	uint32_t core = sim_net_core(&w->net, n->index);

	if (n->dead || ev->time != n->signals_at)
		return;
	n->signals_at = UINT64_MAX;
	if (w->busy[core] > ev->time) {
		schedule(w, n, ev->time);
		return;
	}
	w->passes++;
	w->turned = n->index;
	/* A fast path may have sent until later. */
	if (!n->fast || n->now < ev->time + w->turn_cost)
		n->now = ev->time + w->turn_cost;
	bool any = nbnic_device_pass(&n->device, world_clock_of(n, ev->time));
	uint64_t next = nbnic_device_next(&n->device);

	sim_world_look(n);
	sim_time noise = sim_net_noise(&w->net, core, ev->time, n->now - ev->time);

	w->noise += noise;
	n->now += noise;
	w->busy[core] = n->now;
	if (n->device.released)
		nbnic_device_reclaim(&n->device);
	if (any || n->waiting > 0 || next <= world_clock_of(n, n->now))
		schedule(w, n, n->now);
	else if (next != UINT64_MAX)
		schedule(w, n, (next - n->clock_ns) * SIM_NS);
	if (n->fast && n->device.nlent)
		schedule(w, n, n->now + SLEEP_MAX);
}

bool sim_world_step(struct sim_world *w, sim_time until)
{
	struct sim_event ev;

	if (w->full || w->queue.full || sim_queue_next(&w->queue) > until ||
	    !sim_queue_pop(&w->queue, &ev))
		return false;
	w->now = ev.time;
	w->turned = SIM_NOBODY;
	w->digest = sim_digest(w->digest, &ev);
	if (ev.type == SIM_WORLD_FRAME && w->nic[ev.to]->fast)
		sim_fast_frame(w->nic[ev.to], ev.arg);
	else if (ev.type == SIM_WORLD_FRAME)
		sim_world_up(w->nic[ev.to], ev.arg);
	else if (ev.type == SIM_WORLD_FAST)
		sim_fast_some(w->nic[ev.to], 1);
	else if (ev.type == SIM_WORLD_TIMER)
		sim_fast_tick(w->nic[ev.to], ev.arg);
	else if (ev.type == SIM_WORLD_TURN)
		on_turn(w, &ev);
	else if (ev.type == SIM_WORLD_PROGRESS)
		w->progress(w->arg, w->host[ev.to], &ev);
	else
		w->user(w->arg, &ev);
	return true;
}

static void *world_on_alloc(void *ctx, size_t size)
{
	struct sim_nic *n = ctx;
	void *block = malloc(size);

	n->world->blocks += block != NULL;
	return block;
}

static void world_on_free(void *ctx, void *block)
{
	struct sim_nic *n = ctx;

	n->world->blocks -= block != NULL;
	free(block);
}

static bool world_on_random(void *ctx, uint64_t *out)
{
	struct sim_nic *n = ctx;

	*out = stats_random(&n->world->secret);
	return true;
}

static void world_on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	struct sim_nic *n = ctx;

	if (n->now < n->world->now)
		n->now = n->world->now;
	fn(arg, world_clock_of(n, n->now));
	if (!n->dead)
		schedule(n->world, n, n->world->now);
}

static int world_on_page_make(void *ctx, uint32_t port, struct nbar_page **out)
{
	*out = calloc(1, sizeof(**out));
	((struct sim_nic *)ctx)->world->blocks += *out != NULL;
	return *out ? 0 : -NBAR_ENOMEM;
}

static void world_on_page_drop(void *ctx, uint32_t port, struct nbar_page *page)
{
	world_on_free(ctx, page);
}

static void world_on_wake(void *ctx, uint32_t port, uint32_t cell, uint32_t *word)
{
}

static void world_on_trace(void *ctx, const struct nbar_trace_event *e)
{
}

static const struct nbnic_platform sim_platform = {
	.alloc = world_on_alloc,
	.free = world_on_free,
	.random = world_on_random,
	.exclusive = world_on_exclusive,
	.page_make = world_on_page_make,
	.page_drop = world_on_page_drop,
	.wake = world_on_wake,
	.trace = world_on_trace,
};

static int nic_begin(struct sim_world *w, struct sim_nic *n)
{
	const struct nbnic_config config = { .pull_ns = w->pull_ns, .budget_ns = w->budget_ns };

	bool lends = w->lends >> (n->index & 31) & 1;

	n->wire = (struct wire_base){ .ops = lends ? &sim_lending_ops : &sim_wire_ops,
				      .name = "sim",
				      .kind = WIRE_KIND_TEST };
	memcpy(n->wire.addr.byte, &n->index, sizeof(n->index));
	n->signals_at = UINT64_MAX;
	n->first_host = SIM_NOBODY;
	n->waiting = 0;
	n->full_until = 0;
	n->dead = false;
	if (lends && !sim_fast_begin(n))
		return -NBAR_ENOMEM;
	return nbnic_device_init(&n->device, "sim", &n->wire, &sim_platform, n, &config);
}

int sim_world_begin(struct sim_world *w, const struct sim_net_options *net)
{
	uint32_t cores = net->cores ? net->cores : net->members;

	w->frame_free = SIM_NOBODY;
	w->secret = ~net->seed;
	w->nnic = net->members;
	w->nic = calloc(w->nnic, sizeof(struct sim_nic *));
	w->busy = calloc(cores, sizeof(*w->busy));
	sim_queue_begin(&w->queue);
	if (sim_net_begin(&w->net, net) || !w->nic || !w->busy)
		return -NBAR_ENOMEM;
	for (uint32_t i = 0; i < w->nnic; i++) {
		struct sim_nic *n = w->nic[i] = calloc(1, sizeof(*n));

		if (!n)
			return -NBAR_ENOMEM;
		n->world = w;
		n->index = i;
		if (nic_begin(w, n))
			return -NBAR_EINVAL;
	}
	return 0;
}

static void nic_end(struct sim_world *w, struct sim_nic *n)
{
	for (; n->waiting > 0; n->waiting--) {
		uint32_t next = w->frame[n->head].next;

		sim_frame_free(w, n->head);
		n->head = next;
	}
	for (uint32_t i = n->first_host; i != SIM_NOBODY; i = w->host[i]->next) {
		if (w->host[i]->page)
			nbnic_client_abandon(&w->host[i]->client);
		w->host[i]->page = NULL;
	}
	n->first_host = SIM_NOBODY;
	nbnic_device_end(&n->device);
	sim_fast_end(n);
	n->dead = true;
}

void sim_nic_kill(struct sim_world *w, uint32_t nic)
{
	if (!w->nic[nic]->dead)
		nic_end(w, w->nic[nic]);
}

int sim_nic_restart(struct sim_world *w, uint32_t nic)
{
	sim_nic_kill(w, nic);
	return nic_begin(w, w->nic[nic]);
}

void sim_nic_jump(struct sim_world *w, uint32_t nic, uint64_t ns)
{
	struct sim_nic *n = w->nic[nic];

	n->clock_ns += ns;
	schedule(w, n, w->now);
}

uint64_t sim_world_counted(struct sim_world *w, enum nbar_counter c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->nnic; i++)
		sum += w->nic[i]->device.nic.counter[c];
	return sum;
}

void sim_world_end(struct sim_world *w)
{
	for (uint32_t i = 0; w->nic && i < w->nnic; i++) {
		if (w->nic[i] && !w->nic[i]->dead)
			nic_end(w, w->nic[i]);
		free(w->nic[i]);
	}
	for (uint32_t i = 0; i < w->nhost; i++)
		free(w->host[i]);
	free(w->host);
	free(w->nic);
	free(w->busy);
	free(w->frame);
	sim_queue_end(&w->queue);
	sim_net_end(&w->net);
}
