/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound.h - bounds of indices, loops and values (64 bytes) on the wire "kernel", for the verifier
 * of BPF. Other machines have no code for them: the state and a checked plan hold the same bounds.
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

#define NBFW_FIXED_STEP_SLOTS 1u /* of a step, if barriers carry values */
#define NBFW_FIXED_VALUE 64u     /* bytes of the elements of a value */
#define NBFW_FIXED_PLACES 32u    /* of a parity's values: of the steps, the end, and the slots */

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
/* The same without a place: v keeps its value, and the verifier forgets it. `any` is a number that
 * the verifier does not know. */
#define NBFW_BLUR(v, any) __asm__ volatile("%0 ^= %1\n%0 ^= %1" : "+r"(v) : "r"(any))
/* The compiler reads memory again, of which the verifier knows nothing. */
#define NBFW_FORGET_ALL() __asm__ volatile("" : : : "memory")
/*
 * In a loop whose end the verifier does not see: the kernel ends it after millions of rounds (the
 * instruction may_goto). So the verifier looks at each of its states once.
 */
#define NBFW_LOOP_ENDS()                                                                       \
	({                                                                                     \
		__label__ out, on;                                                             \
		__asm__ volatile goto("1:.byte 0xe5; .byte 0; .long ((%l[out] - 1b - 8) / 8) " \
				      "& 0xffff; .short 0"                                     \
				      :                                                        \
				      :                                                        \
				      :                                                        \
				      : out);                                                  \
		goto on;                                                                       \
	out:                                                                                   \
		break;                                                                         \
	on:;                                                                                   \
	})
/* Where an element of `size` bytes, a power of two, begins in a value; n: an unknown number. */
#define NBFW_ELEMENT(at, size, n)                                       \
	({                                                              \
		NBFW_BLUR(at, n);                                       \
		(at) = NBFW_INDEX(at, 2 * NBFW_FIXED_VALUE);            \
		uint64_t at_ = (at), mask_ = NBFW_FIXED_VALUE - (size); \
		__asm__ volatile("%0 &= %1" : "+r"(at_) : "r"(mask_));  \
		at_;                                                    \
	})
/* A number of `bits` at any address: by itself the compiler would read it byte by byte. */
#define NBFW_WORD(at, bits) (((union nbfw_word *)(at))->u##bits)
union __attribute__((may_alias)) nbfw_word {
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
};
#define NBFW_HAS_PAIRS 0 /* the programs fold numbers, not pairs */
#define NBFW_STEP_SLOTS(st) NBFW_FIXED_STEP_SLOTS
#define NBFW_KEEPS 1 /* each token's value goes to its slot: so one place folds */
#else
#define NBFW_INDEX(i, n) (i)
#define NBFW_AT_MOST(v, n) (v)
#define NBFW_FORGET(v, place) (void)0
#define NBFW_BLUR(v, any) (void)0
#define NBFW_FORGET_ALL() (void)0
#define NBFW_LOOP_ENDS() (void)0
#define NBFW_ELEMENT(at, size, n) (at)
#define NBFW_HAS_PAIRS 1
#define NBFW_STEP_SLOTS(st) ((st)->nslot)
#define NBFW_KEEPS 0
#endif

#endif
