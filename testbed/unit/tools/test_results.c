/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_results.c - results: written results can be read, and an interrupted run keeps the old ones.
 */
#include "unit/unit.h"

#include <math.h>
#include <unistd.h>

#include "experiment.h"
#include "result.h"
#include "unit/said.h"
#include "tool.h"

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },
	{ "where", "", RESULT_TEXT, 0 },
	{ "loop time", "us", RESULT_REAL, 2 },
	{ "part", "%", RESULT_REAL, 1 },
};

static char folder[] = "/tmp/nbar-results-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/x.json", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static struct result *sample(void)
{
	struct result *r = result_new("test", columns, 4);

	assert_non_null(r);
	result_setting_number(r, "launches", 3);
	result_setting_text(r, "wire", "ring");
	return r;
}

static void add_row(struct result *r, uint64_t nodes, const char *where, double loop)
{
	result_count(r, nodes);
	result_text(r, where);
	result_real(r, loop);
	result_none(r);
}

/* The output of a function. */
static char text[16384];

static void written(const struct result *r, void (*write)(const struct result *r, FILE *to))
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_non_null(f);
	write(r, f);
	fclose(f);
}

static void result_as_json(void **state)
{
	struct result *r = sample();
	json_t *o;
	const char *what, *unit;
	int nodes;
	double loop;

	add_row(r, 8, "nic", 12.5);
	add_row(r, 16, "ho,st \"x\"", INFINITY);
	result_note(r, "note %d", 1);
	written(r, result_write_json);
	o = json_loads(text, 0, NULL);
	assert_non_null(o);
	assert_int_equal(json_unpack(o, "{s:[[i,s,f,n],[i,s,n,n]]}", "rows", &nodes, &what, &loop,
				     &nodes, &what),
			 0);
	assert_int_equal(nodes, 16);
	assert_string_equal(what, "ho,st \"x\"");
	assert_true(loop == 12.5);
	assert_int_equal(
		json_unpack(o, "{s:[{},{},{s:s,s:s}]}", "columns", "name", &what, "unit", &unit),
		0);
	assert_string_equal(what, "loop_time");
	assert_string_equal(unit, "us");
	assert_int_equal(
		json_unpack(o, "{s:{s:i},s:b}", "settings", "launches", &nodes, "complete", &nodes),
		0);
	assert_int_equal(json_array_size(json_object_get(o, "published")), 0);
	assert_int_equal(json_unpack(o, "{s:{s:s}}", "machine", "cpu", &what), 0);
	assert_true(*what && *what != ':' && !strpbrk(what, "\t\n") &&
		    what[strspn(what, " ")] == *what);
	json_decref(o);
	result_free(r);
}

/* The result of an experiment of the literature also has the published values. */
static void result_has_the_published(void **state)
{
	struct result *r = result_new("efficiency", columns, 4);
	const char *what, *value, *source;
	json_t *o;

	written(r, result_write_json);
	o = json_loads(text, 0, NULL);
	assert_true(json_array_size(json_object_get(o, "published")) >= 4);
	assert_int_equal(json_unpack(o, "{s:[{s:s, s:s, s:s}]}", "published", "what", &what,
				     "value", &value, "source", &source),
			 0);
	assert_string_equal(value, "204.76 us, 366.40 us");
	json_decref(o);
	written(r, result_write_csv);
	assert_non_null(strstr(text, "\n#@published={"));
	result_free(r);
}

static void result_as_csv(void **state)
{
	struct result *r = sample();

	add_row(r, 8, "nic", 12.5);
	add_row(r, 16, "ho,st \"x\"", 1.0 / 3);
	result_note(r, "two\nlines");
	written(r, result_write_csv);
	assert_non_null(strstr(text, "#@experiment=test\n"));
	assert_non_null(strstr(text, "#@wire=ring\n"));
	assert_non_null(strstr(text, "#@launches=3\n"));
	assert_non_null(strstr(text, "#@note=two lines\n"));
	assert_non_null(strstr(text, "\nnodes,where,loop_time_us,part_percent\n8,nic,12.5,\n"
				     "16,\"ho,st \"\"x\"\"\",0.333333,\n"));
	result_free(r);
}

static void result_as_table(void **state)
{
	struct result *r = sample();

	add_row(r, 8, "nic", 12.5);
	add_row(r, 1024, "h\xc3\xb6st", 1234.567);
	result_note(r, "a note");
	written(r, result_write_table);
	assert_string_equal(text, "nodes  where  loop time  part\n"
				  "                     us     %\n"
				  "    8  nic        12.50     -\n"
				  " 1024  h\xc3\xb6st     1234.57     -\n"
				  "a note\n");
	result_free(r);
	/* No unit, no line of units; no space after the last unit. */
	r = result_new("test", (const struct result_column[]){ columns[2], columns[0] }, 2);
	result_real(r, 0.125);
	result_count(r, 8);
	written(r, result_write_table);
	assert_string_equal(text, "loop time  nodes\n"
				  "       us  \n"
				  "     0.12      8\n");
	result_free(r);
	r = result_new("test", columns, 2);
	result_count(r, 8);
	result_text(r, "nic");
	written(r, result_write_table);
	assert_string_equal(text, "nodes  where\n"
				  "    8  nic\n");
	result_free(r);
}

/* Runs an experiment of three points, but ends it after `until` points. */
static const char *said; /* by the last experiment */

static int experiment(const char *json, uint32_t until, uint32_t *measured)
{
	const struct experiment_options opt = { .json = json };
	struct experiment e;
	struct result *r = sample();
	int status;

	*measured = 0;
	said_begin();
	fflush(stdout);
	int out = dup(STDOUT_FILENO);

	assert_non_null(freopen("/dev/null", "w", stdout));
	status = experiment_begin(&e, &opt, r, 3);
	for (; !status && *measured < 3 && *measured < until; ++*measured) {
		experiment_add(&e, 1);
		add_row(r, *measured, "nic", 1);
	}
	if (*measured)
		status = experiment_end(&e, *measured < 3 ? TOOL_FAILED : 0);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	said = said_end();
	return status;
}

static void experiment_keeps_the_old_file(void **state)
{
	uint32_t measured;
	FILE *f = fopen(path, "w");
	json_t *o;

	fputs("old\n", f);
	fclose(f);
	assert_int_equal(experiment(path, 2, &measured), TOOL_FAILED);
	assert_int_equal(measured, 2);
	f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), f));
	assert_string_equal(text, "old\n");
	fclose(f);
	assert_int_equal(experiment(path, 3, &measured), 0);
	o = json_load_file(path, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(o, "rows")), 3);
	json_decref(o);
}

static void experiment_refuses_first(void **state)
{
	uint32_t measured;

	assert_int_equal(experiment("/nowhere/at/all.json", 3, &measured), TOOL_FAILED);
	assert_non_null(strstr(said, "cannot write /nowhere/at/all.json"));
	assert_int_equal(measured, 0);
}

UNIT_MAIN(make_folder, remove_folder, UNIT(result_as_json), UNIT(result_has_the_published),
	  UNIT(result_as_csv), UNIT(result_as_table), UNIT(experiment_keeps_the_old_file),
	  UNIT(experiment_refuses_first))
