/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moves.h - two processors of the test, between which threads move (nbar_move in nbar_host.h). For
 * tests that wrap sched_getcpu, sched_getaffinity and sched_setaffinity.
 */
#ifndef NBAR_TEST_MOVES_H
#define NBAR_TEST_MOVES_H

#include <sched.h>

#include "unit/unit.h"

#define MOVES_A 3
#define MOVES_B 1000
#define MOVES_C 7

static struct {
	int cpu;           /* of the thread */
	uint32_t count[2]; /* moves to A and to B */
	bool refused;      /* by the system */
	/* The cpuset has one more processor, MOVES_C, which the thread may not use. */
	bool pinned;
	bool is_set;    /* a mask: `mask`; else the thread has the mask that it began with */
	cpu_set_t mask; /* without regard to the cpuset */
	uint32_t other; /* a mask of one processor that somebody sets while the thread moves; 0:
			   none */
} moves = { .cpu = MOVES_A };

static cpu_set_t moves_mask(void)
{
	cpu_set_t mask;

	if (moves.is_set)
		return moves.mask;
	memset(&mask, moves.pinned ? 0 : 0xff, sizeof(mask));
	CPU_SET(MOVES_A, &mask);
	CPU_SET(MOVES_B, &mask);
	return mask;
}

/* What the system makes of a mask. */
static cpu_set_t moves_effective(const cpu_set_t *mask)
{
	cpu_set_t cpuset;

	CPU_ZERO(&cpuset);
	CPU_SET(MOVES_A, &cpuset);
	CPU_SET(MOVES_B, &cpuset);
	if (moves.pinned)
		CPU_SET(MOVES_C, &cpuset);
	CPU_AND(&cpuset, &cpuset, mask);
	return cpuset;
}

int __wrap_sched_getcpu(void)
{
	return moves.cpu;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out)
{
	cpu_set_t mask = moves_mask();

	assert_true(pid == 0 && size == sizeof(*out));
	*out = moves_effective(&mask);
	return moves.refused ? -1 : 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *to)
{
	cpu_set_t may = moves_effective(to);
	bool b = CPU_ISSET(MOVES_B, &may);

	assert_true(pid == 0 && size == sizeof(*to) && CPU_COUNT(&may) > 0);
	moves.is_set = true;
	moves.mask = *to;
	if (CPU_COUNT(&may) > 1)
		return 0;
	/* Bound to another processor, for a moment. */
	assert_true(moves.cpu == (b ? MOVES_A : MOVES_B));
	moves.cpu = b ? MOVES_B : MOVES_A;
	moves.count[b]++;
	if (moves.other) {
		CPU_ZERO(&moves.mask);
		CPU_SET(moves.other, &moves.mask);
	}
	return 0;
}

/* Moves so far. Each try has ended with a return. */
static uint32_t moves_end(void)
{
	uint32_t n = moves.count[0] + moves.count[1];
	cpu_set_t mask = moves_mask(), began;

	/* The thread has the mask that it began with: if that was its whole cpuset, it may also use
	 * processors that the cpuset gets later. */
	moves.is_set = false;
	began = moves_mask();
	assert_memory_equal(&mask, &began, sizeof(mask));
	assert_in_range(moves.count[1] - moves.count[0] + 1, 0, 2);
	moves.count[0] = moves.count[1] = 0;
	return n;
}

#endif
