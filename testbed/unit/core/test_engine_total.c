/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_engine_total.c - no event in any state can violate an invariant: random members, random
 * events.
 */
#include "engine.h"
#include "group_plans.h"

/* A copy of a plan, with no memory behind it. */
static const struct nbar_plan *plan_at_end(const struct nbar_plan *plan)
{
	const size_t length = (size_t)nbfw_plan_length(plan);

	return memcpy(group_plans_at_end(0, length), plan, length);
}

/* A random event. Half of these events are close to events that a correct peer causes. */
static struct nbfw_event random_event(struct rng *rng, const struct nbfw_state *s,
				      const struct nbar_plan *p)
{
	struct nbfw_event ev = { .type = NBFW_EV_TOKEN, .cause = (uint8_t)rng_below(rng, 7) };
	struct nbfw_token *t = &ev.token;
	uint32_t kind = rng_below(rng, 1000);

	if (kind < 150)
		ev.type = NBFW_EV_START;
	else if (kind < 190)
		ev.type = NBFW_EV_TIMEOUT;
	else if (kind < 191)
		ev.type = NBFW_EV_LEAVE;
	else if (kind < 195)
		ev.type = (enum nbfw_event_type)rng_below(rng, 9);
	t->type = (uint8_t)(kind < 700 ? NBFW_TOKEN : rng_below(rng, 8));
	if (t->type == NBFW_ABORT && rng_percent(rng, 95))
		t->type = NBFW_LATER;
	t->epoch = s->epoch + rng_below(rng, 6) - 2;
	t->slot = rng_below(rng, p->nrecv + 1);
	t->src = t->slot < p->nrecv ? nbfw_plan_recvs(p)[t->slot].src : 0;
	if (t->type == NBFW_PULL && p->nsend) {
		const struct nbar_send *send = &nbfw_plan_sends(p)[rng_below(rng, p->nsend)];

		t->src = send->dst;
		t->slot = send->slot;
	}
	t->arg = rng_below(rng, p->size + 1);
	t->info = rng_below(rng, 7);
	if (rng_percent(rng, 10))
		t->word[rng_below(rng, 5)] = (uint32_t)rng_next(rng);
	if (rng_percent(rng, 5))
		t->src = (uint32_t)rng_next(rng);
	return ev;
}

/* The test's own record of a member: how often its host has arrived, and which tokens it got. */
struct onlooker {
	uint32_t base, nstart, ndone, nfail;
	uint8_t *got; /* [barrier % 4][slot] */
};

/* Gives a member one event, and checks the actions. */
static void look_on(struct onlooker *o, struct nbfw_state *s, const struct nbar_plan *p,
		    const struct nbfw_event *ev, unsigned long long seed)
{
	struct nbfw_state *was = malloc(nbfw_state_size(p));
	const struct nbfw_token *t = &ev->token;
	uint32_t nth = t->epoch - o->base;
	struct nbfw_action a;

	memcpy(was, s, nbfw_state_size(p));
	if (ev->type == NBFW_EV_TOKEN && t->type == NBFW_TOKEN && t->slot < p->nrecv &&
	    t->src == nbfw_plan_recvs(p)[t->slot].src && nth - o->ndone - 1 < 2)
		o->got[nth % 4 * p->nrecv + t->slot] = 1;
	memset(&a, 0xff, sizeof(a)); /* the engine must write all of it */
	nbfw_step(s, p, ev, &a);
	require(nbfw_check(s, p) == 0, "invariant %d, NBAR_SEED=%llu", nbfw_check(s, p), seed);
	require(a.send_first <= a.send_end && a.send_end <= p->nsend, "NBAR_SEED=%llu", seed);
	require(a.pull_first <= a.pull_end && a.pull_end <= p->nrecv, "NBAR_SEED=%llu", seed);
	/* The first slot that it asks for is the first one that it waits for. */
	require(a.pull_end == 0 || a.pull_first == s->want, "NBAR_SEED=%llu", seed);
	require(a.reply == 0 || a.reply == NBFW_TOKEN || a.reply == NBFW_LATER ||
			a.reply == NBFW_ABORT,
		"NBAR_SEED=%llu", seed);
	if (a.timer == NBFW_KEEP)
		require(!a.complete && !a.failed && a.send_first == a.send_end &&
				a.pull_first == a.pull_end,
			"NBAR_SEED=%llu", seed);
	if (a.verdict == NBFW_BAD)
		require(!memcmp(was, s, nbfw_state_size(p)), "NBAR_SEED=%llu", seed);
	if (ev->type == NBFW_EV_START && a.verdict == NBFW_USED)
		o->nstart++;
	o->nfail += a.failed;
	require(o->nfail <= 1 && (s->cause != 0) == (o->nfail == 1), "NBAR_SEED=%llu", seed);
	require(s->epoch == o->base + o->nstart, "NBAR_SEED=%llu", seed);
	if (a.complete) {
		uint8_t *got = o->got + ++o->ndone % 4 * p->nrecv;

		require(o->ndone == o->nstart && !o->nfail, "NBAR_SEED=%llu", seed);
		for (uint32_t i = 0; i < p->nrecv; i++)
			require(got[i], "barrier %u without slot %u, NBAR_SEED=%llu", o->ndone, i,
				seed);
		memset(got, 0, p->nrecv);
	}
	free(was);
}

/* Any event in any state: no invariant is violated, nothing completes early, a failure is reported
 * once, and no word beyond the plan is read. */
static void test_total(void **state)
{
	uint32_t done = 0, failed = 0;

	for (uint64_t seed = unit_seed(), last = seed + 3000; seed != last; seed++) {
		struct rng rng = { seed };
		uint32_t size = 1 + rng_below(&rng, 21);
		struct group_plans set =
			rng_percent(&rng, 20) ? group_plans_random(2 + size % 5, &rng)
					      : group_plans_generate(group_plans_any(&rng), size);
		const struct nbar_plan *p = plan_at_end(set.plan[rng_below(&rng, set.size)]);
		struct onlooker o = { .base = (uint32_t)rng_next(&rng) };
		struct nbfw_state *s = group_plans_at_end(1, nbfw_state_size(p));

		if (rng_percent(&rng, 30))
			o.base = UINT32_MAX - rng_below(&rng, 4);
		o.got = calloc(4, p->nrecv + 1);
		nbfw_init(s, p, o.base);
		for (uint32_t i = 0; i < 400; i++) {
			struct nbfw_event ev = random_event(&rng, s, p);

			look_on(&o, s, p, &ev, (unsigned long long)seed);
		}
		done += o.ndone;
		failed += o.nfail;
		free(o.got);
		group_plans_free(&set);
	}
	/* Completions and failures must both happen often, or the test would show nothing. */
	require(done > 10000 && failed > 500, "%u completed, %u failed", done, failed);
}

#define SLOTS 128u /* all bits of the last word have a slot */

/* Searches slot by slot. Returns the lowest slot of [first, end) that is missing, and whose source
 * was heard (want: true) or not heard. */
static uint32_t slow_next(const bool *missing, const bool *heard, uint32_t first, uint32_t end,
			  bool want)
{
	while (first < end && !(missing[first] && heard[first] == want))
		first++;
	return first;
}

/* The search for missing slots looks at words of 32 slots. For every range it finds the same slot
 * as a search slot by slot. */
static void test_missing_slots(void **state)
{
	struct group_plans set =
		group_plans_generate((struct nbfw_alg){ NBFW_ALG_LINEAR, 0 }, SLOTS + 1);
	const struct nbar_plan *p = set.plan[0];
	struct nbfw_state *s = group_plans_at_end(1, nbfw_state_size(p));
	struct nbfw_event ev = { .type = NBFW_EV_START };
	struct rng rng = { unit_seed() };
	bool missing[SLOTS], heard[SLOTS];
	struct nbfw_action a;
	uint32_t n = SLOTS;

	nbfw_init(s, p, 7);
	assert_int_equal(nbfw_missing_count(s, p), 0);
	nbfw_step(s, p, &ev, &a);
	ev.type = NBFW_EV_TOKEN;
	ev.token = (struct nbfw_token){ .type = NBFW_TOKEN, .epoch = 8 };
	for (uint32_t i = 0; i < SLOTS; i++) {
		missing[i] = i < 3 || rng_percent(&rng, 60);
		heard[i] = missing[i] && rng_percent(&rng, 50);
		ev.token.slot = i;
		ev.token.src = nbfw_plan_recvs(p)[i].src;
		if (!missing[i])
			nbfw_step(s, p, &ev, &a);
		if (heard[i])
			nbfw_hear(s, p, i);
		n -= !missing[i];
		assert_int_equal(nbfw_missing(s, p, i), missing[i]);
		assert_int_equal(nbfw_missing_count(s, p), n);
	}
	for (uint32_t first = 0; first <= SLOTS; first++)
		for (uint32_t end = first; end <= SLOTS; end++)
			for (uint32_t want = 0; want < 2; want++)
				require(nbfw_missing_next(s, first, end, want) ==
						slow_next(missing, heard, first, end, want),
					"%u to %u", first, end);
	group_plans_free(&set);
}

/* A step of any number of slots: each token lowers the number of missing slots by one. */
static void test_missing_count(void **state)
{
	for (uint32_t slots = 1; slots <= SLOTS; slots++) {
		struct group_plans set =
			group_plans_generate((struct nbfw_alg){ NBFW_ALG_LINEAR, 0 }, slots + 1);
		const struct nbar_plan *p = set.plan[0];
		struct nbfw_state *s = group_plans_at_end(1, nbfw_state_size(p));
		struct nbfw_event ev = { .type = NBFW_EV_START };
		struct nbfw_action a;

		nbfw_init(s, p, 0);
		nbfw_step(s, p, &ev, &a);
		ev.type = NBFW_EV_TOKEN;
		for (uint32_t i = 0; i < slots; i++) {
			require(nbfw_missing_count(s, p) == slots - i, "%u of %u", i, slots);
			ev.token = (struct nbfw_token){ .type = NBFW_TOKEN,
							.src = nbfw_plan_recvs(p)[i].src,
							.epoch = 1,
							.slot = i };
			nbfw_step(s, p, &ev, &a);
		}
		assert_true(a.complete);
		assert_int_equal(nbfw_missing_count(s, p), 0);
		group_plans_free(&set);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_total), UNIT(test_missing_slots), UNIT(test_missing_count))
