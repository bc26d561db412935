/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value.c - folds the values that barriers carry, in integers only. See value.h.
 *
 * Called by the NIC loop before and after the engine. Must never read beyond the length that
 * nbfw_value_length has checked.
 */
#include "value.h"

/* What the table says of a type; all 0: no such type. */
struct kind {
	char class;
	uint8_t size, number;
};

#ifdef __bpf__
#define VALUE_CALL /* programs.bpf.c makes all functions inline */
#else
#define VALUE_CALL __attribute__((noinline))
#endif

static const struct kind kinds[] = {
#define KIND(name, n, class, size, number) [n] = { class, size, number },
	NBAR_VALUE_TYPES(KIND)
#undef KIND
};

static struct kind kind_of(const struct nbfw_value *v)
{
	return v->type < sizeof(kinds) / sizeof(kinds[0]) ? kinds[v->type] : kinds[0];
}

static bool op_takes(uint8_t op, char class)
{
	static const char classes[][3] = {
#define CLASSES(name, n, class) [n] = class,
		NBAR_VALUE_OPS(CLASSES)
#undef CLASSES
	};

	return class && op < sizeof(classes) / sizeof(classes[0]) &&
	       (classes[op][0] == class || classes[op][1] == class);
}

static uint32_t value_elements(const struct nbfw_value *v)
{
	return v->count[0] | (uint32_t)v->count[1] << 8;
}

uint32_t nbfw_value_length(const struct nbfw_value *v)
{
	const struct kind k = kind_of(v);
	uint32_t n = value_elements(v) * k.size;

	if ((v->zero[0] | v->zero[1] | v->zero[2] | v->zero[3]) || n > NBAR_VALUE_MAX ||
	    !op_takes(v->op, k.class))
		return 0;
	return n;
}

static uint32_t head_of(const struct nbfw_value *v)
{
	uint32_t head;

	__builtin_memcpy(&head, v, sizeof(head));
	return head;
}

bool nbfw_value_alike(const struct nbfw_value *a, const struct nbfw_value *b)
{
	return head_of(a) == head_of(b);
}

/* Reads or writes a number of n bytes, little-endian. */
static inline uint64_t value_get(const uint8_t *at, uint32_t n)
{
	uint64_t v = 0;

#ifdef __bpf__
	v = n == 8   ? NBFW_WORD(at, 64)
	    : n == 4 ? NBFW_WORD(at, 32)
	    : n == 2 ? NBFW_WORD(at, 16)
		     : NBFW_WORD(at, 8);
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	__builtin_memcpy(&v, at, n);
#else
	for (uint32_t i = n; i > 0; i--)
		v = v << 8 | at[i - 1];
#endif
	return v;
}

static inline void value_put(uint8_t *at, uint64_t v, uint32_t n)
{
#ifdef __bpf__
	if (n == 8)
		NBFW_WORD(at, 64) = v;
	else if (n == 4)
		NBFW_WORD(at, 32) = (uint32_t)v;
	else if (n == 2)
		NBFW_WORD(at, 16) = (uint16_t)v;
	else
		NBFW_WORD(at, 8) = (uint8_t)v;
#elif __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	__builtin_memcpy(at, &v, n);
#else
	for (uint32_t i = 0; i < n; i++, v >>= 8)
		at[i] = (uint8_t)v;
#endif
}

/* Adds two reals with m bits of mantissa and e bits of exponent, as IEEE 754 does: to nearest, ties
 * to even. Each result that is not a number is the same quiet NaN. */
static inline uint64_t real_add(uint64_t a, uint64_t b, uint32_t m, uint32_t e)
{
	const uint64_t sign = UINT64_C(1) << (m + e), hidden = UINT64_C(1) << m;
	const uint64_t top = (UINT64_C(1) << e) - 1, nan = top << m | hidden >> 1;

	if ((a & ~sign) < (b & ~sign)) { /* |a| >= |b| from here on */
		uint64_t swap = a;

		a = b;
		b = swap;
	}
	uint64_t ea = a >> m & top, eb = b >> m & top, minus = (a ^ b) & sign;

	if (ea == top)
		return (a & (hidden - 1)) || (minus && eb == top) ? nan : a;
	/* Three more bits: guard, round, and a sticky one. */
	uint64_t fa = ((a & (hidden - 1)) | (ea ? hidden : 0)) << 3;
	uint64_t fb = ((b & (hidden - 1)) | (eb ? hidden : 0)) << 3;
	uint64_t by = (ea ? ea : 1) - (eb ? eb : 1);

	ea += !ea;
	if (by > m + 3)
		fb = fb != 0;
	else
		fb = fb >> by | ((fb & ((UINT64_C(1) << by) - 1)) != 0);
	NBFW_BLUR(fb, a);
	fa = minus ? fa - fb : fa + fb;
	NBFW_BLUR(fa, a);
	NBFW_BLUR(ea, a);
	if (fa == 0)
		return minus ? 0 : a & sign;
	if (fa >> (m + 4)) {
		fa = fa >> 1 | (fa & 1);
		ea++;
	}
	/* Shifts by 63 at most, in halves; ea stays at least 1. */
	for (uint32_t n = fa >> (m + 3) ? 0 : m > 32 ? 32 : 16; n > 0; n /= 2) {
		NBFW_BLUR(fa, a);
		NBFW_BLUR(ea, a);
		if (!(fa >> (m + 4 - n)) && ea > n) {
			fa <<= n;
			ea -= n;
		}
	}
	fa = (fa >> 3) + ((fa & 7) + (fa >> 3 & 1) > 4);
	/* A carry out of the rounding adds 1 to the exponent, as it should. */
	if (!(fa & ~(hidden - 1)))
		ea = 0;
	else
		fa -= hidden;
	fa += ea << m;
	return (a & sign) | (fa >> m >= top ? top << m : fa);
}

#define NAN64 (UINT64_C(0x7ff8) << 48)
#define NAN32 (UINT64_C(0x7fc0) << 16)

/* Reals, as unsigned numbers in the same order: -0 before 0. */
static uint64_t real_key(uint64_t v, uint32_t bits)
{
	const uint64_t sign = UINT64_C(1) << (bits - 1);

	return v & sign ? ~v & (sign | (sign - 1)) : v | sign;
}

static bool real_is_nan(uint64_t v, uint32_t bits)
{
	const uint64_t infinite = bits == 64 ? UINT64_C(0x7ff) << 52 : UINT64_C(0xff) << 23;

	return (v & ~(UINT64_C(1) << (bits - 1))) > infinite;
}

/* --- one element of `size` bytes: to = f(a, b) ----------------------------------------------- */

typedef uint64_t element_fold(uint64_t a, uint64_t b, uint32_t size, uint64_t flip);

static inline uint64_t fold_sum(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return a + b;
}

static inline uint64_t fold_product(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return a * b;
}

/* flip makes integers unsigned ones in the same order, or in the opposite order. */
static inline uint64_t fold_least(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size;
	return (a ^ flip) < (b ^ flip) ? a : b;
}

static inline uint64_t fold_and(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return a & b;
}

static inline uint64_t fold_or(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return a | b;
}

static inline uint64_t fold_xor(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return a ^ b;
}

static inline uint64_t fold_both(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return a && b;
}

static inline uint64_t fold_either(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return a || b;
}

static inline uint64_t fold_one(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)size, (void)flip;
	return !a != !b;
}

static inline uint64_t fold_real_sum(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	(void)flip;
	return size == 8 ? real_add(a, b, 52, 11) : real_add(a, b, 23, 8);
}

static inline uint64_t fold_real_least(uint64_t a, uint64_t b, uint32_t size, uint64_t flip)
{
	if (real_is_nan(a, 8 * size) || real_is_nan(b, 8 * size))
		return size == 8 ? NAN64 : NAN32;
	return (real_key(a, 8 * size) ^ flip) < (real_key(b, 8 * size) ^ flip) ? a : b;
}

/* --- n bytes of elements --------------------------------------------------------------------- */

/* Always inline, with constants for f and size: so each loop has one operation. Where size counts,
 * one loop calls them all. */
#ifdef __OPTIMIZE_SIZE__
#define EACH_INLINE __attribute__((noinline)) static
#else
#define EACH_INLINE __attribute__((always_inline)) static inline
#endif

EACH_INLINE void each(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t n, uint32_t size,
		      element_fold *f, uint64_t flip)
{
	for (size_t at = 0; at < n; at += size) {
		NBFW_LOOP_ENDS();
		size_t i = NBFW_ELEMENT(at, size, n);

		value_put(to + i, f(value_get(a + i, size), value_get(b + i, size), size, flip),
			  size);
	}
}

EACH_INLINE void by_size(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t n, uint32_t size,
			 element_fold *f, uint64_t flip)
{
	switch (size) {
	case 1:
		each(to, a, b, n, 1, f, flip);
		return;
	case 2:
		each(to, a, b, n, 2, f, flip);
		return;
	case 4:
		each(to, a, b, n, 4, f, flip);
		return;
	default:
		each(to, a, b, n, 8, f, flip);
	}
}

/* Operations that know no elements: by words, then by bytes. */
__attribute__((always_inline)) static inline void
bits(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t n, element_fold *f)
{
	uint32_t words = NBFW_AT_MOST(n & ~7u, NBFW_FIXED_VALUE);

	each(to, a, b, words, 8, f, 0);
	each(to + words, a + words, b + words, n - words, 1, f, 0);
}

static uint64_t sign_of(uint8_t type, uint32_t size)
{
	bool is_signed = type <= NBAR_INT64 || type == NBAR_INT_INT || type == NBAR_INT64_INT;

	return is_signed ? UINT64_C(1) << (8 * size - 1) : 0;
}

static void fold_integers(uint8_t op, uint8_t type, uint8_t *to, const uint8_t *a, const uint8_t *b,
			  uint32_t n, uint32_t size)
{
	switch ((enum nbar_value_op)op) {
	case NBAR_SUM:
		by_size(to, a, b, n, size, fold_sum, 0);
		return;
	case NBAR_PROD:
		by_size(to, a, b, n, size, fold_product, 0);
		return;
	case NBAR_MIN:
		by_size(to, a, b, n, size, fold_least, sign_of(type, size));
		return;
	case NBAR_MAX:
		by_size(to, a, b, n, size, fold_least, ~sign_of(type, size));
		return;
	case NBAR_BAND:
		bits(to, a, b, n, fold_and);
		return;
	case NBAR_BOR:
		bits(to, a, b, n, fold_or);
		return;
	case NBAR_BXOR:
		bits(to, a, b, n, fold_xor);
		return;
	case NBAR_LAND:
		by_size(to, a, b, n, size, fold_both, 0);
		return;
	case NBAR_LOR:
		by_size(to, a, b, n, size, fold_either, 0);
		return;
	case NBAR_LXOR:
		by_size(to, a, b, n, size, fold_one, 0);
		return;
	case NBAR_MINLOC:
	case NBAR_MAXLOC:
		return;
	}
}

#if defined(__SSE2_MATH__) && !defined(__FAST_MATH__)
#define MODE_MASK 0xffc0u  /* of MXCSR: all but the flags */
#define MODE_USUAL 0x1f80u /* to nearest, subnormals, no traps */

/* Adds n bytes of reals by the machine's unit. True: some sums are NaN. */
#define UNIT_SUM(name, real)                                                                 \
	static inline bool name(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t n) \
	{                                                                                    \
		typedef real reals __attribute__((vector_size(16)));                         \
		reals x[2], y[2];                                                            \
		real u, v;                                                                   \
		bool odd = false;                                                            \
                                                                                             \
		for (; n >= sizeof(x); n -= (uint32_t)sizeof(x)) {                           \
			__builtin_memcpy(x, a, sizeof(x));                                   \
			__builtin_memcpy(y, b, sizeof(y));                                   \
			x[0] += y[0];                                                        \
			x[1] += y[1];                                                        \
			__builtin_memcpy(to, x, sizeof(x));                                  \
			odd |= ANY((x[0] != x[0]) | (x[1] != x[1]));                         \
			a += sizeof(x);                                                      \
			b += sizeof(x);                                                      \
			to += sizeof(x);                                                     \
		}                                                                            \
		for (; n > 0; n -= (uint32_t)sizeof(u)) {                                    \
			__builtin_memcpy(&u, a, sizeof(u));                                  \
			__builtin_memcpy(&v, b, sizeof(v));                                  \
			u += v;                                                              \
			__builtin_memcpy(to, &u, sizeof(u));                                 \
			odd |= u != u;                                                       \
			a += sizeof(u);                                                      \
			b += sizeof(u);                                                      \
			to += sizeof(u);                                                     \
		}                                                                            \
		return odd;                                                                  \
	}
#define ANY(v) (__builtin_ia32_pmovmskb128((bytes)(v)) != 0)
typedef char bytes __attribute__((vector_size(16)));
UNIT_SUM(unit_sum64, double)
UNIT_SUM(unit_sum32, float)

/* Each NaN becomes the same one. */
__attribute__((cold, noinline)) static void mend_nans(uint8_t *to, uint32_t n, uint32_t size)
{
	for (uint32_t at = 0; at < n; at += size)
		if (real_is_nan(value_get(to + at, size), 8 * size))
			value_put(to + at, size == 8 ? NAN64 : NAN32, size);
}

/* False: the thread's mode is not the usual one. The thread's flags stay as they were. */
static inline bool unit_sum(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t n,
			    uint32_t size)
{
	const uint32_t mode = __builtin_ia32_stmxcsr();
	bool odd;

	if ((mode & MODE_MASK) != MODE_USUAL)
		return false;
	odd = size == 8 ? unit_sum64(to, a, b, n) : unit_sum32(to, a, b, n);
	__builtin_ia32_ldmxcsr(mode);
	if (__builtin_expect(odd, 0))
		mend_nans(to, n, size);
	return true;
}
#else
static inline bool unit_sum(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t n,
			    uint32_t size)
{
	(void)to, (void)a, (void)b, (void)n, (void)size;
	return false;
}
#endif

static void fold_reals(uint8_t op, uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t n,
		       uint32_t size)
{
	uint64_t flip = op == NBAR_MAX ? UINT64_MAX : 0;

	if (op == NBAR_SUM && unit_sum(to, a, b, n, size))
		return;
	if (op == NBAR_SUM && size == 8)
		each(to, a, b, n, 8, fold_real_sum, 0);
	else if (op == NBAR_SUM)
		each(to, a, b, n, 4, fold_real_sum, 0);
	else if (size == 8)
		each(to, a, b, n, 8, fold_real_least, flip);
	else
		each(to, a, b, n, 4, fold_real_least, flip >> 32);
}

/* What orders the numbers of pairs: 0 and -0 are equal. */
static uint64_t pair_key(const uint8_t *at, uint8_t type, uint32_t n)
{
	uint64_t v = value_get(at, n);

	if (type != NBAR_FLOAT_INT && type != NBAR_DOUBLE_INT)
		return v ^ sign_of(type, n);
	return real_key(v == UINT64_C(1) << (8 * n - 1) ? 0 : v, 8 * n);
}

/* True if pair b takes the place of pair a. Of equal numbers, that with the lower index wins. The
 * bits decide last: so the order of a and b never counts. */
static bool pair_wins(uint8_t op, const uint8_t *a, const uint8_t *b, uint8_t type, uint32_t n)
{
	uint64_t ka = pair_key(a, type, n), kb = pair_key(b, type, n);
	uint64_t ia = value_get(a + n, 4) ^ 0x80000000, ib = value_get(b + n, 4) ^ 0x80000000;

	if (ka != kb)
		return (kb < ka) == (op == NBAR_MINLOC);
	return ia != ib ? ib < ia : value_get(b, n) < value_get(a, n);
}

static void fold_pairs(uint8_t op, uint8_t type, uint8_t *to, const uint8_t *a, const uint8_t *b,
		       uint32_t n, struct kind k)
{
	for (uint32_t at = 0; at < n; at += k.size)
		__builtin_memcpy(to + at,
				 (pair_wins(op, a + at, b + at, type, k.number) ? b : a) + at,
				 k.size);
}

VALUE_CALL static void fold_any(struct nbfw_value *to, const struct nbfw_value *a,
				const struct nbfw_value *b)
{
	const struct kind k = kind_of(a);
	uint32_t n = value_elements(a) * k.size;

	if (k.class == 'F')
		fold_reals(a->op, to->byte, a->byte, b->byte, n, k.size);
	else if (k.class == 'I')
		fold_integers(a->op, a->type, to->byte, a->byte, b->byte, n, k.size);
	else if (NBFW_HAS_PAIRS)
		fold_pairs(a->op, a->type, to->byte, a->byte, b->byte, n, k);
}

void nbfw_value_fold(struct nbfw_value *to, const struct nbfw_value *a, const struct nbfw_value *b)
{
	__builtin_memcpy(to, a, NBFW_VALUE_HEAD);
	/* Sums of doubles, the most frequent ones, without a call. */
	if (a->op != NBAR_SUM || a->type != NBAR_DOUBLE ||
	    !unit_sum(to->byte, a->byte, b->byte, value_elements(a) * 8, 8))
		fold_any(to, a, b);
}

#ifndef __bpf__ /* where groups are made */
bool nbfw_value_plans(struct nbfw_alg alg)
{
	return nbfw_alg_plans(alg) && alg.kind != NBFW_ALG_DISSEMINATION;
}

bool nbfw_value_replaces(struct nbfw_alg alg, const struct nbar_plan *p, uint32_t step)
{
	const struct nbar_step *st = &nbfw_plan_steps(p)[step];
	uint32_t half = 1;

	/* In a tree, a rank waits for the release in the step in which it signals its parent. */
	if (alg.kind != NBFW_ALG_PAIRWISE)
		return st->nsend > 0 && st->nslot > 0;
	while (half <= p->size / 2)
		half *= 2;
	return p->rank >= half;
}

#endif

static struct nbfw_value *slot_place(const struct nbfw_values *x, const struct nbar_plan *p,
				     uint32_t epoch, uint32_t slot)
{
	return nbfw_values_place(x, epoch, p->nstep + 1u + slot);
}

/* What lies behind the index of a pair is 0, so that equal results have equal bytes. */
static void clear_gaps(struct nbfw_value *v)
{
	const struct kind k = kind_of(v);

	for (uint32_t at = 0; k.class == 'L' && at < value_elements(v) * k.size; at += k.size)
		__builtin_memset(v->byte + at + k.number + 4, 0, k.size - k.number - 4u);
}

#ifndef __bpf__
/* memory: the kinds of the steps, then for each parity the values at the entry of each step, at the
 * end, and of each slot. */
static uint32_t steps_size(uint32_t nstep)
{
	return (nstep + 7u) & ~7u;
}

static uint32_t value_size(uint32_t value_max)
{
	return NBFW_VALUE_HEAD + ((value_max + 7) & ~7u);
}

static uint32_t half_size(const struct nbar_plan *p, uint32_t value_max)
{
	return (p->nstep + 1u + p->nrecv) * value_size(value_max);
}

size_t nbfw_values_size(const struct nbar_plan *p, uint32_t value_max)
{
	return sizeof(struct nbfw_values) + steps_size(p->nstep) +
	       2 * (size_t)half_size(p, value_max);
}

void nbfw_values_init(struct nbfw_values *x, struct nbfw_alg alg, const struct nbar_plan *p,
		      uint32_t value_max)
{
	*x = (struct nbfw_values){
		.size = value_size(value_max),
		.first = steps_size(p->nstep),
		.half = half_size(p, value_max),
	};
	for (uint32_t i = 0; i < p->nstep; i++)
		x->memory[i] = (uint8_t)((nbfw_value_replaces(alg, p, i) ? NBFW_STEP_REPLACES : 0) |
					 (nbfw_plan_steps(p)[i].nslot == 1 ? NBFW_STEP_ALONE : 0));
}

#endif

uint32_t nbfw_values_start(struct nbfw_values *x, const struct nbfw_state *s,
			   const struct nbar_plan *p, uint32_t length)
{
	const uint32_t epoch = s->epoch + 1, parity = epoch & 1;
	struct nbfw_value *own = nbfw_values_place(x, epoch, 0);

	x->length[parity] = (uint16_t)(length ? NBFW_VALUE_HEAD + length : 0);
	x->head[parity] = length ? head_of(own) : 0;
	if (NBFW_HAS_PAIRS && length && NBAR_IS_PAIR(own->type))
		clear_gaps(own);
	for (uint32_t slot = 0; x->early && slot < NBFW_AT_MOST(p->nrecv, NBFW_FIXED_SLOTS); slot++)
		if (nbfw_has_token(s, epoch, slot) &&
		    head_of(slot_place(x, p, epoch, slot)) != x->head[parity])
			return nbfw_plan_recv(p, slot)->src;
	x->send_step = x->folded = 0;
	x->early = false;
	return NBAR_RANK_NONE;
}

enum nbfw_value_verdict nbfw_values_keep(struct nbfw_values *x, const struct nbfw_state *s,
					 const struct nbar_plan *p, const struct nbfw_token *t)
{
	const bool early = t->epoch != s->epoch;
	struct nbfw_value *to;

	if (!nbfw_takes(s, p, t))
		return NBFW_VALUE_FITS;
	if (t->value_length > x->size)
		return NBFW_VALUE_BAD;
	if (!early && nbfw_value_head(t) != x->head[t->epoch & 1])
		return NBFW_VALUE_MISMATCH;
	to = slot_place(x, p, t->epoch, t->slot);
	if (t->value_length)
		nbfw_value_copy(to, t->value, t->value_length);
	else
		__builtin_memset(to, 0, NBFW_VALUE_HEAD);
	x->early |= early;
	return NBFW_VALUE_FITS;
}

void nbfw_values_catch_up(struct nbfw_values *x, const struct nbfw_state *s,
			  const struct nbar_plan *p)
{
	const uint32_t length = x->length[s->epoch & 1];

	for (; length && x->folded < NBFW_AT_MOST(s->step, NBFW_FIXED_STEPS); x->folded++) {
		NBFW_LOOP_ENDS();
		const struct nbar_step *st = nbfw_plan_step(p, x->folded);
		const struct nbfw_value *slot = slot_place(x, p, s->epoch, st->first_slot);
		struct nbfw_value *own = nbfw_values_place(x, s->epoch, x->folded);
		struct nbfw_value *to = nbfw_values_next(x, own);

		if (x->memory[NBFW_INDEX(x->folded, NBFW_FIXED_STEPS)] & NBFW_STEP_REPLACES ||
		    st->nslot == 0) {
			nbfw_value_copy(to, st->nslot ? slot : own, length);
			continue;
		}
		nbfw_value_fold(to, own, slot);
		for (uint32_t i = 1; i < NBFW_STEP_SLOTS(st); i++)
			nbfw_value_fold(to, to, slot_place(x, p, s->epoch, st->first_slot + i));
	}
}

void nbfw_values_answer(const struct nbfw_values *x, const struct nbar_plan *p, uint32_t dst,
			struct nbfw_token *t)
{
	const struct nbar_send *send = nbfw_plan_sends(p);
	const struct nbar_step *st = nbfw_plan_steps(p);
	uint32_t i = 0, step = 0;

	while (i < p->nsend && (send[i].dst != dst || send[i].slot != t->slot))
		i++;
	while (step < p->nstep && i >= st[step].first_send + st[step].nsend)
		step++;
	if (step < p->nstep)
		nbfw_values_at(x, step, t);
}
