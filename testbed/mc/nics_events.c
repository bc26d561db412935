/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics_events.c - finds the events that can happen in a state, and applies them; and fair delivery
 * from any state. See nics.h.
 */
#include <string.h>

#include "nics.h"

enum kind { OPEN, CONNECT, POST, TAKE, REPEAT, TIMER, CLOSE, EXPIRE, NO_ROOM, ROOM };

struct event {
	uint8_t kind, rank, which; /* which: life, or frame */
};

#define EVENTS_MAX (2 * NICS_FRAMES_MAX + 16 * NICS_MAX)
#define ROUNDS_MAX 2000u
#define SWEEPS_MAX 16u

static struct event event[EVENTS_MAX];
static uint32_t nevent;

static void add(enum kind kind, uint32_t rank, uint32_t which)
{
	event[nevent++] = (struct event){ (uint8_t)kind, (uint8_t)rank, (uint8_t)which };
}

static void add_host(const struct nics *n, uint32_t rank, uint32_t life)
{
	const struct nics_group *g = &n->s.group[rank][life];

	if (nics_may_open(n, rank, life))
		add(OPEN, rank, life);
	if (nics_may_connect(n, rank, life))
		add(CONNECT, rank, life);
	if (nics_may_post(n, rank, life))
		add(POST, rank, life);
	if (g->block && !g->closed && (nics_has_ended(n, rank, life) || n->s.leaves > 0))
		add(CLOSE, rank, life);
}

/* True if a timer is armed that fires when time passes. The end of lingering does not count. */
static bool is_armed(const struct nics *n, uint32_t rank)
{
	const struct nbnic *nic = &n->nic[rank];

	for (uint32_t i = 0; i < nic->high; i++)
		if (nic->group[i] && (nic->group[i]->armed || nic->group[i]->pull.next))
			return true;
	return false;
}

static uint32_t events(void *ctx)
{
	const struct nics *n = ctx;
	const struct nics_state *s = &n->s;

	nevent = 0;
	for (uint32_t i = 0; i < s->nframe; i++) {
		if (i > 0 && memcmp(&s->frame[i], &s->frame[i - 1], sizeof(s->frame[0])) == 0)
			continue;
		add(TAKE, s->frame[i].to, i);
		if (s->repeats > 0)
			add(REPEAT, s->frame[i].to, i);
	}
	for (uint32_t r = 0; r < n->cfg.size; r++) {
		for (uint32_t life = 0; life < NICS_LIVES; life++)
			add_host(n, r, life);
		if (is_armed(n, r) && s->timers > 0)
			add(TIMER, r, 0);
		if (n->nic[r].nlinger > 0 && !is_armed(n, r) && s->expires > 0)
			add(EXPIRE, r, 0);
		if (s->no_room[r])
			add(ROOM, r, 0);
		else if (s->full > 0)
			add(NO_ROOM, r, 0);
	}
	return nevent;
}

static void say(struct nics *n, uint32_t rank, const char *text)
{
	if (n->chart)
		chart_event(n->chart, rank, CHART_NOBODY, 0, false, text);
}

static void set_room(struct nics *n, uint32_t rank, bool room)
{
	say(n, rank, room ? "wire has room again" : "wire has no room");
	n->s.full = (uint8_t)(n->s.full - !room);
	n->s.no_room[rank] = !room;
	nics_work(n, rank);
}

/* Moves a NIC's clock to its next timer, or to the next other time that the NIC waits for. If the
 * sweep finds no timer that is due, moves the clock on: so each TIMER event fires a timer. */
static void fire(struct nics *n, uint32_t rank)
{
	uint64_t due = nics_due(n, rank);
	uint32_t sweeps = 0;

	say(n, rank, "TIMEOUT");
	do
		nics_wait(n, rank, nbnic_next(&n->nic[rank]));
	while (due != UINT64_MAX && nics_due(n, rank) == due && ++sweeps < SWEEPS_MAX);
	if (sweeps == SWEEPS_MAX && !n->why)
		n->why = "a timer that is due does not fire";
}

static void close_early(struct nics *n, uint32_t rank, uint32_t life)
{
	if (!nics_has_ended(n, rank, life))
		n->s.leaves--;
	nics_close(n, rank, life);
}

/* Ends the lingering of all closed groups: they no longer answer (R7). */
static void expire(struct nics *n, uint32_t rank)
{
	say(n, rank, "closed groups expire");
	n->s.guilty |= (uint8_t)(1u << rank);
	nics_wait(n, rank, n->s.now[rank] + NICS_BUDGET_NS);
	if (n->nic[rank].nlinger > 0 && !n->s.no_room[rank] && !n->why)
		n->why = "a closed group lingers for ever";
}

static const char *apply(void *ctx, uint32_t index)
{
	struct nics *n = ctx;
	const struct event ev = event[index];

	switch ((enum kind)ev.kind) {
	case OPEN:
		nics_open(n, ev.rank, ev.which);
		break;
	case CONNECT:
		nics_connect(n, ev.rank, ev.which);
		break;
	case POST:
		nics_post(n, ev.rank, ev.which);
		break;
	case REPEAT:
		n->s.repeats--;
		nics_take(n, ev.which, true);
		break;
	case TAKE:
		nics_take(n, ev.which, false);
		break;
	case TIMER:
		n->s.timers--;
		fire(n, ev.rank);
		break;
	case CLOSE:
		close_early(n, ev.rank, ev.which);
		break;
	case EXPIRE:
		n->s.expires--;
		expire(n, ev.rank);
		break;
	case NO_ROOM:
	case ROOM:
		set_room(n, ev.rank, ev.kind == ROOM);
		break;
	}
	return n->why;
}

/* --- fair delivery ---------------------------------------------------------------------------- */

/* One round: each host takes all actions that it may take. True: a host took an action. */
static bool hosts_move(struct nics *n)
{
	bool moved = false;

	for (uint32_t r = 0; r < n->cfg.size; r++)
		for (uint32_t life = 0; life < NICS_LIVES; life++) {
			bool any = true;

			if (nics_may_open(n, r, life))
				nics_open(n, r, life);
			else if (nics_may_connect(n, r, life))
				nics_connect(n, r, life);
			else if (nics_may_post(n, r, life))
				nics_post(n, r, life);
			else if (nics_has_ended(n, r, life) && !n->s.group[r][life].closed)
				nics_close(n, r, life);
			else
				any = false;
			moved |= any;
		}
	return moved;
}

static void settle(struct nics *n)
{
	bool moved = true;

	while (moved && !n->why) {
		moved = n->s.nframe > 0;
		while (n->s.nframe > 0 && !n->why)
			nics_take(n, 0, false);
		moved |= hosts_move(n);
	}
}

static bool all_closed(const struct nics *n)
{
	for (uint32_t r = 0; r < n->cfg.size; r++)
		for (uint32_t life = 0; life < NICS_LIVES; life++)
			if (n->cfg.goal[life] > 0 && !n->s.group[r][life].closed)
				return false;
	return true;
}

/* Moves the clocks of all NICs by the same time, to the next timer of any NIC. */
static void pass_time(struct nics *n)
{
	uint64_t step = UINT64_MAX;

	for (uint32_t r = 0; r < n->cfg.size; r++) {
		uint64_t next = nbnic_next(&n->nic[r]);
		uint64_t left = next > n->s.now[r] ? next - n->s.now[r] : 1;

		if (next != UINT64_MAX && left < step)
			step = left;
	}
	if (step == UINT64_MAX)
		step = NICS_PULL_NS;
	for (uint32_t r = 0; r < n->cfg.size; r++)
		nics_wait(n, r, n->s.now[r] + step);
}

/* True if a member waits although no frame was lost, no group was closed early, all frames are
 * taken, and all hosts have posted: this member would need a timeout. A wire without room only
 * delays frames, except that the answer to a PULL may be lost there. */
static bool is_stuck(struct nics *n)
{
	bool armed = false;

	if (n->s.nframe > 0 || n->s.guilty ||
	    (n->s.full < n->cfg.full && n->s.timers < n->cfg.timers))
		return false;
	for (uint32_t r = 0; r < n->cfg.size; r++) {
		if (n->s.no_room[r])
			return false;
		armed |= is_armed(n, r);
		for (uint32_t life = 0; life < NICS_LIVES; life++)
			if (nics_may_open(n, r, life) || nics_may_connect(n, r, life) ||
			    nics_may_post(n, r, life) ||
			    (nics_has_ended(n, r, life) && !n->s.group[r][life].closed))
				return false;
	}
	return armed;
}

static const char *judge(void *ctx)
{
	struct nics *n = ctx;
	uint32_t round = 0;

	if (is_stuck(n))
		return "a member waits for a token, and no frame was lost";

	say(n, 0, "all frames in flight are lost");
	n->s.nframe = 0;
	for (uint32_t r = 0; r < n->cfg.size; r++)
		if (n->s.no_room[r])
			set_room(n, r, true);
	for (settle(n); round < ROUNDS_MAX && !n->why && !all_closed(n); round++) {
		pass_time(n);
		settle(n);
	}
	if (!n->why && round == ROUNDS_MAX)
		return "a group neither completes nor fails, although no frame is lost any more";
	for (uint32_t r = 0; r < n->cfg.size && !n->why; r++) {
		nics_wait(n, r, n->s.now[r] + NICS_BUDGET_NS);
		if (n->nic[r].nopen > 0 || n->nic[r].nlinger > 0 || n->nic[r].high > 0)
			n->why = "a NIC keeps a group that is closed and no longer lingers";
	}
	return n->why;
}

static void begin(void *ctx)
{
	nics_first(ctx);
}

void nics_world(struct nics *n, struct mc_world *w)
{
	*w = (struct mc_world){ n,         nics_most_bytes(), begin,  nics_save,
				nics_load, nics_fingerprint,  events, apply,
				judge };
}
