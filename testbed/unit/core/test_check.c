/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_check.c - nbfw_check finds each violation of the invariants I1 to I8: the test takes a
 * valid state and violates each invariant in it.
 */
#include "engine.h"
#include "group_plans.h"

#define ALG "dissemination:3" /* among 16 ranks: two steps of three slots */
#define SIZE 16u

static struct group_plans set;
static const struct nbar_plan *plan;
static struct nbfw_state *s;

static void token(uint32_t slot)
{
	struct nbfw_event ev = { .type = NBFW_EV_TOKEN };
	struct nbfw_action a;

	ev.token.type = NBFW_TOKEN;
	ev.token.epoch = s->epoch;
	ev.token.slot = slot;
	ev.token.src = nbfw_plan_recvs(plan)[slot].src;
	nbfw_step(s, plan, &ev, &a);
	assert_int_equal(a.verdict, NBFW_USED);
}

/* A member in the second step of barrier 8: it has the first token of this step, but not the second
 * token. */
static void running(void)
{
	struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbfw_action a;

	nbfw_init(s, plan, 7);
	nbfw_step(s, plan, &start, &a);
	for (uint32_t slot = 0; slot < 4; slot++)
		token(slot);
	assert_int_equal(s->step, 1);
	assert_int_equal(s->want, 4);
	assert_int_equal(nbfw_check(s, plan), 0);
}

/* A member between two barriers: barrier 8 is complete. */
static void completed(void)
{
	running();
	token(4);
	token(5);
	assert_false(s->running);
	assert_int_equal(nbfw_check(s, plan), 0);
}

#define BROKEN(number, state, statement)                       \
	do {                                                   \
		state();                                       \
		statement;                                     \
		assert_int_equal(nbfw_check(s, plan), number); \
	} while (0)

static void sizes(void **unused)
{
	BROKEN(1, running, s->running = 2);
	BROKEN(1, running, s->words = 0);
	BROKEN(1, completed, s->words = 2);
}

static void where_a_member_stands(void **unused)
{
	BROKEN(2, running, s->step = (uint16_t)plan->nstep);
	BROKEN(2, running, s->want = 2);
	BROKEN(2, running, s->want = 6);
	BROKEN(2, running, s->bits[0] |= 1u << 4);
	BROKEN(2, running, s->step = 0);
	BROKEN(3, running, s->bits[0] &= ~1u);
	BROKEN(3, running, s->bits[0] &= ~(1u << 3));
}

static void tokens(void **unused)
{
	BROKEN(4, completed, s->bits[0] |= 1);
	BROKEN(0, completed, s->bits[1] |= 1); /* of the next barrier */
	BROKEN(5, completed, s->bits[1] |= 1u << 6);
	BROKEN(5, running, s->bits[0] |= 1u << 31);
	BROKEN(5, running, s->bits[2] |= 1u << 6);
}

static void failures(void **unused)
{
	BROKEN(6, running, s->cause = NBAR_STATUS_END);
	BROKEN(6, completed, s->cause = NBAR_STATUS_END; s->failed_rank = 3);
	BROKEN(0, completed, s->cause = NBAR_STATUS_END - 1; s->failed_rank = 3);
	BROKEN(6, running, s->cause = NBAR_STATUS_OK + 1);
	BROKEN(6, completed, s->failed_rank = 3);
	BROKEN(6, completed, s->cause = NBAR_STATUS_OK + 1; s->failed_rank = SIZE);
	BROKEN(0, completed, s->cause = NBAR_STATUS_OK + 1; s->failed_rank = SIZE - 1);
}

static void tries_and_stragglers(void **unused)
{
	BROKEN(7, running, s->tries = 2 * NBFW_WINDOW);
	BROKEN(7, completed, s->tries = 1);
	BROKEN(0, running, s->tries = 2 * NBFW_WINDOW - 1);
	BROKEN(8, running, s->straggler = SIZE);
	BROKEN(8, running, s->straggler = plan->rank);
	BROKEN(8, completed, s->straggler = (plan->rank + 1) % SIZE);
	BROKEN(0, running, s->straggler = SIZE - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(sizes),    UNIT(where_a_member_stands), UNIT(tokens),
		UNIT(failures), UNIT(tries_and_stragglers),
	};
	struct nbfw_alg alg;
	int rc;

	require(nbfw_alg_parse(ALG, &alg) == 0, "no " ALG);
	set = group_plans_generate(alg, SIZE);
	plan = set.plan[5];
	require(plan->nrecv == 6 && plan->nstep == 2, ALG " is no longer two steps of three slots");
	s = malloc(nbfw_state_size(plan));
	require(s != NULL, "no memory");
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	free(s);
	group_plans_free(&set);
	return rc;
}
