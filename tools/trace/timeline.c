/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeline.c - see timeline.h. Times in the file are microseconds.
 */
#include "timeline.h"

#include <inttypes.h>
#include <stdbool.h>

/* A time in microseconds. It has all digits, so that equal runs make equal files. */
#define TIME "%" PRIu64 ".%06" PRIu64
#define TIME_OF(t) (uint64_t)((t) / TIMELINE_US), (uint64_t)((t) % TIMELINE_US)

static bool timeline_has_room(struct timeline *t, uint64_t lines)
{
	if (t->lines + lines > TIMELINE_MAX) {
		t->left_out++;
		return false;
	}
	t->lines += lines;
	return true;
}

void timeline_begin(struct timeline *t, FILE *to)
{
	*t = (struct timeline){ .to = to };
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
	      "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"nbar trace\"}}",
	      to);
}

void timeline_end(struct timeline *t)
{
	fputs("\n]}\n", t->to);
}

void timeline_process(struct timeline *t, uint32_t process, const char *name)
{
	if (timeline_has_room(t, 1))
		fprintf(t->to,
			",\n{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{"
			"\"name\":\"%s\"}}",
			process, name);
}

void timeline_thread(struct timeline *t, struct timeline_track at, const char *name)
{
	if (timeline_has_room(t, 1))
		fprintf(t->to,
			",\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{"
			"\"name\":\"%s\"}}",
			at.process, at.thread, name);
}

void timeline_slice(struct timeline *t, struct timeline_track at, const char *name, uint64_t begin,
		    uint64_t end)
{
	if (timeline_has_room(t, 1))
		fprintf(t->to,
			",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"ts\":" TIME
			",\"dur\":" TIME "}",
			at.process, at.thread, name, TIME_OF(begin), TIME_OF(end - begin));
}

void timeline_mark(struct timeline *t, struct timeline_track at, const char *name, uint64_t time)
{
	if (timeline_has_room(t, 1))
		fprintf(t->to,
			",\n{\"ph\":\"i\",\"s\":\"t\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\","
			"\"ts\":" TIME "}",
			at.process, at.thread, name, TIME_OF(time));
}

void timeline_flow(struct timeline *t, const char *name, struct timeline_track from, uint64_t left,
		   struct timeline_track to, uint64_t arrive)
{
	if (!timeline_has_room(t, 2))
		return;
	t->flow++;
	fprintf(t->to,
		",\n{\"ph\":\"s\",\"cat\":\"frame\",\"id\":%" PRIu64 ",\"pid\":%u,\"tid\":%u,"
		"\"name\":\"%s\",\"ts\":" TIME "}",
		t->flow, from.process, from.thread, name, TIME_OF(left));
	fprintf(t->to,
		",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"frame\",\"id\":%" PRIu64
		",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"ts\":" TIME "}",
		t->flow, to.process, to.thread, name, TIME_OF(arrive));
}
