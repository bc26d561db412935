/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chart.h - a run as a message sequence chart: a column a rank, an arrow a frame, time downwards.
 *
 * Called while a bad run is repeated. An event may be implied: it could happen at any time, and is
 * printed only if a frame that it sent matters.
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
	uint32_t rank, from; /* from: of a frame, or CHART_NOBODY */
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
	} frame[CHART_FRAMES]; /* which event sent it first */
};

void chart_begin(struct chart *c, uint32_t size);

/* An event at a rank. `key` names the frame that it takes, if there is a `from`. */
void chart_event(struct chart *c, uint32_t rank, uint32_t from, uint64_t key, bool implied,
		 const char *text);

/* What the last event did: told to the host, or sent. */
void chart_then(struct chart *c, const char *text);
void chart_sent(struct chart *c, uint64_t key);

/* Prints the chart as text, or as a graph in the language of graphviz. `why`: how it ends. */
void chart_print(struct chart *c, const char *why, FILE *out);
void chart_dot(struct chart *c, const char *why, FILE *out);

#endif
