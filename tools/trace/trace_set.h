/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_set.h - what the files of `nbar trace` share: logs of events, the frames that two logs have
 * in common, and the common clock.
 *
 * trace.c reads options and calls trace_file.c (reads a log), trace_match.c (pairs frames and
 * aligns clocks) and trace_draw.c (writes the timeline). Bytes of a file may be anything.
 */
#ifndef NBAR_TOOLS_TRACE_SET_H
#define NBAR_TOOLS_TRACE_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "nbar_abi.h"
#include "nbar_trace.h"

#define TRACE_LOGS_MAX 256u
#define TRACE_NO_CLOCK UINT32_MAX

/* The events of one NIC, in order of time. */
struct trace_log {
	char nic[NBAR_NAME_MAX], host[64], boot_id[40];
	struct nbar_trace_event *event;
	uint32_t n;
	uint64_t lost; /* older events, overwritten */
	uint32_t clock;
};

/* Logs of one boot of one machine share a clock. */
struct trace_clock {
	bool aligned;
	int64_t offset;  /* to add to the times of this clock */
	uint64_t within; /* bound of the error of the offset, in nanoseconds */
	uint32_t frames; /* number of frames that determine the offset */
};

/* A frame that both ends have noted. */
struct trace_frame {
	uint32_t out_log, out, in_log, in; /* indices of events */
};

struct trace_set {
	struct trace_log log[TRACE_LOGS_MAX];
	uint32_t nlog;
	struct trace_clock clock[TRACE_LOGS_MAX];
	uint32_t nclock;
	struct trace_frame *frame;
	uint32_t nframe;
};

/* The events from begin to end, or all events if `all` is set. */
struct trace_window {
	bool all;
	int64_t begin, end;
};

/* What the logs say of barriers. */
struct trace_summary {
	uint64_t barriers, events;
	bool any;
	uint32_t log, index, rank, epoch; /* the slowest barrier: log, group in it, rank, epoch */
	int64_t begin, end;
};

/* trace_file.c: reads a file of a daemon. 0, or an exit status, reported. */
int trace_file_read(const char *path, struct trace_log *log);

/* trace_match.c: pairs the frames, and aligns the clocks. 0 or -ENOMEM. */
int trace_match(struct trace_set *s);

/* The time of an event by the common clock. */
static inline int64_t trace_time(const struct trace_set *s, uint32_t log, uint32_t i)
{
	const struct trace_log *l = &s->log[log];

	return (int64_t)l->event[i].time + s->clock[l->clock].offset;
}

/* trace_draw.c: finds the slowest barrier; writes the events of a window. -ENOMEM: no memory. */
void trace_summarize(const struct trace_set *s, struct trace_summary *out);
int trace_draw(const struct trace_set *s, const struct trace_window *w, FILE *to);

#endif
