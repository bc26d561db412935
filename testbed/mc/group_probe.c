/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_probe.c - fair delivery, from any state: all frames in flight are lost, and from then on
 * each frame is taken once, in order, and timers fire when nothing else happens. Whoever is alive
 * must complete all barriers that its host wants, or fail.
 *
 * With patience, the hosts that have not arrived come only after more than two windows: late is not
 * dead.
 */
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

/* Hosts start, frames arrive, until nothing moves. A frame goes before those that it causes only
 * if its key is lower; any fair order will do. */
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

const char *group_probe(struct group *g)
{
	uint32_t late = g->cfg.patience ? ROUNDS_LATE : 0, round = 0;

	g->probing = true;
	g->s.nframe = 0;
	settle(g, late == 0);
	for (; round < ROUNDS_MAX && !g->why && !at_end(g); round++) {
		if (!any_waits(g))
			late = round;
		for (uint32_t r = 0; r < g->cfg.size && !g->why; r++)
			if (g->s.m[r].armed && !g->s.m[r].crashed)
				group_timeout(g, r);
		settle(g, round >= late);
	}
	g->probing = false;
	if (!g->why && round == ROUNDS_MAX)
		g->why = "a member neither completes nor fails, although no frame is lost any more";
	return g->why;
}
