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

static struct {
	int cpu;             /* of the thread */
	uint32_t count[2];   /* moves to A and to B */
	bool bound, refused; /* to one processor: for a moment, and by the system */
} moves = { .cpu = MOVES_A };

int __wrap_sched_getcpu(void)
{
	return moves.cpu;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out)
{
	assert_true(pid == 0 && size == sizeof(*out) && !moves.bound);
	CPU_ZERO(out);
	CPU_SET(MOVES_A, out);
	CPU_SET(MOVES_B, out);
	return moves.refused ? -1 : 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *to)
{
	bool a = CPU_ISSET(MOVES_A, to), b = CPU_ISSET(MOVES_B, to);

	assert_true(pid == 0 && size == sizeof(*to) && CPU_COUNT(to) == a + b);
	/* Bound to another processor, then free again. */
	assert_true(moves.bound ? a && b : a != b && moves.cpu == (a ? MOVES_B : MOVES_A));
	if (!moves.bound) {
		moves.cpu = a ? MOVES_A : MOVES_B;
		moves.count[b]++;
	}
	moves.bound = !moves.bound;
	return 0;
}

/* Moves so far. Each try has ended with a return. */
static uint32_t moves_end(void)
{
	uint32_t n = moves.count[0] + moves.count[1];

	assert_false(moves.bound);
	assert_in_range(moves.count[1] - moves.count[0] + 1, 0, 2);
	moves.count[0] = moves.count[1] = 0;
	return n;
}

#endif
