/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fold.c - folds the values of the ranks of a host, with the same bits as NICs do.
 *
 * Called by the rank that arrives last. Not by MPI_Reduce_local: some MPIs compare unsigned numbers
 * as signed ones, or saturate sums. The program's rounding and traps do not matter here.
 */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "comm_internal.h"

enum order { UNSIGNED, SIGNED, REAL };

static enum order order_of(uint8_t type)
{
	if (type >= NBAR_UINT8 && type <= NBAR_UINT64)
		return UNSIGNED;
	return type == NBAR_FLOAT || type == NBAR_DOUBLE || type == NBAR_FLOAT_INT ||
			       type == NBAR_DOUBLE_INT
		       ? REAL
		       : SIGNED;
}

static uint64_t bits_of(const uint8_t *at, uint32_t size)
{
	uint64_t bits = 0;

	memcpy(&bits, at, size);
	return bits;
}

/* Numbers as unsigned ones in the same order: -0 before 0. */
static uint64_t key_of(uint64_t bits, uint32_t size, enum order order)
{
	const uint64_t top = UINT64_C(1) << 63;

	bits <<= 64 - 8 * size;
	if (order == UNSIGNED)
		return bits;
	return order == REAL && bits & top ? ~bits : bits ^ top;
}

static double real_of(uint64_t bits, uint32_t size)
{
	float f;
	double d;

	memcpy(&f, &bits, sizeof(f));
	memcpy(&d, &bits, sizeof(d));
	return size == sizeof(f) ? (double)f : d;
}

/* Every result that is not a number has the same bits. */
static uint64_t real_bits(double d, uint32_t size)
{
	uint64_t bits = 0;
	float f;

	d = isnan(d) ? (double)NAN : d;
	f = size == sizeof(f) ? (float)d : 0;
	memcpy(&bits, size == sizeof(f) ? (const void *)&f : &d, size);
	return bits;
}

static uint64_t element_fold(uint8_t op, uint64_t a, uint64_t b, uint32_t size, enum order order)
{
	if (order == REAL && (op == NBAR_SUM || isnan(real_of(a, size)) || isnan(real_of(b, size))))
		return real_bits(real_of(a, size) + real_of(b, size), size);
	switch ((enum nbar_value_op)op) {
	case NBAR_SUM:
		return a + b;
	case NBAR_PROD:
		return a * b;
	case NBAR_MIN:
		return key_of(a, size, order) < key_of(b, size, order) ? a : b;
	case NBAR_MAX:
		return key_of(a, size, order) > key_of(b, size, order) ? a : b;
	case NBAR_BAND:
		return a & b;
	case NBAR_BOR:
		return a | b;
	case NBAR_BXOR:
		return a ^ b;
	case NBAR_LAND:
		return a && b;
	case NBAR_LOR:
		return a || b;
	case NBAR_LXOR:
		return !a != !b;
	case NBAR_MINLOC:
	case NBAR_MAXLOC:
		break;
	}
	return a;
}

/* True if pair b takes the place of pair a: of equal numbers (0 and -0, too), that with the lower
 * index does. */
static bool mate_wins(uint8_t op, const uint8_t *a, const uint8_t *b, uint32_t size,
		      enum order order)
{
	const uint64_t minus_zero = UINT64_C(1) << (8 * size - 1);
	uint64_t na = bits_of(a, size), nb = bits_of(b, size);
	uint64_t ka = key_of(order == REAL && na == minus_zero ? 0 : na, size, order);
	uint64_t kb = key_of(order == REAL && nb == minus_zero ? 0 : nb, size, order);
	int32_t ia, ib;

	memcpy(&ia, a + size, sizeof(ia));
	memcpy(&ib, b + size, sizeof(ib));
	if (ka != kb)
		return (kb < ka) == (op == NBAR_MINLOC);
	return ia != ib ? ib < ia : nb < na;
}

void nbmpi_fold(struct nbar_value *to, const struct nbar_value *from)
{
	static const struct {
		uint8_t element, number;
	} size[] = {
#define SIZES(name, number, class, element, ofnumber) [number] = { element, ofnumber },
		NBAR_VALUE_TYPES(SIZES)
#undef SIZES
	};
	const uint32_t element = size[to->type].element, number = size[to->type].number;
	const enum order order = order_of(to->type);
	fenv_t env;

	if (order == REAL) {
		fegetenv(&env);
		fesetenv(FE_DFL_ENV);
	}
	for (uint32_t i = 0; i < to->count; i++) {
		uint8_t *a = to->of.byte + i * element;
		const uint8_t *b = from->of.byte + i * element;
		uint64_t folded;

		if (to->op == NBAR_MINLOC || to->op == NBAR_MAXLOC) {
			if (mate_wins(to->op, a, b, number, order))
				memcpy(a, b, element);
			continue;
		}
		folded = element_fold(to->op, bits_of(a, element), bits_of(b, element), element,
				      order);
		memcpy(a, &folded, element);
	}
	if (order == REAL)
		fesetenv(&env);
}
