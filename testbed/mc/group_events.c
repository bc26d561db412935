/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_events.c - finds the events that can happen in a state, and applies them. See group.h.
 */
#include <string.h>

#include "group.h"

enum kind { START, TAKE, REPEAT, TIMEOUT, WINDOW, CLOSE, DIE, CRASH };

struct event {
	uint8_t kind, rank, frame; /* frame: index */
};

#define EVENTS_MAX (2 * GROUP_FRAMES_MAX + 8 * GROUP_SIZE_MAX)

static struct event event[EVENTS_MAX];
static uint32_t nevent;

static void add(enum kind kind, uint32_t rank, uint32_t frame)
{
	event[nevent++] = (struct event){ (uint8_t)kind, (uint8_t)rank, (uint8_t)frame };
}

static void add_frames(const struct group *g)
{
	const struct group_state *s = &g->s;

	for (uint32_t i = 0; i < s->nframe; i++) {
		struct group_frame f = group_frame(s->frame[i]);

		if (s->m[f.dst].crashed || (i > 0 && s->frame[i] == s->frame[i - 1]))
			continue;
		if (g->cfg.net == GROUP_ANY && f.type == NBFW_PULL) /* taken already: see tidy */
			continue;
		add(TAKE, f.dst, i);
		if (s->repeats > 0)
			add(REPEAT, f.dst, i);
	}
}

static uint32_t events(void *ctx)
{
	struct group *g = ctx;
	const struct group_state *s = &g->s;

	nevent = 0;
	add_frames(g);
	for (uint32_t r = 0; r < g->cfg.size; r++) {
		const struct group_member *m = &s->m[r];

		if (m->crashed)
			continue;
		if (group_may_start(g, r))
			add(START, r, 0);
		if (m->armed && s->timeouts > 0)
			add(TIMEOUT, r, 0);
		if (m->armed && s->windows > 0)
			add(WINDOW, r, 0);
		if (!m->left && s->leaves > 0) {
			add(CLOSE, r, 0);
			add(DIE, r, 0);
		}
		if (s->crashes > 0)
			add(CRASH, r, 0);
	}
	return nevent;
}

/* Ends the engine's window: sets the count of timeouts to the last value of the window. The values
 * in between have no effect. The second window ends in the same way. */
static void end_window(struct group *g, uint32_t rank)
{
	struct nbfw_state *s = group_engine(&g->s.m[rank]);
	const struct nbar_plan *p = g->plan[rank];
	const struct nbar_step *step = &nbfw_plan_steps(p)[s->step];
	uint32_t end = step->first_slot + step->nslot;
	uint32_t silent = nbfw_missing_next(s, s->want, end, false);

	g->s.windows--;
	if (silent < end)
		g->s.guilty |= (uint8_t)(1u << nbfw_plan_recvs(p)[silent].src);
	s->tries = (uint8_t)((g->s.windows % 2 ? NBFW_WINDOW : 2 * NBFW_WINDOW) - 1);
	if (g->chart)
		chart_event(g->chart, rank, CHART_NOBODY, 0, false, "TIMEOUT, the last of 64");
	const struct nbfw_event ev = { .type = NBFW_EV_TIMEOUT };

	g->s.m[rank].armed = false;
	group_step(g, rank, &ev);
	s->tries = 0;
}

static void leave(struct group *g, uint32_t rank, uint8_t cause)
{
	const struct nbfw_event ev = { .type = NBFW_EV_LEAVE, .cause = cause };

	g->s.leaves--;
	g->s.guilty |= (uint8_t)(1u << rank);
	g->s.m[rank].left = true;
	if (g->chart)
		chart_event(g->chart, rank, CHART_NOBODY, 0, false,
			    cause == NBAR_STATUS_CLOSED ? "LEAVE, closed" : "LEAVE, host died");
	group_step(g, rank, &ev);
}

static void crash(struct group *g, uint32_t rank)
{
	struct group_state *s = &g->s;
	uint32_t kept = 0;

	s->crashes--;
	s->guilty |= (uint8_t)(1u << rank);
	s->m[rank].crashed = true;
	for (uint32_t i = 0; i < s->nframe; i++)
		if (group_frame(s->frame[i]).dst != rank)
			s->frame[kept++] = s->frame[i];
	s->nframe = (uint8_t)kept;
	if (g->chart)
		chart_event(g->chart, rank, CHART_NOBODY, 0, false, "NIC falls silent");
}

static bool waits_for(struct group *g, uint32_t rank, struct group_frame f)
{
	const struct nbfw_state *s = group_engine(&g->s.m[rank]);

	return s->epoch == GROUP_BASE + f.epoch && nbfw_missing(s, g->plan[rank], f.slot);
}

/*
 * GROUP_ANY: gives each waiting member a timeout, and delivers each PULL. This changes nothing in
 * a member but its count of timeouts. Removes PULLs and LATERs for slots that are no longer
 * missing.
 */
static void tidy(struct group *g)
{
	struct group_state *s = &g->s;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->nframe; i++) {
		struct group_frame f = group_frame(s->frame[i]);

		if ((f.type != NBFW_PULL && f.type != NBFW_LATER) ||
		    waits_for(g, f.type == NBFW_PULL ? f.src : f.dst, f))
			s->frame[kept++] = s->frame[i];
	}
	s->nframe = (uint8_t)kept;
	for (uint32_t r = 0; r < g->cfg.size; r++) {
		if (s->m[r].crashed || !s->m[r].armed)
			continue;
		group_timeout(g, r);
		group_engine(&s->m[r])->tries = 0;
	}
	for (uint32_t i = 0; i < s->nframe; i++) {
		uint64_t key = s->frame[i];

		if (group_frame(key).type != NBFW_PULL)
			continue;
		group_take(g, key, true);
		while (s->frame[i] != key) /* new answers may stand before it */
			i++;
	}
}

static const char *apply(void *ctx, uint32_t index)
{
	struct group *g = ctx;
	const struct event *ev = &event[index];

	switch ((enum kind)ev->kind) {
	case START:
		group_start(g, ev->rank);
		break;
	case REPEAT:
		g->s.repeats--;
		uint64_t key = g->s.frame[ev->frame];

		group_take(g, key, false);
		group_again(g, key);
		break;
	case TAKE:
		group_take(g, g->s.frame[ev->frame], false);
		break;
	case TIMEOUT:
		g->s.timeouts--;
		group_timeout(g, ev->rank);
		break;
	case WINDOW:
		end_window(g, ev->rank);
		break;
	case CLOSE:
		leave(g, ev->rank, NBAR_STATUS_CLOSED);
		break;
	case DIE:
		leave(g, ev->rank, NBAR_STATUS_HOST_DIED);
		break;
	case CRASH:
		crash(g, ev->rank);
		break;
	}
	if (g->cfg.net == GROUP_ANY)
		tidy(g);
	return g->why;
}

static void begin(void *ctx)
{
	group_first(ctx);
}

static size_t save(void *ctx, void *out)
{
	const struct group *g = ctx;
	size_t n = offsetof(struct group_state, frame) + g->s.nframe * sizeof(g->s.frame[0]);

	memcpy(out, &g->s, n);
	return n;
}

static void load(void *ctx, const void *in)
{
	struct group *g = ctx;

	memcpy(&g->s, in, offsetof(struct group_state, frame));
	memcpy(g->s.frame, (const uint8_t *)in + offsetof(struct group_state, frame),
	       g->s.nframe * sizeof(g->s.frame[0]));
	g->why = NULL;
}

static uint64_t fingerprint(void *ctx)
{
	return group_fingerprint(ctx);
}

static const char *judge(void *ctx)
{
	const char *why = group_look(ctx);

	return why ? why : group_probe(ctx);
}

void group_world(struct group *g, struct mc_world *w)
{
	*w = (struct mc_world){ g,           sizeof(g->s), begin, save, load,
				fingerprint, events,       apply, judge };
}
