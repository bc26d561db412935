/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_section.c - the part of the page that is of one experiment: figures, notes, table, what
 * was published, and how it was measured. All text from files goes through html_text.
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "html.h"
#include "published.h"

#define LONG_TABLE 40u /* rows from which a table scrolls on a screen */

/* The name of a key or column, for people. */
static void put_name(FILE *to, const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", name);
	for (char *c = text; (c = strchr(c, '_'));)
		*c = ' ';
	html_text(to, text);
}

static void put_json(FILE *to, const json_t *value)
{
	char text[512];

	if (json_is_array(value)) {
		const json_t *item;
		size_t i;

		json_array_foreach(value, i, item)
		{
			fputs(i ? ", " : "", to);
			put_json(to, item);
		}
		return;
	}
	if (json_is_real(value))
		snprintf(text, sizeof(text), "%g", json_real_value(value));
	else
		report_value(value, 3, text, sizeof(text));
	html_text(to, *text ? text : "-");
}

void report_object(FILE *to, json_t *object)
{
	const char *key;
	json_t *value;

	fputs("<dl>\n", to);
	json_object_foreach(object, key, value)
	{
		fputs("<div><dt>", to);
		put_name(to, key);
		fputs("</dt><dd>", to);
		put_json(to, value);
		fputs("</dd></div>\n", to);
	}
	fputs("</dl>\n", to);
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

static void put_head(const struct report_result *r, FILE *to, const bool *numeric)
{
	const json_t *column;
	size_t i;

	fputs("<thead><tr>", to);
	json_array_foreach(r->columns, i, column)
	{
		const char *unit = json_string_value(json_object_get(column, "unit"));

		fputs(numeric[i] ? "<th class=\"n\" scope=\"col\">" : "<th scope=\"col\">", to);
		put_name(to, json_string_value(json_object_get(column, "name")));
		if (unit && *unit) {
			fputs(" <small>", to);
			html_text(to, unit);
			fputs("</small>", to);
		}
		fputs("</th>", to);
	}
	fputs("</tr></thead>\n", to);
}

static void put_table(const struct report_result *r, FILE *to)
{
	bool numeric[64];
	int digits[64];
	const json_t *row, *value;
	size_t i, c;

	for (c = 0; c < r->ncolumn; c++) {
		numeric[c] = is_numeric(r, c);
		digits[c] = report_digits(r, c);
	}
	fprintf(to, "<div class=\"table%s\" tabindex=\"0\"><table>\n",
		json_array_size(r->rows) > LONG_TABLE ? " long" : "");
	put_head(r, to, numeric);
	fputs("<tbody>\n", to);
	json_array_foreach(r->rows, i, row)
	{
		fputs("<tr>", to);
		json_array_foreach(row, c, value)
		{
			char text[512];

			report_value(value, digits[c], text, sizeof(text));
			fputs(numeric[c] ? "<td class=\"n\">" : "<td>", to);
			html_text(to, text);
			fputs("</td>", to);
		}
		fputs("</tr>\n", to);
	}
	fputs("</tbody></table></div>\n", to);
}

static void put_published_row(FILE *to, const char *const cell[5])
{
	fputs("<tr>", to);
	for (int i = 0; i < 5; i++) {
		fputs("<td>", to);
		html_text(to, cell[i] ? cell[i] : "");
		fputs("</td>", to);
	}
	fputs("</tr>\n", to);
}

static void put_published_head(FILE *to, bool *begun)
{
	if (!*begun)
		fputs("<h3>Published, on other hardware</h3>\n<div class=\"table published\" "
		      "tabindex=\"0\"><table><thead><tr><th>what</th><th>setting</th><th>value</th>"
		      "<th>hardware</th><th>source</th></tr></thead><tbody>\n",
		      to);
	*begun = true;
}

/* What the result itself says was published, or else what we know. */
static void put_published(const struct report_result *r, const char *name, FILE *to)
{
	json_t *list = json_object_get(r->root, "published"), *item;
	bool begun = false;
	size_t i;

	json_array_foreach(list, i, item)
	{
		put_published_head(to, &begun);
		put_published_row(to, (const char *const[]){
					      json_string_value(json_object_get(item, "what")),
					      json_string_value(json_object_get(item, "setting")),
					      json_string_value(json_object_get(item, "value")),
					      json_string_value(json_object_get(item, "hardware")),
					      json_string_value(json_object_get(item, "source")) });
	}
	for (i = 0; i < npublished && !json_array_size(list); i++) {
		const struct published *p = &published[i];

		if (!published_of(p->experiment, name))
			continue;
		put_published_head(to, &begun);
		put_published_row(to, (const char *const[]){ p->what, p->setting, p->value,
							     p->hardware, p->source });
	}
	if (begun)
		fputs("</tbody></table></div>\n", to);
}

/* A figure, drawn once for wide and once for narrow screens: text cannot shrink with it. */
static void put_figure(FILE *to, const struct report_result *r, const struct report_experiment *e,
		       uint32_t which, struct report_drawn *drawn)
{
	const struct report_panel *panel = &e->panel[which];
	enum report_missing missing;
	char id[64];

	snprintf(id, sizeof(id), "%s-%u-wide", e->name, which);
	char *wide = report_figure(r, panel, id, true, &missing);

	if (!wide) {
		drawn->no_gnuplot |= missing == REPORT_NO_GNUPLOT;
		drawn->failed |= missing == REPORT_GNUPLOT_FAILED;
		return;
	}
	snprintf(id, sizeof(id), "%s-%u-narrow", e->name, which);
	char *narrow = report_figure(r, panel, id, false, &missing);

	fprintf(to, "<figure%s><figcaption>", panel->kind == REPORT_HEAT ? " class=\"heat\"" : "");
	html_text(to, panel->title);
	if (report_points_there(r, panel))
		fputs(" <small>* published, other hardware</small>", to);
	fprintf(to, "</figcaption>\n<div class=\"wide\">%s</div>\n", wide);
	fprintf(to, "<div class=\"narrow\">%s</div></figure>\n", narrow ? narrow : wide);
	free(wide);
	free(narrow);
}

/* The row that has the greatest value in the column that sums an experiment up. */
void report_best(const struct report_result *r, const struct report_experiment *e, FILE *to)
{
	int column = report_column(r, e->best);
	const json_t *row, *best = NULL;
	double most = 0;
	char text[128];
	size_t i;

	if (column < 0)
		return;
	json_array_foreach(r->rows, i, row)
	{
		double value = json_number_value(json_array_get(row, (size_t)column));

		if (value <= most)
			continue;
		most = value;
		best = row;
	}
	if (!best)
		return;
	fputs("<strong>", to);
	html_print(to, "%.2f", most);
	fputs("</strong> ", to);
	html_text(to, e->best_text);
	fputs(" <span class=\"where\">(", to);
	for (size_t c = 0, n = 0; c < r->ncolumn && n < 3; c++, n++) {
		if ((int)c == column)
			continue;
		report_value(json_array_get(best, c), 2, text, sizeof(text));
		fputs(n ? ", " : "", to);
		put_name(to,
			 json_string_value(json_object_get(json_array_get(r->columns, c), "name")));
		fputs(" ", to);
		html_text(to, text);
	}
	fputs(")</span>", to);
}

static void put_text_of(FILE *to, const struct report_result *r, const char *key, const char *name)
{
	const char *text = json_string_value(json_object_get(r->root, key));

	if (!text || !*text)
		return;
	fprintf(to, "<div><dt>%s</dt><dd>", name);
	html_text(to, text);
	fputs("</dd></div>\n", to);
}

static void put_how(const struct report_result *r, FILE *to)
{
	const char *command = json_string_value(json_object_get(r->root, "command"));
	json_t *settings = json_object_get(r->root, "settings");

	if (command) {
		fputs("<pre class=\"command\"><code>", to);
		html_text(to, command);
		fputs("</code></pre>\n", to);
	}
	fputs("<dl>\n", to);
	put_text_of(to, r, "started", "started");
	put_text_of(to, r, "version", "version");
	put_text_of(to, r, "commit", "commit");
	fputs("</dl>\n", to);
	if (json_object_size(settings))
		report_object(to, settings);
}

static void put_notes(const struct report_result *r, FILE *to)
{
	json_t *notes = json_object_get(r->root, "notes"), *note;
	size_t i;

	if (json_is_false(json_object_get(r->root, "complete")))
		fputs("<p class=\"warning\">This run was cut short: what is here is good, and some "
		      "of it is missing.</p>\n",
		      to);
	if (!json_array_size(notes))
		return;
	fputs("<ul class=\"notes\">\n", to);
	json_array_foreach(notes, i, note)
	{
		fputs("<li>", to);
		html_text(to, json_is_string(note) ? json_string_value(note) : "");
		fputs("</li>\n", to);
	}
	fputs("</ul>\n", to);
}

void report_section(const struct report_result *r, const struct report_experiment *e, FILE *to,
		    struct report_drawn *drawn)
{
	/* Heading and first figure stay together on paper. */
	fprintf(to, "<section id=\"%s\">\n<div class=\"top\">\n<h2>", e->name);
	html_text(to, e->title);
	fputs("</h2>\n<p>", to);
	html_text(to, e->text);
	fputs("</p>\n", to);
	put_figure(to, r, e, 0, drawn);
	fputs("</div>\n", to);
	for (uint32_t i = 1; i < REPORT_PANELS_MAX && e->panel[i].x; i++)
		put_figure(to, r, e, i, drawn);
	put_notes(r, to);
	put_table(r, to);
	put_published(r, e->name, to);
	fputs("<h3>How it was measured</h3>\n", to);
	put_how(r, to);
	fputs("</section>\n", to);
}
