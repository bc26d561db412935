/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_probe.c - fair delivery, from any state. First all frames in flight are lost. Then each
 * frame is taken once, in order, and timers fire when nothing else happens. Each member that is
 * alive must complete all barriers that its host wants, or fail.
 *
 * With `patience`, hosts that have not arrived arrive after more than two windows. No member may
 * report such a host as failed.
 */
#include <string.h>

#include "group.h"

#define ROUNDS_LATE (2 * NBFW_WINDOW + 4)
#define ROUNDS_MAX 1000u

static bool at_end(const struct group *g)
{
	for (uint32_t r = 0; r < g->cfg.size; r++) {
		const struct group_member *m = &g->s.m[r];

		if (!m->crashed && !m->failed && !m->left && m->done < g->cfg.goal)
			return false;
	}
	return true;
}

/* Starts hosts and delivers frames until nothing moves. Delivers the frame with the lowest key
 * first; any fair order will do. */
static void settle(struct group *g, bool hosts)
{
	bool moved = true;

	while (moved && !g->why) {
		moved = g->s.nframe > 0;
		while (g->s.nframe > 0 && !g->why)
			group_take(g, g->s.frame[0], false);
		for (uint32_t r = 0; hosts && r < g->cfg.size; r++)
			if (group_may_start(g, r)) {
				group_start(g, r);
				moved = true;
			}
	}
}

static bool any_waits(const struct group *g)
{
	for (uint32_t r = 0; r < g->cfg.size; r++)
		if (g->s.m[r].armed && !g->s.m[r].crashed)
			return true;
	return false;
}

/* R5: after a window without loss, each member that waits names a rank that has not arrived. */
static void judge_stragglers(struct group *g)
{
	for (uint32_t r = 0; r < g->cfg.size && !g->s.guilty; r++) {
		const struct group_member *m = &g->s.m[r];
		uint32_t rank = group_engine(&g->s.m[r])->straggler;

		if (m->armed && (rank >= g->cfg.size || g->s.m[rank].started >= m->started))
			g->why = "a member waits, and names no host that is late";
	}
}

/* R4, R6: if all members that left had completed a barrier, all other members complete it. */
static void judge_left(struct group *g)
{
	uint32_t least = g->cfg.goal;

	if (g->cfg.crashes != g->s.crashes || g->cfg.windows != g->s.windows)
		return;
	for (uint32_t r = 0; r < g->cfg.size; r++)
		if (g->s.m[r].left && g->s.m[r].done < least)
			least = g->s.m[r].done;
	for (uint32_t r = 0; r < g->cfg.size; r++)
		if (!g->s.m[r].left && g->s.m[r].done < least)
			g->why = "a member fails in a barrier that all who left had completed";
}

const char *group_probe(struct group *g)
{
	uint32_t late = g->cfg.patience ? ROUNDS_LATE : 0, round = 0;

	g->probing = true;
	g->s.nframe = 0;
	settle(g, late == 0);
	for (; round < ROUNDS_MAX && !g->why && !at_end(g); round++) {
		if (!any_waits(g))
			late = round;
		else if (late > 0 && round + 1 == late)
			judge_stragglers(g);
		for (uint32_t r = 0; r < g->cfg.size && !g->why; r++)
			if (g->s.m[r].armed && !g->s.m[r].crashed)
				group_timeout(g, r);
		settle(g, round >= late);
	}
	g->probing = false;
	if (!g->why && round == ROUNDS_MAX)
		g->why = "a member neither completes nor fails, although no frame is lost any more";
	if (!g->why)
		judge_left(g);
	return g->why;
}

/* No correct host or member causes this event: the engine must call it bad and change nothing. */
static bool is_refused(struct group *g, uint32_t rank, const struct nbfw_event *ev)
{
	struct group_member copy = g->s.m[rank];
	struct nbfw_action a;

	nbfw_step(group_engine(&copy), g->plan[rank], ev, &a);
	return a.verdict == NBFW_BAD && a.timer == NBFW_KEEP && a.send_first == a.send_end &&
	       a.pull_first == a.pull_end && !a.complete && !a.failed && !a.reply &&
	       memcmp(copy.state, g->s.m[rank].state, sizeof(copy.state)) == 0;
}

static const char *look_at(struct group *g, uint32_t rank)
{
	const struct nbfw_state *s = group_engine(&g->s.m[rank]);
	struct nbfw_event ev = { .type = NBFW_EV_START };

	if (s->running && s->cause == NBAR_STATUS_OK && !is_refused(g, rank, &ev))
		return "a member starts a barrier while another runs";
	ev = (struct nbfw_event){ .type = NBFW_EV_TOKEN,
				  .token = { .type = NBFW_TOKEN, .epoch = s->epoch } };
	for (uint32_t slot = 0; slot <= g->plan[rank]->nrecv; slot++) {
		bool last = slot == g->plan[rank]->nrecv;

		ev.token.slot = slot;
		ev.token.src =
			last ? 0 : (nbfw_plan_recvs(g->plan[rank])[slot].src + 1) % g->cfg.size;
		if (!is_refused(g, rank, &ev))
			return "a member takes a token that is not for this slot";
	}
	return NULL;
}

/* True if a member waits although no fault has happened, all frames are taken, and all hosts have
 * come. Such a member would need a timeout. */
static bool is_stuck(const struct group *g)
{
	if (g->cfg.net != GROUP_COUNTED || g->s.nframe > 0 || g->s.guilty)
		return false;
	for (uint32_t r = 0; r < g->cfg.size; r++)
		if (group_may_start(g, r))
			return false;
	return any_waits(g);
}

const char *group_look(struct group *g)
{
	for (uint32_t r = 0; r < g->cfg.size; r++) {
		const char *why = g->s.m[r].crashed ? NULL : look_at(g, r);

		if (why)
			return why;
	}
	return is_stuck(g) ? "a member waits for a token, and no frame was lost" : NULL;
}
