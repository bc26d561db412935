/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_plot.c - the data of figure.gp, the gnuplot script for a figure of a result: a function
 * for each name of the template. Called by report_figure.c.
 */
#include "report_plot.h"

#include <stdlib.h>
#include <string.h>

#include "template.h"

#define MANY_LINES 8u /* with more lines, they are thinner */
#define COLOURS 8u
#define DASHES 4u
#define POINTS 8u

static void put_label(const struct figure *f, FILE *to, int column)
{
	const json_t *c = json_array_get(f->r->columns, (size_t)column);
	const char *unit = json_string_value(json_object_get(c, "unit"));
	char name[WORD], in[WORD] = "";

	plot_harmless(json_string_value(json_object_get(c, "name")), name, sizeof(name));
	plot_harmless(unit ? unit : "", in, sizeof(in));
	for (char *s = name; (s = strchr(s, '?')); s++)
		*s = ' ';
	fprintf(to, "%s%s%s", name, *in ? ", " : "", in);
}

/* The key lies outside the figure: below it on narrow screens, else beside it, in one column. */
static void put_height(void *arg, FILE *to)
{
	const struct figure *f = arg;
	uint32_t lines = f->nline + f->marks, beside = 80 + 22 * lines;

	fprintf(to, "%u", !f->wide ? 340 + 18 * lines : beside > 440 ? beside : 440);
}

static void put_width(void *arg, FILE *to)
{
	fputs(((const struct figure *)arg)->wide ? "820" : "400", to);
}

static void put_font(void *arg, FILE *to)
{
	fputs(((const struct figure *)arg)->wide ? "14" : "13", to);
}

static void put_x_label(void *arg, FILE *to)
{
	put_label(arg, to, ((const struct figure *)arg)->x);
}

static void put_y_label(void *arg, FILE *to)
{
	put_label(arg, to, ((const struct figure *)arg)->y);
}

static void put_data(void *arg, FILE *to)
{
	fputs(((const struct figure *)arg)->data, to);
}

static bool is_heat(const struct figure *f)
{
	return f->panel->kind == REPORT_HEAT;
}

static bool is_bars(const struct figure *f)
{
	return f->panel->kind == REPORT_BARS;
}

static bool is_lines(const struct figure *f)
{
	return f->panel->kind == REPORT_LINES;
}

static bool is_log_x(const struct figure *f)
{
	return f->panel->log_x;
}

static bool is_log_y(const struct figure *f)
{
	return f->panel->log_y;
}

static bool has_points(const struct figure *f)
{
	return !f->panel->log_x && report_points_there(f->r, f->panel);
}

static bool is_wide(const struct figure *f)
{
	return f->wide;
}

static bool is_narrow(const struct figure *f)
{
	return !f->wide;
}

static bool has_x_places(const struct figure *f)
{
	return !is_lines(f) && f->xs.n;
}

/* True if the words of the axis have no room side by side. */
static bool is_crowded(const struct figure *f)
{
	size_t length = 0;

	for (uint32_t i = 0; has_x_places(f) && i < f->xs.n; i++)
		length += strlen(f->xs.word[i]) + 2;
	return length > (f->wide ? 70 : 32);
}

static bool from_zero(const struct figure *f)
{
	return is_bars(f) && !f->panel->log_y;
}

/* A condition of the template is a list of one item or none. Conditions can be nested, so each
 * needs its own state. */
#define CONDITION(name)                               \
	static bool next_##name(void *arg)            \
	{                                             \
		struct figure *f = arg;               \
                                                      \
		return f->once = !f->once && name(f); \
	}
CONDITION(is_heat)
CONDITION(is_bars)
CONDITION(is_lines)
CONDITION(is_log_x)
CONDITION(is_log_y)
CONDITION(has_points)
CONDITION(is_wide)
CONDITION(is_narrow)
CONDITION(has_x_places)
CONDITION(is_crowded)
CONDITION(from_zero)

/* Places on an axis instead of numbers. */
static void put_places(const struct values *v, FILE *to)
{
	for (uint32_t i = 0; i < v->n; i++)
		fprintf(to, "%s'%s' %u", i ? ", " : "", v->word[i], i);
}

static void put_x_places(void *arg, FILE *to)
{
	put_places(&((const struct figure *)arg)->xs, to);
}

static void put_y_places(void *arg, FILE *to)
{
	put_places(&((const struct figure *)arg)->ys, to);
}

static void put_x_last(void *arg, FILE *to)
{
	fprintf(to, "%u", ((const struct figure *)arg)->xs.n - 1);
}

static void put_y_last(void *arg, FILE *to)
{
	fprintf(to, "%u", ((const struct figure *)arg)->ys.n - 1);
}

/* The fields of a heat map: rows that have a value and a place. */
static bool next_field(void *arg)
{
	struct figure *f = arg;

	while (f->row < json_array_size(f->r->rows)) {
		size_t row = f->row++;
		char a[WORD], b[WORD];

		plot_word(f->r, row, f->x, a);
		plot_word(f->r, row, f->y, b);
		if (plot_has(f, row) && plot_number(f->r, row, f->value, false, &f->field) &&
		    plot_index(&f->xs, a) < LINES_MAX && plot_index(&f->ys, b) < LINES_MAX)
			return true;
	}
	f->row = 0;
	return false;
}

static void put_field_at(struct figure *f, int column, struct values *v, FILE *to)
{
	char word[WORD];

	plot_word(f->r, f->row - 1, column, word);
	fprintf(to, "%u", plot_index(v, word));
}

static void put_field_x(void *arg, FILE *to)
{
	struct figure *f = arg;

	put_field_at(f, f->x, &f->xs, to);
}

static void put_field_y(void *arg, FILE *to)
{
	struct figure *f = arg;

	put_field_at(f, f->y, &f->ys, to);
}

/* The greater the value, the stronger the colour. */
static void put_field_share(void *arg, FILE *to)
{
	const struct figure *f = arg;
	double range = f->most - f->least;

	fprintf(to, "%.3f", 0.06 + 0.54 * (range > 0 ? (f->field - f->least) / range : 0.5));
}

static void put_field_value(void *arg, FILE *to)
{
	fprintf(to, "%.3g", ((const struct figure *)arg)->field);
}

/* Lines, or bars that stand side by side: colour by the first series, dashes and points by the
 * second. */
static uint32_t colour_of(const struct figure *f)
{
	return (f->at - 1) / LINES_MAX;
}

static uint32_t dash_of(const struct figure *f)
{
	return (f->at - 1) % LINES_MAX;
}

static bool next_line(void *arg)
{
	struct figure *f = arg;

	while (f->at < LINES_MAX * LINES_MAX) {
		f->at++;
		if (f->used[colour_of(f)][dash_of(f)]) {
			f->line++;
			return true;
		}
	}
	f->at = f->line = 0;
	return false;
}

static void put_comma(void *arg, FILE *to)
{
	fputs(((const struct figure *)arg)->line > 1 ? ", " : "", to);
}

static void put_line_number(void *arg, FILE *to)
{
	fprintf(to, "%u", ((const struct figure *)arg)->at - 1);
}

static void put_bar_shift(void *arg, FILE *to)
{
	const struct figure *f = arg;

	fprintf(to, "%+.4f", (f->line - 0.5) * 0.8 / f->nline - 0.4);
}

static void put_bar_width(void *arg, FILE *to)
{
	fprintf(to, "%.4f", 0.8 * 0.94 / ((const struct figure *)arg)->nline);
}

static void put_line_width(void *arg, FILE *to)
{
	fputs(((const struct figure *)arg)->nline > MANY_LINES ? "1.2" : "2", to);
}

static void put_point_size(void *arg, FILE *to)
{
	fputs(((const struct figure *)arg)->nline > MANY_LINES ? "0.4" : "0.7", to);
}

static void put_dash(void *arg, FILE *to)
{
	static const char *const dashes[DASHES] = { "solid", "(8,5)", "(2,4)", "(10,4,2,4)" };

	fputs(dashes[dash_of(arg) % DASHES], to);
}

static void put_point(void *arg, FILE *to)
{
	static const int point[POINTS] = { 7, 6, 5, 9, 4, 11, 8, 13 };

	fprintf(to, "%d", point[dash_of(arg) % POINTS]);
}

static void put_colour(void *arg, FILE *to)
{
	fprintf(to, "%02x", colour_of(arg) % COLOURS + 1);
}

/* "nic, 8 nodes": the name of a counted thing follows its number. */
static void put_line_title(void *arg, FILE *to)
{
	const struct figure *f = arg;
	const char *const word[REPORT_SERIES_MAX] = { f->colour.word[colour_of(f)],
						      f->dash.word[dash_of(f)] };
	bool begun = false;

	for (uint32_t i = 0; i < REPORT_SERIES_MAX; i++) {
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
}

static void put_points(void *arg, FILE *to)
{
	const struct figure *f = arg;

	report_points_plot(f->r, f->panel, to);
}

#define LIST(name)                       \
	{                                \
#name, NULL, next_##name \
	}
#define FIELD(name)                     \
	{                               \
#name, put_##name, NULL \
	}
static const struct template_name names[] = {
	LIST(is_heat),      LIST(is_bars),      LIST(is_lines),       LIST(is_log_x),
	LIST(is_log_y),     LIST(has_points),   LIST(is_wide),        LIST(is_narrow),
	LIST(has_x_places), LIST(is_crowded),   LIST(from_zero),      LIST(field),
	LIST(line),         FIELD(height),      FIELD(width),         FIELD(font),
	FIELD(x_label),     FIELD(y_label),     FIELD(data),          FIELD(x_places),
	FIELD(y_places),    FIELD(x_last),      FIELD(y_last),        FIELD(field_x),
	FIELD(field_y),     FIELD(field_share), FIELD(field_value),   FIELD(comma),
	FIELD(line_number), FIELD(bar_shift),   FIELD(bar_width),     FIELD(line_width),
	FIELD(point_size),  FIELD(dash),        FIELD(point),         FIELD(colour),
	FIELD(line_title),  FIELD(points),      { NULL, NULL, NULL },
};

bool report_plot(const struct report_result *r, const struct report_panel *panel, bool wide,
		 FILE *to)
{
	struct figure *f = calloc(1, sizeof(*f));
	size_t n;
	FILE *data = f ? open_memstream(&f->data, &n) : NULL;
	bool any = data && plot_begin(f, r, panel);

	if (any)
		any = is_heat(f) ? plot_heat(f) : plot_lines(f, data);
	any &= data && !fclose(data);
	if (any) {
		f->wide = wide;
		template_fill(template_figure_gp, names, f, to);
	}
	if (f)
		free(f->data);
	free(f);
	return any;
}
