/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - the timeline of a simulation (timeline.h): a track per member, with its barriers, its
 * work, and arrows for messages.
 *
 * With NULL as timeline, the functions do nothing.
 */
#ifndef NBAR_TOOLS_SIM_TRACE_H
#define NBAR_TOOLS_SIM_TRACE_H

#include "queue.h"
#include "timeline.h"

void sim_trace_enter(struct timeline *t, uint32_t member, uint32_t barrier, sim_time at);
void sim_trace_leave(struct timeline *t, uint32_t member, uint32_t barrier, sim_time at);
void sim_trace_work(struct timeline *t, uint32_t member, sim_time begin, sim_time end);
void sim_trace_message(struct timeline *t, const struct sim_event *ev, sim_time left,
		       sim_time arrive);

#endif
