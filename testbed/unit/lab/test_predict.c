/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_predict.c - predictions, compared with times that were computed by hand.
 */
#include <math.h>

#include "compose.h"
#include "unit/unit.h"

static const uint32_t host[] = { 0, 1, 2 };

/* O = 10, a call takes 2. */
static struct profile *profile_of_3(double l)
{
	struct profile *p = profile_new(3, 3);

	for (uint32_t i = 0; i < 9; i++) {
		p->o[i] = 10e-6;
		p->l[i] = l;
	}
	for (uint32_t i = 0; i < 3; i++)
		p->self[i] = 2e-6;
	return p;
}

/* What compose_flat predicts, in us. */
static double us_of(const char *name, const struct profile *p, enum predict_formula formula)
{
	struct nbfw_alg alg;
	struct predict out;

	assert_int_equal(nbfw_alg_parse(name, &alg), 0);
	assert_int_equal(compose_flat(alg, p, host, 3, formula, &out), 0);
	return out.all_s * 1e6;
}

static void takes(const char *name, const struct profile *p, double us)
{
	double is = us_of(name, p, PREDICT_FIRST);

	require(fabs(is - us) < 1e-6, "%s: %f", name, is);
}

/* Computed by hand, step by step: 3 equal members, O = 10, L = 1, a call takes 2. */
static void test_predicted_by_hand(void **state)
{
	static const struct {
		const char *alg;
		double us;
	} want[] = {
		/* two messages arrive at 11, and the second costs 1 more; two leave: 12 + 2 + 10,
		 * and a call */
		{ "linear", 26 },
		/* two rounds of one message */
		{ "dissemination:1", 24 },
		/* one round: the second message leaves 1 later, and is received at once */
		{ "dissemination:2", 14 },
	};
	struct profile *p = profile_of_3(1e-6);

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		takes(want[i].alg, p, want[i].us);
		assert_true(us_of(want[i].alg, p, PREDICT_WAITING) < want[i].us + 1e-6);
	}
	profile_free(p);
}

/* 3 members on one processor: it works on one message at a time. O = 10, L = 2, a call takes 2:
 * each end of a message takes 1 of work, and 10 pass between the ends. */
static void test_predicted_shared(void **state)
{
	static const struct {
		const char *alg;
		double us;
	} want[] = {
		/* sends end at 1 and 2; work at 11 and 12, 13; sends until 15; work at 24 and 25,
		 * 26; a call */
		{ "linear", 28 },
		/* six sends until 6; the work on the last message is at 16 */
		{ "dissemination:2", 19 },
	};
	struct profile *p = profile_of_3(2e-6);

	p->processor = calloc(3, sizeof(*p->processor));
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		takes(want[i].alg, p, want[i].us);
	/* A step of 1: entered at 1, 2 and 4; work on messages until 13 and 15, a step until 16,
	 * sends until 18; 9 pass between; work until 28; a call. */
	p->step = 1e-6;
	takes("linear", p, 30);
	p->step = 0;
	/* If each member has its own processor, the result is the same as without shared
	 * processors: two sends, O, and L for the second message. */
	for (uint32_t i = 0; i < 3; i++)
		p->processor[i] = i;
	takes("dissemination:2", p, 16);
	profile_free(p);
}

/* One message, from member 0 to member 1, on one processor; L = 6 from 0 to 1, and 2 back. */
static void test_one_message(void **state)
{
	struct signal signal = { 0, 0, 1, 0 };
	uint32_t next[] = { 1, 1 };
	struct schedule *s = schedule_new(&(struct pattern){ 2, next, &signal, 1, 1, NULL });
	struct profile *p = profile_of_3(2e-6);
	struct predict out;

	p->processor = calloc(3, sizeof(*p->processor));
	p->l[1] = 6e-6;
	p->o[3] = 1; /* back */
	/* Each end takes 3, 10 pass between, and a call takes 2. */
	assert_int_equal(predict_run(s, p, host, PREDICT_FIRST, &out), 0);
	assert_true(fabs(out.all_s - 18e-6) < 1e-12);
	/* A step takes longer than the message: that of the sender until 20, then 3 of the message,
	 * that of the receiver until 43, then 3 of the message, which has long been there. */
	p->step = 20e-6;
	assert_int_equal(predict_run(s, p, host, PREDICT_FIRST, &out), 0);
	assert_true(fabs(out.all_s - 48e-6) < 1e-12);
	schedule_free(s);
	profile_free(p);
}

UNIT_MAIN(NULL, NULL, UNIT(test_predicted_by_hand), UNIT(test_predicted_shared),
	  UNIT(test_one_message))
