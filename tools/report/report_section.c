/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_section.c - the data of section.html, the part of the page for one experiment: figures,
 * notes, table, published values, and how it was measured. Called by report_page.c. All text from
 * files goes through html_text.
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "html.h"
#include "published.h"
#include "template.h"

#define LONG_TABLE 40u /* rows from which a table scrolls on a screen */
#define COLUMNS_MAX 64u

/* The result, and the position of each list of the template; 0: before its first item. */
struct section {
	const struct report_result *r;
	const struct report_experiment *e;
	struct report_drawn *drawn;
	bool numeric[COLUMNS_MAX];
	int digits[COLUMNS_MAX];
	uint32_t figure; /* panel + 1 */
	char *wide, *narrow;
	bool once; /* of conditions; no condition contains another */
	bool in_published;
	size_t note, column, row, published, origin;
	struct report_pair setting;
	const struct published *known; /* our table; NULL: use the values in the result */
};

static const json_t *column_of(const struct section *s)
{
	return json_array_get(s->r->columns, s->column - 1);
}

static const char *text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* A list of one item, if the condition holds. */
static bool once(bool *state, bool condition)
{
	return *state = condition && !*state;
}

/* A list of n items. */
static bool step(size_t *at, size_t n)
{
	*at = *at < n ? *at + 1 : 0;
	return *at;
}

/* --- the head -------------------------------------------------------------------------------- */

static void put_id(void *arg, FILE *to)
{
	fputs(((const struct section *)arg)->e->name, to);
}

static void put_title(void *arg, FILE *to)
{
	html_text(to, ((const struct section *)arg)->e->title);
}

static void put_text(void *arg, FILE *to)
{
	html_text(to, ((const struct section *)arg)->e->text);
}

/* --- figures --------------------------------------------------------------------------------- */

static const struct report_panel *panel_of(const struct section *s)
{
	return &s->e->panel[s->figure - 1];
}

/* Draws it, once for wide and once for narrow screens: text cannot shrink with it. */
static bool draw(struct section *s)
{
	enum report_missing missing;
	char id[64];

	snprintf(id, sizeof(id), "%s-%u-wide", s->e->name, s->figure - 1);
	s->wide = report_figure(s->r, panel_of(s), id, true, &missing);
	if (!s->wide) {
		s->drawn->no_gnuplot |= missing == REPORT_NO_GNUPLOT;
		s->drawn->failed |= missing == REPORT_GNUPLOT_FAILED;
		return false;
	}
	snprintf(id, sizeof(id), "%s-%u-narrow", s->e->name, s->figure - 1);
	s->narrow = report_figure(s->r, panel_of(s), id, false, &missing);
	return true;
}

static bool next_figure(struct section *s, uint32_t end)
{
	free(s->wide);
	free(s->narrow);
	s->wide = s->narrow = NULL;
	while (s->figure < end && s->e->panel[s->figure].x) {
		s->figure++;
		if (draw(s))
			return true;
	}
	return false;
}

static bool next_first_figure(void *arg)
{
	return next_figure(arg, 1);
}

static bool next_other_figure(void *arg)
{
	return next_figure(arg, REPORT_PANELS_MAX);
}

static void put_figure_class(void *arg, FILE *to)
{
	fputs(panel_of(arg)->kind == REPORT_HEAT ? " class=\"heat\"" : "", to);
}

static void put_caption(void *arg, FILE *to)
{
	html_text(to, panel_of(arg)->title);
}

static bool next_points(void *arg)
{
	struct section *s = arg;

	return once(&s->once, report_points_there(s->r, panel_of(s)));
}

static void put_wide(void *arg, FILE *to)
{
	fputs(((const struct section *)arg)->wide, to);
}

static void put_narrow(void *arg, FILE *to)
{
	const struct section *s = arg;

	fputs(s->narrow ? s->narrow : s->wide, to);
}

/* --- notes ----------------------------------------------------------------------------------- */

static bool next_incomplete(void *arg)
{
	struct section *s = arg;

	return once(&s->once, json_is_false(json_object_get(s->r->root, "complete")));
}

static const json_t *notes_of(const struct section *s)
{
	return json_object_get(s->r->root, "notes");
}

static bool next_note(void *arg)
{
	struct section *s = arg;

	return step(&s->note, json_array_size(notes_of(s)));
}

static void put_note(void *arg, FILE *to)
{
	const struct section *s = arg;
	const char *note = json_string_value(json_array_get(notes_of(s), s->note - 1));

	html_text(to, note ? note : "");
}

/* --- the table ------------------------------------------------------------------------------- */

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

static void put_long(void *arg, FILE *to)
{
	const struct section *s = arg;

	fputs(json_array_size(s->r->rows) > LONG_TABLE ? " long" : "", to);
}

static bool next_column(void *arg)
{
	struct section *s = arg;

	return step(&s->column, s->r->ncolumn);
}

/* Numbers are aligned to the right. */
static void put_number(void *arg, FILE *to)
{
	const struct section *s = arg;

	fputs(s->numeric[s->column - 1] ? " class=\"n\"" : "", to);
}

static void put_column(void *arg, FILE *to)
{
	html_name(to, text_in(column_of(arg), "name"));
}

static bool next_unit(void *arg)
{
	struct section *s = arg;

	return once(&s->once, *text_in(column_of(s), "unit"));
}

static void put_unit(void *arg, FILE *to)
{
	html_text(to, text_in(column_of(arg), "unit"));
}

static bool next_row(void *arg)
{
	struct section *s = arg;

	return step(&s->row, json_array_size(s->r->rows));
}

static void put_cell(void *arg, FILE *to)
{
	const struct section *s = arg;
	char text[512];

	report_value(json_array_get(json_array_get(s->r->rows, s->row - 1), s->column - 1),
		     s->digits[s->column - 1], text, sizeof(text));
	html_text(to, text);
}

/* --- what was published ---------------------------------------------------------------------- */

/* The published values in the result, or else those of our table. */
static bool next_published(void *arg)
{
	struct section *s = arg;
	size_t said = json_array_size(json_object_get(s->r->root, "published"));

	s->known = NULL;
	if (said)
		return step(&s->published, said);
	while (step(&s->published, npublished)) {
		s->known = &published[s->published - 1];
		if (published_of(s->known->experiment, s->e->name))
			return true;
	}
	return false;
}

static bool next_has_published(void *arg)
{
	struct section *s = arg;
	bool any = next_published(s);

	s->published = 0;
	return once(&s->in_published, any);
}

static void put_published(const struct section *s, const char *key, const char *known, FILE *to)
{
	const json_t *list = json_object_get(s->r->root, "published");

	html_text(to, s->known ? known : text_in(json_array_get(list, s->published - 1), key));
}

#define PUBLISHED(field)                                                         \
	static void put_##field(void *arg, FILE *to)                             \
	{                                                                        \
		const struct section *s = arg;                                   \
                                                                                 \
		put_published(s, #field, s->known ? s->known->field : NULL, to); \
	}
PUBLISHED(what)
PUBLISHED(setting)
PUBLISHED(value)
PUBLISHED(hardware)
PUBLISHED(source)

/* --- how it was measured --------------------------------------------------------------------- */

static const char *const origin[] = { "started", "version", "commit" };

static bool next_command(void *arg)
{
	struct section *s = arg;

	return once(&s->once, json_is_string(json_object_get(s->r->root, "command")));
}

static void put_command(void *arg, FILE *to)
{
	html_text(to, text_in(((const struct section *)arg)->r->root, "command"));
}

/* Those that the result has. */
static bool next_origin(void *arg)
{
	struct section *s = arg;

	while (step(&s->origin, sizeof(origin) / sizeof(origin[0])))
		if (*text_in(s->r->root, origin[s->origin - 1]))
			return true;
	return false;
}

static void put_origin(void *arg, FILE *to)
{
	fputs(origin[((const struct section *)arg)->origin - 1], to);
}

static void put_origin_text(void *arg, FILE *to)
{
	const struct section *s = arg;

	html_text(to, text_in(s->r->root, origin[s->origin - 1]));
}

static bool next_setting(void *arg)
{
	struct section *s = arg;

	return report_pair_next(&s->setting, json_object_get(s->r->root, "settings"));
}

static void put_key(void *arg, FILE *to)
{
	report_pair_key(&((const struct section *)arg)->setting, to);
}

static void put_pair_value(void *arg, FILE *to)
{
	report_pair_value(&((const struct section *)arg)->setting, to);
}

void report_section(const struct report_result *r, const struct report_experiment *e, FILE *to,
		    struct report_drawn *drawn)
{
	static const struct template_name names[] = {
		{ "name", put_id, NULL },
		{ "title", put_title, NULL },
		{ "text", put_text, NULL },
		{ "first_figure", NULL, next_first_figure },
		{ "other_figures", NULL, next_other_figure },
		{ "figure_class", put_figure_class, NULL },
		{ "caption", put_caption, NULL },
		{ "points", NULL, next_points },
		{ "wide", put_wide, NULL },
		{ "narrow", put_narrow, NULL },
		{ "incomplete", NULL, next_incomplete },
		{ "notes", NULL, next_note },
		{ "note", put_note, NULL },
		{ "long", put_long, NULL },
		{ "columns", NULL, next_column },
		{ "number", put_number, NULL },
		{ "column", put_column, NULL },
		{ "unit", NULL, next_unit },
		{ "unit_name", put_unit, NULL },
		{ "rows", NULL, next_row },
		{ "cell", put_cell, NULL },
		{ "has_published", NULL, next_has_published },
		{ "published", NULL, next_published },
		{ "what", put_what, NULL },
		{ "setting", put_setting, NULL },
		{ "published_value", put_value, NULL },
		{ "hardware", put_hardware, NULL },
		{ "source", put_source, NULL },
		{ "has_command", NULL, next_command },
		{ "command", put_command, NULL },
		{ "origin", NULL, next_origin },
		{ "origin_name", put_origin, NULL },
		{ "origin_text", put_origin_text, NULL },
		{ "settings", NULL, next_setting },
		{ "key", put_key, NULL },
		{ "value", put_pair_value, NULL },
		{ NULL, NULL, NULL },
	};
	struct section s = { .r = r, .e = e, .drawn = drawn };

	for (size_t c = 0; c < r->ncolumn; c++) {
		s.numeric[c] = is_numeric(r, c);
		s.digits[c] = report_digits(r, c);
	}
	template_fill(template_section_html, names, &s, to);
}
