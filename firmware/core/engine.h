/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - the barrier protocol: state and event in, actions out.
 *
 * The only implementation of the barrier protocol (PROTOCOL.md says why each rule holds). act() in
 * firmware/nic/nic.c carries out the actions. Pure: no clock, no memory, no I/O, no globals. The
 * same object runs in the NIC, in the host-based baseline, and under every test. A state belongs to
 * one caller at a time.
 */
#ifndef NBFW_ENGINE_H
#define NBFW_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bound.h"
#include "nbar_abi.h"
#include "token.h"

/* TIMEOUTs in one window of the retry budget; see nbfw_state.tries. */
#define NBFW_WINDOW 64u

/* State of one member. No pointers: two states can be compared with memcmp. */
struct nbfw_state {
	uint32_t epoch;       /* the barrier that was started last */
	uint16_t step;        /* of the plan, while running */
	uint16_t want;        /* while running: lowest slot of the step that lacks its token */
	uint32_t failed_rank; /* rank named when cause is not OK */
	uint32_t straggler;   /* rank known to hold up this step, or NBAR_RANK_NONE */
	uint8_t running;      /* 1: barrier `epoch` is under way; 0: it is completed */
	uint8_t cause;        /* enum nbar_status; not OK: this member has failed, for ever */
	uint8_t tries;        /* TIMEOUTs of this step; below NBFW_WINDOW: the first window */
	uint8_t words;        /* length of each of the three bit sets */
	/* Three sets of slots. The token was received: in an even epoch; in an odd epoch. The
	 * source was heard in this window. */
#ifdef __bpf__
	uint32_t bits[NBFW_FIXED_WORDS];
#else
	uint32_t bits[];
#endif
};

enum nbfw_event_type {
	NBFW_EV_START,   /* the host arrived */
	NBFW_EV_TOKEN,   /* a frame of type TOKEN, PULL, LATER or ABORT for this member */
	NBFW_EV_TIMEOUT, /* the time that an ARM asked for has passed without a DISARM */
	NBFW_EV_LEAVE    /* the host is gone: `cause` says why */
};

struct nbfw_event {
	enum nbfw_event_type type;
	uint8_t cause;           /* LEAVE: CLOSED, HOST_DIED, NIC_DOWN or MISMATCH */
	struct nbfw_token token; /* TOKEN: the caller has checked handle and cookie. LEAVE by
				  * MISMATCH: src has posted another value */
};

enum nbfw_verdict {
	NBFW_USED,
	NBFW_DUPLICATE, /* a token that the member had already */
	NBFW_STALE,     /* of an epoch, step or state that is over */
	NBFW_BAD        /* no correct member or host causes this; the state is unchanged */
};

enum nbfw_timer {
	NBFW_KEEP, /* leave the timer as it is; the action sends nothing but a reply */
	NBFW_ARM,  /* start the timer again, with the interval of state.tries */
	NBFW_DISARM
};

/*
 * What the caller must do, in this order: tell the host, which must learn of the end of its barrier
 * as soon as possible; set the timer; send. nbfw_step writes all fields.
 */
struct nbfw_action {
	uint8_t verdict; /* enum nbfw_verdict */
	uint8_t timer;   /* enum nbfw_timer */
	bool complete;   /* barrier state.epoch is done: tell the host */
	bool failed;     /* state.cause and state.failed_rank: tell the host; set once */
	/* Send a frame of type send_type (TOKEN or ABORT) for each of the sends [send_first,
	 * send_end) of the plan. The frame carries send_epoch. An ABORT also carries state.cause
	 * and state.failed_rank. */
	uint8_t send_type;
	uint32_t send_first;
	uint32_t send_end;
	uint32_t send_epoch;
	/* Send PULLs for the slots in [pull_first, pull_end) that lack their token (nbfw_missing):
	 * for all, or for NBFW_PULLS_LEAST(). Start the timer when these PULLs are sent. */
	uint32_t pull_first;
	uint32_t pull_end;
	/* 0, or the type of a frame for the sender of the PULL, with the epoch and slot of the
	 * PULL. */
	uint8_t reply;
	uint32_t reply_arg;
	uint32_t reply_info; /* ABORT: the cause. LATER: 0, and the NIC fills it in (why.c) */
};

/*
 * In a step of n slots, the least number of PULLs that a TIMEOUT must cause, unless fewer slots are
 * missing. Silent slots come first, in rotation, then slots whose source was heard. So in each
 * round of NBFW_ROUND timeouts the member sends a PULL for each slot that stays silent:
 * PROTOCOL.md, R5.
 */
#define NBFW_ROUND 8u
#define NBFW_PULLS_MIN 64u
#define NBFW_PULLS_LEAST(n) \
	((n) > NBFW_ROUND * NBFW_PULLS_MIN ? ((n) + NBFW_ROUND - 1) / NBFW_ROUND : NBFW_PULLS_MIN)

/* Bytes of the state of a member with this plan; at most 64 with up to 96 slots. */
static inline size_t nbfw_state_size(const struct nbar_plan *p)
{
	return sizeof(struct nbfw_state) + 3 * ((p->nrecv + 31) / 32) * sizeof(uint32_t);
}

/* Makes a member that has completed `epoch` (0 for a new group; any value for tests). The plan
 * must have passed nbfw_plan_check or come from nbfw_plan_generate. */
void nbfw_init(struct nbfw_state *s, const struct nbar_plan *p, uint32_t epoch);

/* Handles one event. Every event in every state has a defined outcome. Writes all fields of *a. */
void nbfw_step(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_event *ev,
	       struct nbfw_action *a);

/* Does the same for an event TOKEN whose frame lies elsewhere: this avoids a copy of the frame. */
void nbfw_step_token(struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t,
		     struct nbfw_action *a);

/* True if a TOKEN is new: the engine will use it. */
bool nbfw_takes(const struct nbfw_state *s, const struct nbar_plan *p, const struct nbfw_token *t);

/* True if the token of a slot for this epoch, the running one or the next, has come. */
bool nbfw_has_token(const struct nbfw_state *s, uint32_t epoch, uint32_t slot);

/* True if the running step still lacks the token of this slot. */
bool nbfw_missing(const struct nbfw_state *s, const struct nbar_plan *p, uint32_t slot);

/* Returns the lowest slot in [first, end) of the running step that lacks its token, or end if there
 * is none. Looks only at slots whose source was heard in this window, or, if `heard` is false, only
 * at the other slots. */
uint32_t nbfw_missing_next(const struct nbfw_state *s, uint32_t first, uint32_t end, bool heard);

/* Slots of the running step that lack their token; 0 between two barriers. */
uint32_t nbfw_missing_count(const struct nbfw_state *s, const struct nbar_plan *p);

/* Tells the engine that the source of this slot is alive: it is not silent in this window. */
void nbfw_hear(struct nbfw_state *s, const struct nbar_plan *p, uint32_t slot);

/* Number of the first of the invariants I1 to I8 that does not hold, or 0. */
int nbfw_check(const struct nbfw_state *s, const struct nbar_plan *p);

#endif
