/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_value.c - what an MPI's Allreduce gets, as the value of a barrier: predefined operations and
 * types.
 *
 * Compiled for each MPI. Ranks may name one type differently, as MPI_INT and MPI_INT32_T: these are
 * one type here.
 */
#include "mpi_value.h"

#include <string.h>

/* A signed or unsigned integer of this size. */
#define SIGNED(size) \
	((size) == 1 ? NBAR_INT8 : (size) == 2 ? NBAR_INT16 : (size) == 4 ? NBAR_INT32 : NBAR_INT64)
#define UNSIGNED(size) (SIGNED(size) - NBAR_INT8 + NBAR_UINT8)

enum class {
	NUMBERS = 1, /* arithmetic, and comparisons */
	LOGICAL = 2,
	BITS = 4,
	PAIRS = 8
};
#define INTEGER (NUMBERS | LOGICAL | BITS)

/* The most frequent ones come first. */
static const struct {
	MPI_Op op;
	uint8_t number, classes; /* of types that MPI permits */
} ops[] = {
	{ MPI_SUM, NBAR_SUM, NUMBERS },     { MPI_MAX, NBAR_MAX, NUMBERS },
	{ MPI_MIN, NBAR_MIN, NUMBERS },     { MPI_LAND, NBAR_LAND, LOGICAL },
	{ MPI_LOR, NBAR_LOR, LOGICAL },     { MPI_MAXLOC, NBAR_MAXLOC, PAIRS },
	{ MPI_MINLOC, NBAR_MINLOC, PAIRS }, { MPI_BOR, NBAR_BOR, BITS },
	{ MPI_BAND, NBAR_BAND, BITS },      { MPI_PROD, NBAR_PROD, NUMBERS },
	{ MPI_BXOR, NBAR_BXOR, BITS },      { MPI_LXOR, NBAR_LXOR, LOGICAL },
};

static const struct {
	MPI_Datatype type;
	uint8_t number, classes;
} types[] = {
	{ MPI_DOUBLE, NBAR_DOUBLE, NUMBERS },
	{ MPI_INT, SIGNED(sizeof(int)), INTEGER },
	{ MPI_LONG, SIGNED(sizeof(long)), INTEGER },
	{ MPI_FLOAT, NBAR_FLOAT, NUMBERS },
	{ MPI_LONG_LONG, NBAR_INT64, INTEGER },
	{ MPI_INT64_T, NBAR_INT64, INTEGER },
	{ MPI_INT32_T, NBAR_INT32, INTEGER },
	{ MPI_UNSIGNED, UNSIGNED(sizeof(int)), INTEGER },
	{ MPI_UNSIGNED_LONG, UNSIGNED(sizeof(long)), INTEGER },
	{ MPI_UNSIGNED_LONG_LONG, NBAR_UINT64, INTEGER },
	{ MPI_UINT64_T, NBAR_UINT64, INTEGER },
	{ MPI_UINT32_T, NBAR_UINT32, INTEGER },
	{ MPI_DOUBLE_INT, NBAR_DOUBLE_INT, PAIRS },
	{ MPI_2INT, NBAR_INT_INT, PAIRS },
	{ MPI_FLOAT_INT, NBAR_FLOAT_INT, PAIRS },
	{ MPI_LONG_INT, sizeof(long) == 8 ? NBAR_INT64_INT : NBAR_INT_INT, PAIRS },
	{ MPI_C_BOOL, NBAR_UINT8, LOGICAL },
	{ MPI_BYTE, NBAR_UINT8, BITS },
	{ MPI_AINT, SIGNED(sizeof(MPI_Aint)), NUMBERS | BITS },
	{ MPI_OFFSET, SIGNED(sizeof(MPI_Offset)), NUMBERS | BITS },
	{ MPI_COUNT, SIGNED(sizeof(MPI_Count)), NUMBERS | BITS },
	{ MPI_SHORT, NBAR_INT16, INTEGER },
	{ MPI_UNSIGNED_SHORT, NBAR_UINT16, INTEGER },
	{ MPI_SIGNED_CHAR, NBAR_INT8, INTEGER },
	{ MPI_UNSIGNED_CHAR, NBAR_UINT8, INTEGER },
	{ MPI_INT8_T, NBAR_INT8, INTEGER },
	{ MPI_INT16_T, NBAR_INT16, INTEGER },
	{ MPI_UINT8_T, NBAR_UINT8, INTEGER },
	{ MPI_UINT16_T, NBAR_UINT16, INTEGER },
};

/* Types of Fortran, whose size the MPI knows; MPI_DATATYPE_NULL where it has no such type. */
static const struct {
	MPI_Datatype type;
	uint8_t classes;
	bool real;
} fortran[] = {
	{ MPI_DOUBLE_PRECISION, NUMBERS, true },
	{ MPI_INTEGER, NUMBERS | BITS, false },
	{ MPI_REAL, NUMBERS, true },
	{ MPI_LOGICAL, LOGICAL, false },
	{ MPI_REAL8, NUMBERS, true },
	{ MPI_INTEGER8, NUMBERS | BITS, false },
	{ MPI_2INTEGER, PAIRS, false },
	{ MPI_REAL4, NUMBERS, true },
	{ MPI_INTEGER4, NUMBERS | BITS, false },
	{ MPI_INTEGER2, NUMBERS | BITS, false },
	{ MPI_INTEGER1, NUMBERS | BITS, false },
};

/* Bytes from one element to the next, and those that the MPI's type has: a pair may end in padding,
 * which belongs to the program. */
static const struct {
	uint8_t size, used;
} element[] = {
#define SIZES(name, number, class, size, ofnumber) \
	[number] = { size, (class) == 'L' ? (ofnumber) + 4 : (size) },
	NBAR_VALUE_TYPES(SIZES)
#undef SIZES
};
_Static_assert(sizeof(struct {
		       double number;
		       int index;
	       }) == 16,
	       "an element of MPI_DOUBLE_INT");

static void copy(uint8_t *to, const uint8_t *from, const struct nbar_value *v)
{
	const uint32_t size = element[v->type].size, used = element[v->type].used;

	if (used == size)
		memcpy(to, from, (size_t)v->count * size);
	else
		for (uint32_t i = 0; i < v->count; i++)
			memcpy(to + i * size, from + i * size, used);
}

static uint8_t number_of_fortran(MPI_Datatype type, uint8_t *classes)
{
	for (size_t i = 0; i < sizeof(fortran) / sizeof(fortran[0]); i++) {
		int size = 0;

		if (fortran[i].type != type || type == MPI_DATATYPE_NULL)
			continue;
		*classes = fortran[i].classes;
		PMPI_Type_size(type, &size);
		if (fortran[i].classes == PAIRS)
			return size == 8 ? NBAR_INT_INT : 0;
		if (fortran[i].real)
			return size == 4 ? NBAR_FLOAT : size == 8 ? NBAR_DOUBLE : 0;
		return size == 1 || size == 2 || size == 4 || size == 8 ? SIGNED(size) : 0;
	}
	return 0;
}

/* 0: none of the types above. */
static uint8_t number_of_type(MPI_Datatype type, uint8_t *classes)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].type != type)
			continue;
		*classes = types[i].classes;
		return types[i].number;
	}
	return number_of_fortran(type, classes);
}

static bool is_real(uint8_t type)
{
	return type == NBAR_FLOAT || type == NBAR_DOUBLE;
}

/* Operations that do not see the sign get one type for both. */
static uint8_t canonical(uint8_t op, uint8_t type)
{
	bool sees = op == NBAR_MIN || op == NBAR_MAX;

	return !sees && type >= NBAR_UINT8 && type <= NBAR_UINT64
		       ? (uint8_t)(type - NBAR_UINT8 + NBAR_INT8)
		       : type;
}

/* Extensions that an MPI may have. */
extern int MPIX_Query_cuda_support(void) __attribute__((weak));
extern int MPIX_Query_rocm_support(void) __attribute__((weak));
extern int MPIX_Query_hip_support(void) __attribute__((weak));
extern int MPIX_Query_ze_support(void) __attribute__((weak));

bool nbmpi_value_is_of_host(void)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&
	       !(MPIX_Query_cuda_support && MPIX_Query_cuda_support()) &&
	       !(MPIX_Query_rocm_support && MPIX_Query_rocm_support()) &&
	       !(MPIX_Query_hip_support && MPIX_Query_hip_support()) &&
	       !(MPIX_Query_ze_support && MPIX_Query_ze_support());
}

bool nbmpi_value_take(struct nbar_value *v, const void *in, const void *out, size_t count,
		      MPI_Datatype type, MPI_Op op)
{
	uint8_t classes = 0, number;
	size_t i = 0;

	if (count == 0 || count > NBAR_VALUE_MAX || !in || !out || out == MPI_IN_PLACE)
		return false;
	while (i < sizeof(ops) / sizeof(ops[0]) && ops[i].op != op)
		i++;
	if (i == sizeof(ops) / sizeof(ops[0]))
		return false;
	number = number_of_type(type, &classes);
	if (number == 0 || !(classes & ops[i].classes) ||
	    (ops[i].number == NBAR_PROD && is_real(number)) ||
	    count * element[number].size > NBAR_VALUE_MAX)
		return false;
	*v = (struct nbar_value){ .op = ops[i].number,
				  .type = canonical(ops[i].number, number),
				  .count = (uint16_t)count };
	copy(v->of.byte, in == MPI_IN_PLACE ? out : in, v);
	return true;
}

void nbmpi_value_give(const struct nbar_value *v, void *out)
{
	copy(out, v->of.byte, v);
}
