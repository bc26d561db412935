/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weak_c11.c - the memory of C11: a history for each word, and views. Called by weak.c.
 */
#include <string.h>

#include "weak_internal.h"

static bool acquires(enum mc_order o)
{
	return o == MC_ACQUIRE || o == MC_ACQ_REL || o == MC_SEQ_CST;
}

static bool releases(enum mc_order o)
{
	return o == MC_RELEASE || o == MC_ACQ_REL || o == MC_SEQ_CST;
}

static void join(uint8_t *view, const uint8_t *with)
{
	for (uint32_t i = 0; i < MC_WORDS; i++)
		if (view[i] < with[i])
			view[i] = with[i];
}

static void move_up(uint8_t *at, uint32_t from)
{
	if (*at >= from)
		++*at;
}

/* Makes room in the history of a word for value number `at`. */
static void insert(struct search *s, struct state *st, uint8_t word, uint32_t at)
{
	struct value *h = st->history[word];

	memmove(&h[at + 1], &h[at], (st->nvalue[word]++ - at) * sizeof(*h));
	memset(&h[at], 0, sizeof(*h));
	for (uint32_t w = 0; w < MC_WORDS; w++)
		for (uint32_t i = 0; i < st->nvalue[w]; i++)
			move_up(&st->history[w][i].view[word], at);
	for (uint32_t t = 0; t < s->m->nthread; t++)
		move_up(&st->view[t][word], at);
	move_up(&st->last_sc[word], at);
	move_up(&st->woken[word], at);
}

/* Writes value number `at`. A read-modify-write also releases all writes that value number `at` - 1
 * released. */
static void c11_write(struct search *s, struct state *st, uint32_t me, const struct mc_step *p,
		      uint32_t at, uint8_t value)
{
	struct value *v = &st->history[p->word][at];

	insert(s, st, p->word, at);
	v->value = value;
	st->view[me][p->word] = (uint8_t)at;
	if (is_change(p->op)) {
		v->glued = 1;
		join(v->view, v[-1].view);
	}
	v->view[p->word] = (uint8_t)at;
	if (releases(p->order))
		join(v->view, st->view[me]);
	if (p->order == MC_SEQ_CST)
		st->last_sc[p->word] = (uint8_t)at;
}

/* The oldest value that a step may read. */
static uint32_t c11_floor(const struct state *st, uint32_t me, const struct mc_step *p)
{
	uint32_t floor = st->view[me][p->word];

	if (p->order == MC_SEQ_CST && floor < st->last_sc[p->word])
		floor = st->last_sc[p->word];
	if (p->op == MC_SLEEP && floor < st->woken[p->word])
		floor = st->woken[p->word];
	return floor;
}

/* Executes step p of a thread, which reads or writes value number `at`. */
static bool c11_access(struct search *s, const struct state *from, uint32_t me, uint8_t pc,
		       uint32_t at, uint32_t depth, bool *moved)
{
	const struct mc_step *p = &s->m->thread[me].step[pc];
	struct state st = *from;
	uint8_t *reg = st.reg[me], *view = st.view[me];
	const struct value *met = &st.history[p->word][at];
	struct said said = { .step = p, .word = p->word, .value = met->value };
	bool last = at + 1 == st.nvalue[p->word];

	if (p->op == MC_AWAIT && met->value == reg[p->with])
		return true;
	if (p->op == MC_LOCK && (met->value != 0 || !last))
		return true;
	if ((p->op == MC_STORE || is_change(p->op)) && !last && met[1].glued)
		return true;
	*moved = true;
	if (p->op == MC_LOAD || p->op == MC_AWAIT || is_change(p->op)) {
		reg[p->reg] = met->value;
		view[p->word] = (uint8_t)at;
		if (acquires(p->order))
			join(view, met->view);
		said.old = !last;
	}
	if (p->op == MC_STORE || is_change(p->op)) {
		if (st.nvalue[p->word] == VALUES) {
			s->result.cut++;
			return true;
		}
		said.value = changed(p, met->value);
		c11_write(s, &st, me, p, at + 1, said.value);
	}
	if (p->op == MC_SLEEP)
		view[p->word] = (uint8_t)at; /* the kernel reads it for this thread */
	if (p->op == MC_SLEEP && (met->value & p->mask) == (reg[p->with] & p->mask)) {
		said.old = true;
		st.asleep[me] = (uint8_t)(p->word + 1);
		st.pc[me]--;
	}
	return weak_follow(s, &st, me, said, depth);
}

/* Tries all values that step pc may read. The thread continues at its pc, which is already set. */
static bool c11_choices(struct search *s, const struct state *st, uint32_t me, uint8_t pc,
			uint32_t depth, bool *moved)
{
	const struct mc_step *p = &s->m->thread[me].step[pc];

	for (uint32_t at = c11_floor(st, me, p); at < st->nvalue[p->word]; at++)
		if (!c11_access(s, st, me, pc, at, depth, moved))
			return false;
	return true;
}

/* A relaxed load may come after the access that follows it. */
static bool may_swap(const struct mc_step *p)
{
	const struct mc_step *next = p + 1;
	bool access = next->op == MC_LOAD || next->op == MC_STORE || is_change(next->op);

	return p->op == MC_LOAD && p->order == MC_RELAXED && access && next->word != p->word &&
	       !releases(next->order);
}

bool weak_c11_step(struct search *s, const struct state *from, uint32_t me, uint32_t depth,
		   bool *moved)
{
	const struct mc_step *p = &s->m->thread[me].step[from->pc[me]];
	struct state st = *from;
	uint8_t pc = st.pc[me];

	if (st.swapped[me]) {
		pc = (uint8_t)(st.swapped[me] - 1);
		st.swapped[me] = 0;
		return c11_choices(s, &st, me, pc, depth, moved);
	}
	st.pc[me]++;
	if (p->op == MC_WAKE) {
		*moved = true;
		if (st.woken[p->word] < st.view[me][p->word])
			st.woken[p->word] = st.view[me][p->word];
		weak_wake_all(s, &st, p->word);
		return weak_follow(s, &st, me, (struct said){ .step = p, .word = p->word }, depth);
	}
	if (!c11_choices(s, &st, me, pc, depth, moved))
		return false;
	if (!may_swap(p))
		return true;
	st.swapped[me] = (uint8_t)(pc + 1);
	st.pc[me]++;
	return c11_choices(s, &st, me, (uint8_t)(pc + 1), depth, moved);
}

static void move_down(uint8_t *at, uint32_t by)
{
	*at = (uint8_t)(*at > by ? *at - by : 0);
}

/* Forgets values of a word that no thread can read any more. */
static void forget_values(const struct mc_model *m, struct state *st, uint8_t word)
{
	struct value *h = st->history[word];
	uint32_t least = st->nvalue[word] - 1u, left;

	for (uint32_t t = 0; t < m->nthread; t++)
		if (st->view[t][word] < least)
			least = st->view[t][word];
	if (least == 0)
		return;
	left = st->nvalue[word] - least;
	memmove(h, h + least, left * sizeof(*h));
	memset(h + left, 0, least * sizeof(*h));
	st->nvalue[word] = (uint8_t)left;
	h[0].glued = 0;
	for (uint32_t w = 0; w < MC_WORDS; w++)
		for (uint32_t i = 0; i < st->nvalue[w]; i++)
			move_down(&st->history[w][i].view[word], least);
	for (uint32_t t = 0; t < m->nthread; t++)
		move_down(&st->view[t][word], least);
	move_down(&st->last_sc[word], least);
	move_down(&st->woken[word], least);
}

void weak_c11_tidy(const struct mc_model *m, struct state *st)
{
	for (uint8_t w = 0; w < MC_WORDS; w++)
		if (st->nvalue[w] > 1)
			forget_values(m, st, w);
}
