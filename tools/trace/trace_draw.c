/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_draw.c - draws the events of NICs as a timeline: a process per NIC, a track per group, a
 * slice per barrier from its start to its completion, small slices for frames, arrows between them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "timeline.h"
#include "token.h"
#include "trace_set.h"

#define FRAME_NS 200 /* width of a frame's slice, where there is room */
#define PS_PER_NS UINT64_C(1000)

static const char *const type_name[NBFW_TYPE_END] = {
	"frame", "TOKEN", "PULL", "LATER", "ABORT", "SIGNAL", "PROBE", "ECHO",
};

/* The events of one group at one NIC, in order of time. */
struct track {
	const struct trace_set *set;
	uint32_t log;
	const uint32_t *index; /* indices of events */
	uint32_t n;
};

/* The running barrier. */
struct barrier {
	bool running;
	uint32_t epoch, last; /* last: the rank that sent the last token, or NBAR_RANK_NONE */
	int64_t begin;
};

static const struct nbar_trace_event *event_at(const struct track *k, uint32_t i)
{
	return &k->set->log[k->log].event[k->index[i]];
}

static int64_t time_at(const struct track *k, uint32_t i)
{
	return trace_time(k->set, k->log, k->index[i]);
}

/* Takes event i of a track. *b: the last barrier that has started. *failed: event i is a failure.
 * Returns true if event i ends *b. */
static bool barrier_step(const struct track *k, uint32_t i, struct barrier *b, bool *failed)
{
	const struct nbar_trace_event *e = event_at(k, i);
	bool ends = false;

	*failed = e->what == NBAR_TRACE_FAIL;
	if (e->what == NBAR_TRACE_START)
		*b = (struct barrier){ true, e->epoch, NBAR_RANK_NONE, time_at(k, i) };
	else if (e->what == NBAR_TRACE_IN && e->type == NBFW_TOKEN && e->epoch == b->epoch)
		b->last = e->peer;
	else if (e->what == NBAR_TRACE_COMPLETE || e->what == NBAR_TRACE_FAIL)
		ends = b->running && b->epoch == e->epoch;
	if (ends)
		b->running = false;
	return ends;
}

typedef int track_fn(void *arg, const struct track *k);

struct indexed {
	uint32_t handle, index;
};

static int by_handle(const void *a, const void *b)
{
	const struct indexed *x = a, *y = b;

	if (x->handle != y->handle)
		return x->handle < y->handle ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Calls fn for each track of a log. */
static int each_track(const struct trace_set *s, uint32_t log, track_fn *fn, void *arg)
{
	uint32_t n = s->log[log].n, *index = malloc((n ? n : 1) * sizeof(*index));
	struct indexed *all = malloc((n ? n : 1) * sizeof(*all));
	int rc = index && all ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < n; i++)
		all[i] = (struct indexed){ s->log[log].event[i].handle, i };
	if (rc == 0)
		qsort(all, n, sizeof(*all), by_handle);
	for (uint32_t i = 0, first; rc == 0 && i < n;) {
		for (first = i; i < n && all[i].handle == all[first].handle; i++)
			index[i] = all[i].index;
		rc = fn(arg, &(struct track){ s, log, index + first, i - first });
	}
	free(index);
	free(all);
	return rc;
}

/* --- the slowest barrier -----------------------------------------------------------------------
 */

static int summarize_track(void *arg, const struct track *k)
{
	struct trace_summary *out = arg;
	struct barrier b = { 0 };

	for (uint32_t i = 0; i < k->n; i++) {
		bool failed, ends = barrier_step(k, i, &b, &failed);

		if (!ends || failed)
			continue;
		out->barriers++;
		if (out->any && time_at(k, i) - b.begin <= out->end - out->begin)
			continue;
		out->any = true;
		out->log = k->log;
		out->index = event_at(k, i)->handle & 0xffff;
		out->rank = event_at(k, i)->rank;
		out->epoch = b.epoch;
		out->begin = b.begin;
		out->end = time_at(k, i);
	}
	return 0;
}

void trace_summarize(const struct trace_set *s, struct trace_summary *out)
{
	*out = (struct trace_summary){ 0 };
	for (uint32_t l = 0; l < s->nlog; l++) {
		out->events += s->log[l].n;
		(void)each_track(s, l, summarize_track, out);
	}
}

/* --- the picture -------------------------------------------------------------------------------
 */

struct drawing {
	struct timeline timeline;
	const struct trace_window *window;
	int64_t zero; /* the time that is 0 in the picture */
};

static bool is_inside(const struct drawing *d, int64_t begin, int64_t end)
{
	return d->window->all || (end >= d->window->begin && begin <= d->window->end);
}

static uint64_t ps(const struct drawing *d, int64_t time)
{
	return time < d->zero ? 0 : (uint64_t)(time - d->zero) * PS_PER_NS;
}

static struct timeline_track track_of(const struct trace_set *s, uint32_t log, uint32_t i)
{
	return (struct timeline_track){ log + 1, s->log[log].event[i].handle };
}

static void draw_barrier(struct drawing *d, struct timeline_track at, const struct barrier *b,
			 int64_t end, bool failed)
{
	char name[96];

	if (!is_inside(d, b->begin, end))
		return;
	if (failed)
		snprintf(name, sizeof(name), "barrier %u: failed", b->epoch);
	else if (b->last == NBAR_RANK_NONE)
		snprintf(name, sizeof(name), "barrier %u: no token after the start", b->epoch);
	else
		snprintf(name, sizeof(name), "barrier %u: last token from rank %u", b->epoch,
			 b->last);
	timeline_slice(&d->timeline, at, name, ps(d, b->begin), ps(d, end));
}

/* A frame ends before the next event of its track, so that slices nest. */
static void draw_frame(struct drawing *d, const struct track *k, uint32_t i)
{
	const struct nbar_trace_event *e = event_at(k, i);
	int64_t begin = time_at(k, i), end = begin + FRAME_NS;
	char name[64];

	if (i + 1 < k->n && time_at(k, i + 1) < end)
		end = time_at(k, i + 1);
	snprintf(name, sizeof(name), "%s %s %u", type_name[e->type < NBFW_TYPE_END ? e->type : 0],
		 e->what == NBAR_TRACE_OUT ? "to" : "of", e->peer);
	timeline_slice(&d->timeline, track_of(k->set, k->log, k->index[i]), name, ps(d, begin),
		       ps(d, end));
}

static void draw_event(struct drawing *d, const struct track *k, uint32_t i)
{
	const struct nbar_trace_event *e = event_at(k, i);
	struct timeline_track at = track_of(k->set, k->log, k->index[i]);
	char name[64];

	if (!is_inside(d, time_at(k, i), time_at(k, i)))
		return;
	switch ((enum nbar_trace_what)e->what) {
	case NBAR_TRACE_OUT:
	case NBAR_TRACE_IN:
		draw_frame(d, k, i);
		break;
	case NBAR_TRACE_DOORBELL:
		snprintf(name, sizeof(name), "host posts barrier %u", e->epoch);
		timeline_mark(&d->timeline, at, name, ps(d, time_at(k, i)));
		break;
	case NBAR_TRACE_FAIL:
		snprintf(name, sizeof(name), "failed: rank %u", e->peer);
		timeline_mark(&d->timeline, at, name, ps(d, time_at(k, i)));
		break;
	case NBAR_TRACE_LATE:
		snprintf(name, sizeof(name), "rank %u is late", e->peer);
		timeline_mark(&d->timeline, at, name, ps(d, time_at(k, i)));
		break;
	case NBAR_TRACE_SILENT:
		snprintf(name, sizeof(name), "the NIC of rank %u is silent", e->peer);
		timeline_mark(&d->timeline, at, name, ps(d, time_at(k, i)));
		break;
	case NBAR_TRACE_START:
	case NBAR_TRACE_COMPLETE:
	case NBAR_TRACE_END:
		break;
	}
}

static int draw_track(void *arg, const struct track *k)
{
	struct drawing *d = arg;
	struct barrier b = { 0 };
	char name[64];

	snprintf(name, sizeof(name), "group %u, rank %u", event_at(k, 0)->handle & 0xffff,
		 event_at(k, 0)->rank);
	timeline_thread(&d->timeline, track_of(k->set, k->log, k->index[0]), name);
	for (uint32_t i = 0; i < k->n; i++) {
		bool failed, ends = barrier_step(k, i, &b, &failed);

		if (ends)
			draw_barrier(d, track_of(k->set, k->log, k->index[i]), &b, time_at(k, i),
				     failed);
		draw_event(d, k, i);
	}
	return 0;
}

static void draw_frames(struct drawing *d, const struct trace_set *s)
{
	for (uint32_t i = 0; i < s->nframe; i++) {
		const struct trace_frame *f = &s->frame[i];
		int64_t left = trace_time(s, f->out_log, f->out);
		int64_t arrive = trace_time(s, f->in_log, f->in);
		uint8_t type = s->log[f->in_log].event[f->in].type;

		if (is_inside(d, left, left) && is_inside(d, arrive, arrive))
			timeline_flow(&d->timeline, type_name[type < NBFW_TYPE_END ? type : 0],
				      track_of(s, f->out_log, f->out), ps(d, left),
				      track_of(s, f->in_log, f->in), ps(d, arrive));
	}
}

static int64_t zero_of(const struct trace_set *s, const struct trace_window *w)
{
	int64_t zero = w->all ? INT64_MAX : w->begin;

	for (uint32_t l = 0; w->all && l < s->nlog; l++)
		if (s->log[l].n && trace_time(s, l, 0) < zero)
			zero = trace_time(s, l, 0);
	return zero;
}

int trace_draw(const struct trace_set *s, const struct trace_window *w, FILE *to)
{
	struct drawing d = { .window = w, .zero = zero_of(s, w) };
	char name[128];
	int rc = 0;

	timeline_begin(&d.timeline, to);
	for (uint32_t l = 0; l < s->nlog && rc == 0; l++) {
		snprintf(name, sizeof(name), "%s at %s", s->log[l].nic, s->log[l].host);
		timeline_process(&d.timeline, l + 1, name);
		rc = each_track(s, l, draw_track, &d);
	}
	draw_frames(&d, s);
	timeline_end(&d.timeline);
	if (d.timeline.left_out)
		fprintf(stderr,
			"nbar trace: %llu events are left out: the timeline has its first %u\n",
			(unsigned long long)d.timeline.left_out, TIMELINE_MAX);
	return rc;
}
