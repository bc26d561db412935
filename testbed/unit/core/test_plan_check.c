/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_plan_check.c - uploaded plans: the check refuses bad ones, and an accepted one cannot make
 * the engine leave its memory.
 */
#include "engine.h"
#include "group_plans.h"

/* A plan with room for changes: rank 1 of 4, classic dissemination. */
struct sample {
	struct nbar_plan head;
	struct nbar_step step[2];
	struct nbar_send send[2];
	struct nbar_recv recv[2];
};

static struct sample sample(void)
{
	struct sample s;
	const struct nbfw_alg alg = { NBFW_ALG_DISSEMINATION, 1 };

	assert_int_equal(nbfw_plan_generate(alg, 4, 1, &s, sizeof(s)), sizeof(s));
	return s;
}

/* An access beyond the plan, or beyond the scratch memory, ends the test. */
static int check(const void *plan, size_t length)
{
	void *block = memcpy(group_plans_at_end(0, length), plan, length);
	uint64_t *scratch = group_plans_at_end(1, nbfw_plan_scratch(length) * sizeof(*scratch));
	const char *why = NULL;
	int rc = nbfw_plan_check(block, length, scratch, &why);

	if (rc)
		require(why && *why, "refused without a reason");
	return rc;
}

#define refuses(change, code)                                    \
	do {                                                     \
		struct sample s = sample();                      \
		change;                                          \
		assert_int_equal(check(&s, sizeof(s)), -(code)); \
	} while (0)

static void test_head(void **state)
{
	struct sample good = sample();
	uint32_t more[sizeof(good) / 4 + 1] = { 0 };

	memcpy(more, &good, sizeof(good));
	assert_int_equal(check(&good, sizeof(good)), 0);
	for (size_t length = 0; length < sizeof(good); length++)
		assert_int_equal(check(&good, length), -NBFW_EINVAL);
	assert_int_equal(check(more, sizeof(good) + 1), -NBFW_EINVAL);
	assert_int_equal(check(more, sizeof(more)), -NBFW_EINVAL);
	refuses(s.head.magic++, NBFW_EINVAL);
	refuses(s.head.size = 0, NBFW_EINVAL);
	refuses(s.head.rank = 4, NBFW_EINVAL);
	refuses(s.head.rank = UINT32_MAX, NBFW_EINVAL);
	refuses(s.head.size = NBAR_SIZE_MAX + 1, NBFW_ENOSPC);
	refuses(s.head.size = UINT32_MAX, NBFW_ENOSPC);
	refuses(s.head.nstep = NBAR_STEPS_MAX + 1, NBFW_ENOSPC);
	refuses(s.head.nsend = NBAR_SENDS_MAX + 1, NBFW_ENOSPC);
	refuses(s.head.nrecv = NBAR_SLOTS_MAX + 1, NBFW_ENOSPC);
	/* With these counts, a length computed in 32 bits would overflow to the right one. */
	refuses(s.head.nstep += UINT32_C(1) << 28, NBFW_ENOSPC);
	refuses(s.head.nsend += UINT32_C(1) << 29, NBFW_ENOSPC);
	refuses(s.head.nrecv += UINT32_C(1) << 30, NBFW_ENOSPC);
	/* The length is right, but the counts are not. */
	refuses((s.head.nsend++, s.head.nrecv -= 2), NBFW_EINVAL);
	refuses((s.head.nstep--, s.head.nsend += 2), NBFW_EINVAL);
}

static void test_steps(void **state)
{
	refuses(s.step[0].first_send = 1, NBFW_EINVAL);
	refuses(s.step[0].first_slot = 1, NBFW_EINVAL);
	refuses(s.step[1].first_send = 0, NBFW_EINVAL);
	refuses(s.step[1].first_slot = 2, NBFW_EINVAL);
	refuses(s.step[0].nsend = 0, NBFW_EINVAL);
	refuses(s.step[1].nsend = 0, NBFW_EINVAL);
	refuses(s.step[1].nsend = 2, NBFW_EINVAL);
	refuses(s.step[1].nslot = 0, NBFW_EINVAL);
	refuses(s.step[1].nslot = UINT32_MAX, NBFW_EINVAL);
	refuses((s.step[0].nslot = UINT32_MAX, s.step[1].first_slot = UINT32_MAX,
		 s.step[1].nslot = 3),
		NBFW_EINVAL);
	refuses((s.step[0].nsend = UINT32_MAX, s.step[1].first_send = UINT32_MAX,
		 s.step[1].nsend = 3),
		NBFW_EINVAL);
}

static void test_sends_and_slots(void **state)
{
	refuses(s.send[0].dst = 1, NBFW_EINVAL); /* itself */
	refuses(s.send[1].dst = 4, NBFW_EINVAL);
	refuses(s.send[1].dst = UINT32_MAX, NBFW_EINVAL);
	refuses(s.send[0].slot = NBAR_SLOTS_MAX, NBFW_EINVAL);
	refuses(s.send[0].slot = UINT32_MAX, NBFW_EINVAL);
	refuses(s.send[1] = s.send[0], NBFW_EINVAL); /* two sends to the same slot */
	refuses(s.recv[0].src = 1, NBFW_EINVAL);     /* itself */
	refuses(s.recv[1].src = 4, NBFW_EINVAL);
	refuses(s.recv[1].src = UINT32_MAX, NBFW_EINVAL);

	struct sample other = sample();

	other.send[0].slot = NBAR_SLOTS_MAX - 1; /* only the receiver can check that */
	assert_int_equal(check(&other, sizeof(other)), 0);
	other.send[1] =
		(struct nbar_send){ other.send[0].dst, 0 }; /* another slot of the same rank */
	assert_int_equal(check(&other, sizeof(other)), 0);
	other.recv[1] = other.recv[0]; /* two signals from one rank */
	assert_int_equal(check(&other, sizeof(other)), 0);
}

/* A root with this many sends and slots, in one step each. apart: no
 * rank is both destination and source. */
static int check_root(uint32_t nsend, uint32_t nrecv, bool apart)
{
	size_t length = sizeof(struct nbar_plan) + 2 * sizeof(struct nbar_step) +
			nsend * sizeof(struct nbar_send) + nrecv * sizeof(struct nbar_recv);
	struct nbar_plan *p = calloc(1, length);

	*p = (struct nbar_plan){ NBAR_PLAN_MAGIC, 0, NBAR_SIZE_MAX, 2, nsend, nrecv };
	struct nbar_step *step = (struct nbar_step *)(p + 1);
	struct nbar_send *send = (struct nbar_send *)(step + 2);
	struct nbar_recv *recv = (struct nbar_recv *)(send + nsend);

	step[0] = (struct nbar_step){ 0, 0, 0, nrecv };
	step[1] = (struct nbar_step){ 0, nsend, nrecv, 0 };
	for (uint32_t i = 0; i < nrecv; i++)
		recv[i].src = 1 + i;
	for (uint32_t i = 0; i < nsend; i++)
		send[i].dst = 1 + i + (apart ? nrecv : 0);
	int rc = check(p, length);

	free(p);
	return rc;
}

/* A plan of so many steps, with one send and one slot in each. */
static int check_steps(uint32_t nstep)
{
	const struct nbar_plan head = { NBAR_PLAN_MAGIC, 0, 2, nstep, nstep, nstep };
	size_t length = (size_t)nbfw_plan_length(&head);
	struct nbar_plan *p = calloc(1, length);
	struct nbar_step *step = (struct nbar_step *)(p + 1);

	*p = head;
	for (uint32_t i = 0; i < nstep; i++) {
		step[i] = (struct nbar_step){ i, 1, i, 1 };
		((struct nbar_send *)nbfw_plan_sends(p))[i] = (struct nbar_send){ 1, i };
		((struct nbar_recv *)nbfw_plan_recvs(p))[i].src = 1;
	}
	int rc = check(p, length);

	free(p);
	return rc;
}

static void test_limits(void **state)
{
	struct nbar_plan alone = { NBAR_PLAN_MAGIC, 0, 1, 0, 0, 0 };

	assert_int_equal(check(&alone, sizeof(alone)), 0);
	assert_int_equal(check_root(1024, 1024, false), 0);
	assert_int_equal(check_root(NBAR_SENDS_MAX, NBAR_SLOTS_MAX, false), 0);
	assert_int_equal(check_root(NBAR_SENDS_MAX + 1, 1, false), -NBFW_ENOSPC);
	assert_int_equal(check_root(1, NBAR_SLOTS_MAX + 1, false), -NBFW_ENOSPC);
	assert_int_equal(check_steps(NBAR_STEPS_MAX), 0);
	assert_int_equal(check_steps(NBAR_STEPS_MAX + 1), -NBFW_ENOSPC);
	assert_int_equal(check_root(NBAR_PEERS_MAX - 1, 1, true), 0);
	assert_int_equal(check_root(NBAR_PEERS_MAX, 1, true), -NBFW_ENOSPC);
}

/* A plan of one step and the largest numbers of sends and slots, all in falling order. */
static struct nbar_plan *falling(size_t *length)
{
	const struct nbar_plan head = { NBAR_PLAN_MAGIC, 0, NBAR_PEERS_MAX + 1, 1, NBAR_SENDS_MAX,
					NBAR_SLOTS_MAX };
	struct nbar_plan *p = calloc(1, (size_t)nbfw_plan_length(&head));

	*p = head;
	*length = (size_t)nbfw_plan_length(p);
	*(struct nbar_step *)(p + 1) = (struct nbar_step){ 0, p->nsend, 0, p->nrecv };
	for (uint32_t i = 0; i < p->nsend; i++)
		((struct nbar_send *)nbfw_plan_sends(p))[i].dst = NBAR_PEERS_MAX - i;
	for (uint32_t i = 0; i < p->nrecv; i++)
		((struct nbar_recv *)nbfw_plan_recvs(p))[i].src = NBAR_PEERS_MAX - i;
	return p;
}

/* Runs the check a hundred times: with quadratic time this would take seconds. */
static void test_falling_order(void **state)
{
	size_t length;
	struct nbar_plan *p = falling(&length);

	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(check(p, length), 0);
	free(p);
}

/* nbfw_plan_check finds two equal sends at any two positions. Sends that differ in rank or slot are
 * not equal. */
static void test_duplicates(void **state)
{
	static const uint32_t at[] = {
		0, 1, 2, 63, 64, 2047, 2048, 4093, 4094, NBAR_SENDS_MAX - 1
	};
	const uint32_t n = sizeof(at) / sizeof(at[0]);
	size_t length;
	struct nbar_plan *p = falling(&length);
	struct nbar_send *send = (struct nbar_send *)nbfw_plan_sends(p);

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < n; j++) {
			struct nbar_send was = send[at[i]];

			send[at[i]] = send[at[j]];
			assert_int_equal(check(p, length), i == j ? 0 : -NBFW_EINVAL);
			send[at[i]].slot++; /* the same rank, another slot */
			assert_int_equal(check(p, length), 0);
			send[at[i]] = was;
		}
	}
	for (uint32_t i = 0; i < p->nsend; i++)
		send[i] = (struct nbar_send){ 7, 9 };
	assert_int_equal(check(p, length), -NBFW_EINVAL);
	for (uint32_t i = 0; i < p->nsend; i++) /* all slots of one rank */
		send[i] = (struct nbar_send){ 7, NBAR_SLOTS_MAX - 1 - i };
	assert_int_equal(check(p, length), 0);
	send[17].slot = send[4000].slot;
	assert_int_equal(check(p, length), -NBFW_EINVAL);
	free(p);
}

/* Refuses a rank without slots, which would complete at once again and again, and a rank without
 * sends, which would hold up all others. */
static void test_takes_part(void **state)
{
	struct sample s = sample();
	const struct {
		struct nbar_plan head;
		struct nbar_step step;
		uint32_t dst, slot;
	} sends = { { NBAR_PLAN_MAGIC, 0, 2, 1, 1, 0 }, { 0, 1, 0, 0 }, 1, 0 };
	const struct {
		struct nbar_plan head;
		struct nbar_step step;
		uint32_t src;
	} waits = { { NBAR_PLAN_MAGIC, 0, 2, 1, 0, 1 }, { 0, 0, 0, 1 }, 1 };

	assert_int_equal(check(&sends, sizeof(sends)), -NBFW_EINVAL);
	assert_int_equal(check(&waits, sizeof(waits)), -NBFW_EINVAL);
	assert_int_equal(check_root(1, 0, false), -NBFW_EINVAL);
	assert_int_equal(check_root(NBAR_SENDS_MAX, 0, false), -NBFW_EINVAL);
	assert_int_equal(check_root(0, 1, false), -NBFW_EINVAL);
	assert_int_equal(check_root(0, NBAR_SLOTS_MAX, false), -NBFW_EINVAL);
	assert_int_equal(check_root(1, 1, false), 0);
	s.head = (struct nbar_plan){ NBAR_PLAN_MAGIC, 0, 2, 0, 0, 0 };
	assert_int_equal(check(&s, sizeof(s.head)), -NBFW_EINVAL);
}

/* Tests the guarantees of the check in another way. */
static void require_sound(const struct nbar_plan *p, size_t length, uint64_t seed)
{
	const struct nbar_send *send = nbfw_plan_sends(p);
	uint64_t sends = 0, slots = 0;

	require(length == nbfw_plan_length(p) && p->rank < p->size && p->size <= NBAR_SIZE_MAX,
		"NBAR_SEED=%llu", (unsigned long long)seed);
	for (uint32_t i = 0; i < p->nstep; i++) {
		const struct nbar_step *st = &nbfw_plan_steps(p)[i];

		require(st->first_send == sends && st->first_slot == slots, "NBAR_SEED=%llu",
			(unsigned long long)seed);
		sends += st->nsend;
		slots += st->nslot;
	}
	require(sends == p->nsend && slots == p->nrecv, "NBAR_SEED=%llu", (unsigned long long)seed);
	require(p->size == 1 || (sends && slots), "NBAR_SEED=%llu", (unsigned long long)seed);
	for (uint32_t i = 0; i < p->nsend; i++) {
		require(send[i].dst < p->size && send[i].dst != p->rank, "NBAR_SEED=%llu",
			(unsigned long long)seed);
		for (uint32_t j = 0; j < i; j++)
			require(memcmp(&send[i], &send[j], sizeof(send[0])) != 0, "NBAR_SEED=%llu",
				(unsigned long long)seed);
	}
	for (uint32_t i = 0; i < p->nrecv; i++)
		require(nbfw_plan_recvs(p)[i].src < p->size && nbfw_plan_recvs(p)[i].src != p->rank,
			"NBAR_SEED=%llu", (unsigned long long)seed);
}

/* Gives the engine every token of the plan, in the order of the slots. The barrier must end with
 * the last token, and not before. */
static void require_runs(const struct nbar_plan *p, uint64_t seed)
{
	struct nbfw_state *s = calloc(1, nbfw_state_size(p));
	struct nbfw_event ev = { .type = NBFW_EV_START };
	struct nbfw_action a;

	nbfw_init(s, p, 0);
	nbfw_step(s, p, &ev, &a);
	ev.type = NBFW_EV_TOKEN;
	for (uint32_t slot = 0; slot < p->nrecv; slot++) {
		require(!a.complete && nbfw_check(s, p) == 0, "NBAR_SEED=%llu",
			(unsigned long long)seed);
		ev.token = (struct nbfw_token){ .type = NBFW_TOKEN, .slot = slot, .epoch = 1 };
		ev.token.src = nbfw_plan_recvs(p)[slot].src;
		nbfw_step(s, p, &ev, &a);
		require(a.send_first <= a.send_end && a.send_end <= p->nsend, "NBAR_SEED=%llu",
			(unsigned long long)seed);
	}
	require(a.complete && nbfw_check(s, p) == 0, "NBAR_SEED=%llu", (unsigned long long)seed);
	free(s);
}

/* Changes bytes of good plans at random: the check must refuse the plan, or the plan must be sound.
 */
static void test_mutated_plans(void **state)
{
	uint32_t refused = 0, taken = 0;

	for (uint64_t seed = unit_seed(), last = seed + 100000; seed != last; seed++) {
		struct rng rng = { seed };
		uint32_t size = 1 + rng_below(&rng, 40);
		struct nbfw_alg alg = group_plans_any(&rng);
		uint32_t block[GROUP_PLANS_BYTES_A_RANK / 4];
		size_t length = (size_t)nbfw_plan_generate(alg, size, rng_below(&rng, size), block,
							   sizeof(block));
		const char *why = "";

		for (uint32_t i = rng_below(&rng, 3); i > 0; i--) {
			uint32_t *word = &block[rng_below(&rng, (uint32_t)length / 4)];

			if (rng_percent(&rng, 50))
				*word = *word + rng_below(&rng, 5) - 2;
			else
				((uint8_t *)word)[rng_below(&rng, 4)] = (uint8_t)rng_next(&rng);
		}
		uint32_t *copy = malloc(length);

		memcpy(copy, block, length);
		uint64_t *scratch = malloc(nbfw_plan_scratch(length) * sizeof(*scratch));

		if (nbfw_plan_check(copy, length, scratch, &why) == 0) {
			taken++;
			require_sound((struct nbar_plan *)copy, length, seed);
			require_runs((struct nbar_plan *)copy, seed);
		} else {
			refused++;
		}
		free(scratch);
		free(copy);
	}
	/* The check must often refuse and often accept, or the test would show nothing. */
	assert_true(refused > 10000 && taken > 10000);
}

UNIT_MAIN(NULL, NULL, UNIT(test_head), UNIT(test_steps), UNIT(test_sends_and_slots),
	  UNIT(test_limits), UNIT(test_falling_order), UNIT(test_duplicates), UNIT(test_takes_part),
	  UNIT(test_mutated_plans))
