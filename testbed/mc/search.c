/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.c - see search.h. A queue of chunks holds the states whose events are still to be tried.
 * Of all other states, only the fingerprint, the parent and the event are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "search.h"
#include "states.h"

#define CHUNK_BYTES (UINT32_C(1) << 20)

struct chunk {
	struct chunk *next;
	uint32_t end;
	uint8_t byte[CHUNK_BYTES];
};

struct step {
	uint32_t parent, event;
};

struct search {
	const struct mc_world *w;
	struct mc_found *found;
	struct mc_states seen;
	struct step *step; /* index: number of the state */
	uint64_t room;     /* entries of step[] */
	struct chunk *first, *last;
	uint32_t at; /* read position in `first` */
	uint8_t *buffer;
};

/* Appends the loaded state to the queue: length, then bytes. False: no memory. */
static bool queue_put(struct search *s)
{
	uint32_t most = (uint32_t)(s->w->most_bytes + sizeof(uint32_t)), length;

	if (!s->last || CHUNK_BYTES - s->last->end < most) {
		struct chunk *c = malloc(sizeof(*c));

		if (!c)
			return false;
		c->next = NULL;
		c->end = 0;
		if (s->last)
			s->last->next = c;
		else
			s->first = c;
		s->last = c;
	}
	uint8_t *to = s->last->byte + s->last->end;

	length = (uint32_t)s->w->save(s->w->ctx, to + sizeof(length));
	memcpy(to, &length, sizeof(length));
	s->last->end += (uint32_t)sizeof(length) + length;
	return true;
}

/* Moves the oldest state from the queue to the buffer. The queue must not be empty. */
static void queue_take(struct search *s)
{
	struct chunk *c = s->first;
	uint32_t length;

	if (s->at == c->end) {
		s->first = c->next;
		s->at = 0;
		free(c);
		c = s->first;
	}
	memcpy(&length, c->byte + s->at, sizeof(length));
	memcpy(s->buffer, c->byte + s->at + sizeof(length), length);
	s->at += (uint32_t)sizeof(length) + length;
}

static void queue_end(struct search *s)
{
	while (s->first) {
		struct chunk *c = s->first;

		s->first = c->next;
		free(c);
	}
}

static bool step_put(struct search *s, uint64_t number, struct step step)
{
	if (number == s->room) {
		uint64_t room = s->room ? 2 * s->room : 4096;
		struct step *more = realloc(s->step, room * sizeof(*more));

		if (!more)
			return false;
		s->step = more;
		s->room = room;
	}
	s->step[number] = step;
	return true;
}

/* Writes the path: the events on the way to a state, and one more event. */
static void trace(struct search *s, uint32_t number, uint32_t event)
{
	uint32_t n = 1;

	for (uint32_t i = number; i > 0 && n < MC_DEPTH_MAX; i = s->step[i].parent)
		n++;
	s->found->npath = n;
	s->found->path[--n] = event;
	for (uint32_t i = number; i > 0 && n > 0; i = s->step[i].parent)
		s->found->path[--n] = s->step[i].event;
}

/* Visits the loaded state. It is the result of `event` in state number `parent`. */
static bool visit(struct search *s, uint32_t parent, uint32_t event)
{
	enum mc_seen seen = mc_states_add(&s->seen, s->w->fingerprint(s->w->ctx));
	uint64_t number = s->seen.n - 1;

	if (seen == MC_KNOWN)
		return true;
	if (seen == MC_FULL || number > UINT32_MAX ||
	    !step_put(s, number, (struct step){ parent, event }) || !queue_put(s)) {
		s->found->full = true;
		return false;
	}
	s->found->why = s->w->judge(s->w->ctx);
	if (s->found->why)
		trace(s, parent, event);
	return !s->found->why;
}

/* Tries all events of the state in the buffer. */
static bool expand(struct search *s, uint32_t number)
{
	s->w->load(s->w->ctx, s->buffer);
	for (uint32_t e = 0, n = s->w->events(s->w->ctx); e < n; e++) {
		if (e > 0)
			s->w->load(s->w->ctx, s->buffer);
		s->found->events++;
		s->found->why = s->w->apply(s->w->ctx, e);
		if (s->found->why) {
			trace(s, number, e);
			return false;
		}
		if (!visit(s, number, e))
			return false;
	}
	return true;
}

void mc_search(const struct mc_world *w, uint64_t most, struct mc_found *out)
{
	struct search s = { .w = w, .found = out, .buffer = malloc(w->most_bytes) };
	uint64_t number = 0, layer = 1;

	memset(out, 0, sizeof(*out));
	mc_states_begin(&s.seen, most);
	w->begin(w->ctx);
	out->full = !s.buffer;
	if (!out->full && visit(&s, 0, 0))
		while (number < s.seen.n) {
			queue_take(&s);
			if (!expand(&s, (uint32_t)number++))
				break;
			if (number == layer && s.seen.n > layer) {
				layer = s.seen.n;
				out->depth++;
			}
		}
	out->states = s.seen.n;
	if (out->why && out->states == 1 && out->events == 0)
		out->npath = 0;
	mc_states_end(&s.seen);
	queue_end(&s);
	free(s.step);
	free(s.buffer);
}
