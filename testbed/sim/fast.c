/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast.c - see fast.h. The comments name the functions of programs.bpf.c that do the same.
 */
#include <stdlib.h>
#include <string.h>

#include "fast_map.h"

#define REFUSES 10000u  /* of a million passes, before this many it gets or loses its memory */
#define DECLINES 20000u /* of a million tokens, the fast path passes on this many for no reason */

bool sim_fast_begin(struct sim_nic *n)
{
	n->fast = calloc(1, sizeof(*n->fast));
	return n->fast;
}

void sim_fast_end(struct sim_nic *n)
{
	struct sim_fast *f = n->fast;

	if (!f)
		return;
	for (uint32_t i = 0; i < f->nwait; i++)
		if (f->wait[i].frame != SIM_NOBODY)
			sim_frame_free(n->world, f->wait[i].frame);
	for (uint32_t i = 0; i < FAST_GROUPS; i++) {
		if (f->group[i])
			free(f->group[i]->x);
		free(f->group[i]);
	}
	free(f);
	n->fast = NULL;
}

/* ring, want */
static void want(struct sim_nic *n, uint32_t index, enum nbnic_want why)
{
	if (why)
		n->fast->wanted[index] = why;
	n->fast->bell = true;
	sim_nic_jump(n->world, n->index, 0);
}

unsigned sim_fast_hear(struct sim_nic *n, uint64_t now)
{
	struct sim_fast *f = n->fast;

	if (fast_chance(n, REFUSES)) {
		f->refuses = f->bell = !f->refuses;
		for (uint32_t i = 0; i < FAST_GROUPS && f->refuses; i++)
			f->wanted[i] = NBNIC_WANT_TAKE;
	}
	sim_fast_some(n, 1);
	if (!f->bell)
		return 0;
	f->bell = false;
	sim_fast_some(n, 1);
	for (uint32_t i = 0; i < FAST_GROUPS && i < n->device.nic.high; i++) {
		enum nbnic_want why = f->wanted[i];

		f->wanted[i] = 0;
		if (why)
			nbnic_lend_wanted(&n->device.nic, i, why, now);
	}
	return 1;
}

void fast_timer_start(struct sim_nic *n, uint32_t index, uint64_t ns)
{
	struct fast_group *e = n->fast->group[index];

	e->tick_at = n->world->now + ns * SIM_NS;
	sim_world_push(n->world, e->tick_at, SIM_WORLD_TIMER, n->index, index);
}

/* timer_tick */
void sim_fast_tick(struct sim_nic *n, uint32_t index)
{
	struct fast_group *e = n->fast ? n->fast->group[index] : NULL;

	if (!e || e->tick_at != n->world->now)
		return;
	const struct nbfw_state *s = fast_state(e);
	bool again = e->lent && s->running;
	bool same = e->tick_epoch == s->epoch && e->tick_step == s->step;

	e->tick_epoch = s->epoch;
	e->tick_step = s->step;
	e->ticking = again && !same;
	if (again && same)
		want(n, index, NBNIC_WANT_TIMEOUT);
	else if (again)
		fast_timer_start(n, index, e->first_ns);
}

/* step_note, values_note, send_all: after a step of the engine. */
static void act(struct sim_nic *n, uint32_t index, const struct nbfw_action *a)
{
	struct fast_group *e = n->fast->group[index];
	const struct nbfw_state *s = fast_state(e);
	struct nbnic_port *p = n->device.port[e->port];

	if (e->x && a->timer != NBFW_KEEP)
		nbfw_values_advance(e->x, s, fast_plan(e));
	if (a->complete) {
		uint32_t length = e->x ? e->x->length[s->epoch & 1] : 0;

		p->completion[e->cell].nstragglers = 0;
		if (length)
			nbnic_page_result(p, e->cell, s->epoch,
					  nbfw_values_place(e->x, s->epoch, s->step), length);
		p->completion[e->cell].word = s->epoch;
		e->n.completed++;
		n->world->fast_completed++;
		if (e->posted != s->epoch)
			want(n, index, NBNIC_WANT_TAKE);
		else if (e->sleeper)
			want(n, index, NBNIC_WANT_WAKE);
		e->sleeper = false;
	}
	sim_world_look(n);
	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		struct nbfw_token t = e->send[i];

		t.epoch = s->epoch;
		if (e->x)
			nbfw_values_at(e->x, e->step[i], &t);
		e->n.sent++;
		n->world->fast_frames++;
		/* Nobody knows that the interface has no room. */
		if (n->world->refuse && fast_chance(n, n->world->refuse))
			n->refused++;
		else
			sim_world_send(n, &e->to[i], &t);
	}
}

/* carried_read: a value that the programs take. */
static bool value_fits(const struct nbfw_value *v, uint32_t length)
{
	return length == 0 || (length <= NBFW_FIXED_PLACE && !NBAR_IS_PAIR(v->type) &&
			       nbfw_value_length(v) == length - NBFW_VALUE_HEAD);
}

/* token_read, kernel_in, kernel_in_value. False: the frame is for the NIC. */
static bool token_in(struct sim_nic *n, uint32_t frame)
{
	const struct sim_frame f = n->world->frame[frame]; /* it moves as others are sent */
	struct nbfw_token t = f.token;
	uint32_t index = t.handle & 0xffff, slot = t.slot & (NBFW_FIXED_SLOTS - 1);
	struct fast_group *e = index < FAST_GROUPS ? n->fast->group[index] : NULL;
	struct nbfw_action a;

	t.value = &f.value;
	if (t.type != NBFW_TOKEN || !e || e->handle != t.handle || e->cookie != t.cookie ||
	    t.sender != e->sender[slot] || f.from != e->source[slot] || (t.value_length && !e->x) ||
	    !value_fits(t.value, t.value_length) || fast_chance(n, DECLINES) || !e->lent)
		return false;
	if (e->x && nbfw_values_take(e->x, fast_state(e), fast_plan(e), &t) != NBFW_VALUE_FITS)
		return false;
	nbfw_step_token(fast_state(e), fast_plan(e), &t, &a);
	e->n.received += a.verdict == NBFW_USED;
	e->n.duplicate += a.verdict == NBFW_DUPLICATE;
	e->n.stale += a.verdict == NBFW_STALE;
	e->n.bad += a.verdict == NBFW_BAD;
	act(n, index, &a);
	return true;
}

/* kernel_out, kernel_out_value: the barrier starts, or the NIC shall start it. */
static void start(struct sim_nic *n, uint32_t index)
{
	const struct nbfw_event ev = { .type = NBFW_EV_START };
	struct fast_group *e = n->fast->group[index];
	struct nbfw_state *s = fast_state(e);
	struct nbfw_action a;

	if (e->x) {
		struct nbfw_value v;
		int length = nbnic_page_operand(n->device.port[e->port], e->cell, s->epoch + 1, &v,
						e->x->size - NBFW_VALUE_HEAD);

		if (length < 0 ||
		    !value_fits(&v, length ? NBFW_VALUE_HEAD + (uint32_t)length : 0)) {
			want(n, index, NBNIC_WANT_TAKE);
			return;
		}
		if (length)
			nbfw_value_copy(nbfw_values_place(e->x, s->epoch + 1, 0), &v,
					NBFW_VALUE_HEAD + (uint32_t)length);
		if (nbfw_values_start(e->x, s, fast_plan(e), (uint32_t)length) != NBAR_RANK_NONE) {
			want(n, index, NBNIC_WANT_TAKE);
			return;
		}
	}
	nbfw_step(s, fast_plan(e), &ev, &a);
	if (!e->ticking) {
		e->ticking = true;
		e->tick_epoch = s->epoch;
		e->tick_step = s->step;
		fast_timer_start(n, index, e->first_ns);
	}
	act(n, index, &a);
}

/* post_read: the group of a cell. */
static uint32_t index_of(const struct sim_nic *n, const struct sim_host *h)
{
	uint32_t i = 0;

	while (i < FAST_GROUPS && !(n->fast->group[i] && n->fast->group[i]->named &&
				    n->fast->group[i]->port == h->client.port->number &&
				    n->fast->group[i]->cell == h->cell))
		i++;
	return i;
}

/* nblib_start, kernel_out, post_note */
static void post_in(struct sim_nic *n, const struct sim_host *h, uint32_t posted, bool sleeps)
{
	uint32_t index = index_of(n, h);
	struct fast_group *e = index < FAST_GROUPS ? n->fast->group[index] : NULL;

	if (n->world->unsent && fast_chance(n, n->world->unsent)) {
		nbnic_device_look(&n->device); /* the host kicks */
		sim_nic_jump(n->world, n->index, 0);
	} else if (!e || !e->lent) {
		want(n, 0, 0);
	} else if (sleeps) {
		e->sleeper = true;
	} else if (posted - fast_state(e)->epoch - 1 < NBAR_POSTED_MAX) {
		e->posted = posted;
		if (fast_state(e)->running)
			return;
		if (posted == fast_state(e)->epoch + 1)
			start(n, index);
		else
			want(n, index, NBNIC_WANT_TAKE);
	}
}

/* --- what waits ------------------------------------------------------------------------------ */

/* sleep_group: the host has asked, looks once more, and sleeps. */
static void fall_asleep(struct sim_nic *n, struct sim_host *h, uint32_t ticket)
{
	sim_world_look(n);
	uint64_t word = h->client.port->completion[h->cell].word;

	h->asking = false;
	h->asleep = word >> 32 == 0 && (uint32_t)word != ticket &&
		    h->page->completion[h->cell].wake == h->wake;
}

static void wait_end(struct sim_nic *n, const struct fast_wait *s)
{
	struct sim_world *w = n->world;
	struct sim_host *h = s->frame == SIM_NOBODY ? w->host[s->host] : NULL;

	if (!h) {
		if (token_in(n, s->frame))
			sim_frame_free(w, s->frame);
		else
			sim_world_up(n, s->frame);
	} else if (h->page) {
		if (!s->sleeps)
			__atomic_store_n(&h->page->doorbell[h->cell].posted, s->posted,
					 __ATOMIC_RELEASE);
		post_in(n, h, s->posted, s->sleeps);
		if (s->sleeps)
			fall_asleep(n, h, s->posted);
	}
}

void sim_fast_some(struct sim_nic *n, uint32_t most)
{
	struct sim_fast *f = n->fast;

	for (; f && f->nwait > 0 && most > 0; most--) {
		uint32_t at = (uint32_t)sim_net_random(&n->world->net, f->nwait);
		struct fast_wait s = f->wait[at];

		/* What a host sends stays in order. */
		for (uint32_t i = at; s.frame == SIM_NOBODY && i-- > 0;)
			if (f->wait[i].frame == SIM_NOBODY && f->wait[i].host == s.host)
				at = i;
		s = f->wait[at];
		memmove(f->wait + at, f->wait + at + 1, (--f->nwait - at) * sizeof(s));
		wait_end(n, &s);
	}
}

static void wait_begin(struct sim_nic *n, struct fast_wait s)
{
	struct sim_fast *f = n->fast;

	if (f->nwait == FAST_WAIT_MAX)
		abort();
	f->wait[f->nwait++] = s;
	sim_world_push(n->world, n->world->now + sim_net_random(&n->world->net, n->world->waits),
		       SIM_WORLD_FAST, n->index, 0);
}

void sim_fast_frame(struct sim_nic *n, uint32_t frame)
{
	const struct fast_wait s = { .frame = frame };

	if (n->fast->nwait < FAST_WAIT_MAX / 2 && fast_chance(n, SIM_MILLION / 3))
		wait_begin(n, s);
	else
		wait_end(n, &s);
}

static void ask(struct sim_nic *n, struct sim_host *h)
{
	if (h->asking || !fast_chance(n, n->world->sleeps))
		return;
	h->asking = true;
	h->wake = h->page->completion[h->cell].wake;
	__atomic_fetch_add(&h->page->doorbell[h->cell].wake_seq, 1, __ATOMIC_ACQ_REL);
	wait_begin(n, (struct fast_wait){ SIM_NOBODY, h->index, h->posted, true });
}

/* The host posts one barrier after the other, or all at once. */
void sim_fast_post(struct sim_nic *n, struct sim_host *h, uint32_t epoch)
{
	if (epoch - h->posted > NBAR_POSTED_MAX || fast_chance(n, SIM_MILLION / 2))
		h->posted = epoch - 1;
	while (h->posted != epoch)
		wait_begin(n, (struct fast_wait){ SIM_NOBODY, h->index, ++h->posted, false });
	if (fast_chance(n, SIM_MILLION / 2))
		sim_fast_some(n, FAST_WAIT_MAX);
	ask(n, h);
}

bool sim_fast_wakes(struct sim_host *h)
{
	h->asleep = h->page->completion[h->cell].wake == h->wake;
	return !h->asleep;
}

void sim_fast_looked(struct sim_nic *n, struct sim_host *h, uint64_t word)
{
	if (n->fast && word >> 32 == 0 && (uint32_t)word != h->posted)
		ask(n, h);
}
