/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - the events of a simulation, in the order of their time: a radix heap.
 *
 * Events with the same time come out in the order in which they went in, so a run can be repeated
 * exactly. Time never goes back: the caller must not push an event before the event that came out
 * last. Each event moves at most 63 times. The queue frees memory when it gets emptier.
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

/* The chain of causes of an event: where the chain began, and the parts of its time. */
struct sim_path {
	uint32_t origin; /* the chain began when this rank arrived */
	uint16_t hops;   /* messages in the chain */
	float queue;     /* ns in queues: ports, links, and members at work */
	float noise;     /* ns of OS noise */
	float repair;    /* ns from the loss of a message until a PULL for it */
};

struct sim_event {
	sim_time time;
	uint32_t to;   /* member */
	uint32_t from; /* member that has sent the event */
	uint32_t epoch;
	uint32_t arg; /* a rank, or an index, by type */
	uint16_t slot;
	uint8_t type; /* of any meaning: the queue does not read it */
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
	uint64_t size;   /* events in the queue */
	uint64_t most;   /* the greatest size so far */
	uint64_t popped; /* events that have come out */
	uint64_t moves;  /* of events from bucket to bucket */
	size_t bytes;    /* of memory */
	bool full;       /* there was no memory: an event was lost */
	struct sim_chunk *free;
};

void sim_queue_begin(struct sim_queue *q);
void sim_queue_end(struct sim_queue *q);

/* Adds an event. Without memory, the event is lost, and q->full is set. */
void sim_queue_push(struct sim_queue *q, const struct sim_event *ev);

/* The time of the event that comes out next; UINT64_MAX: the queue is empty. */
sim_time sim_queue_next(const struct sim_queue *q);

/* Takes the next event out. False: the queue is empty. */
bool sim_queue_pop(struct sim_queue *q, struct sim_event *out);

#endif
