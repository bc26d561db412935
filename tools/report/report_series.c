/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_series.c - the rows of a result as lines, bars or fields of a figure. report_plot.c calls
 * it.
 *
 * Only numbers, and words of harmless characters, get from a result into a figure, because a
 * gnuplot script can run commands.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_plot.h"

void plot_harmless(const char *text, char *out, size_t size)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   " .:+-/%()=,";
	size_t i = 0;

	for (; text[i] && i < size - 1; i++)
		out[i] = strchr(good, text[i]) ? text[i] : '?';
	out[i] = '\0';
}

void plot_word(const struct report_result *r, size_t row, int column, char out[WORD])
{
	char text[256] = "";

	if (column >= 0)
		report_value(json_array_get(json_array_get(r->rows, row), (size_t)column), 2, text,
			     sizeof(text));
	plot_harmless(text, out, WORD);
}

uint32_t plot_index(struct values *v, const char *word)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (!strcmp(v->word[i], word))
			return i;
	if (v->n == LINES_MAX)
		return LINES_MAX;
	strcpy(v->word[v->n], word);
	return v->n++;
}

bool plot_number(const struct report_result *r, size_t row, int column, bool log, double *out)
{
	const json_t *v = json_array_get(json_array_get(r->rows, row), (size_t)column);
	char *end;

	if (json_is_string(v)) {
		*out = strtod(json_string_value(v), &end);
		if (*end)
			return false;
	} else if (!json_is_number(v)) {
		return false;
	} else {
		*out = json_number_value(v);
	}
	return isfinite(*out) && (!log || *out > 0);
}

bool plot_has(const struct figure *f, size_t row)
{
	char word[WORD];

	if (!f->panel->only)
		return true;
	plot_word(f->r, row, f->only, word);
	return !strcmp(word, f->panel->only_value);
}

bool plot_begin(struct figure *f, const struct report_result *r, const struct report_panel *p)
{
	f->r = r;
	f->panel = p;
	f->x = report_column(r, p->x);
	f->y = report_column(r, p->y);
	f->value = report_column(r, p->value);
	f->only = report_column(r, p->only);
	for (uint32_t i = 0; i < REPORT_SERIES_MAX; i++)
		f->series[i] = report_column(r, p->series[i]);
	return f->x >= 0 && f->y >= 0 && (p->kind != REPORT_HEAT || f->value >= 0) &&
	       (!p->only || f->only >= 0);
}

/* Sorts rows into lines. */
static void sort_rows(struct figure *f)
{
	for (size_t row = 0; row < json_array_size(f->r->rows); row++) {
		char a[WORD], b[WORD], x[WORD];
		uint32_t i, k;
		double y;

		if (!plot_has(f, row))
			continue;
		plot_word(f->r, row, f->series[0], a);
		plot_word(f->r, row, f->series[1], b);
		plot_word(f->r, row, f->x, x);
		/* Includes words outside this figure: all figures of a result have the same
		 * colours. */
		i = plot_index(&f->colour, a);
		k = plot_index(&f->dash, b);
		if (!plot_number(f->r, row, f->y, f->panel->log_y, &y))
			continue;
		if (i < LINES_MAX && k < LINES_MAX && plot_index(&f->xs, x) < LINES_MAX)
			f->used[i][k] = true;
	}
}

/* Writes the data of a line. False: the line has no point. For bars, x is a place on the axis. */
static bool line_data(struct figure *f, FILE *to, uint32_t line, const char *colour,
		      const char *dash)
{
	uint32_t n = 0;
	double x, y;

	fprintf(to, "$d%u << EOD\n", line);
	for (size_t row = 0; row < json_array_size(f->r->rows); row++) {
		char a[WORD], b[WORD], word[WORD];

		plot_word(f->r, row, f->series[0], a);
		plot_word(f->r, row, f->series[1], b);
		if (strcmp(a, colour) || strcmp(b, dash) || !plot_has(f, row) ||
		    !plot_number(f->r, row, f->y, f->panel->log_y, &y))
			continue;
		plot_word(f->r, row, f->x, word);
		if (f->panel->kind == REPORT_BARS)
			x = plot_index(&f->xs, word);
		else if (!plot_number(f->r, row, f->x, f->panel->log_x, &x))
			continue;
		fprintf(to, "%.9g %.9g\n", x, y);
		n++;
	}
	fputs("EOD\n", to);
	return n > 0;
}

bool plot_lines(struct figure *f, FILE *to)
{
	sort_rows(f);
	for (uint32_t i = 0; i < f->colour.n; i++)
		for (uint32_t k = 0; k < f->dash.n; k++)
			f->nline += f->used[i][k] =
				f->used[i][k] && line_data(f, to, i * LINES_MAX + k,
							   f->colour.word[i], f->dash.word[k]);
	f->marks = report_points_data(f->r, f->panel, to);
	return f->nline;
}

bool plot_heat(struct figure *f)
{
	char a[WORD], b[WORD];
	double value;

	f->least = HUGE_VAL;
	f->most = -HUGE_VAL;
	for (size_t row = 0; row < json_array_size(f->r->rows); row++) {
		if (!plot_has(f, row) || !plot_number(f->r, row, f->value, false, &value))
			continue;
		f->least = fmin(f->least, value);
		f->most = fmax(f->most, value);
		plot_word(f->r, row, f->x, a);
		plot_word(f->r, row, f->y, b);
		plot_index(&f->xs, a);
		plot_index(&f->ys, b);
	}
	return f->xs.n;
}
