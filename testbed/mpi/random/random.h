/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.h - MPI programs made from a seed: what the parts of mpi-random share.
 *
 * A program is a list of events (a collective, a message, the birth or death of a communicator).
 * Each rank has a place in time for the start of each of its events, and a later place for the
 * completion of each nonblocking event. An action waits only for actions of other ranks at earlier
 * places, or for its own event at the same place. So the program ends with every correct MPI. Every
 * rank makes the whole program, and keeps its own actions.
 */
#ifndef TESTBED_MPI_RANDOM_H
#define TESTBED_MPI_RANDOM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "../extensions.h"

/* Limits. */
#define RANKS 16      /* in a job */
#define MEMBERS 6u    /* in a program */
#define EVENTS 320u   /* of a program */
#define COMMS 16u     /* of a program */
#define STEPS 512u    /* barriers of a program */
#define ACTIONS 1300u /* of a rank */

enum event_kind {
	EVENT_BARRIERS, /* several blocking barriers */
	EVENT_IBARRIER,
	EVENT_INIT,   /* a persistent barrier is made, */
	EVENT_START,  /* started, */
	EVENT_UNINIT, /* and freed */
	EVENT_MESSAGE,
	EVENT_ALLREDUCE,
	EVENT_IALLREDUCE,
	EVENT_IBCAST,
	EVENT_DUP,
	EVENT_SPLIT,
	EVENT_CREATE,
	EVENT_CREATE_GROUP,
	EVENT_INTERCOMM,
	EVENT_MERGE,
	EVENT_FREE,
};

struct event {
	enum event_kind kind;
	uint32_t comm;     /* on which it is called */
	uint32_t made[2];  /* communicators that it makes; EVENT_INTERCOMM: the two halves */
	uint32_t step, n;  /* barriers: number of the first, and count */
	uint32_t init;     /* EVENT_START, EVENT_UNINIT: the EVENT_INIT of the barrier */
	uint32_t from, to; /* a message: ranks in the program; a broadcast: the root in comm */
	uint32_t size;     /* of a message */
	uint32_t color_of; /* split and creation: one bit per rank of comm */
	uint32_t blocks;   /* one bit per rank of the program: 1 if its call blocks */
	bool turned;       /* a split: ranks in reverse order; a send: synchronous */
};

/* Ranks of the program, in the order of the communicator. */
struct comm {
	uint32_t n, member[MEMBERS];
	uint32_t near; /* intercommunicator: size of its first group; else 0 */
	uint32_t parent;
	uint32_t barriers; /* blocking barriers so far */
	bool free;
};

enum phase { PHASE_START, PHASE_TEST, PHASE_WAIT };

struct action {
	uint32_t time, event;
	enum phase phase;
	uint32_t delay; /* us before the action */
};

struct program {
	uint64_t seed;
	uint32_t n, me; /* number of ranks; rank of this process, n: it does not take part */
	uint32_t world[MEMBERS]; /* ranks in MPI_COMM_WORLD */
	bool on_world;           /* communicator 0 is MPI_COMM_WORLD itself */
	uint32_t nevent, ncomm, nstep, naction;
	struct event event[EVENTS];
	struct comm comm[COMMS];
	struct action action[ACTIONS];
};

/* --- make.c: from a seed --------------------------------------------------------------------- */

/* Makes the program of this seed for a job of `ranks` ranks, with the actions of rank `me` of
 * MPI_COMM_WORLD. */
void program_make(struct program *p, uint64_t seed, uint32_t ranks, uint32_t me);

/* A random number 0..n-1; the same sequence from the same state. */
uint32_t draw(uint64_t *state, uint32_t n);

/* --- run.c: a program, in one rank ----------------------------------------------------------- */

void program_run(const struct program *p);

/* --- world.c: which rank has entered which barrier, and the current action of each rank ------ */

struct counts {
	uint64_t programs, barriers, ibarriers, persistent, messages, collectives, comms, pending;
};
extern struct counts counts;

/* file: all ranks of the job map it; patience: after so many seconds without an action, the
 * watchdog reports a hang. */
void world_open(const char *file, double patience);
void world_close(void);

/* A program begins; an action of it begins, with a description for messages. */
void world_program(const struct program *p);
void world_at(uint32_t action, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text for messages: rank, seed and action. */
const char *world_place(void);

/* Rank `me` of the program enters a barrier. When it has left the barrier, world_left checks that
 * all ranks that the barrier waits for have entered. */
void world_enter(const struct program *p, uint32_t step);
void world_left(const struct program *p, const struct event *e, uint32_t step);

/* If good is false, counts a failure, and prints it (only the first few). */
void world_want(bool good, const struct program *p, const char *what, uint32_t event);

/* Failures of this rank since the last call. */
int world_failures(void);

const char *event_name(enum event_kind kind);

/* --- flat.c: descriptors and memory of this process ------------------------------------------ */

/* Records descriptors and memory. The second function is true if they are as before. */
void flat_begin(void);
bool flat_end(int rank);

#endif
