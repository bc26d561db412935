/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.c - writing a model, step by step. Called by wait_models.c.
 */
#include <stdlib.h>

#include "weak.h"

struct mc_thread *mc_thread(struct mc_model *m, const char *name)
{
	struct mc_thread *t = &m->thread[m->nthread++];

	t->name = name;
	t->step[0].op = MC_END;
	return t;
}

static void add(struct mc_thread *t, struct mc_step step)
{
	if (t->nstep + 2u > MC_STEPS) {
		fprintf(stderr, "thread %s has too many steps\n", t->name);
		exit(2);
	}
	t->step[t->nstep++] = step;
	t->step[t->nstep] = (struct mc_step){ .op = MC_END };
}

void mc_load(struct mc_thread *t, const char *name, uint8_t reg, uint8_t word, enum mc_order order)
{
	add(t, (struct mc_step){
		       .name = name, .op = MC_LOAD, .order = order, .word = word, .reg = reg });
}

void mc_await(struct mc_thread *t, const char *name, uint8_t reg, uint8_t word, uint8_t with,
	      enum mc_order order)
{
	add(t, (struct mc_step){ .name = name,
				 .op = MC_AWAIT,
				 .order = order,
				 .word = word,
				 .reg = reg,
				 .with = with });
}

void mc_store(struct mc_thread *t, const char *name, uint8_t word, uint8_t value,
	      enum mc_order order)
{
	add(t,
	    (struct mc_step){
		    .name = name, .op = MC_STORE, .order = order, .word = word, .value = value });
}

void mc_change(struct mc_thread *t, const char *name, enum mc_op op, uint8_t reg, uint8_t word,
	       uint8_t value, enum mc_order order)
{
	add(t, (struct mc_step){ .name = name,
				 .op = op,
				 .order = order,
				 .word = word,
				 .reg = reg,
				 .value = value });
}

void mc_sleep(struct mc_thread *t, uint8_t word, uint8_t seen, uint8_t mask)
{
	add(t, (struct mc_step){ .name = "FUTEX_WAIT",
				 .op = MC_SLEEP,
				 .word = word,
				 .with = seen,
				 .mask = mask });
}

void mc_wake(struct mc_thread *t, uint8_t word)
{
	add(t, (struct mc_step){ .name = "FUTEX_WAKE", .op = MC_WAKE, .word = word });
}

void mc_set(struct mc_thread *t, uint8_t reg, uint8_t value)
{
	add(t, (struct mc_step){ .op = MC_SET, .reg = reg, .value = value });
}

void mc_copy(struct mc_thread *t, uint8_t reg, uint8_t with)
{
	add(t, (struct mc_step){ .op = MC_COPY, .reg = reg, .with = with });
}

void mc_if(struct mc_thread *t, uint8_t reg, uint8_t mask, uint8_t value, uint8_t label)
{
	add(t,
	    (struct mc_step){ .op = MC_IF, .reg = reg, .mask = mask, .value = value, .to = label });
}

void mc_if_same(struct mc_thread *t, uint8_t reg, uint8_t with, uint8_t label)
{
	add(t, (struct mc_step){ .op = MC_IF_SAME, .reg = reg, .with = with, .to = label });
}

void mc_goto(struct mc_thread *t, uint8_t label)
{
	add(t, (struct mc_step){ .op = MC_GOTO, .to = label });
}

void mc_check(struct mc_thread *t, uint8_t reg, uint8_t value)
{
	add(t, (struct mc_step){ .op = MC_CHECK, .reg = reg, .value = value });
}

void mc_label(struct mc_thread *t, uint8_t label)
{
	t->label[label] = t->nstep;
}
