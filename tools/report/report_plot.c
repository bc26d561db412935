/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_plot.c - the data of figure.gp, the gnuplot script for a figure of a result.
 * report_figure.c calls it.
 */
#include "report_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template.h"

#define MANY_LINES 8u /* with more lines than this, lines are thinner */
#define COLOURS 8u
#define DASHES 4u
#define POINTS 8u

/* Closes a memory stream, and returns its text as a JSON string. */
static json_t *text_end(FILE *f, char **text)
{
	json_t *string = NULL;

	if (f && !fclose(f))
		string = json_string(*text);
	free(*text);
	return string;
}

static json_t *label(const struct figure *f, int column)
{
	const json_t *c = json_array_get(f->r->columns, (size_t)column);
	const char *unit = json_string_value(json_object_get(c, "unit"));
	char name[WORD], in[WORD] = "";

	plot_harmless(json_string_value(json_object_get(c, "name")), name, sizeof(name));
	plot_harmless(unit ? unit : "", in, sizeof(in));
	for (char *s = name; (s = strchr(s, '?')); s++)
		*s = ' ';
	return json_sprintf("%s%s%s", name, *in ? ", " : "", in);
}

/* The height of a figure. The key is outside the plot: below it on narrow screens, else beside it,
 * in one column. */
static uint32_t height(const struct figure *f, bool wide)
{
	uint32_t lines = f->nline + f->marks, beside = 80 + 22 * lines;

	return !wide ? 340 + 18 * lines : beside > 440 ? beside : 440;
}

/* True if the words of the axis do not fit beside each other. */
static bool is_crowded(const struct values *words, bool wide)
{
	size_t length = 0;

	for (uint32_t i = 0; i < words->n; i++)
		length += strlen(words->word[i]) + 2;
	return length > (wide ? 70 : 32);
}

/* The words of an axis that has words instead of numbers. */
static json_t *places(const struct values *v)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	for (uint32_t i = 0; to && i < v->n; i++)
		fprintf(to, "%s'%s' %u", i ? ", " : "", v->word[i], i);
	return text_end(to, &text);
}

/* The fields of a heat map: rows that have a value and a place. The greater the value, the stronger
 * the colour. */
static json_t *fields(struct figure *f)
{
	json_t *all = json_array();
	double range = f->most - f->least, share, value;

	for (size_t row = 0; row < json_array_size(f->r->rows); row++) {
		char a[WORD], b[WORD];
		uint32_t x, y;

		plot_word(f->r, row, f->x, a);
		plot_word(f->r, row, f->y, b);
		if (!plot_has(f, row) || !plot_number(f->r, row, f->value, false, &value))
			continue;
		x = plot_index(&f->xs, a);
		y = plot_index(&f->ys, b);
		if (x == LINES_MAX || y == LINES_MAX)
			continue;
		share = range > 0 ? (value - f->least) / range : 0.5;
		json_array_append_new(all,
				      json_pack("{s:i, s:i, s:o, s:o}", "x", x, "y", y, "share",
						json_sprintf("%.3f", 0.06 + 0.54 * share), "value",
						json_sprintf("%.3g", value)));
	}
	return all;
}

/* "nic, 8 nodes": the name of a counted thing follows its number. */
static json_t *line_title(const struct figure *f, uint32_t colour, uint32_t dash)
{
	const char *const word[REPORT_SERIES_MAX] = { f->colour.word[colour], f->dash.word[dash] };
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);
	bool begun = false;

	for (uint32_t i = 0; to && i < REPORT_SERIES_MAX; i++) {
		const json_t *c = json_array_get(f->r->columns, (size_t)f->series[i]);
		const char *type = json_string_value(json_object_get(c, "type"));
		char name[WORD] = "";

		if (f->series[i] < 0 || !*word[i])
			continue;
		if (type && !strcmp(type, "count"))
			plot_harmless(json_string_value(json_object_get(c, "name")), name,
				      sizeof(name));
		fprintf(to, "%s%s%s%s", begun ? ", " : "", word[i], *name ? " " : "", name);
		begun = true;
	}
	return text_end(to, &text);
}

/* Lines, or bars beside each other: the first series gives the colour, the second series the dashes
 * and points. */
static json_t *lines(const struct figure *f)
{
	static const char *const dashes[DASHES] = { "solid", "(8,5)", "(2,4)", "(10,4,2,4)" };
	static const int point[POINTS] = { 7, 6, 5, 9, 4, 11, 8, 13 };
	json_t *all = json_array();
	double width = 0.8 / f->nline; /* width of a bar and the space beside it */
	uint32_t n = 0;

	for (uint32_t at = 0; at < LINES_MAX * LINES_MAX; at++) {
		uint32_t i = at / LINES_MAX, k = at % LINES_MAX;

		if (!f->used[i][k])
			continue;
		/* clang-format off */
		json_array_append_new(
			all, json_pack("{s:s, s:i, s:o, s:s, s:i, s:o, s:o}",
				       "comma", n ? ", " : "",
				       "number", at,
				       "shift", json_sprintf("%+.4f", (n + 0.5) * width - 0.4),
				       "dash", dashes[k % DASHES],
				       "point", point[k % POINTS],
				       "colour", json_sprintf("%02x", i % COLOURS + 1),
				       "title", line_title(f, i, k)));
		/* clang-format on */
		n++;
	}
	return all;
}

static json_t *published(const struct figure *f)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (to)
		report_points_plot(f->r, f->panel, to);
	return text_end(to, &text);
}

static void put_script(struct figure *f, bool wide, FILE *to)
{
	const struct report_panel *p = f->panel;
	bool words = p->kind != REPORT_LINES && f->xs.n, many = f->nline > MANY_LINES;
	/* clang-format off */
	json_t *data = json_pack("{s:i, s:i, s:i, s:o, s:o, s:s}",
				 "height", height(f, wide),
				 "width", wide ? 820 : 400,
				 "font", wide ? 14 : 13,
				 "x_label", label(f, f->x),
				 "y_label", label(f, f->y),
				 "data", f->data);
	json_t *conditions = json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}",
				       "is_heat", p->kind == REPORT_HEAT,
				       "is_bars", p->kind == REPORT_BARS,
				       "is_lines", p->kind == REPORT_LINES,
				       "is_log_x", p->log_x,
				       "is_log_y", p->log_y,
				       "has_points", !p->log_x && report_points_there(f->r, p),
				       "is_wide", wide,
				       "is_narrow", !wide,
				       "has_x_places", words,
				       "is_crowded", words && is_crowded(&f->xs, wide),
				       "from_zero", p->kind == REPORT_BARS && !p->log_y);
	json_t *axes = json_pack("{s:o, s:i, s:o, s:i}",
				 "x_places", places(&f->xs),
				 "x_last", f->xs.n - 1,
				 "y_places", places(&f->ys),
				 "y_last", f->ys.n - 1);
	json_t *drawn = json_pack("{s:o, s:o, s:o, s:o, s:s, s:s}",
				  "fields", p->kind == REPORT_HEAT ? fields(f) : json_array(),
				  "lines", lines(f),
				  "points", published(f),
				  "bar_width", json_sprintf("%.4f", 0.8 * 0.94 / fmax(f->nline, 1)),
				  "line_width", many ? "1.2" : "2",
				  "point_size", many ? "0.4" : "0.7");
	/* clang-format on */

	json_object_update_new(data, conditions);
	json_object_update_new(data, axes);
	json_object_update_new(data, drawn);
	template_fill(template_figure_gp, data, false, to);
}

bool report_plot(const struct report_result *r, const struct report_panel *panel, bool wide,
		 FILE *to)
{
	struct figure *f = calloc(1, sizeof(*f));
	size_t n;
	FILE *data = f ? open_memstream(&f->data, &n) : NULL;
	bool any = data && plot_begin(f, r, panel);

	if (any)
		any = panel->kind == REPORT_HEAT ? plot_heat(f) : plot_lines(f, data);
	any &= data && !fclose(data);
	if (any)
		put_script(f, wide, to);
	if (f)
		free(f->data);
	free(f);
	return any;
}
