/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_section.c - the data of section.html, the part of the page for one experiment: figures,
 * notes, table, published values, machine and settings. report_page.c calls it.
 */
#include "report.h"

#include <stdlib.h>

#include "published.h"
#include "template.h"

#define LONG_TABLE 40u /* a table with this many rows or more scrolls on a screen */

static const char *text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Draws a panel twice, for wide and for narrow screens: its text must not shrink with it. */
static void figure_add(json_t *figures, const struct report_result *r,
		       const struct report_experiment *e, uint32_t i, struct report_drawn *drawn)
{
	const struct report_panel *panel = &e->panel[i];
	enum report_missing missing;
	char *wide, *narrow, id[64];

	snprintf(id, sizeof(id), "%s-%u-wide", e->name, i);
	wide = report_figure(r, panel, id, true, &missing);
	if (!wide) {
		drawn->no_gnuplot |= missing == REPORT_NO_GNUPLOT;
		drawn->failed |= missing == REPORT_GNUPLOT_FAILED;
		return;
	}
	snprintf(id, sizeof(id), "%s-%u-narrow", e->name, i);
	narrow = report_figure(r, panel, id, false, &missing);
	json_array_append_new(
		figures, json_pack("{s:b, s:s, s:b, s:s, s:s}", "heat", panel->kind == REPORT_HEAT,
				   "caption", panel->title, "points", report_points_there(r, panel),
				   "wide", wide, "narrow", narrow ? narrow : wide));
	free(wide);
	free(narrow);
}

static bool is_numeric(const struct report_result *r, size_t column)
{
	const json_t *row;
	size_t i;

	json_array_foreach(r->rows, i, row)
	{
		if (json_is_string(json_array_get(row, column)))
			return false;
	}
	return true;
}

static json_t *columns_of(const struct report_result *r)
{
	json_t *columns = json_array();
	const json_t *column;
	size_t i;

	json_array_foreach(r->columns, i, column)
	{
		json_array_append_new(columns, json_pack("{s:o, s:s, s:b}", "column",
							 report_name(text_in(column, "name")),
							 "unit", text_in(column, "unit"), "number",
							 is_numeric(r, i)));
	}
	return columns;
}

/* The cells of each row, each with the description of its column. */
static json_t *rows_of(const struct report_result *r, const json_t *columns)
{
	json_t *rows = json_array(), *row;
	size_t i, k;

	json_array_foreach(r->rows, i, row)
	{
		json_array_append_new(rows, json_pack("{s:[]}", "cells"));
	}
	for (k = 0; k < r->ncolumn; k++) {
		bool number = json_is_true(json_object_get(json_array_get(columns, k), "number"));
		int digits = report_digits(r, k);

		json_array_foreach(r->rows, i, row)
		{
			char text[512];

			report_value(json_array_get(row, k), digits, text, sizeof(text));
			json_array_append_new(json_object_get(json_array_get(rows, i), "cells"),
					      json_pack("{s:o, s:b}", "cell",
							json_string_nocheck(text), "number",
							number));
		}
	}
	return rows;
}

static json_t *notes_of(const struct report_result *r)
{
	json_t *notes = json_array();
	const json_t *note;
	size_t i;

	json_array_foreach(json_object_get(r->root, "notes"), i, note)
	{
		const char *text = json_string_value(note);

		json_array_append_new(notes, json_pack("{s:s}", "note", text ? text : ""));
	}
	return notes;
}

static void published_add(json_t *all, const struct published *p)
{
	json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s, s:s}", "what", p->what,
					     "setting", p->setting, "value", p->value, "hardware",
					     p->hardware, "source", p->source));
}

/* The published values in the result, or else the values of published.c. */
static json_t *published_for(const struct report_result *r, const struct report_experiment *e)
{
	json_t *all = json_array();
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(r->root, "published"), i, p)
	{
		published_add(all, &(struct published){ .what = text_in(p, "what"),
							.setting = text_in(p, "setting"),
							.value = text_in(p, "value"),
							.hardware = text_in(p, "hardware"),
							.source = text_in(p, "source") });
	}
	for (i = json_array_size(all) ? npublished : 0; i < npublished; i++)
		if (published_of(published[i].experiment, e->name))
			published_add(all, &published[i]);
	return all;
}

/* How the result was measured. */
static json_t *origin_of(const struct report_result *r)
{
	static const char *const origin[] = { "started", "version", "commit" };
	json_t *pairs = json_array();

	for (size_t i = 0; i < sizeof(origin) / sizeof(origin[0]); i++)
		if (*text_in(r->root, origin[i]))
			json_array_append_new(pairs,
					      json_pack("{s:s, s:s}", "key", origin[i], "value",
							text_in(r->root, origin[i])));
	report_pairs_add(pairs, json_object_get(r->root, "settings"));
	return pairs;
}

void report_section(const struct report_result *r, const struct report_experiment *e, FILE *to,
		    struct report_drawn *drawn)
{
	json_t *data = json_pack("{s:s, s:s, s:s, s:[], s:[], s:b, s:s}", "name", e->name, "title",
				 e->title, "text", e->text, "first_figure", "other_figures",
				 "incomplete", json_is_false(json_object_get(r->root, "complete")),
				 "command", text_in(r->root, "command"));
	json_t *columns = columns_of(r), *known = published_for(r, e);

	for (uint32_t i = 0; i < REPORT_PANELS_MAX && e->panel[i].x; i++)
		figure_add(json_object_get(data, i ? "other_figures" : "first_figure"), r, e, i,
			   drawn);
	json_object_set_new(data, "notes", notes_of(r));
	json_object_set_new(data, "long", json_boolean(json_array_size(r->rows) > LONG_TABLE));
	json_object_set_new(data, "rows", rows_of(r, columns));
	json_object_set_new(data, "columns", columns);
	json_object_set_new(data, "has_published", json_boolean(json_array_size(known)));
	json_object_set_new(data, "published", known);
	json_object_set_new(data, "origin", origin_of(r));
	template_fill(template_section_html, data, true, to);
}
