/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_list.c - see sweep_list.h.
 */
#include "sweep_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

struct reading {
	const char *option;
	double min, max;
	struct sweep_list *out;
};

static int read_item(void *arg, const char *item)
{
	const struct reading *r = arg;
	char *end;
	double value = strtod(item, &end);

	if (item[0] < '0' || item[0] > '9' || *end || !(value >= r->min && value <= r->max))
		return tool_usage("%s: '%s' is not a number from %g to %g", r->option, item, r->min,
				  r->max);
	if (r->out->n == SWEEP_LIST_MAX)
		return tool_usage("%s: at most %u numbers", r->option, SWEEP_LIST_MAX);
	r->out->value[r->out->n++] = value;
	return 0;
}

int sweep_list_read(const char *option, const char *text, double min, double max,
		    struct sweep_list *out)
{
	struct reading r = { option, min, max, out };

	out->n = 0;
	return tool_list(text, read_item, &r);
}

int sweep_range_read(const char *option, const char *text, double min, double max,
		     struct sweep_list *out, double range[2])
{
	const char *to = strchr(text, '-');
	struct sweep_list end;
	char from[64];
	int r;

	if (!to)
		return sweep_list_read(option, text, min, max, out);
	snprintf(from, sizeof(from), "%.*s", (int)(to - text), text);
	out->n = 0;
	for (uint32_t i = 0; i < 2; i++) {
		r = sweep_list_read(option, i ? to + 1 : from, min, max, &end);
		if (r)
			return r;
		range[i] = end.value[0];
	}
	if (range[0] < range[1] && end.n == 1 && !strchr(from, ','))
		return 0;
	return tool_usage("%s: '%s' is not a range", option, text);
}

void sweep_list_spread(struct sweep_list *out, double first, double last, uint32_t n)
{
	out->n = n;
	for (uint32_t i = 0; i < n; i++)
		out->value[i] = first * pow(last / first, n > 1 ? (double)i / (n - 1) : 0);
}

void sweep_list_text(const struct sweep_list *list, char *out, uint32_t size)
{
	*out = '\0';
	for (uint32_t i = 0; i < list->n; i++)
		tool_join(out, size, ",", "%.6g", list->value[i]);
}
