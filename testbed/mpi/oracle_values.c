/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_values.c - MPI_Allreduce and MPI_Iallreduce of few bytes: operations, types and counts at
 * random; MPI_IN_PLACE at some ranks; several names of one type; NaN, infinities and zeros;
 * integers that overflow.
 *
 * Each rank gathers all operands, and computes the result itself: MPICH 4.0 takes unsigned numbers
 * for signed ones in MPI_MIN, and Open MPI 4.1 saturates sums of MPI_SHORT. Integers, minima,
 * maxima and pairs must be equal bit by bit; sums of reals within the error of any order. And all
 * ranks must get the same bits. Where the MPI runs an allreduce, nothing is compared.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_predict.h"

#define BYTES 512
#define RANKS 32
#define UNDER_WAY 24 /* three times as many as a NIC takes at once */
#define OPENING 8    /* allreduces that the MPI runs before the set-up */

/* Kinds of elements: signed and unsigned integers, logical values, bytes, reals, and pairs of an
 * integer or a real with an index. */
enum kind {
	SIGNED,
	UNSIGNED,
	LOGICAL,
	BITS,
	FLOAT,
	DOUBLE,
	INT_PAIR,
	LONG_PAIR,
	FLOAT_PAIR,
	DOUBLE_PAIR
};

/* b: another name of type a. */
static const struct type {
	MPI_Datatype a, b;
	enum kind kind;
	int size;
} types[] = {
	{ MPI_DOUBLE, MPI_DOUBLE_PRECISION, DOUBLE, 8 },
	{ MPI_FLOAT, MPI_REAL, FLOAT, 4 },
	{ MPI_INT, MPI_INT32_T, SIGNED, 4 },
	{ MPI_LONG, MPI_INT64_T, SIGNED, sizeof(long) },
	{ MPI_LONG_LONG, MPI_LONG_LONG_INT, SIGNED, 8 },
	{ MPI_SHORT, MPI_INT16_T, SIGNED, 2 },
	{ MPI_SIGNED_CHAR, MPI_INT8_T, SIGNED, 1 },
	{ MPI_UNSIGNED, MPI_UINT32_T, UNSIGNED, 4 },
	{ MPI_UNSIGNED_LONG, MPI_UINT64_T, UNSIGNED, sizeof(long) },
	{ MPI_UNSIGNED_SHORT, MPI_UINT16_T, UNSIGNED, 2 },
	{ MPI_UNSIGNED_CHAR, MPI_UINT8_T, UNSIGNED, 1 },
	{ MPI_AINT, MPI_COUNT, BITS, sizeof(MPI_Aint) },
	{ MPI_OFFSET, MPI_OFFSET, BITS, sizeof(MPI_Offset) },
	{ MPI_BYTE, MPI_BYTE, BITS, 1 },
	{ MPI_C_BOOL, MPI_C_BOOL, LOGICAL, 1 },
	{ MPI_LOGICAL, MPI_LOGICAL, LOGICAL, 4 },
	{ MPI_INTEGER, MPI_INTEGER, BITS, 4 },
	{ MPI_2INT, MPI_2INT, INT_PAIR, 8 },
	{ MPI_2INTEGER, MPI_2INTEGER, INT_PAIR, 8 },
	{ MPI_LONG_INT, MPI_LONG_INT, LONG_PAIR, 16 },
	{ MPI_FLOAT_INT, MPI_FLOAT_INT, FLOAT_PAIR, 8 },
	{ MPI_DOUBLE_INT, MPI_DOUBLE_INT, DOUBLE_PAIR, 16 },
};
#define NTYPE (sizeof(types) / sizeof(types[0]))

/* The operations that MPI permits for each kind. */
static int ops_of(enum kind kind, MPI_Op op[10])
{
	const MPI_Op number[] = { MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD },
		     bits[] = { MPI_BAND, MPI_BOR, MPI_BXOR },
		     logical[] = { MPI_LAND, MPI_LOR, MPI_LXOR },
		     pair[] = { MPI_MINLOC, MPI_MAXLOC };
	bool integer = kind <= UNSIGNED;
	int n = 0;

	for (int i = 0; i < 4 && (integer || kind == FLOAT || kind == DOUBLE); i++)
		op[n++] = number[i];
	for (int i = 0; i < 3 && (integer || kind == BITS); i++)
		op[n++] = bits[i];
	for (int i = 0; i < 3 && (integer || kind == LOGICAL); i++)
		op[n++] = logical[i];
	for (int i = 0; i < 2 && kind >= INT_PAIR; i++)
		op[n++] = pair[i];
	return n;
}

struct one {
	const struct type *type;
	MPI_Op op;
	int count;
	bool nonblocking;
	bool odd;   /* NaN and infinities */
	bool exact; /* reals whose sums and products have no rounding */
};

/* This rank's own random numbers. */
static uint32_t own_random(uint32_t n)
{
	static uint32_t state;

	if (state == 0)
		state = 77u + 12345u * (uint32_t)oracle.rank;
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static double real(const struct one *one)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0, DBL_MIN / 8, 1e300 };
	static const double small[] = { 1, -1, 2, 0.5, -2 };

	if (one->odd && own_random(3) == 0)
		return odd[own_random(sizeof(odd) / sizeof(odd[0]))];
	if (one->exact || one->op == MPI_PROD)
		return small[own_random(5)];
	return ((double)own_random(1 << 24) - (1 << 23)) / (1 << 20);
}

static void fill(const struct one *one, unsigned char *at)
{
	int size = one->type->size;

	memset(at, 0, BYTES);
	for (int i = 0; i < one->count; i++, at += size) {
		double d = real(one);
		float f = (float)d;
		int small = (int)own_random(4) - 2, index = (int)own_random(1000);
		long l = small;

		switch (one->type->kind) {
		case SIGNED:
		case UNSIGNED:
		case BITS:
			for (int k = 0; k < size; k++)
				at[k] = own_random(4) ? (unsigned char)own_random(256) : 0;
			break;
		case LOGICAL:
			at[0] = own_random(2) ? 1 : 0; /* little-endian */
			break;
		case FLOAT:
			memcpy(at, &f, 4);
			break;
		case DOUBLE:
			memcpy(at, &d, 8);
			break;
		case INT_PAIR:
			memcpy(at, &small, 4);
			memcpy(at + 4, &index, 4);
			break;
		case LONG_PAIR:
			memcpy(at, &l, 8);
			memcpy(at + 8, &index, 4);
			break;
		case FLOAT_PAIR:
			f = (float)small;
			memcpy(at, &f, 4);
			memcpy(at + 4, &index, 4);
			break;
		case DOUBLE_PAIR:
			d = small;
			memcpy(at, &d, 8);
			memcpy(at + 8, &index, 4);
			break;
		}
	}
}

/* --- the truth -------------------------------------------------------------------------------- */

static uint64_t integer_of(const struct type *type, const unsigned char *at)
{
	uint64_t bits = 0;

	memcpy(&bits, at, (size_t)type->size); /* little-endian */
	if (type->kind == SIGNED && type->size < 8 && bits >> (8 * type->size - 1))
		bits |= UINT64_MAX << (8 * type->size);
	return bits;
}

static bool integer_less(const struct type *type, uint64_t a, uint64_t b)
{
	return type->kind == SIGNED ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t integer_fold(const struct one *one, uint64_t a, uint64_t b)
{
	if (one->op == MPI_SUM)
		return a + b;
	if (one->op == MPI_PROD)
		return a * b;
	if (one->op == MPI_MIN)
		return integer_less(one->type, b, a) ? b : a;
	if (one->op == MPI_MAX)
		return integer_less(one->type, a, b) ? b : a;
	if (one->op == MPI_BAND)
		return a & b;
	if (one->op == MPI_BOR)
		return a | b;
	if (one->op == MPI_BXOR)
		return a ^ b;
	if (one->op == MPI_LAND)
		return a && b;
	return one->op == MPI_LOR ? a || b : !a != !b;
}

static double real_of(const struct type *type, const unsigned char *at)
{
	float f;
	double d;

	memcpy(&f, at, 4);
	if (type->kind == FLOAT || type->kind == FLOAT_PAIR)
		return f;
	memcpy(&d, at, 8);
	return d;
}

/* The number of a pair, as a real: it is small. */
static double number_of(const struct type *type, const unsigned char *at)
{
	struct type integer = { .size = type->kind == INT_PAIR ? 4 : 8, .kind = SIGNED };

	return type->kind == INT_PAIR || type->kind == LONG_PAIR
		       ? (double)(int64_t)integer_of(&integer, at)
		       : real_of(type, at);
}

static int index_of(const struct type *type, const unsigned char *at)
{
	int index;

	memcpy(&index, at + (type->size == 16 ? 8 : 4), 4);
	return index;
}

/* all: the element of each rank, `step` bytes apart. */
static bool pair_fits(const struct one *one, const unsigned char *out, const unsigned char *all,
		      size_t step)
{
	const unsigned char *best = all;

	for (int r = 1; r < oracle.size; r++) {
		const unsigned char *at = all + (size_t)r * step;
		double a = number_of(one->type, best), b = number_of(one->type, at);

		if (a == b ? index_of(one->type, at) < index_of(one->type, best)
			   : (b < a) == (one->op == MPI_MINLOC))
			best = at;
	}
	return number_of(one->type, best) == number_of(one->type, out) &&
	       index_of(one->type, best) == index_of(one->type, out);
}

static bool real_fits(const struct one *one, const unsigned char *out, const unsigned char *all,
		      size_t step)
{
	double unit = one->type->kind == FLOAT ? FLT_EPSILON : DBL_EPSILON;
	double got = real_of(one->type, out), want = real_of(one->type, all), sizes = fabs(want);
	bool nan = isnan(want);

	for (int r = 1; r < oracle.size; r++) {
		double one_of = real_of(one->type, all + (size_t)r * step);

		nan |= isnan(one_of);
		sizes += fabs(one_of);
		if (one->op == MPI_SUM)
			want += one_of;
		else if ((one_of < want) == (one->op == MPI_MIN) && one_of != want)
			want = one_of;
	}
	if (nan || isnan(want)) /* nbar's rule: a NaN, in minima too */
		return isnan(got);
	if (one->op != MPI_SUM || isinf(want))
		return got == want;
	return fabs(got - want) <= (one->exact && !one->odd ? 0 : unit * oracle.size * sizes);
}

static bool element_fits(const struct one *one, const unsigned char *out, const unsigned char *all,
			 size_t step)
{
	uint64_t want;

	if (one->type->kind >= INT_PAIR)
		return pair_fits(one, out, all, step);
	if (one->type->kind >= FLOAT)
		return real_fits(one, out, all, step);
	want = integer_of(one->type, all);
	for (int r = 1; r < oracle.size; r++)
		want = integer_fold(one, want, integer_of(one->type, all + (size_t)r * step));
	return memcmp(out, &want, (size_t)one->type->size) == 0;
}

/* True if all ranks have the same bytes. */
static bool same_everywhere(const unsigned char *at, int bytes, MPI_Comm comm)
{
	/* More than 256 bytes: the MPI itself runs this one. */
	uint64_t hash = 14695981039346656037u, mine[33] = { 0 }, all[33];

	for (int i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * 1099511628211u;
	mine[0] = hash >> 2;
	mine[1] = (UINT64_MAX >> 2) - mine[0];
	MPI_Allreduce(mine, all, 33, MPI_INT64_T, MPI_MIN, comm);
	return all[0] == (UINT64_MAX >> 2) - all[1];
}

struct call {
	struct one one;
	bool by_nic; /* the ranks must get the same bits, which MPI only recommends */
	unsigned char in[BYTES], out[BYTES + 8], before[BYTES];
};

static int call_start(struct call *call, MPI_Comm comm, MPI_Request *request)
{
	const struct one *one = &call->one;
	MPI_Datatype type = own_random(2) ? one->type->a : one->type->b;
	size_t bytes = (size_t)one->count * (size_t)one->type->size;
	const void *in = call->in;

	fill(one, call->in);
	memset(call->out, 0xa5, sizeof(call->out));
	memset(call->before, 0xa5, sizeof(call->before));
	if (own_random(3) == 0) {
		memcpy(call->out, call->in, bytes);
		memcpy(call->before, call->in, bytes);
		in = MPI_IN_PLACE;
	}
	return one->nonblocking
		       ? MPI_Iallreduce(in, call->out, one->count, type, one->op, comm, request)
		       : MPI_Allreduce(in, call->out, one->count, type, one->op, comm);
}

static void call_check(struct call *call, MPI_Comm comm, uint64_t step)
{
	static unsigned char all[BYTES * RANKS];
	const struct one *one = &call->one;
	unsigned char *out = call->out;
	int size = one->type->size, bytes = one->count * size;

	MPI_Allgather(call->in, BYTES, MPI_BYTE, all, BYTES, MPI_BYTE, comm);
	for (int i = 0; i < one->count && call->by_nic; i++)
		oracle_want(element_fits(one, out + i * size, all + i * size, BYTES),
			    "a wrong result at step", step);
	for (int i = 0; i < 8; i++)
		oracle_want(out[bytes + i] == 0xa5, "wrote too much at step", step);
	for (int i = 0; i < one->count && size == 16; i++) {
		oracle_want(memcmp(out + 16 * i + 12, call->before + 16 * i + 12, 4) == 0 ||
				    !call->by_nic,
			    "wrote to padding at step", step);
		memset(out + 16 * i + 12, 0, 4);
	}
	oracle_want(same_everywhere(out, bytes, comm) || !call->by_nic,
		    "ranks have other bits at step", step);
}

/* Draws an allreduce. True: nbar offloads it, if it offloads those of the communicator. backlog: it
 * is small and nonblocking, so that many are under way at once. */
static bool draw(struct one *one, bool backlog)
{
	MPI_Op ops[10];
	int most;

	one->type = &types[oracle_random(NTYPE)];
	one->op = ops[oracle_random((uint32_t)ops_of(one->type->kind, ops))];
	most = BYTES / one->type->size;
	one->count = backlog || oracle_random(2) ? 1 + (int)oracle_random(3)
						 : (int)oracle_random((uint32_t)most + 1);
	one->exact = oracle_random(2);
	one->odd = oracle_random(4) == 0;
	one->nonblocking = backlog || oracle_random(3) == 0;
#ifdef OPEN_MPI /* which starts such ones itself */
	if (one->nonblocking && one->count == 1 && one->type->kind == SIGNED &&
	    one->type->size == 4 && (one->op == MPI_MIN || one->op == MPI_MAX))
		return false;
#endif
	return one->count > 0 && one->count * one->type->size <= 256 &&
	       !(one->op == MPI_PROD && (one->type->kind == FLOAT || one->type->kind == DOUBLE));
}

static void complete(MPI_Request *request, int n)
{
	int flag = 0, which;

	switch (own_random(4)) {
	case 0:
		MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
		return;
	case 1:
		while (!flag)
			MPI_Testall(n, request, &flag, MPI_STATUSES_IGNORE);
		return;
	case 2:
		for (int i = 0; i < n; i++)
			MPI_Waitany(n, request, &which, MPI_STATUS_IGNORE);
		return;
	}
	for (int i = n - 1; i >= 0; i--)
		for (flag = 0; !flag;)
			MPI_Test(&request[i], &flag, MPI_STATUS_IGNORE);
}

/* What nbar must have offloaded. */
struct forecast {
	int early; /* allreduces that fit, before the set-up */
	bool set_up;
	uint64_t offloaded;
};

static bool forecast(struct forecast *f, const struct one *one, bool fits)
{
	if (!fits || !oracle.by_nic)
		return false;
	f->set_up |= !one->nonblocking && f->early >= OPENING;
	f->early++;
	f->offloaded += f->set_up;
	return f->set_up;
}

/* n allreduces, some of them under way at once, with barriers among them. */
static void several(int n, struct forecast *f, MPI_Comm comm, uint64_t step)
{
	static struct call call[UNDER_WAY];
	MPI_Request request[2 * UNDER_WAY];
	bool backlog = n > 1 && oracle_random(2) == 0;

	for (int i = 0; i < 2 * UNDER_WAY; i++)
		request[i] = MPI_REQUEST_NULL;
	for (int i = 0; i < n; i++) {
		bool fits = draw(&call[i].one, backlog);

		call[i].by_nic = forecast(f, &call[i].one, fits);
		oracle_want(call_start(&call[i], comm, &request[i]) == MPI_SUCCESS,
			    "an allreduce failed at step", step);
		if (oracle_random(4) == 0)
			MPI_Ibarrier(comm, &request[UNDER_WAY + i]);
	}
	complete(request, 2 * UNDER_WAY);
	for (int i = 0; i < n; i++)
		call_check(&call[i], comm, step);
}

void test_allreduce(int n)
{
	unsigned long long before[2] = { 0 }, after[2] = { 0 };
	struct forecast f = { .early = 0 };
	MPI_Comm comm;

	if (oracle.size > RANKS)
		return;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	oracle_settle(comm);
	oracle_allreduces(before);
	for (int i = 0, more; i < n; i += more) {
		more = oracle_random(8) ? 1 : 1 + (int)oracle_random(UNDER_WAY);
		several(more, &f, comm, (uint64_t)i);
	}
	if (oracle_allreduces(after))
		oracle_want(after[0] - before[0] == f.offloaded,
			    "allreduces offloaded:", after[0] - before[0]);
	MPI_Comm_free(&comm);
}
