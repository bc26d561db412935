/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_list.h - lists of numbers, in options.
 */
#ifndef NBAR_TOOLS_SWEEP_LIST_H
#define NBAR_TOOLS_SWEEP_LIST_H

#include <stdint.h>

#define SWEEP_LIST_MAX 64u

/* A list of numbers with fractions, as "1.5,2,10". */
struct sweep_list {
	double value[SWEEP_LIST_MAX];
	uint32_t n;
};

/* Reads a list of numbers from min to max; 0, or TOOL_USAGE after a message. */
int sweep_list_read(const char *option, const char *text, double min, double max,
		    struct sweep_list *out);

/* Reads a list, or a range "1.5-130": then the list has 0 numbers, and `range` has the ends. */
int sweep_range_read(const char *option, const char *text, double min, double max,
		     struct sweep_list *out, double range[2]);

/* Makes n numbers from first to last; the ratio between neighbours is constant. */
void sweep_list_spread(struct sweep_list *out, double first, double last, uint32_t n);

/* For the settings: the list as text. */
void sweep_list_text(const struct sweep_list *list, char *out, uint32_t size);

#endif
