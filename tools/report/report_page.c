/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_page.c - the page: one HTML file that needs no other file, no script and no network. The
 * old page stays until the new one is complete. All text from files goes through html_text. The
 * page is also well-formed XML, so a test can check that all tags are closed.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "html.h"
#include "template.h"
#include "tool.h"

/* The results, and the position of each list of the template. */
struct page {
	const struct report_options *opt;
	const struct report_result *result, *first; /* by index in report_experiments; any */
	struct report_drawn drawn;
	uint32_t at; /* experiment + 1; 0: before the first */
	bool once;
	struct report_pair machine;
	size_t column;
	const json_t *best; /* row */
	double best_value;
};

static const struct report_experiment *experiment_of(const struct page *p)
{
	return &report_experiments[p->at - 1];
}

static const struct report_result *result_of(const struct page *p)
{
	return &p->result[p->at - 1];
}

static void put_style(void *arg, FILE *to)
{
	(void)arg;
	fputs(template_page_css, to);
}

static void put_version(void *arg, FILE *to)
{
	(void)arg;
	html_text(to, NBAR_VERSION_TEXT);
}

static void put_now(void *arg, FILE *to)
{
	char now[64];
	time_t t = time(NULL);
	struct tm tm;

	(void)arg;
	gmtime_r(&t, &tm);
	strftime(now, sizeof(now), "%Y-%m-%d %H:%M UTC", &tm);
	html_text(to, now);
}

static bool next_machine(void *arg)
{
	struct page *p = arg;

	return report_pair_next(&p->machine, json_object_get(p->first->root, "machine"));
}

static void put_key(void *arg, FILE *to)
{
	report_pair_key(&((const struct page *)arg)->machine, to);
}

static void put_value(void *arg, FILE *to)
{
	report_pair_value(&((const struct page *)arg)->machine, to);
}

/* Those that have a result. */
static bool next_experiment(void *arg)
{
	struct page *p = arg;

	while (p->at < report_nexperiment)
		if (p->result[p->at++].root)
			return true;
	p->at = 0;
	return false;
}

static void put_name(void *arg, FILE *to)
{
	fputs(experiment_of(arg)->name, to);
}

static void put_title(void *arg, FILE *to)
{
	html_text(to, experiment_of(arg)->title);
}

/* The row with the greatest value in the summary column of an experiment. */
static bool next_best(void *arg)
{
	struct page *p = arg;
	int column = report_column(result_of(p), experiment_of(p)->best);
	const json_t *row;
	size_t i;

	p->once = !p->once && column >= 0;
	if (!p->once)
		return false;
	p->best_value = 0;
	json_array_foreach(result_of(p)->rows, i, row)
	{
		double value = json_number_value(json_array_get(row, (size_t)column));

		if (value <= p->best_value)
			continue;
		p->best_value = value;
		p->best = row;
	}
	p->once = p->best_value > 0;
	return p->once;
}

static void put_best_value(void *arg, FILE *to)
{
	html_print(to, "%.2f", ((const struct page *)arg)->best_value);
}

static void put_best_text(void *arg, FILE *to)
{
	html_text(to, experiment_of(arg)->best_text);
}

/* The first columns identify the row. */
static bool next_column(void *arg)
{
	struct page *p = arg;

	p->column = p->column < 3 && p->column < result_of(p)->ncolumn ? p->column + 1 : 0;
	return p->column;
}

static void put_comma(void *arg, FILE *to)
{
	fputs(((const struct page *)arg)->column > 1 ? ", " : "", to);
}

static void put_column(void *arg, FILE *to)
{
	const struct page *p = arg;
	const json_t *column = json_array_get(result_of(p)->columns, p->column - 1);

	html_name(to, json_string_value(json_object_get(column, "name")));
}

static void put_value_there(void *arg, FILE *to)
{
	const struct page *p = arg;
	char text[128];

	report_value(json_array_get(p->best, p->column - 1), 2, text, sizeof(text));
	html_text(to, text);
}

/* For an experiment without a summary column. */
static void put_first_note(void *arg, FILE *to)
{
	const json_t *notes = json_object_get(result_of(arg)->root, "notes");
	const char *note = json_string_value(json_array_get(notes, 0));

	if (!experiment_of(arg)->best && note)
		html_text(to, note);
}

static void put_sections(void *arg, FILE *to)
{
	struct page *p = arg;

	while (next_experiment(p))
		report_section(result_of(p), experiment_of(p), to, &p->drawn);
}

static bool next_no_gnuplot(void *arg)
{
	struct page *p = arg;

	return p->once = !p->once && p->drawn.no_gnuplot;
}

static void put_page(struct page *p, FILE *to)
{
	static const struct template_name names[] = {
		{ "style", put_style, NULL },
		{ "version", put_version, NULL },
		{ "now", put_now, NULL },
		{ "machine", NULL, next_machine },
		{ "key", put_key, NULL },
		{ "value", put_value, NULL },
		{ "contents", NULL, next_experiment },
		{ "name", put_name, NULL },
		{ "title", put_title, NULL },
		{ "best", NULL, next_best },
		{ "best_value", put_best_value, NULL },
		{ "best_text", put_best_text, NULL },
		{ "columns", NULL, next_column },
		{ "comma", put_comma, NULL },
		{ "column", put_column, NULL },
		{ "value_there", put_value_there, NULL },
		{ "first_note", put_first_note, NULL },
		{ "sections", put_sections, NULL },
		{ "no_gnuplot", NULL, next_no_gnuplot },
		{ NULL, NULL, NULL },
	};

	template_fill(template_page_html, names, p, to);
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
