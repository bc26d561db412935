/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_report.c - the parts of a report that process untrusted files: HTML, results, figures.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "html.h"
#include "published.h"
#include "report.h"

static char folder[] = "/tmp/nbar-report-XXXXXX";

static void html_is(const char *text, const char *wanted)
{
	char *got = NULL;
	size_t n;
	FILE *to = open_memstream(&got, &n);

	assert_non_null(to);
	html_text(to, text);
	fclose(to);
	assert_string_equal(got, wanted);
	free(got);
}

static void escapes(void **state)
{
	(void)state;
	html_is("", "");
	html_is("2 nodes, 3.5 us", "2 nodes, 3.5 us");
	html_is("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
	html_is("\" onload=\"x", "&quot; onload=&quot;x");
	html_is("a && b &amp; c", "a &amp;&amp; b &amp;amp; c");
	html_is("\xc2\xb5s", "\xc2\xb5s");
	html_is("a\tb\nc", "a\tb\nc");
	html_is("\x01\x1b\x7f", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static enum report_found read_text(const char *text, struct report_result *r, char why[300])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/x.json", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	why[0] = '\0';
	return report_read(path, r, why, 300);
}

static void reads_a_result(void **state)
{
	struct report_result r;
	char why[300], text[64];

	(void)state;
	assert_int_equal(
		read_text(
			"{\"columns\": [{\"name\": \"nodes\"}, {\"name\": \"mean\", \"unit\": \"us\"}],"
			"\"rows\": [[2, 3.14159], [4, null], [8, \"x\"], [16, true]]}",
			&r, why),
		REPORT_READ);
	assert_int_equal(r.ncolumn, 2);
	assert_int_equal(report_column(&r, "mean"), 1);
	assert_int_equal(report_column(&r, "max"), -1);
	assert_int_equal(report_column(&r, NULL), -1);
	assert_int_equal(report_digits(&r, 1), 2);
	static const char *const shown[] = { "3.14", "", "x", "yes" };

	for (size_t i = 0; i < 4; i++) {
		report_value(json_array_get(json_array_get(r.rows, i), 1), 2, text, sizeof(text));
		assert_string_equal(text, shown[i]);
	}
	report_result_free(&r);
}

static void refuses_what_is_none(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "{\"columns\": [", "is no JSON: line 1" },
		{ "\n\nnot JSON", "is no JSON: line 3" },
		{ "{\"a\": 1, \"a\": 2}", "is no JSON" },
		{ "[]", "no \"columns\"" },
		{ "{}", "no \"columns\"" },
		{ "{\"columns\": [], \"rows\": []}", "no \"columns\"" },
		{ "{\"columns\": {}, \"rows\": []}", "no \"columns\"" },
		{ "{\"columns\": [{\"name\": \"a\"}]}", "no \"columns\"" },
		{ "{\"columns\": [{\"name\": 1}], \"rows\": []}", "has no name" },
		{ "{\"columns\": [\"a\"], \"rows\": []}", "has no name" },
		{ "{\"columns\": [{\"name\": \"a\"}], \"rows\": [[1, 2]]}", "more or fewer" },
		{ "{\"columns\": [{\"name\": \"a\"}], \"rows\": [1]}", "more or fewer" },
		{ "{\"columns\": [{\"name\": \"a\"}], \"rows\": [[{}]]}", "no value" },
	};
	struct report_result r;
	char why[300], path[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (read_text(bad[i].text, &r, why) != REPORT_BROKEN || !strstr(why, bad[i].why))
			fail_msg("%s: %s", bad[i].text, why);
	assert_int_equal(read_text("", &r, why), REPORT_NONE);
	snprintf(path, sizeof(path), "%s/none.json", folder);
	assert_int_equal(report_read(path, &r, why, sizeof(why)), REPORT_NONE);
	assert_int_equal(report_read(folder, &r, why, sizeof(why)), REPORT_BROKEN);
}

/* Text of a result goes into a script, where it must not run commands, and into a page. */
static void figures_are_harmless(void **state)
{
	static const struct report_panel panel = {
		.kind = REPORT_LINES, .title = "t", .x = "nodes", .y = "mean", .series = { "alg" }
	};
	struct report_result r;
	enum report_missing missing;
	char why[300], made[80], text[1024];

	(void)state;
	snprintf(made, sizeof(made), "%s/made", folder);
	snprintf(text, sizeof(text),
		 "{\"columns\": [{\"name\": \"nodes\"}, {\"name\": \"mean\"}, {\"name\": \"alg\"}],"
		 "\"rows\": [[2, 1.5, \"x'; system('touch %s'); '<b>`touch %s`\"],"
		 "[4, 2.5, \"x'; system('touch %s'); '<b>`touch %s`\"], [\"8 'x'\", 1, \"y\"]]}",
		 made, made, made, made);
	assert_int_equal(read_text(text, &r, why), REPORT_READ);
	char *svg = report_figure(&r, &panel, "fig", true, &missing);

	if (!svg && missing == REPORT_NO_GNUPLOT) {
		report_result_free(&r);
		skip();
	}
	assert_non_null(svg);
	assert_int_not_equal(access(made, F_OK), 0);
	assert_null(strstr(svg, "<b>"));
	assert_non_null(strstr(svg, "x?? system(?touch"));
	/* The page sets the colours; the ids are unique in the page. */
	assert_true(!strncmp(svg, "<svg", 4));
	assert_non_null(strstr(svg, "var(--c1)"));
	assert_null(strstr(svg, "var(--c2)"));
	assert_null(strstr(svg, "black"));
	assert_null(strstr(svg, "rgb("));
	assert_null(strstr(svg, "gpPt"));
	free(svg);
	report_result_free(&r);
}

static void figures_without_data(void **state)
{
	static const struct report_panel other = { .x = "nodes", .y = "none" };
	static const struct report_panel log = { .x = "nodes", .y = "mean", .log_y = true };
	static const struct report_panel heat = {
		.kind = REPORT_HEAT, .x = "nodes", .y = "mean", .value = "none"
	};
	const struct report_panel *const panel[] = { &other, &log, &heat };
	struct report_result r;
	enum report_missing missing;
	char why[300];

	(void)state;
	assert_int_equal(read_text("{\"columns\": [{\"name\": \"nodes\"}, {\"name\": \"mean\"}],"
				   "\"rows\": [[2, 0], [3, -1], [4, null], [5, \"x\"]]}",
				   &r, why),
			 REPORT_READ);
	for (int i = 0; i < 3; i++) {
		assert_null(report_figure(&r, panel[i], "fig", true, &missing));
		assert_int_equal(missing, REPORT_NO_DATA);
	}
	report_result_free(&r);
}

/* Each published value belongs to an existing experiment, and names its source. */
/* Number of experiments in a list; 0 if one of them is unknown. */
static uint32_t experiments_in(const char *list)
{
	uint32_t n = 0, words = 1;

	for (const char *c = list; *c; c++)
		words += *c == ' ';
	for (uint32_t e = 0; e < report_nexperiment; e++)
		n += published_of(list, report_experiments[e].name);
	return n == words ? n : 0;
}

/* Number of figures that can show a published value. */
static uint32_t panels_of(const struct published_point *p)
{
	uint32_t n = 0;

	for (uint32_t e = 0; e < report_nexperiment; e++) {
		const struct report_panel *panel = report_experiments[e].panel;

		for (uint32_t i = 0; i < REPORT_PANELS_MAX && panel[i].x; i++)
			n += published_of(p->experiment, report_experiments[e].name) &&
			     panel[i].kind == REPORT_LINES && !strcmp(panel[i].x, p->x) &&
			     !strcmp(panel[i].y, p->y);
	}
	return n;
}

static void published_have_sources(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < npublished; i++) {
		const struct published *p = &published[i];

		if (experiments_in(p->experiment) == 0 || !*p->source || !*p->value || !*p->what)
			fail_msg("%u: %s", i, p->experiment);
	}
	for (uint32_t i = 0; i < npublished_points; i++) {
		const struct published_point *p = &published_points[i];

		if (!panels_of(p))
			fail_msg("no figure has %s over %s of %s", p->y, p->x, p->experiment);
	}
	assert_true(published_of("a", "a") && published_of("b aa", "aa"));
	assert_false(published_of("aa b", "a") || published_of("", "a") || published_of("a", "aa"));
}

static int begin(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/x.json", folder);
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),
		cmocka_unit_test(reads_a_result),
		cmocka_unit_test(refuses_what_is_none),
		cmocka_unit_test(figures_are_harmless),
		cmocka_unit_test(figures_without_data),
		cmocka_unit_test(published_have_sources),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
