/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound.h - bounds of indices and loops, for the verifier of BPF. Other machines have no code for
 * them: the state and a checked plan hold the same bounds.
 *
 * In the kernel a plan has a place of fixed size, and its tables lie at fixed offsets.
 */
#ifndef NBFW_BOUND_H
#define NBFW_BOUND_H

#include "nbar_abi.h"

#define NBFW_FIXED_STEPS 16u
#define NBFW_FIXED_SENDS 32u
#define NBFW_FIXED_SLOTS 32u
#define NBFW_FIXED_WORDS 4u /* three sets of one word; a power of two, like the others */

struct nbfw_fixed_plan {
	struct nbar_plan p;
	struct nbar_step step[NBFW_FIXED_STEPS];
	struct nbar_send send[NBFW_FIXED_SENDS];
	struct nbar_recv recv[NBFW_FIXED_SLOTS];
};

#ifdef __bpf__
/* An index that is below n, a power of two; and a number that is at most n. The compiler knows both
 * and would drop a plain mask or comparison, so it must not see the value. */
#define NBFW_INDEX(i, n)                                              \
	({                                                            \
		uint64_t i_ = (i);                                    \
		__asm__ volatile("%0 &= %1" : "+r"(i_) : "i"((n)-1)); \
		i_;                                                   \
	})
#define NBFW_AT_MOST(v, n)                       \
	({                                       \
		uint64_t v_ = (uint32_t)(v);     \
		__asm__ volatile("" : "+r"(v_)); \
		(uint32_t)(v_ > (n) ? (n) : v_); \
	})
/* Writes v to a place and reads it back: the verifier, which follows each value of a loop, then
 * knows as little of v as of any word in memory, and has fewer states to look at. */
#define NBFW_FORGET(v, place)                                                     \
	do {                                                                      \
		*(volatile __typeof__(place) *)&(place) = (__typeof__(place))(v); \
		(v) = *(volatile __typeof__(place) *)&(place);                    \
	} while (0)
#else
#define NBFW_FORGET(v, place) (void)0
#define NBFW_INDEX(i, n) (i)
#define NBFW_AT_MOST(v, n) (v)
#endif

#endif
