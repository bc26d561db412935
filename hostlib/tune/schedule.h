/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schedule.h - a barrier of all members at once: as a list of signals while it is composed, and as
 * the steps of every member when it is complete.
 *
 * Used by whatever composes, predicts, draws or uploads barriers. Knows no cost and no host.
 */
#ifndef NBAR_TUNE_SCHEDULE_H
#define NBAR_TUNE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

/* src sends on entering its step src_step; dst waits for it in its step dst_step. */
struct signal {
	uint32_t src, src_step;
	uint32_t dst, dst_step;
};

/* A barrier in the making. Steps of a rank may be empty: schedule_new leaves those out. */
struct pattern {
	uint32_t size;
	uint32_t *next; /* by rank: the step that its next signal goes into */
	struct signal *signal;
	uint32_t n, room;
	struct plans *cache; /* of algorithms among few members; pattern.c's own */
};

int pattern_init(struct pattern *p, uint32_t size);
void pattern_clear(struct pattern *p); /* no signals; keeps the memory */
void pattern_free(struct pattern *p);

/* Which signals of an algorithm go into a pattern. */
enum pattern_part {
	PATTERN_ALL,
	PATTERN_ARRIVE, /* up to member 0 */
	PATTERN_LEAVE   /* down from member 0 */
};

/*
 * Adds an algorithm, or a part of it, among k members: member[i] is the rank that takes the place
 * of rank i; NULL: ranks 0 to k - 1. -EINVAL: the algorithm has no such part, because it is not an
 * arrival at rank 0 and a release; -ERANGE: not for so many; -ENOMEM.
 */
int pattern_add(struct pattern *p, struct nbfw_alg alg, const uint32_t *member, uint32_t k,
		enum pattern_part part);

/*
 * The steps of all members: sends first, then waits, as in struct nbar_plan. Steps of all ranks are
 * numbered through, rank by rank; so are sends and slots, step by step.
 */
struct schedule {
	uint32_t size, nstep, nsignal;
	uint32_t *first_step;              /* by rank, and one more */
	uint32_t *first_send, *first_slot; /* by step, and one more */
	uint32_t *rank_of;                 /* by step */
	uint32_t *send_dst, *send_slot;    /* by send: the rank, and the slot of all slots */
	uint32_t *slot_src, *slot_send;    /* by slot: the rank, and the send of all sends */
	uint32_t *slot_step;               /* by slot: the step that waits for it */
	uint32_t *order; /* steps, each after all that must be entered before it */
	uint32_t norder; /* nstep, unless ranks wait for each other in a circle */
};

/* Makes it, merges steps where nothing is waited for in between. NULL: no memory. */
struct schedule *schedule_new(const struct pattern *p);
void schedule_free(struct schedule *s);

/*
 * The knowledge-matrix test: K_0 = I + S_0, K_a = K_(a-1) + K_(a-1) S_a; true if the last K has no
 * zero, and all members come to their end. 1: it is a barrier; 0: it is none; -ENOMEM. Among more
 * than SCHEDULE_EXACT_MAX members, K has the columns of some members only, evenly spread.
 */
#define SCHEDULE_EXACT_MAX 65536u
int schedule_is_barrier(const struct schedule *s);

/*
 * Writes the plan of a rank into block, if it fits into capacity bytes, and returns its length;
 * -ENOSPC: a limit of nbar_abi.h is exceeded.
 */
int64_t schedule_plan(const struct schedule *s, uint32_t rank, void *block, size_t capacity);

/* Passes each plan through nbfw_plan_check, and the whole through schedule_is_barrier. 0, or a
 * negative errno and the reason. */
int schedule_check(const struct schedule *s, const char **why);

#endif
