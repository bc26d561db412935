/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_kernel_value.c - the wire "kernel": the programs of groups with values. They send and
 * fold what the value module of this process does.
 */
#include "unit/unit.h"

#ifdef WIRES_KERNEL
#include "kernel_world.h"

static struct nbfw_value own, others[32];

static const struct form {
	uint8_t op, type, size;
} forms[] = {
#define ALL(type, size)                                                                         \
	{ NBAR_SUM, type, size }, { NBAR_PROD, type, size }, { NBAR_MIN, type, size },          \
		{ NBAR_MAX, type, size }, { NBAR_BAND, type, size }, { NBAR_BOR, type, size },  \
		{ NBAR_BXOR, type, size }, { NBAR_LAND, type, size }, { NBAR_LOR, type, size }, \
	{                                                                                       \
		NBAR_LXOR, type, size                                                           \
	}
	ALL(NBAR_INT8, 1),
	ALL(NBAR_UINT8, 1),
	ALL(NBAR_INT16, 2),
	ALL(NBAR_UINT16, 2),
	ALL(NBAR_INT32, 4),
	ALL(NBAR_UINT32, 4),
	ALL(NBAR_INT64, 8),
	ALL(NBAR_UINT64, 8),
	{ NBAR_SUM, NBAR_FLOAT, 4 },
	{ NBAR_MIN, NBAR_FLOAT, 4 },
	{ NBAR_MAX, NBAR_FLOAT, 4 },
	{ NBAR_SUM, NBAR_DOUBLE, 8 },
	{ NBAR_MIN, NBAR_DOUBLE, 8 },
	{ NBAR_MAX, NBAR_DOUBLE, 8 },
};

static uint64_t some(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* Bits of any kind; reals of which many are close, equal but for the sign, subnormal, infinite or
 * no number. */
static void value_make(struct nbfw_value *v, const struct form *f, uint32_t count)
{
	*v = (struct nbfw_value){ .op = f->op, .type = f->type, .count = { (uint8_t)count } };
	for (uint32_t i = 0; i < count * f->size; i += f->size) {
		uint64_t bits = some();

		if (some() % 2)
			bits &= UINT64_C(0x8010000000000003) | UINT64_C(0x3ff0000000000000);
		if (some() % 8 == 0)
			bits = some() % 2 ? 0 : UINT64_MAX << (some() % 64);
		memcpy(v->byte + i, &bits, f->size);
	}
}

static uint16_t carries(const struct nbfw_value *v)
{
	return (uint16_t)(v ? NBFW_VALUE_HEAD + nbfw_value_length(v) : 0);
}

/* A post with this value, or with none, as libnbar sends it. */
static void value_post_put(uint32_t posted, const struct nbfw_value *v)
{
	post_put(posted, 0);
	if (v)
		memcpy(packet + POST, v, carries(v));
	length = POST + carries(v);
}

static void value_post_goes(const struct nbfw_value *v)
{
	static const struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbfw_action a;

	value_post_put(s_now()->epoch + 1, v);
	if (v)
		memcpy(nbfw_values_place(g.values, s_now()->epoch + 1, 0), v, carries(v));
	assert_int_equal(
		nbfw_values_start(g.values, s_now(), g.plan, v ? carries(v) - NBFW_VALUE_HEAD : 0),
		NBAR_RANK_NONE);
	nbfw_step(s_now(), g.plan, &start, &a);
	nbfw_values_advance(g.values, s_now(), g.plan);
	sends_are(&a, run_out(), PASS);
	state_is_same();
}

static struct nbfw_token value_token(uint32_t slot, uint32_t epoch, const struct nbfw_value *v)
{
	struct nbfw_token t = token_of(slot, epoch);

	t.value = v;
	t.value_length = carries(v);
	return t;
}

static const struct nbar_value *result_of(uint32_t epoch)
{
	return &w->port[PORT].results->value[VALUES][epoch % NBAR_VALUES_AHEAD].value;
}

/* One barrier: the post and the tokens come in an order of their own, early ones too. */
static void barrier_runs(const struct form *f)
{
	const uint32_t n = g.plan->nrecv, epoch = s_now()->epoch + 1;
	uint32_t count = f ? 1 + (uint32_t)some() % (NBFW_FIXED_VALUE / f->size) : 0;
	uint32_t order[33], at;

	while (f && count * f->size % VALUE_UNIT)
		count++;
	for (uint32_t i = 0; i <= n; i++) {
		at = (uint32_t)some() % (i + 1);
		order[i] = order[at];
		order[at] = i;
	}
	for (uint32_t i = 0; f && i < n; i++)
		value_make(&others[i], f, count);
	if (f)
		value_make(&own, f, count);
	completion()->word = EPOCH;
	for (uint32_t i = 0; i <= n; i++) {
		if (order[i] == n) {
			value_post_goes(f ? &own : NULL);
			continue;
		}
		const struct nbfw_token t =
			value_token(order[i], epoch, f ? &others[order[i]] : NULL);

		token_comes(&t, NBFW_USED);
		if (some() % 4 == 0 && (s_now()->running || s_now()->epoch != epoch))
			token_comes(&t, NBFW_DUPLICATE);
	}
	assert_int_equal(completion()->word, epoch);
	if (f) {
		const struct nbfw_value *wanted = nbfw_values_place(g.values, epoch, g.plan->nstep);

		assert_int_equal(result_of(epoch)->epoch, epoch);
		assert_int_equal(result_of(epoch)->op, f->op | NBAR_VALUE_RESULT);
		assert_int_equal(result_of(epoch)->type, f->type);
		assert_int_equal(result_of(epoch)->count, count);
		assert_memory_equal(result_of(epoch)->of.byte, wanted->byte, count * f->size);
	} else {
		assert_int_not_equal(result_of(epoch)->epoch, epoch);
	}
}

static void values_are_folded_as_here(void **unused)
{
	/* The root of "binomial" waits for several in a step. */
	static const struct {
		const char *name;
		uint32_t first, by, value_max;
	} algs[] = { { "pairwise", 0, 1, 64 },
		     { "tournament", 0, 3, 256 },
		     { "binomial", 1, 2, 65 } };

	for (uint32_t i = 0; i < sizeof(algs) / sizeof(algs[0]); i++)
		for (uint32_t rank = algs[i].first; rank < SIZE; rank += algs[i].by) {
			group_begin(algs[i].name, rank, algs[i].value_max);
			assert_true(lend_soon(false, 0));
			for (uint32_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
				barrier_runs(&forms[f]);
				if (f % 8 == 0)
					barrier_runs(NULL);
			}
			kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
		}
}

/* The programs give a frame on to the daemon, and change nothing. */
static void frame_passes(const char *what)
{
	const struct kernel_group before = in_kernel();
	uint8_t copy[sizeof(packet)];
	struct kernel_group after;

	memcpy(copy, packet, length);
	require(run("kernel_in_value") == NEXT, "%s", what);
	assert_memory_equal(packet, copy, length);
	after = in_kernel();
	require(memcmp(&before, &after, sizeof(before)) == 0, "%s", what);
}

/* The programs give a post on to the daemon, and change no state. */
static void post_is_taken(const char *what)
{
	const struct kernel_group before = in_kernel();
	struct kernel_group after;

	require(run_out() == DROP, "%s", what);
	require(is_wanted() == KERNEL_TAKE, "%s", what);
	after = in_kernel();
	require(memcmp(before.state, after.state, sizeof(state)) == 0, "%s", what);
	assert_int_equal(after.counts.sent, before.counts.sent);
}

static void the_daemon_gets_what_does_not_fit(void **unused)
{
	static const struct form sum = { NBAR_SUM, NBAR_DOUBLE, 8 },
				 least = { NBAR_MIN, NBAR_DOUBLE, 8 },
				 pair = { NBAR_MINLOC, NBAR_INT_INT, 8 };
	struct nbfw_value odd;
	struct nbfw_token t;

	group_begin("pairwise", 1, 256);
	assert_true(lend_soon(false, 0));
	value_make(&own, &sum, 1);
	value_make(&others[0], &sum, 1);
	/* Without a length that is right, or of a kind that the programs do not fold. */
	t = value_token(0, EPOCH + 1, &others[0]);
	for (size_t n = FRAME; n < FRAME + 2 * NBFW_FIXED_PLACE; n++) {
		token_put(&t);
		memset(packet + length, 0, sizeof(packet) - length);
		if (n == length)
			continue;
		length = n;
		frame_passes("length");
	}
	value_make(&odd, &sum, 9);
	t = value_token(0, EPOCH + 1, &odd);
	token_put(&t);
	frame_passes("72 bytes");
	value_make(&odd, &pair, 1);
	t = value_token(0, EPOCH + 1, &odd);
	token_put(&t);
	frame_passes("a pair");
	t = value_token(0, EPOCH + 1, &others[0]);
	token_put(&t);
	packet[FRAME] = NBAR_BAND;
	frame_passes("no such operation of reals");
	token_put(&t);
	packet[AT_VERSION] = NBFW_FRAME_VERSION;
	frame_passes("version of a frame without value");
#ifdef WORLD_IP
	token_put(&t);
	packet[FRAME + NBFW_VALUE_HEAD] ^= 1;
	frame_passes("a value that its sum does not fit");
	value_make(&odd, &(const struct form){ NBAR_SUM, NBAR_INT16, 2 }, 1);
	t = value_token(0, EPOCH + 1, &odd);
	token_put(&t);
	frame_passes("half a word");
#endif
	/* Posts. */
	value_make(&odd, &sum, 9);
	value_post_put(EPOCH + 1, &odd);
	post_is_taken("72 bytes");
	value_make(&odd, &pair, 1);
	value_post_put(EPOCH + 1, &odd);
	post_is_taken("a pair");
	value_post_put(EPOCH + 1, &own);
	packet[POST + 2]++;
	post_is_taken("a count that does not fit");
	/* An early token, and then another post; or a running barrier, and then another token. */
	t = value_token(0, EPOCH + 1, &others[0]);
	token_comes(&t, NBFW_USED);
	value_make(&odd, &least, 1);
	value_post_put(EPOCH + 1, &odd);
	post_is_taken("another operation than that of the early token");
	value_post_put(EPOCH + 1, NULL);
	post_is_taken("no value");
	assert_true(lend_soon(false, 0));
	value_post_goes(&own);
	t = value_token(1, EPOCH + 1, &odd);
	token_put(&t);
	frame_passes("another operation");
	t = value_token(1, EPOCH + 1, NULL);
	token_put(&t);
	frame_passes("without a value");
	/* Amid a barrier, the next one is posted, and its host sleeps: it comes to the daemon. */
	value_make(&odd, &pair, 1);
	value_post_put(EPOCH + 2, &odd);
	assert_int_equal(run_out(), DROP);
	assert_false(is_wanted());
	post_put(EPOCH + 2, 1);
	assert_int_equal(run_out(), DROP);
	for (uint32_t i = 1; i < g.plan->nrecv; i++) {
		value_make(&others[i], &sum, 1);
		t = value_token(i, EPOCH + 1, &others[i]);
		token_comes(&t, NBFW_USED);
	}
	assert_int_equal(is_wanted(), KERNEL_TAKE);
	/* Not lent. */
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	t = value_token(1, EPOCH + 1, &others[0]);
	token_put(&t);
	frame_passes("not lent");
	bell_rang();
	value_post_put(EPOCH + 1, &own);
	assert_int_equal(run_out(), DROP);
	assert_true(bell_rang());
}

/* Whatever is lent amid a barrier, comes back: what the daemon sends again, it has sent before. */
static void values_come_back(void **unused)
{
	static const struct form sum = { NBAR_SUM, NBAR_DOUBLE, 8 };
	static uint8_t copy[sizeof(values)];
	struct nbfw_token t, answer;

	group_begin("pairwise", 5, 128);
	assert_true(lend_soon(false, 0));
	barrier_runs(&sum);
	completion()->word = EPOCH;
	for (uint32_t i = 0; i < 3; i++)
		value_make(&others[i], &sum, 5);
	value_make(&own, &sum, 5);
	value_post_goes(&own);
	t = value_token(2, EPOCH + 2, &others[2]);
	token_comes(&t, NBFW_USED);
	t = value_token(0, EPOCH + 2, &others[0]);
	token_comes(&t, NBFW_USED);
	memcpy(copy, values, sizeof(values));
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	for (uint32_t epoch = EPOCH + 1; epoch <= EPOCH + 2; epoch++)
		for (uint32_t i = 0; i < g.plan->nsend; i++) {
			const struct nbar_send *to = nbfw_plan_send(g.plan, i);
			struct nbfw_token before = { .epoch = epoch, .slot = to->slot };

			if (epoch == EPOCH + 2 && i > 1)
				continue; /* not yet sent */
			answer = before;
			nbfw_values_answer((struct nbfw_values *)copy, g.plan, to->dst, &before);
			nbfw_values_answer(g.values, g.plan, to->dst, &answer);
			assert_int_equal(answer.value_length, before.value_length);
			assert_memory_equal(answer.value, before.value, answer.value_length);
		}
	assert_true(lend_soon(false, UINT64_C(3600000000000)));
	t = value_token(1, EPOCH + 2, &others[1]);
	completion()->word = EPOCH;
	token_comes(&t, NBFW_USED);
	assert_memory_equal(result_of(EPOCH + 2)->of.byte,
			    nbfw_values_place(g.values, EPOCH + 2, g.plan->nstep)->byte, 40);
}

static void groups_that_do_not_fit_stay(void **unused)
{
	static const struct form sum = { NBAR_SUM, NBAR_DOUBLE, 8 };
	uint8_t(*place)[KERNEL_VALUES_SIZE] = w->values;

	group_begin("linear", 0, 8); /* steps of many slots */
	assert_false(lend(false, 0));
	group_begin("pairwise", 1, 8);
	g.handle = HANDLE - INDEX + KERNEL_VALUES;
	assert_false(lend(false, 0));
	group_begin("pairwise", 1, 8);
	assert_int_equal(w->base.fast_value, 64);
	w->values = NULL; /* of a kernel that takes none */
	assert_false(lend(false, 0));
	w->values = place;
	group_begin("pairwise", 1, 256);
	value_make(&own, &sum, 9);
	memcpy(nbfw_values_place(g.values, EPOCH + 1, 0), &own, carries(&own));
	nbfw_values_start(g.values, s_now(), g.plan, 72);
	assert_false(lend(false, 0));
	nbfw_values_place(g.values, EPOCH + 1, 0)->type = NBAR_INT_INT;
	nbfw_values_start(g.values, s_now(), g.plan, 64);
	assert_false(lend(false, 0));
	nbfw_values_place(g.values, EPOCH + 1, 0)->type = NBAR_INT16;
	nbfw_values_start(g.values, s_now(), g.plan, 6);
	if (VALUE_UNIT == 1)
		assert_true(lend_soon(false, 0));
	else
		assert_false(lend(false, 0));
	nbfw_values_place(g.values, EPOCH + 1, 0)->type = NBAR_DOUBLE;
	nbfw_values_start(g.values, s_now(), g.plan, 64);
	assert_true(lend_soon(false, 0));
	/* Neither the programs of the others: for groups with values, they do nothing. */
	token_put(&(struct nbfw_token){ 0 });
	const struct nbfw_token t = token_of(0, EPOCH + 1);

	token_put(&t);
	assert_int_equal(run("kernel_in"), NEXT);
	g.values = NULL;
	bell_rang();
	post_put(EPOCH + 1, 0);
	assert_int_equal(run_out(), DROP);
	assert_true(bell_rang());
	assert_int_equal(in_kernel().posted, EPOCH);
	g.values = (struct nbfw_values *)values;
}

/* After 64 bytes of one group, another group has 8: its result has nothing behind these. */
static void no_value_of_another_group_is_seen(void **unused)
{
	static const struct form sum = { NBAR_SUM, NBAR_DOUBLE, 8 };
	static const uint8_t none[NBFW_FIXED_VALUE];

	for (uint32_t rank = 0; rank < SIZE; rank++) { /* some get the result, others fold it */
		group_begin("tournament", rank, 64);
		assert_true(lend_soon(false, 0));
		value_make(&own, &sum, 8);
		value_post_goes(&own);
		for (uint32_t i = 0; i < g.plan->nrecv; i++) {
			value_make(&others[i], &sum, 8);
			const struct nbfw_token t = value_token(i, EPOCH + 1, &others[i]);

			completion()->word = EPOCH;
			token_comes(&t, NBFW_USED);
		}
		memset(w->port[PORT].results->value, 0, sizeof(w->port[PORT].results->value));
		group_begin("tournament", rank, 8);
		assert_true(lend_soon(false, 0));
		value_make(&own, &sum, 1);
		value_post_goes(&own);
		for (uint32_t i = 0; i < g.plan->nrecv; i++) {
			value_make(&others[i], &sum, 1);
			const struct nbfw_token t = value_token(i, EPOCH + 1, &others[i]);

			completion()->word = EPOCH;
			token_comes(&t, NBFW_USED);
		}
		assert_int_equal(result_of(EPOCH + 1)->epoch, EPOCH + 1);
		assert_memory_equal(result_of(EPOCH + 1)->of.byte + 8, none, sizeof(none) - 8);
	}
}

static void places_are_cleared_for_another_group(void **unused)
{
	volatile uint8_t *last;

	group_begin("pairwise", 1, 64);
	assert_true(lend_soon(false, 0));
	last = (uint8_t *)values_there(w, INDEX) + KERNEL_VALUES_SIZE - 1;
	*last = 1;
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	assert_true(lend_soon(false, 0));
	assert_int_equal(*last, 1); /* those of this group may be on their way */
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	group_begin("pairwise", 1, 64);
	assert_true(lend_soon(false, 0));
	assert_int_equal(*last, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_are_folded_as_here),
		TEST(the_daemon_gets_what_does_not_fit),
		TEST(values_come_back),
		TEST(groups_that_do_not_fit_stay),
		TEST(no_value_of_another_group_is_seen),
		TEST(places_are_cleared_for_another_group),
	};

	if (kernel_cannot())
		return 0;
	if (!kernel_takes_values()) {
		puts("1..1\nok 1 - wire kernel # SKIP this kernel is older than Linux " KERNEL_VALUES_SINCE);
		return 0;
	}
	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
#else
int main(void)
{
	puts("1..1\nok 1 - wire kernel # SKIP this build has none: apt-get install clang libbpf-dev");
	return 0;
}
#endif
