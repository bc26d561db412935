/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - calls that fail on demand, and blocks of memory that are counted. For one test program,
 * linked with --wrap for calloc and free.
 */
#ifndef TESTBED_UNIT_CALLS_H
#define TESTBED_UNIT_CALLS_H

#include <errno.h>

#include "unit/unit.h"

static uint32_t calls, fail_at; /* calls so far; the number of the call that fails */
static int64_t blocks;

static inline bool call_fails(int error)
{
	if (++calls != fail_at)
		return false;
	errno = error;
	return true;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	void *block = call_fails(ENOMEM) ? NULL : __real_calloc(n, size);

	__atomic_fetch_add(&blocks, block != NULL, __ATOMIC_RELAXED);
	return block;
}

void __real_free(void *block);
void __wrap_free(void *block)
{
	__atomic_fetch_sub(&blocks, block != NULL, __ATOMIC_RELAXED);
	__real_free(block);
}

#endif
