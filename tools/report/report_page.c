/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_page.c - the page: one HTML file that needs no other, no script and no network. The old
 * page stays until the new one is complete. All text from files goes through html_text. It is
 * well-formed XML, too, so that a test can tell that nothing is left open.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "html.h"
#include "tool.h"

struct page {
	const struct report_options *opt;
	FILE *to;
	struct report_drawn drawn;
};

static void put_summary(const struct report_result *result, FILE *to)
{
	fputs("<nav><ul>\n", to);
	for (uint32_t i = 0; i < report_nexperiment; i++) {
		const struct report_experiment *e = &report_experiments[i];
		const char *note;

		if (!result[i].root)
			continue;
		fprintf(to, "<li><a href=\"#%s\">", e->name);
		html_text(to, e->title);
		fputs("</a><span>", to);
		note = json_string_value(
			json_array_get(json_object_get(result[i].root, "notes"), 0));
		if (e->best)
			report_best(&result[i], e, to);
		else if (note)
			html_text(to, note);
		fputs("</span></li>\n", to);
	}
	fputs("</ul></nav>\n", to);
}

static void put_page(struct page *p, const struct report_result *result,
		     const struct report_result *first)
{
	char now[64];
	time_t t = time(NULL);
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(now, sizeof(now), "%Y-%m-%d %H:%M UTC", &tm);
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	      "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
	      "<title>nbar: barriers, measured</title>\n<style>\n",
	      p->to);
	for (uint32_t i = 0; report_style[i]; i++)
		fputs(report_style[i], p->to);
	fputs("</style>\n</head>\n<body>\n<header>\n<h1>Barriers, measured</h1>\n<p>", p->to);
	html_print(p->to, "nbar %s, page of %s", NBAR_VERSION_TEXT, now);
	fputs("</p>\n</header>\n<main>\n", p->to);
	put_summary(result, p->to);
	fputs("<section id=\"machine\">\n<h2>Machine</h2>\n", p->to);
	report_object(p->to, json_object_get(first->root, "machine"));
	fputs("</section>\n", p->to);
	for (uint32_t i = 0; i < report_nexperiment; i++)
		if (result[i].root)
			report_section(&result[i], &report_experiments[i], p->to, &p->drawn);
	if (p->drawn.no_gnuplot)
		fputs("<p class=\"warning\">There are no figures: gnuplot is not installed. With it, "
		      "<code>nbar report --render-only</code> draws them.</p>\n",
		      p->to);
	fputs("</main>\n<footer><p>Published values are those of the sources named, measured on the "
	      "hardware named: compare speedups and shapes, not microseconds.</p></footer>\n"
	      "</body>\n</html>\n",
	      p->to);
}

/* 0 or an exit code: the page in a file beside, and then in place of the old one. */
static int write_page(struct page *p, const struct report_result *result,
		      const struct report_result *first)
{
	char path[REPORT_PATH_MAX], beside[REPORT_PATH_MAX];
	bool bad;

	report_path(p->opt, "index", "html", path, sizeof(path));
	report_path(p->opt, "index.html", "new", beside, sizeof(beside));
	p->to = fopen(beside, "w");
	if (!p->to) {
		tool_error("cannot write %s: %s", beside, strerror(errno));
		return TOOL_FAILED;
	}
	put_page(p, result, first);
	bad = ferror(p->to) != 0;
	bad |= fclose(p->to) != 0;
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
	struct report_result *result = calloc(report_nexperiment, sizeof(*result)), *first = NULL;
	struct page page = { .opt = opt };
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
			first = first ? first : &result[i];
			break;
		}
	}
	if (first) {
		r |= write_page(&page, result, first);
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
