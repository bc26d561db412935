/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weak_tso.c - the memory of x86: a buffer of stores for each thread. Called by weak.c.
 */
#include <string.h>

#include "weak_internal.h"

bool weak_tso_flush(struct search *s, const struct state *from, uint32_t me, uint32_t depth)
{
	struct state st = *from;
	struct said said = { .word = st.buffer[me][0][0], .value = st.buffer[me][0][1] };

	st.word[said.word] = said.value;
	st.nbuffer[me]--;
	memmove(st.buffer[me][0], st.buffer[me][1],
		sizeof(st.buffer[me]) - sizeof(st.buffer[me][0]));
	memset(st.buffer[me][BUFFER - 1], 0, sizeof(st.buffer[me][0]));
	s->path[depth] = said;
	s->path[depth].thread = (uint8_t)me;
	return weak_visit(s, &st, depth + 1);
}

static uint8_t tso_read(const struct state *st, uint32_t me, uint8_t word)
{
	for (uint32_t i = st->nbuffer[me]; i-- > 0;)
		if (st->buffer[me][i][0] == word)
			return st->buffer[me][i][1];
	return st->word[word];
}

/* *moved: set if the thread could make a step. */
bool weak_tso_step(struct search *s, const struct state *from, uint32_t me, uint32_t depth,
		   bool *moved)
{
	const struct mc_step *p = &s->m->thread[me].step[from->pc[me]];
	struct state st = *from;
	struct said said = { .step = p, .word = p->word };
	uint8_t was = tso_read(&st, me, p->word), *reg = st.reg[me];
	bool buffered = p->op == MC_STORE && p->order != MC_SEQ_CST;

	if (st.nbuffer[me] > 0 && p->op != MC_LOAD && p->op != MC_AWAIT && !buffered)
		return true;
	if (buffered && st.nbuffer[me] == BUFFER)
		return true;
	if ((p->op == MC_AWAIT && was == reg[p->with]) || (p->op == MC_LOCK && was != 0))
		return true;
	*moved = true;
	said.value = was;
	st.pc[me]++;
	if (buffered) {
		st.buffer[me][st.nbuffer[me]][0] = p->word;
		st.buffer[me][st.nbuffer[me]++][1] = said.value = p->value;
		said.old = true;
	} else if (p->op == MC_STORE || is_change(p->op)) {
		st.word[p->word] = said.value = changed(p, was);
	} else if (p->op == MC_WAKE) {
		weak_wake_all(s, &st, p->word);
	} else if (p->op == MC_SLEEP && (was & p->mask) == (reg[p->with] & p->mask)) {
		said.old = true;
		st.pc[me]--;
		st.asleep[me] = (uint8_t)(p->word + 1);
	}
	if (p->op == MC_LOAD || p->op == MC_AWAIT || is_change(p->op))
		reg[p->reg] = was;
	return weak_follow(s, &st, me, said, depth);
}
