/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c - see queue.h. Bucket 0 has the events whose time is `last`. Bucket b > 0 has the events
 * whose time differs from `last` in bit b - 1 and in no higher bit (Ahuja, Mehlhorn, Orlin, Tarjan
 * 1990).
 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_EVENTS 84u

struct sim_chunk {
	struct sim_chunk *next;
	uint32_t at, end;
	struct sim_event event[CHUNK_EVENTS];
};

void sim_queue_begin(struct sim_queue *q)
{
	memset(q, 0, sizeof(*q));
}

static void free_chunks(struct sim_chunk *c)
{
	while (c) {
		struct sim_chunk *next = c->next;

		free(c);
		c = next;
	}
}

void sim_queue_end(struct sim_queue *q)
{
	for (uint32_t b = 0; b < 64; b++)
		free_chunks(q->bucket[b].head);
	free_chunks(q->free);
	memset(q, 0, sizeof(*q));
}

static struct sim_chunk *take_chunk(struct sim_queue *q)
{
	struct sim_chunk *c = q->free;

	if (c) {
		q->free = c->next;
	} else {
		c = malloc(sizeof(*c));
		if (!c)
			return NULL;
		q->bytes += sizeof(*c);
	}
	c->next = NULL;
	c->at = c->end = 0;
	return c;
}

static void give_chunk(struct sim_queue *q, struct sim_chunk *c)
{
	c->next = q->free;
	q->free = c;
}

static uint32_t queue_bucket_of(const struct sim_queue *q, sim_time time)
{
	uint64_t differs = time ^ q->last;

	return differs ? 64 - (uint32_t)__builtin_clzll(differs) : 0;
}

/* Buckets are for times below 2^63 ps, 106 days. */
static bool is_too_late(const struct sim_event *ev)
{
	return ev->time >> 63;
}

static void queue_insert(struct sim_queue *q, const struct sim_event *ev)
{
	uint32_t at = queue_bucket_of(q, ev->time);
	struct sim_bucket *b = &q->bucket[at];

	if (!b->tail || b->tail->end == CHUNK_EVENTS) {
		struct sim_chunk *c = take_chunk(q);

		if (!c) {
			q->full = true;
			return;
		}
		if (b->tail)
			b->tail->next = c;
		else
			b->head = c;
		b->tail = c;
		q->used |= UINT64_C(1) << at;
	}
	b->tail->event[b->tail->end++] = *ev;
	q->size++;
}

void sim_queue_push(struct sim_queue *q, const struct sim_event *ev)
{
	if (is_too_late(ev)) {
		q->full = true;
		return;
	}
	queue_insert(q, ev);
	if (q->size > q->most)
		q->most = q->size;
}

static sim_time least_time(const struct sim_chunk *c)
{
	sim_time least = UINT64_MAX;

	for (; c; c = c->next)
		for (uint32_t i = c->at; i < c->end; i++)
			if (c->event[i].time < least)
				least = c->event[i].time;
	return least;
}

/* Moves the events of the first non-empty bucket to the buckets below it; at least one goes to
 * bucket 0. This keeps their order, because all buckets below were empty. */
static void queue_deal(struct sim_queue *q)
{
	uint32_t at = (uint32_t)__builtin_ctzll(q->used);
	struct sim_chunk *c = q->bucket[at].head;

	q->bucket[at] = (struct sim_bucket){ 0 };
	q->used &= q->used - 1;
	q->last = least_time(c);
	while (c) {
		struct sim_chunk *next = c->next;

		q->size -= c->end - c->at;
		q->moves += c->end - c->at;
		for (uint32_t i = c->at; i < c->end; i++)
			queue_insert(q, &c->event[i]);
		give_chunk(q, c);
		c = next;
	}
}

/* Moves no event, because earlier events may still be added. */
sim_time sim_queue_next(const struct sim_queue *q)
{
	if (!q->used || q->bucket[0].head)
		return q->used ? q->last : UINT64_MAX;
	return least_time(q->bucket[__builtin_ctzll(q->used)].head);
}

bool sim_queue_pop(struct sim_queue *q, struct sim_event *out)
{
	struct sim_bucket *b = &q->bucket[0];

	if (!q->used)
		return false;
	if (!b->head)
		queue_deal(q);
	if (!b->head) /* no memory to deal */
		return false;

	struct sim_chunk *c = b->head;

	*out = c->event[c->at++];
	if (c->at == c->end) {
		b->head = c->next;
		if (!b->head) {
			b->tail = NULL;
			q->used &= ~UINT64_C(1);
		}
		give_chunk(q, c);
	}
	q->size--;
	q->popped++;
	return true;
}
