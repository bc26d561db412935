/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - the events of a simulation, in the order of their time: a radix heap.
 *
 * Events of one time come out in the order in which they went in, so a run can be repeated to the
 * byte. Time never goes back: an event before the last one that came out is an error of the caller.
 * Each event moves at most 63 times, whatever the queue holds; memory is given back as it empties.
 */
#ifndef NBAR_TOOLS_SIM_QUEUE_H
#define NBAR_TOOLS_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Picoseconds. */
typedef uint64_t sim_time;
#define SIM_NS UINT64_C(1000)
#define SIM_US UINT64_C(1000000)
#define SIM_SECOND UINT64_C(1000000000000)

/* The chain of causes of an event: its begin, and the parts of its time. */
struct sim_path {
	uint32_t origin; /* rank whose arrival is its begin */
	uint16_t hops;   /* messages on it */
	float queue;     /* ns in queues: ports, links, and members at work */
	float noise;     /* ns of OS noise */
	float repair;    /* ns from a lost message until it was asked for again */
};

struct sim_event {
	sim_time time;
	uint32_t to;   /* member */
	uint32_t from; /* member that has sent it */
	uint32_t epoch;
	uint32_t arg; /* a rank, or an index, by type */
	uint16_t slot;
	uint8_t type; /* the user's */
	uint8_t info;
	struct sim_path path;
};

struct sim_chunk;

struct sim_queue {
	struct sim_bucket {
		struct sim_chunk *head, *tail;
	} bucket[64];
	uint64_t used;   /* a bit for each bucket that has events */
	sim_time last;   /* of the last event that came out */
	uint64_t size;   /* events in it */
	uint64_t most;   /* the most that it has held */
	uint64_t popped; /* events that have come out */
	uint64_t moves;  /* from bucket to bucket */
	size_t bytes;    /* of memory */
	bool full;       /* there was no memory: an event was lost */
	struct sim_chunk *free;
};

void sim_queue_begin(struct sim_queue *q);
void sim_queue_end(struct sim_queue *q);

/* Without memory the event is lost, and q->full says so. */
void sim_queue_push(struct sim_queue *q, const struct sim_event *ev);

/* The time of the event that comes out next; UINT64_MAX: there is none. */
sim_time sim_queue_next(const struct sim_queue *q);

/* False: it is empty. */
bool sim_queue_pop(struct sim_queue *q, struct sim_event *out);

#endif
