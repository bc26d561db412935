/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_value.c - values of barriers: the arithmetic is that of this machine's unit; the plans count
 * each contribution once; every member gets the same bits, whatever the network does.
 */
#include "value.h"

#include <fenv.h>
#include <math.h>

#include "world.h"

/* --- arithmetic ------------------------------------------------------------------------------ */

static struct nbfw_value value_of(uint8_t op, uint8_t type, uint32_t count, const void *byte,
				  size_t length)
{
	struct nbfw_value v = { .op = op, .type = type, .count = { (uint8_t)count } };

	memcpy(v.byte, byte, length);
	return v;
}

static void fold_all(uint8_t op, uint8_t type, uint32_t count, const void *a, const void *b,
		     size_t length, void *out)
{
	struct nbfw_value to = value_of(op, type, count, a, length);
	const struct nbfw_value from = value_of(op, type, count, b, length);
	struct nbfw_value other;

	/* By integers: the result is the same. */
	fesetround(FE_UPWARD);
	nbfw_value_fold(&other, &to, &from);
	fesetround(FE_TONEAREST);
	feclearexcept(FE_ALL_EXCEPT);
	nbfw_value_fold(&to, &to, &from);
	require(memcmp(&to, &other, NBFW_VALUE_HEAD + length) == 0,
		"op %u, type %u: another result in another mode of the unit", op, type);
	require(fetestexcept(FE_ALL_EXCEPT) == 0, "the flags of the unit stay as they were");
	memcpy(out, to.byte, length);
}

static uint64_t fold(uint8_t op, uint8_t type, uint64_t a, uint64_t b, size_t length)
{
	uint64_t out = 0;

	fold_all(op, type, 1, &a, &b, length, &out);
	return out;
}

/* The result by the machine's unit; a NaN has the bits that value.c gives it. */
static uint64_t want64(uint8_t op, uint64_t a, uint64_t b)
{
	double x, y;
	uint64_t out;

	memcpy(&x, &a, 8);
	memcpy(&y, &b, 8);
	if (isnan(x) || isnan(y) || (op == NBAR_SUM && isnan(x + y)))
		return UINT64_C(0x7ff8) << 48;
	if (op == NBAR_SUM)
		x = x + y;
	else if (x == y ? !signbit(y) == (op == NBAR_MAX) : (y > x) == (op == NBAR_MAX))
		x = y; /* -0 is less than 0 */
	memcpy(&out, &x, 8);
	return out;
}

static uint64_t want32(uint8_t op, uint64_t a, uint64_t b)
{
	float x, y;
	uint32_t out;

	memcpy(&x, &a, 4);
	memcpy(&y, &b, 4);
	if (isnan(x) || isnan(y) || (op == NBAR_SUM && isnan(x + y)))
		return UINT64_C(0x7fc0) << 16;
	if (op == NBAR_SUM)
		x = x + y;
	else if (x == y ? !signbit(y) == (op == NBAR_MAX) : (y > x) == (op == NBAR_MAX))
		x = y;
	memcpy(&out, &x, 4);
	return out;
}

#define PAIRS_MAX 31u

/* n pairs of doubles; and of 2 n floats, which have the same bytes. */
static void check_reals(const uint64_t *a, const uint64_t *b, uint32_t n)
{
	uint64_t got[PAIRS_MAX];

	for (uint8_t op = NBAR_SUM; op <= NBAR_MAX; op++) {
		fold_all(op, NBAR_DOUBLE, n, a, b, 8 * n, got);
		for (uint32_t i = 0; i < n; i++)
			require(got[i] == want64(op, a[i], b[i]),
				"double: op %u of %llx and %llx: %llx", op,
				(unsigned long long)a[i], (unsigned long long)b[i],
				(unsigned long long)got[i]);
		fold_all(op, NBAR_FLOAT, 2 * n, a, b, 8 * n, got);
		for (uint32_t i = 0; i < n; i++)
			require(got[i] == (want32(op, (uint32_t)a[i], (uint32_t)b[i]) |
					   want32(op, a[i] >> 32, b[i] >> 32) << 32),
				"float: op %u of two in %llx and %llx: %llx", op,
				(unsigned long long)a[i], (unsigned long long)b[i],
				(unsigned long long)got[i]);
	}
}

/* All pairs of bit patterns at the edges: both signs, exponents and mantissas near their ends. */
static void test_special_reals(void **state)
{
	static const int64_t exponent64[] = { 0,    1,    2,    53,   54,   1022,
					      1023, 1024, 1075, 2045, 2046, 2047 };
	static const int64_t exponent32[] = { 0, 1, 2, 24, 25, 126, 127, 128, 150, 253, 254, 255 };
	static const int64_t mantissa[] = { 0, 1, 2, 3, -1, -2, -3 };
	uint64_t edge[2 * 12 * 8];
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < 12 * 16; i++) {
		uint32_t e = i / 16, m = i / 2 % 8;
		uint64_t sign = i % 2;
		uint64_t m64 = m < 7 ? (uint64_t)mantissa[m] : UINT64_C(1) << 51;
		uint64_t m32 = m < 7 ? (uint64_t)mantissa[m] : UINT64_C(1) << 22;

		/* The upper half has the double's sign and exponent, the lower half a whole float;
		 * and the other way round, in a second run. */
		edge[n++] = sign << 63 | (uint64_t)exponent64[e] << 52 |
			    (m64 & ((UINT64_C(1) << 52) - 1));
		edge[n - 1] = i % 3 ? edge[n - 1]
				    : (edge[n - 1] & ~UINT64_C(0xffffffff)) | sign << 31 |
					      (uint64_t)exponent32[e] << 23 | (m32 & 0x7fffff);
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			check_reals(&edge[i], &edge[j], 1);
	/* Floats at all their edges. */
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++) {
			uint64_t a = (uint64_t)(i % 2) << 31 | (uint64_t)exponent32[i / 16] << 23 |
				     ((uint64_t)mantissa[i / 2 % 7] & 0x7fffff);
			uint64_t b = (uint64_t)(j % 2) << 31 | (uint64_t)exponent32[j / 16] << 23 |
				     ((uint64_t)mantissa[j / 2 % 7] & 0x7fffff);

			check_reals(&a, &b, 1);
		}
}

/* NBAR_ROUNDS=1000000000 makes 10^9 pairs. Half of the pairs have exponents near each other. */
static void test_random_reals(void **state)
{
	uint64_t n = unit_rounds() ? unit_rounds() : unit_counted() ? 1000 : 300000;
	struct rng rng = { unit_seed() };

	(void)state;
	while (n > 0) {
		/* 31: some go in pairs through the unit, and the last one alone. */
		const uint32_t some = n < 31 ? (uint32_t)n : 31;
		uint64_t a[PAIRS_MAX], b[PAIRS_MAX];

		for (uint32_t i = 0; i < some; i++) {
			a[i] = rng_next(&rng);
			b[i] = rng_next(&rng);
			if (i % 2)
				b[i] = a[i] ^ (b[i] & UINT64_C(0x83ffffff87ffffff));
		}
		check_reals(a, b, some);
		n -= some;
	}
}

#define CHECK_INTEGERS(type, c, number)                                                       \
	do {                                                                                  \
		c x = (c)a, y = (c)b,                                                         \
		  want[] = { 0,                                                               \
			     (c)((uint64_t)x + (uint64_t)y),                                  \
			     x < y ? x : y,                                                   \
			     x > y ? x : y,                                                   \
			     (c)((uint64_t)x * (uint64_t)y),                                  \
			     (c)(x & y),                                                      \
			     (c)(x | y),                                                      \
			     (c)(x ^ y),                                                      \
			     x && y,                                                          \
			     x || y,                                                          \
			     !x != !y };                                                      \
		for (uint8_t op = NBAR_SUM; op <= NBAR_LXOR; op++) {                          \
			uint64_t got = fold(op, number, (uint64_t)x, (uint64_t)y, sizeof(c)); \
			uint64_t mask = UINT64_MAX >> (64 - 8 * sizeof(c));                   \
			require(got == ((uint64_t)want[op] & mask), type ": op %u", op);      \
		}                                                                             \
	} while (0)

static void test_integers(void **state)
{
	static const uint64_t edge[] = { 0,          1,          2,
					 UINT64_MAX, INT64_MAX,  UINT64_C(1) << 63,
					 0x7f,       0x80,       0x7fff,
					 0x8000,     0x7fffffff, 0x80000000 };
	struct rng rng = { unit_seed() };

	(void)state;
	for (uint32_t i = 0; i < 4000; i++) {
		uint64_t a = i < 144 ? edge[i / 12] : rng_next(&rng);
		uint64_t b = i < 144 ? edge[i % 12] : rng_next(&rng) >> rng_below(&rng, 64);

		CHECK_INTEGERS("int8", int8_t, NBAR_INT8);
		CHECK_INTEGERS("int16", int16_t, NBAR_INT16);
		CHECK_INTEGERS("int32", int32_t, NBAR_INT32);
		CHECK_INTEGERS("int64", int64_t, NBAR_INT64);
		CHECK_INTEGERS("uint8", uint8_t, NBAR_UINT8);
		CHECK_INTEGERS("uint16", uint16_t, NBAR_UINT16);
		CHECK_INTEGERS("uint32", uint32_t, NBAR_UINT32);
		CHECK_INTEGERS("uint64", uint64_t, NBAR_UINT64);
	}
}

/* Values of all lengths: the elements are folded each by itself; no byte behind them is written. */
static void test_many_elements(void **state)
{
	static const uint8_t size[] = { 0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8 };
	struct rng rng = { unit_seed() };

	(void)state;
	for (uint8_t type = NBAR_INT8; type <= NBAR_DOUBLE; type++) {
		for (uint32_t n = 1; n <= NBAR_VALUE_MAX / size[type]; n++) {
			uint8_t op =
				(uint8_t)(NBAR_SUM + rng_below(&rng, type > NBAR_UINT64 ? 3 : 10));
			struct nbfw_value a, b, to;

			for (uint32_t i = 0; i < NBAR_VALUE_MAX; i++) {
				a.byte[i] = (uint8_t)rng_next(&rng);
				b.byte[i] = rng_percent(&rng, 20) ? 0xff : (uint8_t)rng_next(&rng);
			}
			a.op = b.op = op;
			a.type = b.type = type;
			a.count[0] = (uint8_t)n;
			a.count[1] = (uint8_t)(n >> 8);
			memset(&to, 0x5a, sizeof(to));
			nbfw_value_fold(&to, &a, &b);
			assert_memory_equal(&to, &a, 4);
			for (uint32_t i = 0; i < n; i++) {
				uint64_t x = 0, y = 0, got = 0;

				memcpy(&x, a.byte + i * size[type], size[type]);
				memcpy(&y, b.byte + i * size[type], size[type]);
				memcpy(&got, to.byte + i * size[type], size[type]);
				require(got == fold(op, type, x, y, size[type]),
					"op %u, type %u: element %u of %u", op, type, i, n);
			}
			for (uint32_t i = n * size[type]; i < NBAR_VALUE_MAX; i++)
				assert_int_equal(to.byte[i], 0x5a);
		}
	}
}

struct pair {
	double number;
	int32_t index, gap;
};

/* Of equal numbers, the lower index wins; 0 and -0 are equal. */
static void test_pairs(void **state)
{
	static const struct pair p[] = { { 1, 5, 0 },   { 1, 3, 0 },    { -2, 7, 0 },
					 { 0.0, 2, 0 }, { -0.0, 1, 0 }, { 0.0, -1, 0 } };

	(void)state;
	for (uint32_t i = 0; i < 36; i++) {
		for (uint8_t op = NBAR_MINLOC; op <= NBAR_MAXLOC; op++) {
			struct pair a = p[i / 6], b = p[i % 6];
			struct nbfw_value to = value_of(op, NBAR_DOUBLE_INT, 1, &a, 16);
			struct nbfw_value from = value_of(op, NBAR_DOUBLE_INT, 1, &b, 16);
			bool second = b.number == a.number
					      ? b.index < a.index
					      : (b.number < a.number) == (op == NBAR_MINLOC);
			struct {
				float number;
				int32_t index;
			} fa = { (float)a.number, a.index }, fb = { (float)b.number, b.index };

			nbfw_value_fold(&to, &to, &from);
			assert_memory_equal(to.byte, second ? &b : &a, 16);
			to = value_of(op, NBAR_FLOAT_INT, 1, &fa, 8);
			from = value_of(op, NBAR_FLOAT_INT, 1, &fb, 8);
			nbfw_value_fold(&to, &to, &from);
			assert_memory_equal(to.byte, second ? &fb : &fa, 8);
			if (a.number == 0 || b.number == 0)
				continue; /* integers have one 0 */
			int64_t ia[2] = { (int64_t)a.number, a.index },
				ib[2] = { (int64_t)b.number, b.index };

			to = value_of(op, NBAR_INT64_INT, 1, ia, 16);
			from = value_of(op, NBAR_INT64_INT, 1, ib, 16);
			nbfw_value_fold(&to, &to, &from);
			assert_memory_equal(to.byte, second ? ib : ia, 16);
		}
	}
}

static void test_lengths(void **state)
{
	struct nbfw_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = { 32 } };

	(void)state;
	assert_int_equal(nbfw_value_length(&v), 256);
	v.count[0] = 33;
	assert_int_equal(nbfw_value_length(&v), 0);
	v.count[0] = 0;
	assert_int_equal(nbfw_value_length(&v), 0);
	v.count[0] = 1;
	v.zero[3] = 1;
	assert_int_equal(nbfw_value_length(&v), 0);
	v.zero[3] = 0;
	for (uint32_t i = 0; i < 65536; i++) {
		v.op = (uint8_t)i;
		v.type = (uint8_t)(i >> 8);

		bool integer = v.type >= NBAR_INT8 && v.type <= NBAR_UINT64;
		bool real = v.type == NBAR_FLOAT || v.type == NBAR_DOUBLE;
		bool pair = v.type >= NBAR_FLOAT_INT && v.type <= NBAR_INT64_INT;
		bool takes = (v.op >= NBAR_SUM && v.op <= NBAR_MAX && (integer || real)) ||
			     (v.op >= NBAR_PROD && v.op <= NBAR_LXOR && integer) ||
			     (v.op >= NBAR_MINLOC && v.op <= NBAR_MAXLOC && pair);

		require((nbfw_value_length(&v) > 0) == takes, "op %u, type %u", v.op, v.type);
	}
}

/* --- plans: each contribution counts once ----------------------------------------------------- */

/* How often each contribution is in the value of rank r at the entry of its steps, and at its end.
 * C of stage a is the sum of the columns of its slots and its own, or the column of a slot that
 * replaces. Stages are in the order of the steps, as in group_plans_spreads. */
static void check_exact(struct nbfw_alg alg, uint32_t size)
{
	struct group_plans set = group_plans_generate(alg, size);
	size_t *row = calloc(size + 1, sizeof(row[0])), most;
	uint32_t *at = calloc(size, sizeof(at[0])), done = 0;
	bool moved = true;

	assert_true(group_plans_match(&set));
	for (uint32_t r = 0; r < size; r++)
		row[r + 1] = row[r] + set.plan[r]->nstep + 1;
	most = row[size] * size;
	uint8_t *count = calloc(most, 1);

	for (uint32_t r = 0; r < size; r++)
		count[row[r] * size + r] = 1;
	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < size; r++) {
			const struct nbar_plan *p = set.plan[r];
			const struct nbar_step *st = &nbfw_plan_steps(p)[at[r]];
			const struct nbar_recv *recv = nbfw_plan_recvs(p);
			const uint16_t *sent = set.sent_step + set.first_slot[r];
			bool ready = at[r] < p->nstep;

			for (uint32_t i = 0; ready && i < st->nslot; i++)
				ready = at[recv[st->first_slot + i].src] >=
					sent[st->first_slot + i];
			if (!ready)
				continue;
			uint8_t *now = count + (row[r] + at[r]) * size, *next = now + size;
			bool replaces = nbfw_value_replaces(alg, p, at[r]);

			require(!replaces || st->nslot == 1, "%s, size %u", group_plans_text(alg),
				size);
			for (uint32_t c = 0; c < size; c++)
				next[c] = replaces ? 0 : now[c];
			for (uint32_t i = 0; i < st->nslot; i++) {
				uint32_t slot = st->first_slot + i, src = recv[slot].src;

				for (uint32_t c = 0; c < size; c++)
					next[c] = (uint8_t)(next[c] +
							    count[(row[src] + sent[slot]) * size +
								  c]);
			}
			at[r]++;
			moved = true;
		}
	}
	for (uint32_t r = 0; r < size; r++) {
		done += at[r] == set.plan[r]->nstep;
		for (uint32_t c = 0; c < size; c++)
			require(count[(row[r + 1] - 1) * size + c] == 1,
				"%s, size %u: rank %u counts rank %u %u times",
				group_plans_text(alg), size, r, c,
				count[(row[r + 1] - 1) * size + c]);
	}
	assert_int_equal(done, size);
	free(count);
	free(at);
	free(row);
	group_plans_free(&set);
}

static void test_plans_are_exact(void **state)
{
	(void)state;
	group_plans_each (alg) {
		if (!nbfw_value_plans(alg))
			continue;
		for (uint32_t size = 1; size <= 260; size += size < 70 ? 1 : unit_stride())
			check_exact(alg, size);
	}
	assert_false(nbfw_value_plans((struct nbfw_alg){ NBFW_ALG_CUSTOM, 0 }));
	assert_false(nbfw_value_plans((struct nbfw_alg){ NBFW_ALG_SIGNAL, 0 }));
	assert_false(nbfw_value_plans((struct nbfw_alg){ NBFW_ALG_DISSEMINATION, 1 }));
}

/* --- groups in a bad network ------------------------------------------------------------------ */

#define BARRIERS 12u

/* What a group computes; results by barrier, once the first member has one. */
struct job {
	uint32_t odd_rank, odd_barrier; /* this member posts something else there */
	bool none;                      /* ... and that is no value */
	struct nbfw_value result[BARRIERS + 1], want[BARRIERS + 1];
	bool has[BARRIERS + 1];
};

/* The operation of a barrier; 0: none. The same for all members. */
static struct rng kind_of(const struct world *w, uint32_t barrier, uint8_t *op, uint8_t *type,
			  uint32_t *count)
{
	static const uint8_t size[] = { 0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 8, 16, 16 };
	struct rng rng = { w->seed * 1000 + barrier };

	*type = (uint8_t)(NBAR_INT8 + rng_below(&rng, NBAR_INT64_INT));
	*op = (uint8_t)(*type <= NBAR_UINT64   ? NBAR_SUM + rng_below(&rng, 10)
			: *type <= NBAR_DOUBLE ? NBAR_SUM + rng_below(&rng, 3)
					       : NBAR_MINLOC + rng_below(&rng, 2));
	*count = 1 + rng_below(&rng, NBAR_VALUE_MAX / size[*type]);
	if (rng_percent(&rng, 20))
		*op = 0;
	return rng;
}

static bool contribution(struct world *w, uint32_t rank, uint32_t barrier, struct nbfw_value *out)
{
	const struct job *job = w->arg;
	uint8_t op, type;
	uint32_t count;
	struct rng rng = kind_of(w, barrier, &op, &type, &count);

	*out = (struct nbfw_value){ .op = op, .type = type };
	out->count[0] = (uint8_t)count;
	out->count[1] = (uint8_t)(count >> 8);
	rng.state += rank * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < NBAR_VALUE_MAX; i++)
		out->byte[i] = (uint8_t)rng_next(&rng);
	/* Reals that are all numbers, of about the same size: most sums then round. */
	for (uint32_t i = 0; type == NBAR_DOUBLE && i < count; i++) {
		double x = (double)(int64_t)rng_next(&rng) / 3e9;

		memcpy(out->byte + 8 * i, &x, 8);
	}
	if (rank == job->odd_rank && barrier == job->odd_barrier) {
		if (job->none || op == 0)
			return op == 0 && (out->op = NBAR_SUM, out->type = NBAR_INT8,
					   out->count[0] = 1, out->count[1] = 0, true);
		out->count[0] = out->count[0] == 1 && out->count[1] == 0 ? 2 : 1;
		out->count[1] = 0;
	}
	return op != 0;
}

/* The fold of all contributions, in the order of the ranks. */
static struct nbfw_value want(struct world *w, uint32_t barrier)
{
	struct nbfw_value sum, one;

	contribution(w, 0, barrier, &sum);
	for (uint32_t r = 1; r < w->size; r++) {
		contribution(w, r, barrier, &one);
		nbfw_value_fold(&sum, &sum, &one);
	}
	return sum;
}

static void see_result(struct world *w, uint32_t rank, uint32_t barrier, const struct nbfw_value *v)
{
	struct job *job = w->arg;
	struct nbfw_value one;
	uint32_t n;

	if (!contribution(w, rank, barrier, &one)) {
		world_require(w, !v);
		return;
	}
	world_require(w, v && nbfw_value_alike(v, &one));
	n = NBFW_VALUE_HEAD + nbfw_value_length(v);
	if (!job->has[barrier]) {
		memcpy(&job->result[barrier], v, n);
		job->want[barrier] = want(w, barrier);
		job->has[barrier] = true;
	}
	world_require(w, memcmp(v, &job->result[barrier], n) == 0);
	one = job->want[barrier];
	if (v->op != NBAR_SUM || v->type <= NBAR_UINT64) {
		/* The gap behind an index is 0 in the result. */
		for (uint32_t i = 12; v->type >= NBAR_DOUBLE_INT && i < n - NBFW_VALUE_HEAD;
		     i += 16)
			memset(one.byte + i, 0, 4);
		/* Any NaN may come alone, if the group has one member. */
		world_require(w, w->size == 1 || v->type == NBAR_FLOAT || v->type == NBAR_DOUBLE ||
					 memcmp(v, &one, n) == 0);
		return;
	}
	for (uint32_t i = 0; v->type == NBAR_DOUBLE && i < n - NBFW_VALUE_HEAD; i += 8) {
		double got, about;

		memcpy(&got, v->byte + i, 8);
		memcpy(&about, one.byte + i, 8);
		/* The plan adds in another order: 46 roundings of sums below 2^36. */
		world_require(w, fabs(got - about) <= 1e-3);
	}
}

static struct world value_world(uint64_t seed, struct nbfw_alg alg, uint32_t size, struct job *job)
{
	struct world w = {
		.seed = seed, .rng = { seed }, .size = size, .goal = BARRIERS, .arg = job
	};
	static const uint32_t bases[] = { UINT32_MAX, UINT32_MAX - 2, INT32_MAX - 1, 0 };

	memset(job, 0, sizeof(*job));
	job->odd_rank = NBAR_RANK_NONE;
	w.base = bases[rng_below(&w.rng, 4)];
	w.drop = w.repeat = w.slow = 10;
	w.stray = 2;
	w.delay = 60;
	w.value = contribution;
	w.result = see_result;
	w.set = group_plans_generate(alg, w.size);
	assert_true(group_plans_match(&w.set));
	w.member = calloc(w.size, sizeof(w.member[0]));
	for (uint32_t r = 0; r < w.size; r++) {
		const struct nbar_plan *p = w.set.plan[r];

		w.member[r].s = malloc(nbfw_state_size(p));
		w.member[r].values = malloc(nbfw_values_size(p, NBAR_VALUE_MAX));
		nbfw_init(w.member[r].s, p, w.base);
		nbfw_values_init(w.member[r].values, alg, p, NBAR_VALUE_MAX);
		world_host_comes(&w, r, 50);
	}
	return w;
}

/* A world with any plan and size. */
static struct world any_world(uint64_t seed, struct job *job)
{
	struct rng rng = { ~seed };
	struct nbfw_alg alg;

	do {
		alg = group_plans_any(&rng);
	} while (!nbfw_value_plans(alg));
	return value_world(seed, alg, 1 + rng_below(&rng, 24), job);
}

static bool all_done(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		if (w->member[r].ndone < w->goal)
			return false;
	return true;
}

/* Loss, duplicates, reordering, early tokens, answers, the wrap of epochs; barriers with and
 * without values follow each other. */
static void test_every_result_is_the_fold(void **state)
{
	uint64_t n = unit_rounds() ? unit_rounds() : unit_counted() ? 50 : 1000;

	(void)state;
	for (uint64_t seed = unit_seed(); n > 0; seed++, n--) {
		struct job job;
		struct world w = any_world(seed, &job);

		world_run(&w, all_done);
		world_free(&w);
	}
}

/* Another run, in which other frames are lost or late, gives the same bits; so does each rank. */
static void test_runs_repeat(void **state)
{
	(void)state;
	group_plans_each (alg) {
		for (uint32_t size = 1; size <= 70 && nbfw_value_plans(alg);
		     size += unit_counted() ? 23 : 1) {
			struct job job[2];

			for (uint32_t run = 0; run < 2; run++) {
				struct world w = value_world(size, alg, size, &job[run]);

				w.rng.state += run;
				w.goal = 4;
				world_run(&w, all_done);
				world_free(&w);
			}
			require(memcmp(&job[0], &job[1], sizeof(job[0])) == 0,
				"%s, size %u: two runs, two results", group_plans_text(alg), size);
		}
	}
}

static bool all_failed(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		if (!w->member[r].nfail)
			return false;
	return true;
}

static bool waits_for(const struct nbar_plan *p, uint32_t rank)
{
	for (uint32_t i = 0; i < p->nrecv; i++)
		if (nbfw_plan_recvs(p)[i].src == rank)
			return true;
	return false;
}

/* One member posts another count, or no value, or a value where the others have none: all members
 * fail at this barrier. The failed rank is that of the member or, if the member itself has noticed
 * first, that of one whom it waits for. */
static void test_mismatch(void **state)
{
	(void)state;
	for (uint64_t seed = unit_seed(), last = seed + (unit_counted() ? 50 : 1000); seed != last;
	     seed++) {
		struct job job;
		struct world w = any_world(seed, &job);
		uint32_t rank;

		if (w.size > 1) {
			job.odd_rank = rng_below(&w.rng, w.size);
			job.odd_barrier = 1 + rng_below(&w.rng, BARRIERS);
			job.none = rng_percent(&w.rng, 30);
			world_run(&w, all_failed);
			for (uint32_t r = 0; r < w.size; r++) {
				world_require(&w, w.member[r].s->cause == NBAR_STATUS_MISMATCH);
				world_require(&w, w.member[r].ndone < job.odd_barrier);
				rank = w.member[r].s->failed_rank;
				world_require(&w,
					      rank == job.odd_rank ||
						      waits_for(w.set.plan[job.odd_rank], rank));
			}
		}
		world_free(&w);
	}
}

/* The first value of a slot counts; a value longer than value_max is refused. */
static void test_repeated_and_long_values(void **state)
{
	const struct nbfw_alg alg = { NBFW_ALG_PAIRWISE, 0 };
	struct group_plans set = group_plans_generate(alg, 2);
	const struct nbar_plan *p = set.plan[0];
	struct nbfw_values *x = malloc(nbfw_values_size(p, 8));
	struct nbfw_state *s = malloc(nbfw_state_size(p));
	struct nbfw_event ev = { .type = NBFW_EV_START };
	uint64_t two[2] = { 2, 2 }, three[2] = { 3, 3 };
	struct nbfw_value own = value_of(NBAR_SUM, NBAR_INT64, 1, two, 8);
	struct nbfw_value other = value_of(NBAR_SUM, NBAR_INT64, 1, three, 8);
	struct nbfw_value wide = value_of(NBAR_SUM, NBAR_INT64, 2, three, 16);
	struct nbfw_token t = {
		.type = NBFW_TOKEN, .value_length = 24, .src = 1, .epoch = 1, .value = &wide
	};
	struct nbfw_action a;

	(void)state;
	nbfw_init(s, p, 0);
	nbfw_values_init(x, alg, p, 8);
	assert_int_equal(nbfw_values_take(x, s, p, &t), NBFW_VALUE_BAD);
	t.value = &other;
	t.value_length = 16;
	assert_int_equal(nbfw_values_take(x, s, p, &t), NBFW_VALUE_FITS);
	nbfw_step_token(s, p, &t, &a);
	t.value = &own;
	assert_int_equal(nbfw_values_take(x, s, p, &t), NBFW_VALUE_FITS); /* but does not count */
	memcpy(nbfw_values_place(x, 1, 0), &own, 16);
	assert_int_equal(nbfw_values_start(x, s, p, 8), NBAR_RANK_NONE);
	nbfw_step(s, p, &ev, &a);
	nbfw_values_advance(x, s, p);
	assert_true(a.complete);
	assert_int_equal(nbfw_values_place(x, 1, p->nstep)->byte[0], 5);
	nbfw_values_at(x, 0, &t);
	assert_int_equal(t.value_length, 16);
	assert_int_equal(t.value->byte[0], 2);
	t.epoch = 2;
	nbfw_values_at(x, 0, &t);
	assert_int_equal(t.value_length, 0);
	free(s);
	free(x);
	group_plans_free(&set);
}

UNIT_MAIN(NULL, NULL, UNIT(test_special_reals), UNIT(test_random_reals), UNIT(test_integers),
	  UNIT(test_many_elements), UNIT(test_pairs), UNIT(test_lengths),
	  UNIT(test_plans_are_exact), UNIT(test_every_result_is_the_fold), UNIT(test_runs_repeat),
	  UNIT(test_mismatch), UNIT(test_repeated_and_long_values))
