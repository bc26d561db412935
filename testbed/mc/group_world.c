/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_world.c - members, hosts and network around the real engine, and the checks after each
 * event. See group.h.
 */
#include <string.h>

#include "group.h"

static void broken(struct group *g, const char *why)
{
	if (!g->why)
		g->why = why;
}

bool group_begin(struct group *g, const struct group_config *cfg)
{
	struct nbfw_alg alg;

	memset(g, 0, sizeof(*g));
	g->cfg = *cfg;
	if (cfg->size > GROUP_SIZE_MAX || nbfw_alg_parse(cfg->alg, &alg) < 0)
		return false;
	for (uint32_t r = 0; r < cfg->size; r++) {
		int32_t n = nbfw_plan_generate(alg, cfg->size, r, g->block[r], sizeof(g->block[r]));

		if (n <= 0 || n > (int32_t)sizeof(g->block[r]))
			return false;
		g->plan[r] = (const struct nbar_plan *)(const void *)g->block[r];
		if (nbfw_state_size(g->plan[r]) > sizeof(g->s.m[r].state))
			return false;
		g->nslot += g->plan[r]->nrecv;
		for (uint32_t i = 0; i < g->plan[r]->nstep; i++)
			if (nbfw_plan_steps(g->plan[r])[i].nslot > g->widest)
				g->widest = nbfw_plan_steps(g->plan[r])[i].nslot;
	}
	group_same_find(g);
	return true;
}

void group_first(struct group *g)
{
	memset(&g->s, 0, sizeof(g->s));
	g->why = NULL;
	g->s.repeats = g->cfg.repeats;
	g->s.timeouts = g->cfg.timeouts;
	g->s.leaves = g->cfg.leaves;
	g->s.crashes = g->cfg.crashes;
	g->s.windows = g->cfg.windows;
	for (uint32_t r = 0; r < g->cfg.size; r++) {
		nbfw_init(group_engine(&g->s.m[r]), g->plan[r], GROUP_BASE);
		g->s.m[r].sent = (uint8_t)g->plan[r]->nsend;
	}
}

/* --- the network ------------------------------------------------------------------------------ */

/* Returns the largest number of frames in flight: two tokens or an abort for each slot (R2), and
 * the frames that repeats and timeouts have added. A timeout adds a PULL, or its answer, for each
 * slot of the step. */
static uint32_t frames_bound(const struct group *g)
{
	uint32_t used = (uint32_t)(g->cfg.timeouts - g->s.timeouts + g->cfg.windows - g->s.windows);

	return (g->s.guilty ? 3 : 2) * g->nslot + (uint32_t)(g->cfg.repeats - g->s.repeats) +
	       used * g->widest;
}

static void put_frame(struct group *g, struct group_frame f)
{
	struct group_state *s = &g->s;
	uint64_t key = group_key(f);
	uint32_t i = s->nframe;

	if (s->m[f.dst].crashed ||
	    (f.type == NBFW_LATER && g->cfg.net == GROUP_ANY && !g->cfg.laters && !g->probing))
		return;
	while (i > 0 && s->frame[i - 1] > key)
		i--;
	if (g->cfg.net == GROUP_ANY && !g->probing && i > 0 && s->frame[i - 1] == key)
		return;
	if (s->nframe == GROUP_FRAMES_MAX) {
		broken(g, "more frames are in flight than GROUP_FRAMES_MAX");
		return;
	}
	memmove(&s->frame[i + 1], &s->frame[i], (s->nframe - i) * sizeof(s->frame[0]));
	s->frame[i] = key;
	s->nframe++;
	if (g->cfg.net == GROUP_COUNTED && !g->probing && s->nframe > frames_bound(g))
		broken(g, "more frames are in flight than the protocol may send");
	if (s->nframe > g->frames_most)
		g->frames_most = s->nframe;
	if (g->chart)
		chart_sent(g->chart, key);
}

/* Removes a frame from the network, if it is there. */
static void remove_frame(struct group *g, uint64_t key)
{
	struct group_state *s = &g->s;

	for (uint32_t i = 0; i < s->nframe; i++)
		if (s->frame[i] == key) {
			s->nframe--;
			memmove(&s->frame[i], &s->frame[i + 1],
				(s->nframe - i) * sizeof(s->frame[0]));
			return;
		}
}

/* --- the engine's answers --------------------------------------------------------------------- */

static void judge_end(struct group *g, uint32_t rank, const struct nbfw_action *a)
{
	struct group_member *m = &g->s.m[rank];
	const struct nbfw_state *s = group_engine(m);

	if (a->complete) {
		m->done++;
		if (m->failed || a->failed)
			broken(g, "a member completes a barrier after it has failed");
		if (m->done != m->started || s->epoch != GROUP_BASE + m->done)
			broken(g, "a member completes another barrier than it has started");
		for (uint32_t r = 0; r < g->cfg.size; r++)
			if (g->s.m[r].started < m->done)
				broken(g, "a member completes a barrier that another has not "
					  "started");
	}
	if (a->failed) {
		if (m->failed)
			broken(g, "a member reports its failure twice");
		else if (!(g->s.guilty >> s->failed_rank & 1))
			broken(g, "a member blames a rank to which nothing has happened");
		m->failed = true;
	}
	if (m->failed != (s->cause != NBAR_STATUS_OK))
		broken(g, "a member fails without a report");
	if (a->verdict == NBFW_BAD)
		broken(g, "the engine calls an event of a correct member bad");
	if (nbfw_check(s, g->plan[rank]) != 0)
		broken(g, "an invariant of nbfw_check does not hold");
}

/* R6: a member that fails sends an ABORT in place of each unsent token. R7: a member that closes
 * between two barriers sends no ABORT. */
static void judge_aborts(struct group *g, uint32_t rank, const struct nbfw_event *ev,
			 const struct nbfw_action *a)
{
	const struct group_member *m = &g->s.m[rank];
	bool running = m->started != m->done;
	uint32_t expected = g->plan[rank]->nsend - (running ? m->sent : 0u);

	if (!a->failed)
		return;
	if (ev->type == NBFW_EV_LEAVE && ev->cause == NBAR_STATUS_CLOSED && !running)
		expected = 0;
	if (a->send_end - a->send_first != expected)
		broken(g, expected ? "a member that fails does not tell all that wait for it"
				   : "a member that closes between two barriers aborts the others");
}

/* Sends tokens or aborts. Each send of a plan goes out once in a barrier, in the order of the plan.
 */
static void send_range(struct group *g, uint32_t rank, const struct nbfw_action *a)
{
	struct group_member *m = &g->s.m[rank];
	const struct nbfw_state *s = group_engine(m);
	const struct nbar_send *send = nbfw_plan_sends(g->plan[rank]);
	bool abort = a->send_type == NBFW_ABORT;

	if (!abort && a->send_first != a->send_end && a->send_first != m->sent)
		broken(g, "a member sends a token twice, or leaves one out");
	for (uint32_t i = a->send_first; i < a->send_end; i++)
		put_frame(g, (struct group_frame){
				     .type = a->send_type,
				     .dst = (uint8_t)send[i].dst,
				     .src = (uint8_t)rank,
				     .slot = (uint8_t)send[i].slot,
				     .epoch = (uint8_t)(a->send_epoch - GROUP_BASE),
				     .arg = abort ? (uint8_t)s->failed_rank : 0xff,
				     .info = abort ? s->cause : 0,
			     });
	if (!abort && a->send_end > m->sent)
		m->sent = (uint8_t)a->send_end;
	if (a->complete && m->sent != g->plan[rank]->nsend)
		broken(g, "a member completes a barrier and has not sent all its tokens");
}

static void ask(struct group *g, uint32_t rank, const struct nbfw_action *a)
{
	const struct nbfw_state *s = group_engine(&g->s.m[rank]);

	for (uint32_t slot = a->pull_first; slot < a->pull_end; slot++)
		if (nbfw_missing(s, g->plan[rank], slot))
			put_frame(g,
				  (struct group_frame){
					  .type = NBFW_PULL,
					  .dst = (uint8_t)nbfw_plan_recvs(g->plan[rank])[slot].src,
					  .src = (uint8_t)rank,
					  .slot = (uint8_t)slot,
					  .epoch = (uint8_t)(s->epoch - GROUP_BASE),
				  });
}

static void say(struct group *g, uint32_t rank, const struct nbfw_action *a)
{
	const struct nbfw_state *s = group_engine(&g->s.m[rank]);
	char text[CHART_TEXT];

	if (a->complete) {
		snprintf(text, sizeof(text), "completes %u", g->s.m[rank].done);
		chart_then(g->chart, text);
	}
	if (a->failed) {
		snprintf(text, sizeof(text), "fails, blames %u", s->failed_rank);
		chart_then(g->chart, text);
	}
}

void group_step(struct group *g, uint32_t rank, const struct nbfw_event *ev)
{
	struct group_member *m = &g->s.m[rank];
	struct nbfw_action a;

	nbfw_step(group_engine(m), g->plan[rank], ev, &a);
	judge_end(g, rank, &a);
	judge_aborts(g, rank, ev, &a);
	if (a.timer == NBFW_ARM && ev->type != NBFW_EV_TIMEOUT && group_engine(m)->tries != 0)
		broken(g, "a new step does not get a whole window");
	if (g->chart)
		say(g, rank, &a);
	if (a.timer != NBFW_KEEP)
		m->armed = a.timer == NBFW_ARM;
	send_range(g, rank, &a);
	ask(g, rank, &a);
	if (a.reply)
		put_frame(g, (struct group_frame){
				     .type = a.reply,
				     .dst = (uint8_t)ev->token.src,
				     .src = (uint8_t)rank,
				     .slot = (uint8_t)ev->token.slot,
				     .epoch = (uint8_t)(ev->token.epoch - GROUP_BASE),
				     .arg = (uint8_t)a.reply_arg,
				     .info = (uint8_t)a.reply_info,
			     });
}

/* --- events ----------------------------------------------------------------------------------- */

static void say_event(struct group *g, uint32_t rank, bool implied, const char *text)
{
	if (g->chart)
		chart_event(g->chart, rank, CHART_NOBODY, 0, implied, text);
}

bool group_may_start(const struct group *g, uint32_t rank)
{
	const struct group_member *m = &g->s.m[rank];

	return m->started == m->done && m->done < g->cfg.goal && !m->failed && !m->left &&
	       !m->crashed;
}

void group_start(struct group *g, uint32_t rank)
{
	const struct nbfw_event ev = { .type = NBFW_EV_START };
	struct group_member *m = &g->s.m[rank];
	char text[CHART_TEXT];

	m->started++;
	m->sent = 0;
	snprintf(text, sizeof(text), "START %u", m->started);
	say_event(g, rank, false, text);
	group_step(g, rank, &ev);
}

void group_timeout(struct group *g, uint32_t rank)
{
	const struct nbfw_event ev = { .type = NBFW_EV_TIMEOUT };

	g->s.m[rank].armed = false;
	say_event(g, rank, g->cfg.net == GROUP_ANY && !g->probing, "TIMEOUT");
	group_step(g, rank, &ev);
}

static const char *const type_names[] = {
	[NBFW_TOKEN] = "TOKEN", [NBFW_PULL] = "PULL", [NBFW_LATER] = "LATER", [NBFW_ABORT] = "ABORT"
};

void group_take(struct group *g, uint64_t key, bool implied)
{
	struct group_frame f = group_frame(key);
	const struct nbfw_event ev = {
		.type = NBFW_EV_TOKEN,
		.token = { .type = f.type,
			   .src = f.src,
			   .epoch = GROUP_BASE + f.epoch,
			   .slot = f.slot,
			   .arg = f.arg == 0xff ? NBAR_RANK_NONE : f.arg,
			   .info = f.info },
	};
	char text[CHART_TEXT];

	if (g->chart) {
		snprintf(text, sizeof(text), " %s %u slot %u ", type_names[f.type], f.epoch,
			 f.slot);
		chart_event(g->chart, f.dst, f.src, key, implied, text);
	}
	if (g->cfg.net == GROUP_COUNTED || g->probing)
		remove_frame(g, key);
	group_step(g, f.dst, &ev);
}

void group_again(struct group *g, uint64_t key)
{
	put_frame(g, group_frame(key));
}
