/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_results.c - results and their journal: written results can be read, measured points are not
 * lost, and the journal of another run is refused.
 */
#include "unit/unit.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiment.h"
#include "journal.h"
#include "result.h"
#include "tool.h"

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },
	{ "where", "", RESULT_TEXT, 0 },
	{ "loop time", "us", RESULT_REAL, 2 },
	{ "part", "%", RESULT_REAL, 1 },
};

static char folder[] = "/tmp/nbar-results-XXXXXX";
static char path[64], journal_path[80];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/x.json", folder);
	snprintf(journal_path, sizeof(journal_path), "%s.journal", path);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(journal_path);
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

/* The output of a function: stdout in text, stderr in said. */
static char text[16384], said[4096];

static void written(const struct result *r, void (*write)(const struct result *r, FILE *to))
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_non_null(f);
	write(r, f);
	fclose(f);
}

static int held = -1;

static void hold_stderr(void)
{
	char name[] = "/tmp/nbar-said-XXXXXX";
	int fd = mkstemp(name);

	fflush(stderr);
	held = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
	unlink(name);
}

static void release_stderr(void)
{
	ssize_t n;

	fflush(stderr);
	n = pread(STDERR_FILENO, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	dup2(held, STDERR_FILENO);
	close(held);
}

static void result_as_json(void **state)
{
	struct result *r = sample();
	json_t *o;
	const char *what, *unit;
	int nodes;
	double loop;

	(void)state;
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
	assert_true(json_object_get(json_object_get(o, "machine"), "cpu"));
	json_decref(o);
	result_free(r);
}

/* The result of an experiment of the literature also has the published values. */
static void result_has_the_published(void **state)
{
	struct result *r = result_new("efficiency", columns, 4);
	const char *what, *value, *source;
	json_t *o;

	(void)state;
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

	(void)state;
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

	(void)state;
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
}

static int open_journal(struct journal **j, const struct result *r, bool resume)
{
	json_t *identity = result_identity(r);
	int status;

	hold_stderr();
	status = journal_open(j, journal_path, identity, resume);
	release_stderr();
	json_decref(identity);
	return status;
}

static void journal_resumes(void **state)
{
	struct result *r = sample();
	struct journal *j;
	double v[2] = { 1.5, 1.0 / 3 }, got[2] = { 0 };

	(void)state;
	assert_int_equal(open_journal(&j, r, false), 0);
	assert_false(journal_find(j, "a", got, 2));
	assert_int_equal(journal_add(j, "a", v, 2), 0);
	assert_int_equal(journal_add(j, "b", v, 1), 0);
	journal_close(j, false);
	assert_int_equal(open_journal(&j, r, false), TOOL_FAILED);
	assert_non_null(strstr(said, "--resume"));
	assert_int_equal(open_journal(&j, r, true), 0);
	assert_int_equal(journal_count(j), 2);
	assert_false(journal_find(j, "a", got, 1));
	assert_false(journal_find(j, "c", got, 1));
	assert_true(journal_find(j, "a", got, 2));
	assert_true(got[0] == 1.5 && fabs(got[1] - v[1]) < 1e-11);
	assert_int_equal(journal_add(j, "c", v, 2), 0);
	journal_close(j, false);
	assert_int_equal(open_journal(&j, r, true), 0);
	assert_int_equal(journal_count(j), 3);
	journal_close(j, true);
	assert_int_equal(access(journal_path, F_OK), -1);
	result_free(r);
}

/* A run is killed in the middle of a line: the earlier points are valid, and the next point is
 * complete. */
static void journal_survives_a_torn_line(void **state)
{
	static const char *const torn[] = { "{\"poi", "{\"point\":\"b\",\"values\":[1.0]}",
					    "\0\0\0" };
	struct result *r = sample();
	struct journal *j;
	double v = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(torn) / sizeof(torn[0]); i++) {
		assert_int_equal(open_journal(&j, r, false), 0);
		assert_int_equal(journal_add(j, "a", &v, 1), 0);
		journal_close(j, false);
		FILE *f = fopen(journal_path, "a");

		fwrite(torn[i], 1, i == 2 ? 3 : strlen(torn[i]), f);
		fclose(f);
		assert_int_equal(open_journal(&j, r, true), 0);
		assert_int_equal(journal_count(j), 1);
		assert_int_equal(journal_add(j, "b", &v, 1), 0);
		journal_close(j, false);
		assert_int_equal(open_journal(&j, r, true), 0);
		assert_int_equal(journal_count(j), 2);
		journal_close(j, true);
	}
	result_free(r);
}

static void refused(const struct result *other, const char *word)
{
	struct journal *j;
	struct stat before, after;

	assert_int_equal(stat(journal_path, &before), 0);
	assert_int_equal(open_journal(&j, other, true), TOOL_FAILED);
	if (!strstr(said, word))
		fail_msg("no '%s' in: %s", word, said);
	assert_int_equal(stat(journal_path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
}

static void journal_refuses_another_run(void **state)
{
	struct result *r = sample(), *other = sample();
	struct journal *j;
	double v = 7;

	(void)state;
	assert_int_equal(open_journal(&j, r, false), 0);
	assert_int_equal(journal_add(j, "a", &v, 1), 0);
	journal_close(j, false);
	result_machine_text(other, "cpu", "another");
	refused(other, "its machine cpu is ");
	result_free(other);
	other = sample();
	result_setting_number(other, "launches", 4);
	refused(other, "its settings launches is 3, and here it is 4");
	result_free(other);
	other = sample();
	result_setting_number(other, "new", 4);
	refused(other, "its settings new is not set");
	result_setting_number(r, "new", 4);
	result_free(other);
	other = result_new("other", columns, 4);
	refused(other, "its experiment is \"test\"");
	result_free(other);
	other = result_new("test", columns, 4);
	refused(other, "settings that this run has not");
	result_free(other);
	result_free(r);
	assert_int_equal(unlink(journal_path), 0);
}

static void journal_refuses_what_is_none(void **state)
{
	struct result *r = sample();
	FILE *f;

	(void)state;
	struct journal *j;

	assert_int_equal(open_journal(&j, r, true), TOOL_FAILED);
	assert_non_null(strstr(said, "there is no"));
	f = fopen(journal_path, "w");
	fputs("my thesis\n", f);
	fclose(f);
	refused(r, "is no journal");
	result_free(r);
	assert_int_equal(unlink(journal_path), 0);
}

/* Runs an experiment of three points, but ends it after `until` points. */
static int experiment(const char *json, bool resume, uint32_t until, uint32_t *measured)
{
	const struct experiment_options opt = { .json = json, .resume = resume };
	struct experiment e;
	struct result *r = sample();
	uint32_t n = 0;
	double v;
	int status;

	*measured = 0;
	hold_stderr();
	fflush(stdout);
	int out = dup(STDOUT_FILENO);

	assert_non_null(freopen("/dev/null", "w", stdout));
	status = experiment_begin(&e, &opt, r, 3);
	for (; !status && n < 3 && n < until; n++) {
		char key[8];

		snprintf(key, sizeof(key), "p%u", n);
		if (!experiment_known(&e, key, 1, &v, 1)) {
			v = n;
			++*measured;
			status = experiment_keep(&e, key, 1, &v, 1);
		}
		add_row(r, n, "nic", v);
	}
	if (n)
		status = experiment_end(&e, status ? status : n < 3 ? TOOL_FAILED : 0);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	release_stderr();
	return status;
}

static void experiment_is_resumed(void **state)
{
	uint32_t measured;
	FILE *f = fopen(path, "w");
	json_t *o;

	(void)state;
	fputs("old\n", f);
	fclose(f);
	assert_int_equal(experiment(path, false, 2, &measured), TOOL_FAILED);
	assert_int_equal(measured, 2);
	assert_non_null(strstr(said, "2 points are kept"));
	f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), f));
	assert_string_equal(text, "old\n");
	fclose(f);
	assert_int_equal(experiment(path, true, 3, &measured), 0);
	assert_int_equal(measured, 1);
	o = json_load_file(path, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(o, "rows")), 3);
	json_decref(o);
	assert_int_equal(access(journal_path, F_OK), -1);
}

static void experiment_refuses_first(void **state)
{
	uint32_t measured;

	(void)state;
	assert_int_equal(experiment("/nowhere/at/all.json", false, 3, &measured), TOOL_FAILED);
	assert_non_null(strstr(said, "cannot write /nowhere/at/all.json"));
	assert_int_equal(measured, 0);
	assert_int_equal(experiment(NULL, true, 3, &measured), TOOL_USAGE);
	assert_int_equal(measured, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(result_as_json),
		cmocka_unit_test(result_has_the_published),
		cmocka_unit_test(result_as_csv),
		cmocka_unit_test(result_as_table),
		cmocka_unit_test(journal_resumes),
		cmocka_unit_test(journal_survives_a_torn_line),
		cmocka_unit_test(journal_refuses_another_run),
		cmocka_unit_test(journal_refuses_what_is_none),
		cmocka_unit_test(experiment_is_resumed),
		cmocka_unit_test(experiment_refuses_first),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
