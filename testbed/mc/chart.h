/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chart.h - prints a run as a message sequence chart: each rank has a column, each frame is an
 * arrow, and time runs downwards.
 *
 * Called while a bad run is repeated. An implied event could happen at any time. The chart shows
 * it only if a shown event takes a frame of it.
 */
#ifndef TESTBED_MC_CHART_H
#define TESTBED_MC_CHART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CHART_EVENTS 4096u
#define CHART_FRAMES 8192u
#define CHART_TEXT 56u
#define CHART_NOBODY UINT32_MAX

struct chart_event {
	uint32_t rank, from; /* from: sender of the frame, or CHART_NOBODY */
	uint32_t cause;      /* the event that sent the frame; CHART_NOBODY: unknown */
	bool implied, shown;
	char text[CHART_TEXT], then[CHART_TEXT];
};

struct chart {
	uint32_t size, nevent, nframe;
	struct chart_event event[CHART_EVENTS];
	struct {
		uint64_t key;
		uint32_t event;
	} frame[CHART_FRAMES]; /* the frames, and the events that sent them */
};

void chart_begin(struct chart *c, uint32_t size);

/* Adds an event at a rank. If `from` is a rank, the event takes the frame `key`. */
void chart_event(struct chart *c, uint32_t rank, uint32_t from, uint64_t key, bool implied,
		 const char *text);

/* Adds an effect of the last event: a text for the host, or a frame. */
void chart_then(struct chart *c, const char *text);
void chart_sent(struct chart *c, uint64_t key);

/* Prints the chart. `why`: the property that the run breaks. */
void chart_print(struct chart *c, const char *why, FILE *out);

#endif
