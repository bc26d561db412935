/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_same.c - symmetry: finds renamings of the ranks that map the plan of each rank to the plan
 * of its new name. A state and its renamed states count as one.
 */
#include <string.h>

#include "group.h"
#include "states.h"

static bool is_same(const struct group *g, const uint8_t *to)
{
	for (uint32_t r = 0; r < g->cfg.size; r++) {
		const struct nbar_plan *p = g->plan[r], *q = g->plan[to[r]];

		if (p->nstep != q->nstep || p->nsend != q->nsend || p->nrecv != q->nrecv ||
		    memcmp(nbfw_plan_steps(p), nbfw_plan_steps(q),
			   p->nstep * sizeof(struct nbar_step)) != 0)
			return false;
		for (uint32_t i = 0; i < p->nsend; i++)
			if (to[nbfw_plan_sends(p)[i].dst] != nbfw_plan_sends(q)[i].dst ||
			    nbfw_plan_sends(p)[i].slot != nbfw_plan_sends(q)[i].slot)
				return false;
		for (uint32_t i = 0; i < p->nrecv; i++)
			if (to[nbfw_plan_recvs(p)[i].src] != nbfw_plan_recvs(q)[i].src)
				return false;
	}
	return true;
}

/* Completes a renaming in all ways; the ranks below `at` have their new names. */
static void extend(struct group *g, uint8_t *to, uint32_t at)
{
	if (at == g->cfg.size) {
		if (is_same(g, to))
			memcpy(g->same[g->nsame++], to, at);
		return;
	}
	for (uint8_t r = 0; r < g->cfg.size; r++)
		if (!memchr(to, r, at)) {
			to[at] = r;
			extend(g, to, at + 1);
		}
}

void group_same_find(struct group *g)
{
	uint8_t to[GROUP_SIZE_MAX] = { 0 };

	g->nsame = 0;
	extend(g, to, 0);
}

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 33) * UINT64_C(0xff51afd7ed558ccd);
	v = (v ^ v >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return v ^ v >> 33;
}

static uint64_t renamed(const struct group *g, const uint8_t *to)
{
	struct {
		uint8_t budget[5], guilty, zero[2];
		uint64_t frames;
		struct group_member m[GROUP_SIZE_MAX];
	} h;
	const struct group_state *s = &g->s;

	memset(&h, 0, sizeof(h));
	memcpy(h.budget,
	       (const uint8_t[]){ s->repeats, s->timeouts, s->leaves, s->crashes, s->windows },
	       sizeof(h.budget));
	for (uint32_t i = 0; i < s->nframe; i++) {
		struct group_frame f = group_frame(s->frame[i]);

		f.dst = to[f.dst];
		f.src = to[f.src];
		f.arg = f.arg < g->cfg.size && f.type != NBFW_PULL ? to[f.arg] : f.arg;
		h.frames += mix(group_key(f)); /* a sum: the order has no effect */
	}
	for (uint32_t r = 0; r < g->cfg.size; r++) {
		struct group_member *m = &h.m[to[r]];
		struct nbfw_state *e = group_engine(m);

		*m = s->m[r];
		if (e->failed_rank < g->cfg.size)
			e->failed_rank = to[e->failed_rank];
		if (e->straggler < g->cfg.size)
			e->straggler = to[e->straggler];
		h.guilty |= (uint8_t)((s->guilty >> r & 1) << to[r]);
	}
	return mc_fingerprint(&h, offsetof(__typeof__(h), m) + g->cfg.size * sizeof(h.m[0]));
}

uint64_t group_fingerprint(struct group *g)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < g->nsame; i++) {
		uint64_t f = renamed(g, g->same[i]);

		if (f < least)
			least = f;
	}
	return least;
}
