/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value.h - the values that barriers carry: their operations, and what a member keeps of them.
 *
 * Stands beside the engine, which knows no values. Pure as the engine is: no clock, no memory of
 * its own, no globals, and no floating point: all machines and modes get the same bits. All
 * operations are commutative bit by bit, so the two members of an exchange get the same result.
 */
#ifndef NBFW_VALUE_H
#define NBFW_VALUE_H

#include "engine.h"
#include "plan.h"

/* struct nbar_value as bytes, because it may lie at any address of a frame. */
struct nbfw_value {
	uint8_t op, type, count[2], zero[4];
	uint8_t byte[NBAR_VALUE_MAX];
};
#define NBFW_VALUE_HEAD 8u

/* Copies a value whose length, with its head, is known. */
static inline void nbfw_value_copy(struct nbfw_value *to, const struct nbfw_value *from,
				   uint32_t length)
{
#ifdef __bpf__
	for (uint32_t i = 0; i < NBFW_VALUE_HEAD + NBFW_FIXED_VALUE; i += 8)
		NBFW_WORD((uint8_t *)to + i, 64) = NBFW_WORD((const uint8_t *)from + i, 64);
	(void)length;
#else
	/* Two parts: a copy of at most 256 bytes has no loop, and one of 8 is not a call. */
	__builtin_memcpy(to, from, NBFW_VALUE_HEAD);
	if (length == NBFW_VALUE_HEAD + 8)
		__builtin_memcpy(to->byte, from->byte, 8);
	else
		__builtin_memcpy(to->byte, from->byte, length - NBFW_VALUE_HEAD);
#endif
}

/* Bytes of the elements of a value; 0: no correct member makes this value. */
uint32_t nbfw_value_length(const struct nbfw_value *v);

/* True if both values have the same op, type and count. */
bool nbfw_value_alike(const struct nbfw_value *a, const struct nbfw_value *b);

/* Folds two values, which are correct and alike. `to` may be one of them. */
void nbfw_value_fold(struct nbfw_value *to, const struct nbfw_value *a, const struct nbfw_value *b);

/*
 * True if the plans of alg give all members the same bits. In a dissemination, members fold in
 * different orders, and fold some contributions twice.
 */
bool nbfw_value_plans(struct nbfw_alg alg);

/* True if the value of the slot of this step is the result, which replaces the member's value. If
 * false, the values of the slots are folded into it. nbfw_value_plans(alg) holds. */
bool nbfw_value_replaces(struct nbfw_alg alg, const struct nbar_plan *p, uint32_t step);

/* In the kernel the places have a fixed size, and there is one more, for nbfw_values_next. */
#define NBFW_FIXED_PLACE (NBFW_VALUE_HEAD + NBFW_FIXED_VALUE)
#define NBFW_FIXED_MEMORY (NBFW_FIXED_STEPS + (2 * NBFW_FIXED_PLACES + 2) * NBFW_FIXED_PLACE)

/*
 * The values of a member: of its slots, and its own value at the entry of each step and at the end.
 * Each is kept for two epochs: the answer to a PULL repeats what was sent in the last epoch.
 */
struct nbfw_values {
	uint32_t size; /* of the place of a value, with its head */
	uint32_t first,
		half;     /* where in memory the first place is; bytes of the places of a parity */
	uint32_t head[2]; /* of this member's value by parity: op, type, count; 0: none */
	uint16_t length[2]; /* of it, with its head */
	uint16_t folded;    /* steps of the running barrier whose values are folded */
	uint16_t send_step; /* a hint for the caller: no sends of earlier steps are left */
	bool early;         /* tokens of the next barrier have come */
	_Alignas(8)
#ifdef __bpf__
		uint8_t memory[NBFW_FIXED_MEMORY];
#else
		uint8_t memory[]; /* first: what each step is */
#endif
};

enum { NBFW_STEP_REPLACES = 1, NBFW_STEP_ALONE = 2 }; /* a release; it waits for one slot */

size_t nbfw_values_size(const struct nbar_plan *p, uint32_t value_max);
void nbfw_values_init(struct nbfw_values *x, struct nbfw_alg alg, const struct nbar_plan *p,
		      uint32_t value_max);

/* The member's value of an epoch at the entry of a step, of x->size bytes. That of the next epoch
 * at the entry of step 0 is the host's; that at the entry of step nstep is the result. */
static inline struct nbfw_value *nbfw_values_place(const struct nbfw_values *x, uint32_t epoch,
						   uint32_t step)
{
#ifdef __bpf__
	return (void *)(x->memory + NBFW_FIXED_STEPS +
			NBFW_INDEX(step + (epoch & 1) * NBFW_FIXED_PLACES, 2 * NBFW_FIXED_PLACES) *
				NBFW_FIXED_PLACE);
#else
	return (void *)(uintptr_t)(x->memory + x->first + (epoch & 1) * x->half +
				   (size_t)step * x->size);
#endif
}

static inline struct nbfw_value *nbfw_values_next(const struct nbfw_values *x,
						  struct nbfw_value *own)
{
#ifdef __bpf__
	(void)x;
	return (void *)((uint8_t *)own + NBFW_FIXED_PLACE);
#else
	return (void *)((uint8_t *)own + x->size);
#endif
}

/* Copies the state of the values, without the values. No send of `from` waits. */
static inline void nbfw_values_heads(struct nbfw_values *to, const struct nbfw_values *from)
{
	__builtin_memcpy(to->head, from->head, sizeof(to->head));
	__builtin_memcpy(to->length, from->length, sizeof(to->length));
	to->folded = from->folded;
	to->early = from->early;
	to->send_step = 0;
}

/* Forgets what this member has sent: answers to PULLs have no values. */
static inline void nbfw_values_forget(struct nbfw_values *x)
{
	__builtin_memset(x->head, 0, sizeof(x->head));
	__builtin_memset(x->length, 0, sizeof(x->length));
}

/* Call it before the engine gets START, with the length of the elements of the host's value, which
 * is in its place; 0: it has none. Returns a rank whose token does not fit, or NBAR_RANK_NONE. */
uint32_t nbfw_values_start(struct nbfw_values *x, const struct nbfw_state *s,
			   const struct nbar_plan *p, uint32_t length);

enum nbfw_value_verdict {
	NBFW_VALUE_FITS,    /* give the token to the engine */
	NBFW_VALUE_BAD,     /* too long for the group */
	NBFW_VALUE_MISMATCH /* the sender has posted another op, type or count, or no value */
};

/* Call it before the engine gets a TOKEN: takes the value of a token that the engine will use. */
static inline enum nbfw_value_verdict nbfw_values_take(struct nbfw_values *x,
						       const struct nbfw_state *s,
						       const struct nbar_plan *p,
						       const struct nbfw_token *t);

/* Call it after the engine has got START, or a frame that has ended a step: folds the slots of the
 * steps up to the present one. */
static inline void nbfw_values_advance(struct nbfw_values *x, const struct nbfw_state *s,
				       const struct nbar_plan *p);

/* Gives a TOKEN the value that the sends of a step carry in its epoch, or none. Valid until the
 * start of epoch + 2. */
static inline void nbfw_values_at(const struct nbfw_values *x, uint32_t step, struct nbfw_token *t)
{
	t->value_length = x->length[t->epoch & 1];
	t->value = nbfw_values_place(x, t->epoch, step);
}

/* Gives an answer TOKEN for rank dst the value that its token had. */
void nbfw_values_answer(const struct nbfw_values *x, const struct nbar_plan *p, uint32_t dst,
			struct nbfw_token *t);

/* The rest of nbfw_values_take: a token that ends no step. */
enum nbfw_value_verdict nbfw_values_keep(struct nbfw_values *x, const struct nbfw_state *s,
					 const struct nbar_plan *p, const struct nbfw_token *t);

/* The rest of nbfw_values_advance: steps whose tokens lie in their slots. */
void nbfw_values_catch_up(struct nbfw_values *x, const struct nbfw_state *s,
			  const struct nbar_plan *p);

/* Op, type and count of a token's value; 0: it has none. */
static inline uint32_t nbfw_value_head(const struct nbfw_token *t)
{
	uint32_t head = 0;

	if (t->value_length)
		__builtin_memcpy(&head, t->value, sizeof(head));
	return head;
}

static inline enum nbfw_value_verdict nbfw_values_take(struct nbfw_values *x,
						       const struct nbfw_state *s,
						       const struct nbar_plan *p,
						       const struct nbfw_token *t)
{
	const uint32_t parity = s->epoch & 1;
	struct nbfw_value *own;

	if (NBFW_KEEPS || t->epoch != s->epoch || !s->running || t->slot != s->want ||
	    !(x->memory[NBFW_INDEX(s->step, NBFW_FIXED_STEPS)] & NBFW_STEP_ALONE) ||
	    nbfw_value_head(t) != x->head[parity])
		return nbfw_values_keep(x, s, p, t);
	/* If it is new, it ends the step, so it need not be kept in its slot. If the engine refuses
	 * it, the token that ends the step folds again. */
	own = nbfw_values_place(x, s->epoch, s->step);
	x->folded = (uint16_t)(s->step + 1);
	if (x->length[parity] == 0)
		return NBFW_VALUE_FITS;
	if (x->memory[NBFW_INDEX(s->step, NBFW_FIXED_STEPS)] & NBFW_STEP_REPLACES)
		nbfw_value_copy(nbfw_values_next(x, own), t->value, x->length[parity]);
	else
		nbfw_value_fold(nbfw_values_next(x, own), own, t->value);
	return NBFW_VALUE_FITS;
}

static inline void nbfw_values_advance(struct nbfw_values *x, const struct nbfw_state *s,
				       const struct nbar_plan *p)
{
	if (x->folded != s->step)
		nbfw_values_catch_up(x, s, p);
}

#endif
