/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * litmus.c - tests the explorer with small programs from the literature. For each program, the
 * literature says whether an outcome is possible on each of the two memories.
 *
 * wait.c calls these tests first: a check of a protocol on a wrong memory proves nothing.
 */
#include <string.h>

#include "wait.h"

enum { R, SUM };
enum { X, Y, BAD };
enum { END };

/* Each of `n` reading threads calls this function when it has found its value. The outcome is
 * possible if all threads can call it in one run: then the check of the last thread fails. */
static void outcome(struct mc_thread *t, uint8_t n)
{
	mc_change(t, "outcome", MC_ADD, R, BAD, 1, MC_RELAXED);
	mc_if(t, R, 0xff, (uint8_t)(n - 1), END + 1);
	mc_goto(t, END);
	mc_label(t, END + 1);
	mc_set(t, R, 1);
	mc_check(t, R, 0);
	mc_label(t, END);
}

/* Loads a word; the thread ends if the word does not have this value. */
static void found(struct mc_thread *t, uint8_t word, uint8_t value, enum mc_order order,
		  uint8_t label)
{
	mc_load(t, "load", R, word, order);
	mc_if(t, R, 0xff, value, label);
	mc_goto(t, END);
	mc_label(t, label);
}

/* Store buffering: each thread stores, and then does not see the store of the other thread. */
static void sb(struct mc_model *m, enum mc_order store, enum mc_order load)
{
	for (uint8_t i = 0; i < 2; i++) {
		struct mc_thread *t = mc_thread(m, i ? "B" : "A");

		mc_store(t, "store", X + i, 1, store);
		found(t, Y - i, 0, load, END + 2);
		outcome(t, 2);
	}
}

/* Message passing: a thread sees the flag, but not the message. */
static void mp(struct mc_model *m, enum mc_order store, enum mc_order load)
{
	struct mc_thread *t = mc_thread(m, "A");

	mc_store(t, "store", X, 1, MC_RELAXED);
	mc_store(t, "store", Y, 1, store);
	t = mc_thread(m, "B");
	found(t, Y, 1, load, END + 2);
	found(t, X, 0, MC_RELAXED, END + 3);
	outcome(t, 1);
}

/* Load buffering: each thread reads what the other stores afterwards. */
static void lb(struct mc_model *m, enum mc_order store, enum mc_order load)
{
	for (uint8_t i = 0; i < 2; i++) {
		struct mc_thread *t = mc_thread(m, i ? "B" : "A");

		mc_load(t, "load", SUM, X + i, load);
		mc_store(t, "store", Y - i, 1, store);
		mc_if(t, SUM, 0xff, 0, END);
		outcome(t, 2);
	}
}

/* Both threads store to both words, in opposite order: the first store of each thread stays. */
static void two_stores(struct mc_model *m, enum mc_order store, enum mc_order load)
{
	for (uint8_t i = 0; i < 2; i++) {
		struct mc_thread *t = mc_thread(m, i ? "B" : "A");

		mc_store(t, "store", X + i, 1, store);
		mc_store(t, "store", Y - i, 2, store);
		found(t, Y - i, 1, load, END + 2);
		outcome(t, 2);
	}
}

/* Coherence: a thread reads one word twice, and the second value is older. */
static void corr(struct mc_model *m, enum mc_order store, enum mc_order load)
{
	struct mc_thread *t = mc_thread(m, "A");

	mc_store(t, "store", X, 1, store);
	t = mc_thread(m, "B");
	found(t, X, 1, load, END + 2);
	found(t, X, 0, load, END + 3);
	outcome(t, 1);
}

/* Independent reads of independent writes: two readers see two stores in opposite order. */
static void iriw(struct mc_model *m, enum mc_order store, enum mc_order load)
{
	for (uint8_t i = 0; i < 2; i++)
		mc_store(mc_thread(m, i ? "B" : "A"), "store", X + i, 1, store);
	for (uint8_t i = 0; i < 2; i++) {
		struct mc_thread *t = mc_thread(m, i ? "D" : "C");

		found(t, X + i, 1, load, END + 2);
		found(t, Y - i, 0, load, END + 3);
		outcome(t, 2);
	}
}

static const struct {
	const char *name;
	void (*build)(struct mc_model *m, enum mc_order store, enum mc_order load);
	enum mc_order store, load;
	bool possible[MC_MEMORIES];
} tests[] = {
	{ "SB relaxed", sb, MC_RELAXED, MC_RELAXED, { true, true } },
	{ "SB release, acquire", sb, MC_RELEASE, MC_ACQUIRE, { true, true } },
	{ "SB SEQ_CST", sb, MC_SEQ_CST, MC_SEQ_CST, { false, false } },
	{ "SB, SEQ_CST loads alone", sb, MC_RELEASE, MC_SEQ_CST, { true, true } },
	{ "MP relaxed", mp, MC_RELAXED, MC_RELAXED, { false, true } },
	{ "MP release alone", mp, MC_RELEASE, MC_RELAXED, { false, true } },
	{ "MP release, acquire", mp, MC_RELEASE, MC_ACQUIRE, { false, false } },
	{ "LB relaxed", lb, MC_RELAXED, MC_RELAXED, { false, true } },
	{ "LB release", lb, MC_RELEASE, MC_RELAXED, { false, false } },
	{ "LB acquire", lb, MC_RELAXED, MC_ACQUIRE, { false, false } },
	{ "2+2W relaxed", two_stores, MC_RELAXED, MC_RELAXED, { false, true } },
	{ "2+2W SEQ_CST", two_stores, MC_SEQ_CST, MC_SEQ_CST, { false, false } },
	{ "CoRR relaxed", corr, MC_RELAXED, MC_RELAXED, { false, false } },
	{ "IRIW acquire", iriw, MC_RELEASE, MC_ACQUIRE, { false, true } },
	{ "IRIW SEQ_CST", iriw, MC_SEQ_CST, MC_SEQ_CST, { false, false } },
};

/* The name of the first test whose outcome the explorer judges wrongly, or NULL. */
const char *litmus_fails(enum mc_memory memory)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		static struct mc_model m;

		memset(&m, 0, sizeof(m));
		m.word[X] = "x";
		m.word[Y] = "y";
		m.word[BAD] = "outcome";
		tests[i].build(&m, tests[i].store, tests[i].load);
		if (mc_explore(&m, memory, NULL).bad != tests[i].possible[memory])
			return tests[i].name;
	}
	return NULL;
}
