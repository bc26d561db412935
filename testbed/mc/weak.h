/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weak.h - explores every run of a few threads on weakly ordered memory.
 *
 * A model is a few short programs over a few small words: loads, stores, exchanges, futexes. The
 * explorer tries every order of their steps, and for each load every value that the memory permits.
 * A run is bad if a check fails, or if no step is possible while a thread sleeps or waits. There
 * are two memories:
 *
 * MC_TSO  x86: a store waits in its thread's buffer, first in first out, and later loads of the
 *         thread may pass it. Read-modify-writes, sequentially consistent stores and system calls
 *         wait until the buffer is empty.
 * MC_C11  permits everything that C11 permits with release, acquire and sequentially consistent
 *         accesses, and more. A store may reach another thread arbitrarily late, unless an acquire
 *         or the coherence of its word forbids that. In the order of the stores to a word, a store
 *         may come before older stores of other threads. A relaxed load may change places with the
 *         next access. Sequential consistency means only this: a SEQ_CST load sees the last SEQ_CST
 *         store to its word. System calls order only the futex word: a FUTEX_WAIT after a
 *         FUTEX_WAKE sees the value that the word had at the FUTEX_WAKE, or a later value.
 *
 * There are no spurious wake-ups and no timeouts, because they would hide a lost wake-up.
 */
#ifndef TESTBED_MC_WEAK_H
#define TESTBED_MC_WEAK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum mc_memory { MC_TSO, MC_C11, MC_MEMORIES };

enum mc_order { MC_RELAXED, MC_ACQUIRE, MC_RELEASE, MC_ACQ_REL, MC_SEQ_CST };

enum mc_op {
	MC_LOAD,
	MC_AWAIT, /* repeats a load until the value differs from the register `with` */
	MC_STORE,
	MC_EXCHANGE,
	MC_ADD,
	MC_OR,
	MC_LOCK,  /* waits until the word is 0, and exchanges it for 1 */
	MC_SLEEP, /* FUTEX_WAIT: sleeps if the masked word still equals the register `with` */
	MC_WAKE,  /* FUTEX_WAKE: wakes all threads */
	MC_SET,
	MC_COPY,
	MC_IF, /* jumps if the masked register equals the value */
	MC_IF_SAME,
	MC_GOTO,
	MC_CHECK,
	MC_END
};

#define MC_THREADS 4u
#define MC_WORDS 10u
#define MC_STEPS 80u
#define MC_REGS 5u /* register 0 keeps its value only until the next access */
#define MC_LABELS 24u

struct mc_step {
	const char *name; /* the function that the step models */
	enum mc_op op;
	enum mc_order order;
	uint8_t word, reg, with, value, mask, to;
};

struct mc_thread {
	const char *name;
	bool forever; /* the thread may wait in MC_AWAIT at the end of a run */
	uint8_t nstep, label[MC_LABELS];
	struct mc_step step[MC_STEPS];
};

struct mc_model {
	const char *word[MC_WORDS]; /* names; NULL: none */
	uint8_t start[MC_WORDS];    /* values */
	struct mc_thread thread[MC_THREADS];
	uint8_t nthread;
};

/* Writing a model: each call adds a step to the last thread. */
struct mc_thread *mc_thread(struct mc_model *m, const char *name);
void mc_load(struct mc_thread *t, const char *name, uint8_t reg, uint8_t word, enum mc_order order);
void mc_await(struct mc_thread *t, const char *name, uint8_t reg, uint8_t word, uint8_t with,
	      enum mc_order order);
void mc_store(struct mc_thread *t, const char *name, uint8_t word, uint8_t value,
	      enum mc_order order);
/* MC_EXCHANGE, MC_ADD, MC_OR or MC_LOCK. The register `reg` gets the old value of the word. */
void mc_change(struct mc_thread *t, const char *name, enum mc_op op, uint8_t reg, uint8_t word,
	       uint8_t value, enum mc_order order);
void mc_sleep(struct mc_thread *t, uint8_t word, uint8_t seen, uint8_t mask);
void mc_wake(struct mc_thread *t, uint8_t word);
void mc_set(struct mc_thread *t, uint8_t reg, uint8_t value);
void mc_copy(struct mc_thread *t, uint8_t reg, uint8_t with);
void mc_if(struct mc_thread *t, uint8_t reg, uint8_t mask, uint8_t value, uint8_t label);
void mc_if_same(struct mc_thread *t, uint8_t reg, uint8_t with, uint8_t label);
void mc_goto(struct mc_thread *t, uint8_t label);
void mc_check(struct mc_thread *t, uint8_t reg, uint8_t value);
void mc_label(struct mc_thread *t, uint8_t label);

struct mc_result {
	uint64_t states;
	uint64_t cut; /* runs not explored to their end: too many steps, or values of a word */
	bool bad;
};

/* Explores all runs. Stops at a bad run, and prints the run to `out`. */
struct mc_result mc_explore(const struct mc_model *m, enum mc_memory memory, FILE *out);

#endif
