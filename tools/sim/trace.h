/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - the timeline of a simulation, in the JSON of Chrome's trace events: Perfetto and
 * chrome://tracing open it. A track a member: its barriers, its work, and arrows for messages.
 *
 * All functions may be called with NULL, and then do nothing.
 */
#ifndef NBAR_TOOLS_SIM_TRACE_H
#define NBAR_TOOLS_SIM_TRACE_H

#include <stdio.h>

#include "queue.h"

#define SIM_TRACE_MAX 2000000u /* lines; the rest is counted and left out */

struct sim_trace {
	FILE *to;
	uint64_t lines, left_out;
	uint64_t flow; /* number of the last message */
};

void sim_trace_begin(struct sim_trace *t, FILE *to, const char *title);

/* Closes the list. */
void sim_trace_end(struct sim_trace *t);

void sim_trace_enter(struct sim_trace *t, uint32_t member, uint32_t barrier, sim_time at);
void sim_trace_leave(struct sim_trace *t, uint32_t member, uint32_t barrier, sim_time at);
void sim_trace_work(struct sim_trace *t, uint32_t member, sim_time begin, sim_time end);
void sim_trace_message(struct sim_trace *t, const struct sim_event *ev, sim_time left,
		       sim_time arrive);

#endif
