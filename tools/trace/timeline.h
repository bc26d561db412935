/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeline.h - writes a timeline in the JSON of Chrome's trace events: Perfetto and
 * chrome://tracing open it.
 *
 * A process of the timeline has tracks, called threads. Times are picoseconds since any moment.
 * Names must need no escape in JSON.
 */
#ifndef NBAR_TOOLS_TIMELINE_H
#define NBAR_TOOLS_TIMELINE_H

#include <stdint.h>
#include <stdio.h>

#define TIMELINE_MAX 2000000u /* lines written; later lines are only counted */
#define TIMELINE_US UINT64_C(1000000)

struct timeline {
	FILE *to;
	uint64_t lines, left_out;
	uint64_t flow; /* number of the last arrow */
};

struct timeline_track {
	uint32_t process, thread;
};

/* Begins the file. */
void timeline_begin(struct timeline *t, FILE *to);

/* Ends the file. */
void timeline_end(struct timeline *t);

/* Names that a reader sees for a process and for a track. */
void timeline_process(struct timeline *t, uint32_t process, const char *name);
void timeline_thread(struct timeline *t, struct timeline_track at, const char *name);

/* A slice; two slices of a track must not overlap, except that one may contain the other. */
void timeline_slice(struct timeline *t, struct timeline_track at, const char *name, uint64_t begin,
		    uint64_t end);

/* A mark at one moment. */
void timeline_mark(struct timeline *t, struct timeline_track at, const char *name, uint64_t time);

/* An arrow from one track to another. */
void timeline_flow(struct timeline *t, const char *name, struct timeline_track from, uint64_t left,
		   struct timeline_track to, uint64_t arrive);

#endif
