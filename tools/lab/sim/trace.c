/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - see trace.h.
 */
#include "trace.h"

#include <stdio.h>

_Static_assert(SIM_US == TIMELINE_US, "both count picoseconds");

static struct timeline_track trace_track_of(uint32_t member)
{
	return (struct timeline_track){ .thread = member };
}

static void edge(struct timeline *t, char phase, uint32_t member, uint32_t barrier, sim_time at)
{
	char name[32];

	if (!t)
		return;
	snprintf(name, sizeof(name), "barrier %u", barrier + 1);
	timeline_edge(t, phase, trace_track_of(member), name, at);
}

void sim_trace_enter(struct timeline *t, uint32_t member, uint32_t barrier, sim_time at)
{
	edge(t, 'b', member, barrier, at);
}

void sim_trace_leave(struct timeline *t, uint32_t member, uint32_t barrier, sim_time at)
{
	edge(t, 'e', member, barrier, at);
}

void sim_trace_work(struct timeline *t, uint32_t member, sim_time begin, sim_time end)
{
	if (begin != end)
		timeline_slice(t, trace_track_of(member), "work", begin, end);
}

void sim_trace_message(struct timeline *t, const struct sim_event *ev, sim_time left,
		       sim_time arrive)
{
	char name[48];

	if (!t)
		return;
	snprintf(name, sizeof(name), "slot %u of %u", ev->slot, ev->to);
	timeline_flow(t, name, trace_track_of(ev->from), left, trace_track_of(ev->to), arrive);
}
