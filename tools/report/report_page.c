/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_page.c - the page: one HTML file that needs no other file, no script and no network. The
 * old page stays until the new one is complete. The page is also well-formed XML, so a test can
 * check that all tags are closed.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "template.h"
#include "tool.h"

struct page {
	const struct report_options *opt;
	const struct report_result *result, *first; /* by index in report_experiments; any */
	struct report_drawn drawn;
};

/* The row with the greatest value in the summary column of an experiment; NULL: there is none. */
static const json_t *best_row(const struct report_result *r, int column, double *best)
{
	const json_t *found = NULL;

	*best = 0;
	for (size_t i = 0; column >= 0 && i < json_array_size(r->rows); i++) {
		const json_t *row = json_array_get(r->rows, i);
		double value = json_number_value(json_array_get(row, (size_t)column));

		if (value <= *best)
			continue;
		*best = value;
		found = row;
	}
	return found;
}

/* The first columns identify a row. */
static json_t *where(const struct report_result *r, const json_t *row)
{
	json_t *cells = json_array();

	for (size_t i = 0; row && i < 3 && i < r->ncolumn; i++) {
		const json_t *column = json_array_get(r->columns, i);
		char text[128];

		report_value(json_array_get(row, i), 2, text, sizeof(text));
		json_array_append_new(
			cells,
			json_pack("{s:s, s:o, s:o}", "comma", i ? ", " : "", "column",
				  report_name(json_string_value(json_object_get(column, "name"))),
				  "value", json_string_nocheck(text)));
	}
	return cells;
}

/* A line of the contents: the best value; a note if the experiment has no summary column. */
static json_t *line_of(const struct report_result *r, const struct report_experiment *e)
{
	const json_t *notes = json_object_get(r->root, "notes");
	const char *note = json_string_value(json_array_get(notes, 0));
	double value;
	const json_t *row = best_row(r, report_column(r, e->best), &value);
	char best[64];

	snprintf(best, sizeof(best), "%.2f", value);
	/* clang-format off */
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s}",
			 "name", e->name,
			 "title", e->title,
			 "best", row ? best : "",
			 "best_text", e->best ? e->best_text : "",
			 "columns", where(r, row),
			 "note", !e->best && note ? note : "");
	/* clang-format on */
}

static void put_page(struct page *p, FILE *to)
{
	json_t *contents = json_array(), *machine = json_array();
	char *sections = NULL, now[64];
	time_t t = time(NULL);
	struct tm tm;
	size_t n;
	FILE *part = open_memstream(&sections, &n);

	gmtime_r(&t, &tm);
	strftime(now, sizeof(now), "%Y-%m-%d %H:%M UTC", &tm);
	report_pairs_add(machine, json_object_get(p->first->root, "machine"));
	for (uint32_t i = 0; part && i < report_nexperiment; i++) {
		if (!p->result[i].root)
			continue;
		json_array_append_new(contents, line_of(&p->result[i], &report_experiments[i]));
		report_section(&p->result[i], &report_experiments[i], part, &p->drawn);
	}
	if (part)
		fclose(part);
	/* clang-format off */
	template_fill(template_page_html,
		      json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:b}",
				"style", template_page_css,
				"version", NBAR_VERSION_TEXT,
				"now", now,
				"machine", machine,
				"contents", contents,
				"sections", json_string_nocheck(sections),
				"no_gnuplot", p->drawn.no_gnuplot),
		      true, to);
	/* clang-format on */
	free(sections);
}

/* Writes the page to another file first, which then replaces the old page. 0 or an exit code. */
static int write_page(struct page *p)
{
	char path[REPORT_PATH_MAX], beside[REPORT_PATH_MAX];
	FILE *to;
	bool bad;

	report_path(p->opt, "index", "html", path, sizeof(path));
	report_path(p->opt, "index.html", "new", beside, sizeof(beside));
	to = fopen(beside, "w");
	if (!to) {
		tool_error("cannot write %s: %s", beside, strerror(errno));
		return TOOL_FAILED;
	}
	put_page(p, to);
	bad = ferror(to) != 0;
	bad |= fclose(to) != 0;
	if (!bad && !rename(beside, path)) {
		printf("%s\n", path);
		return p->drawn.failed ? TOOL_FAILED : 0;
	}
	tool_error("cannot write %s: %s", path, strerror(errno));
	unlink(beside);
	return TOOL_FAILED;
}

int report_page(const struct report_options *opt, bool may_be_none)
{
	struct report_result *result = calloc(report_nexperiment, sizeof(*result));
	struct page page = { .opt = opt, .result = result };
	int r = 0;

	for (uint32_t i = 0; result && i < report_nexperiment; i++) {
		char path[REPORT_PATH_MAX], why[REPORT_PATH_MAX + 300];

		report_path(opt, report_experiments[i].name, "json", path, sizeof(path));
		switch (report_read(path, &result[i], why, sizeof(why))) {
		case REPORT_NONE:
			break;
		case REPORT_BROKEN:
			tool_error("%s; it is not on the page", why);
			r = TOOL_FAILED;
			break;
		case REPORT_READ:
			page.first = page.first ? page.first : &result[i];
			break;
		}
	}
	if (page.first) {
		r |= write_page(&page);
	} else if (!may_be_none) {
		tool_error("there is no result of an experiment in %s", opt->dir);
		r = TOOL_FAILED;
	}
	if (page.drawn.no_gnuplot)
		tool_error(
			"gnuplot is not installed (Debian: gnuplot-nox): the page has no figures");
	for (uint32_t i = 0; result && i < report_nexperiment; i++)
		report_result_free(&result[i]);
	free(result);
	return r;
}
