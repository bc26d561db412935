/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_points.c - published values as points of a figure, if the axes fit. Part of the gnuplot
 * script; see report_plot.c.
 */
#include "report.h"

#include <string.h>

#include "published.h"

#define SHAPES 4u

static bool fits(const struct report_result *r, const struct report_panel *panel,
		 const struct published_point *p)
{
	const char *name = json_string_value(json_object_get(r->root, "experiment"));

	return panel->kind == REPORT_LINES && name && published_of(p->experiment, name) &&
	       !strcmp(p->x, panel->x) && !strcmp(p->y, panel->y);
}

/* The next point from *i on; NULL: there is none. */
static const struct published_point *next(const struct report_result *r,
					  const struct report_panel *panel, uint32_t *i)
{
	while (*i < npublished_points)
		if (fits(r, panel, &published_points[(*i)++]))
			return &published_points[*i - 1];
	return NULL;
}

/* In the table, points with the same mark are next to each other. */
uint32_t report_points_data(const struct report_result *r, const struct report_panel *panel,
			    FILE *to)
{
	const struct published_point *p, *before = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; (p = next(r, panel, &i)); before = p) {
		if (!before || strcmp(before->mark, p->mark))
			fprintf(to, "%s$p%u << EOD\n", n ? "EOD\n" : "", n), n++;
		fprintf(to, "%g %g\n", p->at[0], p->at[1]);
	}
	fputs(n ? "EOD\n" : "", to);
	return n;
}

/* Draws crosses and similar marks, without a line, in the colour of the text. */
void report_points_plot(const struct report_result *r, const struct report_panel *panel, FILE *to)
{
	static const int shape[SHAPES] = { 2, 1, 3, 10 };
	const struct published_point *p, *before = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; (p = next(r, panel, &i)); before = p) {
		if (before && !strcmp(before->mark, p->mark))
			continue;
		fprintf(to,
			", $p%u using 1:2 with points lw 1.5 pt %d ps 1 lc rgb '#000109' title '%s "
			"*'",
			n, shape[n % SHAPES], p->mark);
		n++;
	}
}

bool report_points_there(const struct report_result *r, const struct report_panel *panel)
{
	uint32_t i = 0;

	return next(r, panel, &i);
}
