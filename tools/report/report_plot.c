/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_plot.c - the script that has gnuplot draw a figure of a result.
 *
 * Nothing of a result gets into it but numbers and words of harmless characters: a script of
 * gnuplot may run commands. Its colours are rgb(0, 1, n), which nobody uses: see report_figure.c.
 */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 48u
#define MANY_LINES 8u /* beyond, they are thinner */
#define COLOURS 8u
#define DASHES 4u
#define POINTS 8u
#define WORD 48u

/* The first different values of a column, in the order they come. */
struct values {
	char word[LINES_MAX][WORD];
	uint32_t n;
};

static void harmless(const char *text, char *out, size_t size)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   " .:+-/%()=,";
	size_t i = 0;

	for (; text[i] && i < size - 1; i++)
		out[i] = strchr(good, text[i]) ? text[i] : '?';
	out[i] = '\0';
}

static void word_of(const struct report_result *r, size_t row, int column, char out[WORD])
{
	char text[256] = "";

	if (column >= 0)
		report_value(json_array_get(json_array_get(r->rows, row), (size_t)column), 2, text,
			     sizeof(text));
	harmless(text, out, WORD);
}

/* Index of a word among those known, which grow; LINES_MAX if there is no room. */
static uint32_t index_of(struct values *v, const char *word)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (!strcmp(v->word[i], word))
			return i;
	if (v->n == LINES_MAX)
		return LINES_MAX;
	strcpy(v->word[v->n], word);
	return v->n++;
}

/* The number at a place; false if there is none that can be drawn. */
static bool number_at(const struct report_result *r, size_t row, int column, bool log, double *out)
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

struct figure {
	const struct report_result *r;
	const struct report_panel *panel;
	int x, y, value, series[REPORT_SERIES_MAX], only;
	struct values colour, dash;
};

static bool figure_has(const struct figure *f, size_t row)
{
	char word[WORD];

	if (!f->panel->only)
		return true;
	word_of(f->r, row, f->only, word);
	return !strcmp(word, f->panel->only_value);
}

/* Finds the columns; false if one that is needed is not there. */
static bool figure_begin(struct figure *f, const struct report_result *r,
			 const struct report_panel *p)
{
	*f = (struct figure){ .r = r, .panel = p };
	f->x = report_column(r, p->x);
	f->y = report_column(r, p->y);
	f->value = report_column(r, p->value);
	f->only = report_column(r, p->only);
	for (uint32_t i = 0; i < REPORT_SERIES_MAX; i++)
		f->series[i] = report_column(r, p->series[i]);
	return f->x >= 0 && f->y >= 0 && (p->kind != REPORT_HEAT || f->value >= 0) &&
	       (!p->only || f->only >= 0);
}

static void axis_label(const struct figure *f, FILE *to, char axis, int column)
{
	const json_t *c = json_array_get(f->r->columns, (size_t)column);
	const char *unit = json_string_value(json_object_get(c, "unit"));
	char name[WORD], in[WORD] = "";

	harmless(json_string_value(json_object_get(c, "name")), name, sizeof(name));
	harmless(unit ? unit : "", in, sizeof(in));
	for (char *s = name; (s = strchr(s, '?')); s++)
		*s = ' ';
	fprintf(to, "set %clabel '%s%s%s' noenhanced\n", axis, name, *in ? ", " : "", in);
}

/* The key takes its room from nobody: on a narrow screen it is below, else beside, in one column.
 */
static void put_size(FILE *to, bool wide, uint32_t lines)
{
	uint32_t beside = 80 + 22 * lines;

	fprintf(to,
		"set terminal svg size %u,%u dynamic noenhanced font 'sans-serif,%u' dashlength "
		"0.6\n",
		wide ? 820u : 400u,
		!wide          ? 340u + 18u * lines
		: beside > 440 ? beside
			       : 440u,
		wide ? 14u : 13u);
}

static void script_head(const struct figure *f, FILE *to, bool wide)
{
	put_size(to, wide, 0);
	fputs("set encoding utf8\nset border 3 lw 1\nset tics nomirror out scale 0.5\n"
	      "set grid lt 1 lw 0.7 lc rgb '#000100'\nset key noenhanced\n",
	      to);
	axis_label(f, to, 'x', f->x);
	axis_label(f, to, 'y', f->y);
	if (f->panel->log_x)
		fputs("set logscale x 2\n", to);
	else if (report_points_there(f->r, f->panel))
		fputs("set offsets graph 0.03, graph 0.03, 0, 0\n", to);
	if (f->panel->log_y)
		fputs("set logscale y 10\n", to);
}

/* Sorts rows into lines: used[i][k] is true for those with colour i and dash k. */
static void sort_rows(struct figure *f, bool used[LINES_MAX][LINES_MAX], struct values *xs)
{
	for (size_t row = 0; row < json_array_size(f->r->rows); row++) {
		char a[WORD], b[WORD], x[WORD];
		uint32_t i, k;
		double y;

		if (!figure_has(f, row))
			continue;
		word_of(f->r, row, f->series[0], a);
		word_of(f->r, row, f->series[1], b);
		word_of(f->r, row, f->x, x);
		/* Also of those that are not in this figure: the same colours in all of a result.
		 */
		i = index_of(&f->colour, a);
		k = index_of(&f->dash, b);
		if (!number_at(f->r, row, f->y, f->panel->log_y, &y))
			continue;
		if (i < LINES_MAX && k < LINES_MAX && index_of(xs, x) < LINES_MAX)
			used[i][k] = true;
	}
}

/* The data of a line; false if it has no point. xs: x is the place of a text among these. */
static bool line_data(const struct figure *f, FILE *to, uint32_t line, const char *colour,
		      const char *dash, struct values *xs)
{
	uint32_t n = 0;
	double x, y;

	fprintf(to, "$d%u << EOD\n", line);
	for (size_t row = 0; row < json_array_size(f->r->rows); row++) {
		char a[WORD], b[WORD], word[WORD];

		word_of(f->r, row, f->series[0], a);
		word_of(f->r, row, f->series[1], b);
		if (strcmp(a, colour) || strcmp(b, dash) || !figure_has(f, row) ||
		    !number_at(f->r, row, f->y, f->panel->log_y, &y))
			continue;
		word_of(f->r, row, f->x, word);
		if (xs)
			x = index_of(xs, word);
		else if (!number_at(f->r, row, f->x, f->panel->log_x, &x))
			continue;
		fprintf(to, "%.9g %.9g\n", x, y);
		n++;
	}
	fputs("EOD\n", to);
	return n > 0;
}

/* Places on an axis instead of numbers; slanting where there is no room for them side by side. */
static void put_places(FILE *to, char axis, const struct values *v, bool wide)
{
	size_t length = 0;

	fprintf(to, "set %crange [-0.5:%u.5]\nset %ctics (", axis, v->n - 1, axis);
	for (uint32_t i = 0; i < v->n; i++) {
		fprintf(to, "%s'%s' %u", i ? ", " : "", v->word[i], i);
		length += strlen(v->word[i]) + 2;
	}
	fputs(")\n", to);
	if (axis == 'x' && length > (wide ? 70 : 32))
		fputs("set xtics rotate by -35\n", to);
}

/* Bars of one place stand side by side; this is `which` of `all`. */
static void put_bars(FILE *to, uint32_t line, uint32_t which, uint32_t all)
{
	double width = 0.8 / all;

	fprintf(to, "$d%u using ($1%+.4f):2:(%.4f) with boxes fs solid 0.85 noborder lw 1", line,
		(which + 0.5) * width - 0.4, width * 0.94);
}

static void put_lines(FILE *to, uint32_t line, uint32_t dash, bool many)
{
	static const char *const dashes[DASHES] = { "solid", "(8,5)", "(2,4)", "(10,4,2,4)" };
	static const int point[POINTS] = { 7, 6, 5, 9, 4, 11, 8, 13 };

	fprintf(to, "$d%u using 1:2 with linespoints lw %s dt %s pt %d ps %s", line,
		many ? "1.2" : "2", dashes[dash % DASHES], point[dash % POINTS],
		many ? "0.4" : "0.7");
}

/* "nic, 8 nodes": what is counted is said with its number. */
static void put_title(const struct figure *f, FILE *to, const char *const word[REPORT_SERIES_MAX])
{
	bool begun = false;

	fputs(" title '", to);
	for (uint32_t i = 0; i < REPORT_SERIES_MAX; i++) {
		const json_t *c = json_array_get(f->r->columns, (size_t)f->series[i]);
		const char *type = json_string_value(json_object_get(c, "type"));
		char name[WORD] = "";

		if (f->series[i] < 0 || !*word[i])
			continue;
		if (type && !strcmp(type, "count"))
			harmless(json_string_value(json_object_get(c, "name")), name, sizeof(name));
		fprintf(to, "%s%s%s%s", begun ? ", " : "", word[i], *name ? " " : "", name);
		begun = true;
	}
	fputc('\'', to);
}

/* Colour by the first series, dashes and points by the second. */
static bool script_lines(struct figure *f, FILE *to, bool wide)
{
	bool used[LINES_MAX][LINES_MAX] = { { false } }, bars = f->panel->kind == REPORT_BARS;
	struct values xs = { .n = 0 };
	uint32_t lines = 0, plotted = 0;

	sort_rows(f, used, &xs);
	for (uint32_t i = 0; i < f->colour.n; i++)
		for (uint32_t k = 0; k < f->dash.n; k++)
			lines += used[i][k] =
				used[i][k] && line_data(f, to, i * LINES_MAX + k, f->colour.word[i],
							f->dash.word[k], bars ? &xs : NULL);
	put_size(to, wide, lines + report_points_data(f->r, f->panel, to));
	fputs(wide ? "set key outside right top Left reverse samplen 3\n"
		   : "set key outside bottom center horizontal Left reverse samplen 2\n",
	      to);
	if (bars && xs.n) {
		put_places(to, 'x', &xs, wide);
		fputs(f->panel->log_y ? "" : "set yrange [0:]\n", to);
	}
	for (uint32_t i = 0; i < f->colour.n; i++) {
		for (uint32_t k = 0; k < f->dash.n; k++) {
			const char *a = f->colour.word[i], *b = f->dash.word[k];

			if (!used[i][k])
				continue;
			fputs(plotted ? ", " : "plot ", to);
			if (bars)
				put_bars(to, i * LINES_MAX + k, plotted, lines);
			else
				put_lines(to, i * LINES_MAX + k, k, lines > MANY_LINES);
			fprintf(to, " lc rgb '#0001%02x'", i % COLOURS + 1);
			put_title(f, to, (const char *const[]){ a, b });
			plotted++;
		}
	}
	if (plotted)
		report_points_plot(f->r, f->panel, to);
	fputs("\n", to);
	return plotted > 0;
}

/* A field of rectangles: the greater the value, the stronger the colour; the value is in it. */
static bool script_heat(struct figure *f, FILE *to, bool wide)
{
	struct values xs = { .n = 0 }, ys = { .n = 0 };
	double least = HUGE_VAL, most = -HUGE_VAL, value;
	size_t rows = json_array_size(f->r->rows);
	uint32_t n = 0;
	char a[WORD], b[WORD];

	for (size_t row = 0; row < rows; row++) {
		if (!figure_has(f, row) || !number_at(f->r, row, f->value, false, &value))
			continue;
		least = value < least ? value : least;
		most = value > most ? value : most;
		word_of(f->r, row, f->x, a);
		word_of(f->r, row, f->y, b);
		index_of(&xs, a);
		index_of(&ys, b);
	}
	if (xs.n == 0)
		return false;
	fputs("unset grid\nunset key\nset tics scale 0\n", to);
	put_places(to, 'x', &xs, wide);
	put_places(to, 'y', &ys, wide);
	for (size_t row = 0; row < rows; row++) {
		uint32_t x, y;

		if (!figure_has(f, row) || !number_at(f->r, row, f->value, false, &value))
			continue;
		word_of(f->r, row, f->x, a);
		word_of(f->r, row, f->y, b);
		x = index_of(&xs, a);
		y = index_of(&ys, b);
		if (x == LINES_MAX || y == LINES_MAX)
			continue;
		double share = most > least ? (value - least) / (most - least) : 0.5;

		n++;
		fprintf(to,
			"set object %u rect from %u-0.5,%u-0.5 to %u+0.5,%u+0.5 fc rgb '#000101' "
			"fs transparent solid %.3f noborder behind\n"
			"set label %u '%.3g' at %u,%u center noenhanced\n",
			n, x, y, x, y, 0.06 + 0.54 * share, n, value, x, y);
	}
	fputs("plot NaN notitle\n", to);
	return true;
}

bool report_plot(const struct report_result *r, const struct report_panel *panel, bool wide,
		 FILE *to)
{
	struct figure f;

	if (!figure_begin(&f, r, panel))
		return false;
	script_head(&f, to, wide);
	return panel->kind == REPORT_HEAT ? script_heat(&f, to, wide) : script_lines(&f, to, wide);
}
