/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weak_internal.h - what the search (weak.c) and the memories (weak_tso.c, weak_c11.c) share.
 *
 * A memory makes all steps that a thread can make in a state, and passes each new state to
 * weak_follow or weak_visit. Memory C11 keeps a history of values for each word. Each thread and
 * each released value has a view: for each word, the oldest value that the thread may still read.
 */
#ifndef TESTBED_MC_WEAK_INTERNAL_H
#define TESTBED_MC_WEAK_INTERNAL_H

#include "states.h"
#include "weak.h"

#define VALUES 32u /* in the history of a word; a run that needs more is cut, and counted */
#define BUFFER 6u
#define DEPTH 400u

struct value {
	uint8_t value;
	uint8_t glued; /* written by a read-modify-write: no value may be inserted before it */
	uint8_t view[MC_WORDS];
};

struct state {
	uint8_t pc[MC_THREADS], reg[MC_THREADS][MC_REGS];
	uint8_t asleep[MC_THREADS];  /* word on which the thread sleeps, + 1; 0: it is awake */
	uint8_t swapped[MC_THREADS]; /* step of a load that runs after its successor, + 1; 0: none
				      */
	/* MC_TSO: memory, and the store buffers */
	uint8_t word[MC_WORDS], nbuffer[MC_THREADS], buffer[MC_THREADS][BUFFER][2];
	/* MC_C11 */
	uint8_t view[MC_THREADS][MC_WORDS];
	/* The oldest values that a SEQ_CST load and a FUTEX_WAIT may read. */
	uint8_t last_sc[MC_WORDS], woken[MC_WORDS];
	uint8_t nvalue[MC_WORDS];
	struct value history[MC_WORDS][VALUES];
};

struct said {
	const struct mc_step *step; /* NULL: a store reaches memory */
	uint8_t thread, word, value;
	bool old;
};

struct search {
	const struct mc_model *m;
	enum mc_memory memory;
	FILE *out;
	struct mc_result result;
	const char *verdict;
	struct mc_states seen;
	struct said path[DEPTH];
};

/* All functions below return false if a bad run was found. */
bool weak_visit(struct search *s, const struct state *st, uint32_t depth);

/* Goes on after a step of a thread. */
bool weak_follow(struct search *s, struct state *st, uint32_t me, struct said said, uint32_t depth);

/* A store that waits in a buffer reaches memory. */
bool weak_tso_flush(struct search *s, const struct state *from, uint32_t me, uint32_t depth);

/* *moved: set if the thread could make a step. */
bool weak_tso_step(struct search *s, const struct state *from, uint32_t me, uint32_t depth,
		   bool *moved);
bool weak_c11_step(struct search *s, const struct state *from, uint32_t me, uint32_t depth,
		   bool *moved);

/* Forgets values that no thread can read any more. */
void weak_c11_tidy(const struct mc_model *m, struct state *st);

void weak_wake_all(struct search *s, struct state *st, uint32_t word);

static inline bool is_change(enum mc_op op)
{
	return op == MC_EXCHANGE || op == MC_ADD || op == MC_OR || op == MC_LOCK;
}

static inline uint8_t changed(const struct mc_step *p, uint8_t was)
{
	if (p->op == MC_ADD)
		return (uint8_t)(was + p->value);
	return p->op == MC_OR ? was | p->value : p->value;
}

#endif
