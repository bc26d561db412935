/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * draft.h - a program under construction: what make.c and make_comms.c share.
 */
#ifndef TESTBED_MPI_RANDOM_DRAFT_H
#define TESTBED_MPI_RANDOM_DRAFT_H

#include "random.h"

#define PACE 4u    /* mean number of places between two events */
#define WINDOW 40u /* most places from the first to the last start of an event */
#define SETTLED 16u
#define OPEN_INITS 8u
#define NONE UINT32_MAX

struct draft {
	struct program *p;
	uint64_t state;
	uint32_t now;
	uint32_t born[COMMS];          /* place where the communicator was made */
	uint32_t last[COMMS][MEMBERS]; /* place of the latest collective start */
	uint32_t busy[COMMS][MEMBERS]; /* the communicator must end after this place */
	struct {
		uint32_t event, ready[MEMBERS];
	} init[OPEN_INITS];
	uint32_t ninit;
};

uint32_t later(uint32_t a, uint32_t b);

/* Adds an event. draft_number gives the number of an event. */
struct event *draft_add(struct draft *d, enum event_kind kind, uint32_t comm);
uint32_t draft_number(const struct draft *d, const struct event *e);

/* Adds an action of a rank at a place. */
void draft_put(struct draft *d, uint32_t rank, uint32_t time, uint32_t event, enum phase phase);

/* All members call the event at one place, after their earlier calls, and not before their place in
 * busy[] (NULL: no such limit). Returns the place. */
uint32_t draft_all_at_once(struct draft *d, struct event *e, const uint32_t *busy);

/* --- make_comms.c ---------------------------------------------------------------------------- */

/* Adds a communicator without members, made at this place. */
uint32_t draft_comm(struct draft *d, uint32_t parent, uint32_t time);

/* Selects an existing communicator with at least `least` members; inter: it may be an
 * intercommunicator. NONE: there is none. */
uint32_t draft_pick(struct draft *d, bool inter, uint32_t least);

/* Make a communicator from another one, or an intercommunicator. */
void draft_birth(struct draft *d);
void draft_birth_of_inter(struct draft *d);

#endif
