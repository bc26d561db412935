/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weak.c - the search: depth first; each state is visited once.
 *
 * Called by wait.c. weak_tso.c and weak_c11.c have the effect of a step on each memory.
 */
#include <stdlib.h>
#include <string.h>

#include "weak_internal.h"

#define STATES_MAX (UINT32_C(1) << 23) /* limit of remembered states */

/* --- states ---------------------------------------------------------------------------------- */

/* True if the state is new. */
static bool remember(struct search *s, const struct state *st)
{
	enum mc_seen seen = mc_states_add(&s->seen, mc_fingerprint(st, sizeof(*st)));

	if (seen == MC_FULL) {
		fprintf(stderr, "the model is too large: more than %u states\n", STATES_MAX);
		exit(2);
	}
	s->result.states += seen == MC_NEW;
	return seen == MC_NEW;
}

/* Runs a thread up to its next step that touches memory. False: a check has failed. */
static bool run_local(const struct mc_thread *t, struct state *st, uint32_t me)
{
	for (;;) {
		const struct mc_step *p = &t->step[st->pc[me]];
		uint8_t *reg = st->reg[me];
		uint8_t next = (uint8_t)(st->pc[me] + 1);

		switch (p->op) {
		case MC_SET:
			reg[p->reg] = p->value;
			break;
		case MC_COPY:
			reg[p->reg] = reg[p->with];
			break;
		case MC_IF:
			if ((reg[p->reg] & p->mask) == p->value)
				next = t->label[p->to];
			break;
		case MC_IF_SAME:
			if (reg[p->reg] == reg[p->with])
				next = t->label[p->to];
			break;
		case MC_GOTO:
			next = t->label[p->to];
			break;
		case MC_CHECK:
			if (reg[p->reg] != p->value)
				return false;
			break;
		case MC_LOAD:
		case MC_AWAIT:
		case MC_STORE:
		case MC_EXCHANGE:
		case MC_ADD:
		case MC_OR:
		case MC_LOCK:
		case MC_SLEEP:
		case MC_WAKE:
		case MC_END:
			reg[0] = 0;
			return true;
		}
		st->pc[me] = next;
	}
}

/* Clears fields that no longer have an effect, so that fewer states differ. */
static void tidy(const struct mc_model *m, struct state *st)
{
	for (uint32_t t = 0; t < m->nthread; t++) {
		if (st->swapped[t] || m->thread[t].step[st->pc[t]].op != MC_END)
			continue;
		memset(st->reg[t], 0, sizeof(st->reg[t]));
		for (uint8_t w = 0; w < MC_WORDS; w++)
			st->view[t][w] = (uint8_t)(st->nvalue[w] ? st->nvalue[w] - 1 : 0);
	}
	weak_c11_tidy(m, st);
}

/* --- the path -------------------------------------------------------------------------------- */

static void print_one(const struct search *s, const struct said *a)
{
	const char *thread = s->m->thread[a->thread].name, *word = s->m->word[a->word];

	if (!a->step) {
		fprintf(s->out, "#   %-5s %-24s %s = %u\n", thread, "  reaches memory", word,
			a->value);
		return;
	}
	fprintf(s->out, "#   %-5s %-24s ", thread, a->step->name);
	switch (a->step->op) {
	case MC_LOAD:
	case MC_AWAIT:
		fprintf(s->out, "%s is %u%s\n", word, a->value, a->old ? ", an old value" : "");
		break;
	case MC_SLEEP:
		fprintf(s->out, a->old ? "sleeps on %s\n" : "finds %s changed\n", word);
		break;
	case MC_WAKE:
		fprintf(s->out, "wakes all on %s\n", word);
		break;
	case MC_STORE:
	case MC_EXCHANGE:
	case MC_ADD:
	case MC_OR:
	case MC_LOCK:
		fprintf(s->out, "%s = %u%s\n", word, a->value,
			s->memory == MC_TSO && a->old ? ", in the store buffer" : "");
		break;
	case MC_SET:
	case MC_COPY:
	case MC_IF:
	case MC_IF_SAME:
	case MC_GOTO:
	case MC_CHECK:
	case MC_END:
		break;
	}
}

static bool bad(struct search *s, uint32_t depth, uint32_t thread, const char *why)
{
	s->result.bad = true;
	for (uint32_t i = 0; s->out && i < depth; i++)
		print_one(s, &s->path[i]);
	if (s->out)
		fprintf(s->out, "#   %-5s %s\n", s->m->thread[thread].name, why);
	return false;
}

bool weak_follow(struct search *s, struct state *st, uint32_t me, struct said said, uint32_t depth)
{
	said.thread = (uint8_t)me;
	if (depth + 1 >= DEPTH) {
		s->result.cut++;
		return true;
	}
	s->path[depth] = said;
	if (!st->swapped[me] && !st->asleep[me] && !run_local(&s->m->thread[me], st, me))
		return bad(s, depth + 1, me, "misses what was written before the barrier");
	tidy(s->m, st);
	return weak_visit(s, st, depth + 1);
}

void weak_wake_all(struct search *s, struct state *st, uint32_t word)
{
	for (uint32_t i = 0; i < s->m->nthread; i++) {
		if (st->asleep[i] != word + 1)
			continue;
		st->asleep[i] = 0;
		st->pc[i]++;
		run_local(&s->m->thread[i], st, i);
	}
}

/* --- the search ------------------------------------------------------------------------------ */

/* No thread can move: true if every thread has ended, or may wait for ever. */
static bool at_rest(struct search *s, const struct state *st, uint32_t depth)
{
	for (uint32_t i = 0; i < s->m->nthread; i++) {
		const struct mc_thread *t = &s->m->thread[i];

		if (st->asleep[i])
			return bad(s, depth, i, "sleeps for ever");
		if (t->step[st->pc[i]].op != MC_END && !t->forever)
			return bad(s, depth, i, "waits for ever");
	}
	return true;
}

/* True: no bad run begins here. */
bool weak_visit(struct search *s, const struct state *st, uint32_t depth)
{
	bool moved = false;

	if (!remember(s, st))
		return true;
	for (uint32_t me = 0; me < s->m->nthread; me++) {
		if (st->nbuffer[me] > 0) {
			moved = true;
			if (!weak_tso_flush(s, st, me, depth))
				return false;
		}
		if (st->asleep[me] ||
		    (!st->swapped[me] && s->m->thread[me].step[st->pc[me]].op == MC_END))
			continue;
		if (!(s->memory == MC_TSO ? weak_tso_step : weak_c11_step)(s, st, me, depth,
									   &moved))
			return false;
	}
	return moved || at_rest(s, st, depth);
}

struct mc_result mc_explore(const struct mc_model *m, enum mc_memory memory, FILE *out)
{
	struct search s = { .m = m, .memory = memory, .out = out };
	struct state st;

	memset(&st, 0, sizeof(st));
	for (uint32_t w = 0; w < MC_WORDS; w++) {
		st.word[w] = m->start[w];
		st.nvalue[w] = memory == MC_C11;
		st.history[w][0].value = memory == MC_C11 ? m->start[w] : 0;
	}
	mc_states_begin(&s.seen, STATES_MAX);
	for (uint32_t i = 0; i < m->nthread; i++)
		run_local(&m->thread[i], &st, i);
	weak_visit(&s, &st, 0);
	mc_states_end(&s.seen);
	return s.result;
}
