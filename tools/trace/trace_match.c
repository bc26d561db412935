/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_match.c - pairs the frames that two NICs have noted, and aligns the clocks of machines.
 *
 * Both ends note the same cookie, epoch, slot and type. For a frame that was sent once and received
 * once, receive time - send time = clock difference + time on the wire. The least such value in
 * each direction bounds the clock difference from above and from below; the offset is the middle of
 * these bounds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_set.h"

struct end {
	uint64_t key;        /* cookie, epoch */
	uint32_t slot_type;  /* slot, type */
	uint32_t log, index; /* the event */
	bool is_in;
	int64_t time;
};

static int by_key(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->slot_type != y->slot_type)
		return x->slot_type < y->slot_type ? -1 : 1;
	if (x->is_in != y->is_in)
		return x->is_in - y->is_in;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->log != y->log)
		return x->log < y->log ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Makes the ends of all frames, in order of their keys; *n is their number. NULL: no memory. */
static struct end *ends_of(const struct trace_set *s, uint32_t *n)
{
	uint64_t all = 0;
	struct end *e;

	for (uint32_t l = 0; l < s->nlog; l++)
		all += s->log[l].n;
	if (all > UINT32_MAX / 2)
		return NULL;
	e = malloc((all ? all : 1) * sizeof(*e));
	*n = 0;
	for (uint32_t l = 0; e && l < s->nlog; l++) {
		for (uint32_t i = 0; i < s->log[l].n; i++) {
			const struct nbar_trace_event *ev = &s->log[l].event[i];

			if (ev->what != NBAR_TRACE_OUT && ev->what != NBAR_TRACE_IN)
				continue;
			e[(*n)++] = (struct end){ .key = (uint64_t)ev->cookie << 32 | ev->epoch,
						  .slot_type = (uint32_t)ev->slot << 8 | ev->type,
						  .log = l,
						  .index = i,
						  .is_in = ev->what == NBAR_TRACE_IN,
						  .time = trace_time(s, l, i) };
		}
	}
	if (e)
		qsort(e, *n, sizeof(*e), by_key);
	return e;
}

/* Finds the ends of one frame and of its repetitions: from `first` to *in - 1 it was sent, from *in
 * to the returned index - 1 it was received. */
static uint32_t same_key(const struct end *e, uint32_t n, uint32_t first, uint32_t *in)
{
	uint32_t i = first;

	while (i < n && e[i].key == e[first].key && e[i].slot_type == e[first].slot_type &&
	       !e[i].is_in)
		i++;
	*in = i;
	while (i < n && e[i].key == e[first].key && e[i].slot_type == e[first].slot_type)
		i++;
	return i;
}

/* --- clocks ------------------------------------------------------------------------------------
 */

/* The least receive time - send time of frames from clock a to clock b, before alignment. */
struct least {
	int64_t ns;
	uint32_t frames;
};

static void clocks_find(struct trace_set *s)
{
	for (uint32_t l = 0; l < s->nlog; l++) {
		struct trace_log *log = &s->log[l];

		for (uint32_t k = 0; k < l && *log->boot_id; k++)
			if (strcmp(s->log[k].boot_id, log->boot_id) == 0)
				log->clock = s->log[k].clock;
		if (log->clock == TRACE_NO_CLOCK)
			log->clock = s->nclock++;
	}
}

static void least_find(const struct trace_set *s, const struct end *e, uint32_t n,
		       struct least *least)
{
	for (uint32_t i = 0, in, next; i < n; i = next) {
		next = same_key(e, n, i, &in);
		if (in != i + 1 || next != in + 1)
			continue;
		uint32_t from = s->log[e[i].log].clock, to = s->log[e[in].log].clock;
		struct least *x = &least[from * s->nclock + to];
		int64_t ns = e[in].time - e[i].time;

		if (!x->frames || ns < x->ns)
			x->ns = ns;
		x->frames++;
	}
}

/* Aligns one more clock to a clock that is aligned. False: no further clock can be aligned. */
static bool align_one(struct trace_set *s, const struct least *least)
{
	for (uint32_t a = 0; a < s->nclock; a++) {
		for (uint32_t b = 0; s->clock[a].aligned && b < s->nclock; b++) {
			const struct least *to = &least[a * s->nclock + b];
			const struct least *from = &least[b * s->nclock + a];

			if (s->clock[b].aligned || !to->frames || !from->frames)
				continue;
			s->clock[b] = (struct trace_clock){
				.aligned = true,
				.offset = s->clock[a].offset - (to->ns - from->ns) / 2,
				.within =
					s->clock[a].within +
					(uint64_t)((to->ns + from->ns < 0 ? 0 : to->ns + from->ns) /
						   2),
				.frames = to->frames + from->frames,
			};
			return true;
		}
	}
	return false;
}

/* The clock of the first log is the common clock. For a clock without frames, the first events of
 * both logs get the same time. */
static int match_align(struct trace_set *s, const struct end *e, uint32_t n)
{
	struct least *least = calloc((size_t)s->nclock * s->nclock, sizeof(*least));

	if (!least)
		return -ENOMEM;
	least_find(s, e, n, least);
	s->clock[0].aligned = true;
	while (align_one(s, least))
		continue;
	free(least);
	for (uint32_t l = 1; l < s->nlog; l++) {
		struct trace_clock *c = &s->clock[s->log[l].clock];

		if (!c->aligned && !c->offset && s->log[l].n && s->log[0].n)
			c->offset = (int64_t)(s->log[0].event[0].time - s->log[l].event[0].time);
	}
	return 0;
}

/* --- frames ------------------------------------------------------------------------------------
 */

/* Pairs each received frame with an unpaired sent frame: the last frame sent before it, or the
 * first frame if the clocks disagree. */
static void match_pair(struct trace_set *s, const struct end *e, uint32_t first, uint32_t in,
		       uint32_t next)
{
	uint32_t out = first;

	for (uint32_t i = in; i < next && out < in; i++) {
		while (out + 1 < in && e[out + 1].time <= e[i].time)
			out++;
		s->frame[s->nframe++] = (struct trace_frame){ .out_log = e[out].log,
							      .out = e[out].index,
							      .in_log = e[i].log,
							      .in = e[i].index };
		out++;
	}
}

int trace_match(struct trace_set *s)
{
	uint32_t n;
	struct end *e;
	int rc;

	clocks_find(s);
	if (!s->nlog)
		return 0;
	e = ends_of(s, &n);
	if (!e)
		return -ENOMEM;
	rc = match_align(s, e, n);
	for (uint32_t i = 0; i < n; i++)
		e[i].time = trace_time(s, e[i].log, e[i].index);
	qsort(e, n, sizeof(*e), by_key);
	s->frame = malloc((n ? n : 1) * sizeof(*s->frame));
	if (!s->frame)
		rc = -ENOMEM;
	for (uint32_t i = 0, in, next; rc == 0 && i < n; i = next) {
		next = same_key(e, n, i, &in);
		match_pair(s, e, i, in, next);
	}
	free(e);
	return rc;
}
