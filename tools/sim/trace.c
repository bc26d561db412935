/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - see trace.h. Times in the file are microseconds.
 */
#include "trace.h"

#include <inttypes.h>

/* Microseconds with all digits, so that equal runs make equal files. */
#define TIME "%" PRIu64 ".%06" PRIu64
#define TIME_OF(t) (uint64_t)((t) / SIM_US), (uint64_t)((t) % SIM_US)

static bool has_room(struct sim_trace *t, uint64_t lines)
{
	if (!t)
		return false;
	if (t->lines + lines > SIM_TRACE_MAX) {
		t->left_out++;
		return false;
	}
	t->lines += lines;
	return true;
}

void sim_trace_begin(struct sim_trace *t, FILE *to, const char *title)
{
	*t = (struct sim_trace){ .to = to };
	fprintf(to,
		"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}",
		title);
}

void sim_trace_end(struct sim_trace *t)
{
	if (t)
		fputs("\n]}\n", t->to);
}

static void edge(struct sim_trace *t, char phase, uint32_t member, uint32_t barrier, sim_time at)
{
	if (has_room(t, 1))
		fprintf(t->to,
			",\n{\"ph\":\"%c\",\"cat\":\"barrier\",\"id\":%u,\"pid\":0,\"tid\":%u,"
			"\"name\":\"barrier %u\",\"ts\":" TIME "}",
			phase, member, member, barrier + 1, TIME_OF(at));
}

void sim_trace_enter(struct sim_trace *t, uint32_t member, uint32_t barrier, sim_time at)
{
	edge(t, 'b', member, barrier, at);
}

void sim_trace_leave(struct sim_trace *t, uint32_t member, uint32_t barrier, sim_time at)
{
	edge(t, 'e', member, barrier, at);
}

void sim_trace_work(struct sim_trace *t, uint32_t member, sim_time begin, sim_time end)
{
	if (begin != end && has_room(t, 1))
		fprintf(t->to,
			",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"name\":\"work\",\"ts\":" TIME
			",\"dur\":" TIME "}",
			member, TIME_OF(begin), TIME_OF(end - begin));
}

void sim_trace_message(struct sim_trace *t, const struct sim_event *ev, sim_time left,
		       sim_time arrive)
{
	if (!has_room(t, 2))
		return;
	t->flow++;
	fprintf(t->to,
		",\n{\"ph\":\"s\",\"cat\":\"frame\",\"id\":%" PRIu64 ",\"pid\":0,\"tid\":%u,"
		"\"name\":\"slot %u of %u\",\"ts\":" TIME "}",
		t->flow, ev->from, ev->slot, ev->to, TIME_OF(left));
	fprintf(t->to,
		",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"frame\",\"id\":%" PRIu64
		",\"pid\":0,\"tid\":%u,\"name\":\"slot %u of %u\",\"ts\":" TIME "}",
		t->flow, ev->to, ev->slot, ev->to, TIME_OF(arrive));
}
