/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schedule.h - a barrier of all members at once: a list of signals during the composition, then the
 * steps of every member.
 *
 * The code that composes, predicts, draws or uploads barriers uses it. It knows no costs and no
 * hosts.
 */
#ifndef NBAR_TUNE_SCHEDULE_H
#define NBAR_TUNE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

/* src sends the signal when src enters its step src_step; dst waits for it in its step dst_step. */
struct signal {
	uint32_t src, src_step;
	uint32_t dst, dst_step;
};

/* A barrier during its composition. Steps of a rank may be empty: schedule_new leaves them out. */
struct pattern {
	uint32_t size;
	uint32_t *next; /* by rank: the step for its next signal */
	struct signal *signal;
	uint32_t n, room;
	struct plans *cache; /* plans of algorithms among few members; only for pattern.c */
};

int pattern_init(struct pattern *p, uint32_t size);
void pattern_clear(struct pattern *p); /* no signals; keeps the memory */
void pattern_free(struct pattern *p);

/* The signals of an algorithm that go into a pattern. */
enum pattern_part {
	PATTERN_ALL,
	PATTERN_ARRIVE, /* up to member 0 */
	PATTERN_LEAVE   /* down from member 0 */
};

/*
 * Adds an algorithm, or a part of it, among k members. member[i]: the rank that plays rank i of the
 * algorithm; NULL: ranks 0 to k - 1. -EINVAL: the algorithm has no such part, because it does not
 * consist of an arrival at rank 0 and a release; -ERANGE: it does not allow k members; -ENOMEM.
 */
int pattern_add(struct pattern *p, struct nbfw_alg alg, const uint32_t *member, uint32_t k,
		enum pattern_part part);

/*
 * The steps of all members. A step first sends, then waits, as in struct nbar_plan. The steps of
 * all ranks have one numbering, rank by rank. Sends and slots also have one numbering, step by
 * step.
 */
struct schedule {
	uint32_t size, nstep, nsignal;
	uint32_t *first_step;              /* by rank; one entry more for the end */
	uint32_t *first_send, *first_slot; /* by step; one entry more for the end */
	uint32_t *rank_of;                 /* by step */
	uint32_t *send_dst, *send_slot;    /* by send: the rank, and the number of the slot */
	uint32_t *slot_src, *slot_send;    /* by slot: the rank, and the number of the send */
	uint32_t *slot_step;               /* by slot: the step that waits for it */
	uint32_t *order; /* all steps; each after the steps that must come first */
	uint32_t norder; /* nstep, unless ranks wait for each other in a circle */
};

/* Makes a schedule, and merges steps without a wait between them. NULL: no memory. */
struct schedule *schedule_new(const struct pattern *p);
void schedule_free(struct schedule *s);

/*
 * The knowledge-matrix test: K_0 = I + S_0, K_a = K_(a-1) + K_(a-1) S_a. K says whose arrival each
 * member knows of; S_a has the signals of stage a. The steps are a barrier if the last K has no
 * zero, and all members reach their end. 1: a barrier; 0: no barrier; -ENOMEM.
 * With more than SCHEDULE_EXACT_MAX members, K has the columns of some members only, evenly spread.
 */
#define SCHEDULE_EXACT_MAX 65536u
int schedule_is_barrier(const struct schedule *s);

/*
 * Writes the plan of a rank into block, if it fits into capacity bytes, and returns its length;
 * -ENOSPC: a limit of nbar_abi.h is exceeded.
 */
int64_t schedule_plan(const struct schedule *s, uint32_t rank, void *block, size_t capacity);

/* Checks each plan by nbfw_plan_check, and all plans together by schedule_is_barrier. 0, or a
 * negative errno and the reason. */
int schedule_check(const struct schedule *s, const char **why);

#endif
